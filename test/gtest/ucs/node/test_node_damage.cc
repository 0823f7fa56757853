/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <uct/ib/helper_md/decorator_fixture.h>
#include <uct/ib/helper_md/log_capture.h>
#include <uct/ib/helper_md/quiet_fork.h>
#include "node_fixture.h"

#include <random>

#include <signal.h>

/*
 * A ledger that another process of the user writes over, or removes
 */

class test_node_damage : public test_node {
protected:
    void SetUp() override
    {
        test_node::SetUp();
        m_mapped = std::make_unique<mapped_ledger>(m_name);
        m_ledger = *m_mapped;
    }

    void TearDown() override
    {
        if (m_other > 0) {
            kill(m_other, SIGKILL);
            wait_for_child(m_other);
        }
        test_node::TearDown();
    }

    /* Another process that lives, and its owner word */
    uint64_t start_other()
    {
        m_other = fork();
        if (m_other == 0) {
            uint64_t owner;
            ucs_ledger_enter(m_ledger, &owner);
            ucs_store_release(&m_ledger->slots[1].listens, 1);
            pause();
            _exit(0);
        }
        while (ucs_load_acquire(&m_ledger->slots[1].listens) == 0) {
            sched_yield();
        }
        return ucs_load_relaxed(&m_ledger->owner[1]);
    }

    int mend(ucs_node_h node)
    {
        return ucs_node_mend(node, now());
    }

    std::unique_ptr<mapped_ledger> m_mapped;
    ucs_ledger_t *m_ledger = nullptr;
    pid_t m_other          = -1;
};

/* Two would write their figures to one slot. The budget is its own now, all
 * else goes on, and the slot stays with the other. */
TEST_F(test_node_damage, a_slot_that_another_has_is_left_to_it)
{
    auto one = rank(4 * MB);
    uint64_t other = start_other();

    ASSERT_FALSE(one->use(MB));
    EXPECT_TRUE(mend(one->node()));
    ucs_store_relaxed(&m_ledger->owner[0], other);
    ucs_store_relaxed(&m_ledger->pinned[0], 0);
    EXPECT_FALSE(mend(one->node()));
    EXPECT_TRUE(mend(one->node())) << "said once";

    EXPECT_FALSE(one->use(3 * MB));
    EXPECT_TRUE(one->use(1)) << "the budget is kept still";
    EXPECT_EQ(4 * MB + 1, ucs_node_sum(one->node()));
    EXPECT_EQ(0u, ucs_load_relaxed(&m_ledger->pinned[0]));
    ucs_node_serve(one->node());
    ucs_node_unclaim(one->node(), 4 * MB + 1);
    one.reset();
    EXPECT_EQ(other, ucs_load_relaxed(&m_ledger->owner[0]));
}

/* Of one that is dead nothing need be feared */
TEST_F(test_node_damage, a_slot_that_a_dead_one_has_is_taken_back)
{
    auto first = rank(4 * MB), one = rank(4 * MB);

    uint64_t owner = ucs_load_relaxed(&m_ledger->owner[1]);

    ucs_store_relaxed(&m_ledger->owner[1], UINT64_MAX);
    EXPECT_TRUE(mend(one->node()));
    EXPECT_EQ(owner, ucs_load_relaxed(&m_ledger->owner[1]));
}

/* Else nobody could enter any more */
TEST_F(test_node_damage, a_wrong_stamp_is_put_right_by_who_is_there)
{
    auto one = rank(4 * MB);

    ucs_store_relaxed(&m_ledger->stamp, 12345);
    EXPECT_TRUE(mend(one->node()));
    rank(4 * MB); /* enters */
}

TEST_F(test_node_damage, those_of_a_removed_ledger_go_on)
{
    auto one = rank(4 * MB), two = rank(4 * MB);

    EXPECT_TRUE(ucs_ledger_remove(m_name.c_str()));
    EXPECT_FALSE(one->use(3 * MB));
    EXPECT_FALSE(ucs_node_claim(two->node(), 2 * MB, UCS_CLAIM_USE));
    EXPECT_TRUE(mend(one->node()));
    ucs_node_unclaim(one->node(), 3 * MB);
    auto three = rank(4 * MB);
    EXPECT_EQ(1u, three->figures().ranks);
}

/*
 * The whole helper
 */

class test_vandal : public test_decorator {
protected:
    /* Words get what stands in others, or anything; half of them are words
     * that every claim reads */
    static void scribble(ucs_ledger_t *ledger, std::mt19937_64 &random)
    {
        auto words   = reinterpret_cast<_Atomic(uint64_t) *>(ledger);
        size_t count = sizeof(*ledger) / sizeof(uint64_t);
        size_t near  = offsetof(ucs_ledger_t, slots[2]) / sizeof(uint64_t);

        for (unsigned i = 0; i < 64; ++i) {
            uint64_t value = 0;
            switch (random() % 4) {
            case 0:
                value = random();
                break;
            case 1:
                value = random() % (8 * TEST_LENGTH);
                break;
            case 2:
                value = ucs_load_relaxed(&words[random() % near]);
                break;
            }
            ucs_store_relaxed(&words[random() % ((i % 2) ? near : count)],
                              value);
        }
    }
};

/* Registrations are as without it: none is refused, none takes for ever, and
 * at most one line is printed */
TEST_F(test_vandal, does_not_disturb_registrations)
{
    mapped_ledger mapped(own_ledger_name());
    pid_t vandal = fork();
    if (vandal == 0) {
        std::mt19937_64 random(5);
        alarm(60);
        for (;;) {
            scribble(mapped, random);
            usleep(100); /* its pace; nothing waits for it */
        }
    }
    for (auto policy : {UCT_HELPER_CPU_POLICY_IDLE,
                        UCT_HELPER_CPU_POLICY_CONSERVATIVE}) {
        EXPECT_EQ(0, in_child([&] {
            log_capture capture;
            fake_lower lower;
            m_config.policy          = UCS_REGCACHE_POLICY_PREDICT;
            m_config.cpu_policy      = policy;
            m_config.node_max_pinned = 4 * TEST_LENGTH;
            attach(lower);
            uint64_t until = ucs_clock_now() + 1000000000;
            for (unsigned n = 0; ucs_clock_now() < until; ++n) {
                uct_mem_h memh = reg(lower, (char*)m_buffer + (n % 8) * 4096,
                                     TEST_LENGTH / 2);
                if (memh == nullptr) {
                    return 1;
                }
                dereg(lower, memh);
            }
            close(lower);
            size_t lines = 0;
            for (const auto &line : log_capture::lines()) {
                lines += (line.find("ledger") != std::string::npos);
            }
            return (lines <= 1) ? 0 : 2;
        })) << policy;
    }
    kill(vandal, SIGKILL);
    EXPECT_EQ(-SIGKILL, wait_for_child(vandal));
}
