/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/sync/lock.h>

#include <gtest/gtest.h>

#include <atomic>
#include <sched.h>
#include <sys/resource.h>
#include <thread>

/* How often the calling thread has slept */
static long sleeps()
{
    struct rusage usage;

    EXPECT_EQ(0, getrusage(RUSAGE_THREAD, &usage));
    return usage.ru_nvcsw;
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
        long before;

        EXPECT_TRUE(bind_to_first_processor());
        while (!m_is_held) {
            sched_yield();
        }
        m_is_allowed = sched_setscheduler(0, SCHED_FIFO, &first) == 0;
        m_is_asked   = true;
        before       = sleeps();
        ucs_lock(&m_lock);
        ucs_unlock(&m_lock);
        m_sleeps = sleeps() - before;
    }

    ucs_lock_t        m_lock{};
    std::atomic<bool> m_is_held{false}, m_is_asked{false};
    bool              m_is_allowed = false;
    long              m_sleeps     = 0;
};

/* If it did not sleep its waiting would end when the kernel takes the processor from the
 * class for a moment, tens of milliseconds later. Other programs may run before the
 * owner does, so sleeps count, not time. */
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
        EXPECT_LT(0, m_sleeps);
    }
}
