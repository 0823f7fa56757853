/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <gtest/gtest.h>

#include <ucs/node/taken.h>
#include <ucs/sys/clock.h>
#include <ucs/sys/thread.h>

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <thread>

class test_taken : public ::testing::Test {
protected:
    static constexpr uint64_t MS = 1000000;

    /* A window in which the helper ran for so long, the application for so long
     * on all its threads, and its first thread waited for so long */
    double window(uint64_t helper_ns, uint64_t ran_ns, uint64_t waited_ns,
                  uint64_t elapsed_ns = UCS_TAKEN_WINDOW_NS)
    {
        m_now             += elapsed_ns;
        m_spent_ns        += helper_ns;
        m_count.ran_ns    += helper_ns + ran_ns;
        m_count.waited_ns += waited_ns;
        ucs_taken_note(&m_taken, m_now, m_spent_ns, &m_count);
        return ucs_taken_share(&m_taken);
    }

    /* What the system tells of this process while its first thread does as told
     * and another one works for a fifth of the time. The same processor for
     * both, so that other programs of the machine decide nothing. */
    double live(bool spins)
    {
        std::atomic<bool> stop{false};
        cpu_set_t before, one;
        double share = 0;

        EXPECT_EQ(0, sched_getaffinity(0, sizeof(before), &before));
        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        EXPECT_EQ(0, sched_setaffinity(0, sizeof(one), &one));
        std::thread helper([&] {
            ucs_taken_t taken = {};
            ucs_busy_count_t count;

            for (unsigned windows = 0; windows < 5;) {
                uint64_t until = ucs_thread_spent() + MS / 5;
                while (ucs_thread_spent() < until) {
                }
                usleep(1000);
                uint64_t now = ucs_clock_now();
                if (ucs_taken_is_due(&taken, now)) {
                    EXPECT_TRUE(ucs_busy_read(getpid(), &count));
                    ucs_taken_note(&taken, now, ucs_thread_spent(), &count);
                    ++windows;
                }
            }
            share = ucs_taken_share(&taken);
            stop  = true;
        });
        while (spins && !stop) {
        }
        helper.join();
        EXPECT_EQ(0, sched_setaffinity(0, sizeof(before), &before));
        return share;
    }

    ucs_taken_t m_taken      = {};
    ucs_busy_count_t m_count = {0, 0, 1};
    uint64_t m_now           = 1000 * MS;
    uint64_t m_spent_ns      = 0;
};

TEST_F(test_taken, nothing_is_known_before_a_window_is_over)
{
    EXPECT_TRUE(ucs_taken_is_due(&m_taken, m_now));
    EXPECT_GT(0, window(5 * MS, 95 * MS, 5 * MS));
    EXPECT_FALSE(ucs_taken_is_due(&m_taken, m_now + UCS_TAKEN_WINDOW_NS - 1));
    EXPECT_TRUE(ucs_taken_is_due(&m_taken, m_now + UCS_TAKEN_WINDOW_NS));
}

TEST_F(test_taken, what_the_application_waits_while_the_helper_runs)
{
    window(0, 0, 0);
    EXPECT_DOUBLE_EQ(0.5, window(4 * MS, 96 * MS, 2 * MS));
    EXPECT_GT(window(4 * MS, 96 * MS, 40 * MS), 0.99) << "of other programs";
    EXPECT_EQ(1, ucs_taken_share(&m_taken)) << "never more than it took";
}

TEST_F(test_taken, an_idle_core_costs_nothing)
{
    window(0, 0, 0);
    for (unsigned i = 0; i < 10; ++i) {
        EXPECT_EQ(0, window(4 * MS, 100 * MS, 0));
    }
}

/* One thread of eight is preempted an eighth of the times */
TEST_F(test_taken, the_first_thread_stands_for_all)
{
    window(0, 0, 0);
    EXPECT_DOUBLE_EQ(1, window(4 * MS, 800 * MS, MS / 2));
}

TEST_F(test_taken, what_was_fades)
{
    window(0, 0, 0);
    EXPECT_EQ(1, window(4 * MS, 96 * MS, 4 * MS));
    double share = window(4 * MS, 96 * MS, 0);
    EXPECT_GT(share, 0.3) << "one quiet window is not believed";
    EXPECT_LT(share, 0.6);
    for (unsigned i = 0; i < 10; ++i) {
        window(4 * MS, 96 * MS, 0);
    }
    EXPECT_LT(ucs_taken_share(&m_taken), 0.03);
    window(4 * MS, 96 * MS, 4 * MS);
    window(4 * MS, 0, 0, 100 * UCS_TAKEN_WINDOW_NS);
    EXPECT_LT(ucs_taken_share(&m_taken), 0.05) << "a long window is as many";
}

/* A helper that did nothing takes what it took before */
TEST_F(test_taken, no_time_no_news)
{
    window(0, 0, 0);
    EXPECT_GT(0, window(0, 100 * MS, 3 * MS));
    window(4 * MS, 96 * MS, 4 * MS);
    EXPECT_EQ(1, window(0, 100 * MS, 0));
    EXPECT_EQ(1, window(0, 100 * MS, 0, 0)) << "a clock that stands still";
}

TEST_F(test_taken, without_a_word_on_waiting)
{
    m_count.has_waited = 0;
    window(0, 0, 0);
    EXPECT_EQ(1, window(4 * MS, 50 * MS, 0));
    for (unsigned i = 0; i < 12; ++i) {
        window(4 * MS, 0, 0);
    }
    EXPECT_LT(ucs_taken_share(&m_taken), 0.05) << "nobody ran";
}

TEST_F(test_taken, the_system_tells)
{
    EXPECT_GT(live(true), 0.6);
    EXPECT_LT(live(false), 0.2);
}
