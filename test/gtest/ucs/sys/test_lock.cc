/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/sync/lock.h>

#include <gtest/gtest.h>

#include <atomic>
#include <ctime>
#include <sched.h>
#include <thread>

static uint64_t now_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return ((uint64_t)now.tv_sec * 1000000000) + (uint64_t)now.tv_nsec;
}

static bool bind_to_first_processor()
{
    cpu_set_t all, one;
    int cpu = 0;

    if (sched_getaffinity(0, sizeof(all), &all) != 0) {
        return false;
    }
    while (!CPU_ISSET(cpu, &all)) {
        ++cpu;
    }
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof(one), &one) == 0;
}

class test_lock : public ::testing::Test {
protected:
    /* Holds the lock until the other waits for it */
    void own()
    {
        EXPECT_TRUE(bind_to_first_processor());
        ucs_lock(&m_lock);
        m_is_held = true;
        while (!m_is_asked) {
        }
        ucs_unlock(&m_lock);
    }

    /* On the processor of the owner, which it keeps from running */
    void ask()
    {
        const struct sched_param first = {1};
        uint64_t begin, begin_used;

        EXPECT_TRUE(bind_to_first_processor());
        while (!m_is_held) {
            sched_yield();
        }
        m_is_allowed = sched_setscheduler(0, SCHED_FIFO, &first) == 0;
        m_is_asked   = true;
        begin        = now_ns(CLOCK_MONOTONIC);
        begin_used   = now_ns(CLOCK_THREAD_CPUTIME_ID);
        ucs_lock(&m_lock);
        ucs_unlock(&m_lock);
        m_used_ns   += now_ns(CLOCK_THREAD_CPUTIME_ID) - begin_used;
        m_waited_ns += now_ns(CLOCK_MONOTONIC) - begin;
    }

    ucs_lock_t        m_lock{};
    std::atomic<bool> m_is_held{false}, m_is_asked{false};
    bool              m_is_allowed = false;
    uint64_t          m_used_ns = 0, m_waited_ns = 0;
};

/* Its waiting would end when the kernel takes the processor from the class for a
 * moment, tens of milliseconds later. Other programs may run before the owner
 * does, so processor time counts, not time. */
TEST_F(test_lock, a_real_time_thread_lets_the_owner_run)
{
    for (unsigned round = 0; round < 5; ++round) {
        m_is_held = m_is_asked = false;
        std::thread owner([this] { own(); });
        std::thread other([this] { ask(); });
        owner.join();
        other.join();
        if (!m_is_allowed) {
            GTEST_SKIP() << "no real-time class for this user";
        }
    }
    EXPECT_LT(m_used_ns, (m_waited_ns / 2) + 1000000) << m_waited_ns;
}
