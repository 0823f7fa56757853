/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "node_fixture.h"
#include <uct/ib/helper_md/quiet_fork.h>

#include <ucs/node/busy.h>
#include <ucs/sys/thread.h>

#include <sched.h>
#include <signal.h>

class test_busy : public ::testing::Test {
protected:
    static constexpr uint64_t MS   = 1000000;
    static constexpr uint64_t S    = 1000 * MS;
    static constexpr uint64_t CORE = UCS_BUSY_CORE;

    /* A second in which it ran and waited for so long */
    bool second(uint64_t ran_ns, uint64_t waited_ns, unsigned cores = 1)
    {
        m_now             += S;
        m_count.ran_ns    += ran_ns;
        m_count.waited_ns += waited_ns;
        return ucs_busy_note(&m_busy, OWNER, m_now, &m_count, cores);
    }

    uint64_t wants(unsigned cores = 1)
    {
        return ucs_busy_wants(&m_busy, OWNER, cores);
    }

    static constexpr uint64_t OWNER = 17;

    ucs_busy_t m_busy        = {};
    ucs_busy_count_t m_count = {0, 0, 1};
    uint64_t m_now           = S;
};

TEST_F(test_busy, who_is_not_known_yet_wants_all_its_cores)
{
    EXPECT_EQ(CORE, wants());
    EXPECT_EQ(4 * CORE, wants(4));
    second(0, 0);
    EXPECT_EQ(CORE, wants()) << "one look is no window";
    second(S / 4, 0);
    EXPECT_EQ(CORE / 4, wants());
    EXPECT_EQ(CORE, ucs_busy_wants(&m_busy, OWNER + 1, 1))
            << "another has the slot now";
}

/* Four that spin on two processors look as busy as they are */
TEST_F(test_busy, waiting_for_a_processor_is_wanting_one)
{
    second(0, 0);
    second(S / 2, S / 2);
    EXPECT_EQ(CORE, wants());
    second(S / 20, 19 * S / 20);
    second(S / 20, 19 * S / 20);
    EXPECT_EQ(CORE, wants());
    second(S, S); /* never more than it uses */
    EXPECT_EQ(CORE, wants());
    /* Its other threads wait as the first one does */
    second(S, S / 2, 4);
    EXPECT_EQ(3 * CORE, wants(4));
}

TEST_F(test_busy, one_quiet_second_is_not_believed)
{
    second(0, 0);
    second(S, 0);
    second(0, 0);
    EXPECT_EQ(CORE, wants());
    EXPECT_TRUE(second(0, 0)) << "it did nothing at all";
    EXPECT_EQ(0u, wants());
    EXPECT_FALSE(second(S / 2, 0)) << "one busy second is";
    EXPECT_EQ(CORE / 2, wants());
}

/* Where the system does not tell of waiting, who runs a little may be one that
 * spins among many */
TEST_F(test_busy, without_a_word_on_waiting)
{
    m_count.has_waited = 0;
    second(0, 0);
    second(S / 50, 0, 2);
    EXPECT_EQ(2 * CORE, wants(2));
    second(0, 0, 2);
    second(0, 0, 2);
    EXPECT_EQ(0u, wants(2));
}

/* A clock that stands still, counters that run back: of a number that is
 * another process's now */
TEST_F(test_busy, figures_that_cannot_be)
{
    second(S, S);
    m_now -= S;
    second(S, S);
    EXPECT_EQ(CORE, wants());
    m_count.ran_ns    = 0;
    m_count.waited_ns = 0;
    second(0, 0);
    second(0, 0);
    EXPECT_EQ(0u, wants());
    m_count.ran_ns = UINT64_MAX;
    second(0, 0, 1024);
    EXPECT_EQ(1024 * CORE, wants(1024));
}

/* What the system tells of processes that spin, sleep, are stopped, are dead */
TEST_F(test_busy, the_system_tells)
{
    ucs_busy_count_t before, after;
    pid_t pid = fork();

    if (pid == 0) {
        for (volatile unsigned i = 0;; ++i) {
        }
    }
    ASSERT_TRUE(ucs_busy_read(pid, &before));
    auto is_running = [&] {
        EXPECT_TRUE(ucs_busy_read(pid, &after));
        return after.ran_ns > before.ran_ns + 5 * MS;
    };
    for (unsigned i = 0; !is_running() && (i < 10000); ++i) {
        usleep(1000);
    }
    EXPECT_TRUE(is_running());
    EXPECT_GE(after.waited_ns, before.waited_ns);

    int status;
    kill(pid, SIGSTOP);
    ASSERT_EQ(pid, waitpid(pid, &status, WUNTRACED));
    ASSERT_TRUE(ucs_busy_read(pid, &before));
    /* While this thread runs */
    uint64_t until = ucs_thread_spent() + 5 * MS;
    while (ucs_thread_spent() < until) {
    }
    ASSERT_TRUE(ucs_busy_read(pid, &after));
    EXPECT_EQ(before.ran_ns, after.ran_ns);
    EXPECT_EQ(before.waited_ns, after.waited_ns);

    kill(pid, SIGKILL);
    EXPECT_EQ(-SIGKILL, wait_for_child(pid));
    EXPECT_FALSE(ucs_busy_read(pid, &after));
}

