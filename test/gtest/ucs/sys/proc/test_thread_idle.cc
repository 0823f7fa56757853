/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "../address_space.h"
#include "thread_fixture.h"

#include <sanitized.h>
#include <test/own_proc.h>
#include <ucs/sys/clock.h>
#include <ucs/sys/sync/futex.h>

#include <chrono>

/*
 * A thread that steps only where a core is idle
 */

class test_thread_idle : public test_thread {
protected:
    static constexpr uint64_t MS = 1000000;

    uint64_t on_step(uint64_t now) override
    {
        m_tid = syscall(SYS_gettid);
        m_last = now;
        uint64_t again = m_again;
        return (again == UINT64_MAX) ? again : now + again;
    }

    static uint64_t idle(void *arg, uint64_t now)
    {
        uint64_t due = *static_cast<uint64_t*>(arg);

        return (due == UINT64_MAX) ? due : now + due;
    }

    /* A step of a thread that waits; the next one is due after so long */
    void idle_step(uint64_t due = UINT64_MAX)
    {
        while (!ucs_job_try_step(m_job, idle, &due)) {
            std::this_thread::yield();
        }
    }

    /* The thread of this process by that name, 0: there is none */
    static pid_t thread_named(const char *name)
    {
        pid_t found = 0;

        own_proc_threads(name, &found);
        return found;
    }

    /* It has come so often, in time */
    bool has_come(unsigned count, uint64_t ns = 10000 * MS)
    {
        std::unique_lock<std::mutex> guard(m_lock);

        return m_changed.wait_for(guard, std::chrono::nanoseconds(ns),
                                  [&] { return m_steps >= count; });
    }

    std::atomic<uint64_t> m_again{UINT64_MAX};
    std::atomic<uint64_t> m_last{0};
};

TEST_P(test_thread_idle, its_scout_alone_is_of_the_idle_class)
{
    int before = sched_getscheduler(0);

    start();
    pid_t scout = thread_named("ucx-scout");
    ASSERT_NE(0, scout);
    EXPECT_EQ(SCHED_IDLE, sched_getscheduler(scout));
    EXPECT_EQ(before, sched_getscheduler(m_tid));
    EXPECT_EQ(before, sched_getscheduler(0));
}

