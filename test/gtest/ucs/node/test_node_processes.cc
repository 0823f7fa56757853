/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "node_fixture.h"

#include <test/own_ledger.h>
#include <uct/ib/helper_md/quiet_fork.h>

#include <functional>
#include <random>

#include <signal.h>
class test_node_processes : public test_node {
protected:
    void SetUp() override
    {
#if defined(__SANITIZE_THREAD__)
        GTEST_SKIP() << "ThreadSanitizer wants no threads in a child";
#endif
        test_node::SetUp();
    }

    /* In a child of its own that has this slot's worth of the ledger */
    pid_t spawn(const std::function<int()> &function)
    {
        pid_t pid = fork();
        if (pid == 0) {
            alarm(60);
            _exit(function());
        }
        return pid;
    }

    /* Uses of random lengths, never more than @a most at once. Patience is
     * long: the machine may be busy with other things. */
    int work(uint64_t budget, uint64_t most, unsigned seed, unsigned uses,
             test_rank::held *held)
    {
        test_rank own(open(budget, 20000 * MS), held);
        std::mt19937 random(seed);
        unsigned forced = 0;

        own.start();
        for (unsigned i = 0; i < uses; ++i) {
            uint64_t length = 4096 * (1 + random() % (most / 4096));
            forced += own.use(length);
            own.keep(length);
        }
        if (own.figures().peak_bytes > budget) {
            return 3;
        }
        return (forced > 0) ? 4 : 0;
    }
};

/* None has more than its share in use, so nothing ever passes the budget */
TEST_F(test_node_processes, share_a_budget)
{
    static constexpr unsigned RANKS = 4;
    auto watch = rank(8 * MB);
    std::vector<pid_t> pids;
    void *shared = mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(MAP_FAILED, shared);
    auto held = new (shared) test_rank::held;

    for (unsigned i = 0; i < RANKS; ++i) {
        pids.push_back(spawn([&, i] {
            return work(8 * MB, 8 * MB / RANKS, i, 400, held);
        }));
    }
    for (pid_t pid : pids) {
        EXPECT_EQ(0, wait_for_child(pid)) << "3: budget passed, 4: forced";
    }
    EXPECT_EQ(0u, ucs_node_sum(watch->node()));
    EXPECT_LE(watch->figures().ranks, RANKS + 1);
    EXPECT_LE(held->most, 8 * MB);
    EXPECT_GT(held->most, 4 * MB);
    munmap(shared, 4096);
}

/* Killed wherever they are, also as they enter or leave; what they had pinned is
 * there for the others */
TEST_F(test_node_processes, a_hundred_kills_lose_nothing)
{
    std::mt19937 random(7);
    auto survivor = rank(8 * MB);
    survivor->start();

    for (unsigned n = 0; n < 100; ++n) {
        int fds[2];
        char byte;
        ASSERT_EQ(0, pipe(fds));
        pid_t pid = spawn([&] {
            std::mt19937 other(n);
            for (;;) {
                test_rank own(open(8 * MB));
                own.start();
                (void)!write(fds[1], "", 1);
                for (unsigned i = 0; i < 16; ++i) {
                    uint64_t length = 4096 * (1 + other() % 1024);
                    own.use(length);
                    own.keep(length);
                }
            }
            return 0;
        });
        close(fds[1]);
        ASSERT_EQ(1, read(fds[0], &byte, 1));
        close(fds[0]);
        for (unsigned i = random() % 20; i > 0; --i) {
            survivor->use(MB);
            survivor->keep(MB);
        }
        kill(pid, SIGKILL);
        ASSERT_EQ(-SIGKILL, wait_for_child(pid));
        if (n % 10 == 0) {
            /* All of the budget can be had */
            survivor->drop(UINT64_MAX);
            uint64_t forced = survivor->figures().forced;
            ASSERT_FALSE(survivor->use(8 * MB)) << n;
            ASSERT_EQ(forced, survivor->figures().forced);
            ucs_node_unclaim(survivor->node(), 8 * MB);
        }
    }
    survivor->stop(); /* it may be giving something back for a dead one */
    survivor->drop(UINT64_MAX);
    EXPECT_EQ(0u, ucs_node_sum(survivor->node()));

    auto mapped = map();
    EXPECT_TRUE(ledger_is_valid(mapped, UCS_LEDGER_RISE - 1));
    EXPECT_TRUE(ledger_is_settled(mapped));
    unsigned taken       = 0;
    for (auto &owner : mapped->owner) {
        taken += (ucs_load_relaxed(&owner) != 0);
    }
    EXPECT_EQ(1u, taken);
}

/* A rank that is stopped is no reason for others to stop */
TEST_F(test_node_processes, a_stopped_rank_is_not_waited_for_for_ever)
{
    int fds[2];
    char byte = 0;

    ASSERT_EQ(0, pipe(fds));
    pid_t pid = spawn([&] {
        test_rank own(open(4 * MB));
        own.start();
        own.use(4 * MB);
        own.keep(4 * MB);
        (void)!write(fds[1], &byte, 1);
        for (;;) {
            pause();
        }
        return 0;
    });
    ASSERT_EQ(1, read(fds[0], &byte, 1));
    kill(pid, SIGSTOP);
    int status;
    ASSERT_EQ(pid, waitpid(pid, &status, WUNTRACED));

    auto own = rank(4 * MB, 20 * MS);
    alarm(20);
    EXPECT_TRUE(own->use(MB)); /* a use is not refused */
    alarm(0);
    kill(pid, SIGKILL);
    EXPECT_EQ(-SIGKILL, wait_for_child(pid));
    ucs_node_unclaim(own->node(), MB);
    EXPECT_FALSE(own->use(4 * MB));
    ucs_node_unclaim(own->node(), 4 * MB);
    close(fds[0]);
    close(fds[1]);
}