/*
 * A rank among others whose figures are made up
 */

class test_node_busy : public test_node {
protected:
    static constexpr uint64_t S = 1000000000;

    /* One of a job of our own that runs, as the ones of another do as told */
    static int read(pid_t pid, ucs_busy_count_t *count)
    {
        *count = {(pid == getpid()) ? mine : theirs, 0, 1};
        return 1;
    }

    void SetUp() override
    {
        test_node::SetUp();
        mine = theirs            = 0;
        ucs_node_params_t params = {};
        char error[256];
        params.name   = m_name.c_str();
        params.budget = UINT64_MAX;
        params.now    = [] { return at; };
        params.busy   = read;
        at            = 1000 * S;
        ASSERT_EQ(UCS_OK,
                  ucs_node_open(&params, &m_node, error, sizeof(error)));
        ucs_node_listen(m_node, 1);
        CPU_SET(0, &m_topology.allowed);
        m_ledger = ledger();
        /* Other ranks: of a process that lives as long as we do */
        m_other = fork();
        if (m_other == 0) {
            uint64_t owner;
            ucs_ledger_enter(m_ledger, &owner);
            m_ledger->slots[1].cores = 1;
            pause();
            _exit(0);
        }
        while (ucs_load_acquire(&m_ledger->slots[1].cores) == 0) {
            sched_yield();
        }
    }

    void TearDown() override
    {
        if (m_other > 0) {
            kill(m_other, SIGKILL);
            wait_for_child(m_other);
        }
        ucs_node_close(m_node);
        ucs_ledger_close(m_ledger);
        test_node::TearDown();
    }

    ucs_place_t turn(uint64_t ran_ns, uint64_t their_ns)
    {
        ucs_node_work_t work = {0, 1};
        ucs_place_t place;

        at     += S;
        mine   += ran_ns;
        theirs += their_ns;
        ucs_node_turn(m_node, at, &work, &m_topology, &place);
        return place;
    }

    ucs_node_figures_t figures()
    {
        ucs_node_figures_t figures;
        ucs_node_figures(m_node, &figures);
        return figures;
    }

    static uint64_t     at, mine, theirs;
    ucs_node_h m_node                    = nullptr;
    ucs_place_topology_t m_topology = {};
    ucs_ledger_t *m_ledger               = nullptr;
    pid_t m_other                        = -1;
};

uint64_t test_node_busy::at, test_node_busy::mine, test_node_busy::theirs;

/* The other one comes to rest, works again, and goes */
TEST_F(test_node_busy, the_decision_is_made_again_by_what_others_want)
{
    EXPECT_FALSE(turn(S, S).runs) << "nothing is known yet";
    EXPECT_EQ(UCS_PLACE_CROWDED, figures().why);
    EXPECT_EQ(1 * S, figures().since_ns);
    EXPECT_FALSE(turn(S, S).runs);
    EXPECT_FALSE(turn(S, 0).runs) << "one quiet second";
    EXPECT_TRUE(turn(S, 0).runs);
    EXPECT_EQ(UCS_PLACE_LIGHT, figures().why);
    EXPECT_EQ(4 * S, figures().since_ns);
    EXPECT_EQ(3 * S, figures().rest_ns);
    EXPECT_EQ(1u, figures().rests);
    EXPECT_FALSE(turn(S, S).runs);
    at += S / 2;
    EXPECT_EQ(3 * S + S / 2, figures().rest_ns) << "it still rests";
    EXPECT_EQ(2u, figures().ranks);
}

/* Killed, its slot is not given back: it is found dead in the same second, for
 * it does nothing any more. It is not buried, so its number is still taken. */
TEST_F(test_node_busy, the_dead_lose_their_cores_at_once)
{
    siginfo_t info;

    turn(S, S);
    EXPECT_FALSE(turn(S, S).runs);
    kill(m_other, SIGKILL);
    ASSERT_EQ(0, waitid(P_PID, m_other, &info, WEXITED | WNOWAIT));
    EXPECT_TRUE(turn(S, 0).runs);
    EXPECT_EQ(0u, ucs_load_relaxed(&m_ledger->owner[1]));
}

/* The figure of the one before in a slot is nobody's */
TEST_F(test_node_busy, a_new_owner_of_a_slot_is_not_known)
{
    for (unsigned i = 0; i < 3; ++i) {
        turn(S, 0);
    }
    EXPECT_TRUE(turn(S, 0).runs);
    ucs_store_relaxed(&m_ledger->owner[1],
                      ucs_load_relaxed(&m_ledger->owner[0]));
    m_ledger->slots[1].cores = 2;
    EXPECT_FALSE(turn(S, 0).runs);
}