TEST_P(test_thread_idle, what_another_step_served_is_not_done_again)
{
    start();
    ucs_thread_hold();
    ucs_thread_release();
    for (unsigned i = 0; i < 20; ++i) {
        idle_step();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(1u, steps());
}

TEST_P(test_thread_idle, what_another_step_leaves_is_not_lost)
{
    start();
    for (unsigned i = 1; i <= 20; ++i) {
        await_sleep();
        idle_step((i % 2) * MS);
        ASSERT_TRUE(has_come(i + 1));
    }
}

/* A time that is put off is waited for, one that is sooner is kept */
TEST_P(test_thread_idle, told_of_a_sooner_time_it_comes_then)
{
    m_again = 3600000 * MS;
    start();
    idle_step(50 * MS);
    uint64_t told = ucs_clock_now();
    ASSERT_TRUE(has_come(2));
    EXPECT_GE(m_last, told + 49 * MS);
}

TEST_P(test_thread_idle, a_bell_is_answered)
{
    uint32_t bell = 0;

    ucs_thread_set_bell(m_thread, &bell);
    start();
    for (unsigned i = 1; i <= 20; ++i) {
        __atomic_store_n(&bell, i, __ATOMIC_SEQ_CST);
        ucs_futex_wake(reinterpret_cast<_Atomic(uint32_t)*>(&bell), 1,
                       UCS_FUTEX_SHARED);
        ASSERT_TRUE(has_come(i + 1));
    }
}

/* Nobody waits for a scout, and what it had is released all the same */
TEST_P(test_thread_idle, a_thousand_that_ended_leave_nothing)
{
    const size_t before = address_space("VmSize");

    for (unsigned i = 0; i < 1000; ++i) {
        ucs_thread_h thread;
        ucs_job_h job;
        ASSERT_EQ(UCS_OK, ucs_thread_create(1, &thread));
        ASSERT_EQ(UCS_OK, ucs_thread_add(thread, step, this, &job));
        ASSERT_EQ(UCS_OK, ucs_job_start(job));
        ucs_thread_destroy(thread);
    }
    while (thread_named("ucx-scout") != 0) { /* until each has been let run */
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ucs_thread_destroy(m_thread);
    create();
    SKIP_IF_SANITIZED(); /* it keeps some of each thread; no race was found */
    EXPECT_GE(before + (4u << 20), address_space("VmSize"));
}

INSTANTIATE_TEST_SUITE_P(kinds, test_thread_idle, ::testing::Values(true));

/*
 * The scout is not let run: it and the helper have one core, which a thread of
 * normal priority wants all of the time
 */

class test_thread_starved : public test_thread_idle {
protected:
    void SetUp() override
    {
        test_thread_idle::SetUp();
        cpu_set_t all;
        ASSERT_EQ(0, sched_getaffinity(0, sizeof(all), &all));
        CPU_ZERO(&m_one);
        for (int cpu = 0; CPU_COUNT(&m_one) == 0; ++cpu) {
            if (CPU_ISSET(cpu, &all)) {
                CPU_SET(cpu, &m_one);
            }
        }
    }

    void TearDown() override
    {
        m_is_over = true;
        if (m_busy.joinable()) {
            m_busy.join();
        }
        test_thread_idle::TearDown();
    }

    void starve()
    {
        std::atomic<bool> is_bound{false};

        ASSERT_EQ(UCS_OK, ucs_thread_bind(m_thread, &m_one));
        m_busy = std::thread([&] {
            ASSERT_EQ(0, sched_setaffinity(0, sizeof(m_one), &m_one));
            is_bound = true;
            while (!m_is_over) {
            }
        });
        while (!is_bound) {
            std::this_thread::yield();
        }
    }

    cpu_set_t         m_one;
    std::thread       m_busy;
    std::atomic<bool> m_is_over{false};
};

/* The end of a process waits for it, and the helper itself has its share of the
 * core */
TEST_P(test_thread_starved, it_is_stopped_at_once)
{
    start();
    starve();
    ucs_job_wake(m_job); /* so the scout has something to do */
    uint64_t begin = ucs_clock_now();
    ucs_thread_stop(m_thread);
    EXPECT_LT(ucs_clock_now() - begin, 200 * MS);
}

/* So does fork() */
TEST_P(test_thread_starved, it_is_held_at_once)
{
    start();
    starve();
    for (unsigned i = 0; i < 20; ++i) {
        ucs_job_wake(m_job);
        uint64_t begin = ucs_clock_now();
        ucs_thread_hold();
        EXPECT_LT(ucs_clock_now() - begin, 200 * MS);
        ucs_thread_release();
    }
}

/* A rank that waits takes the steps itself */
TEST_P(test_thread_starved, others_may_step)
{
    start();
    starve();
    for (unsigned i = 0; i < 1000; ++i) {
        idle_step(i % 2);
    }
}

TEST_P(test_thread_starved, a_bell_is_answered_at_once)
{
    uint32_t bell = 0;

    ucs_thread_set_bell(m_thread, &bell);
    start();
    starve();
    for (unsigned i = 1; i <= 5; ++i) {
        __atomic_store_n(&bell, i, __ATOMIC_SEQ_CST);
        ucs_futex_wake(reinterpret_cast<_Atomic(uint32_t)*>(&bell), 1,
                       UCS_FUTEX_SHARED);
        EXPECT_TRUE(has_come(i + 1, 500 * MS)) << i;
    }
}

/* What is overdue for a second is done all the same. Each turn that the scout
 * gets beside that is the kernel's gift. */
TEST_P(test_thread_starved, what_is_overdue_is_done)
{
    m_again = 10 * MS;
    start();
    starve();
    unsigned before = steps();
    EXPECT_TRUE(has_come(before + 2, 3000 * MS));
}

INSTANTIATE_TEST_SUITE_P(kinds, test_thread_starved, ::testing::Values(true));
