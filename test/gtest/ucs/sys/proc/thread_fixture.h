/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef THREAD_FIXTURE_H_
#define THREAD_FIXTURE_H_

#include <uct/ib/helper_md/quiet_fork.h>

#include <ucs/sys/proc/thread.h>

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <fenv.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

/** Both kinds: it comes whenever it is to, or where a core is idle. */
class test_thread : public ::testing::TestWithParam<bool> {
protected:
    void SetUp() override
    {
        create();
    }

    void create()
    {
        ASSERT_EQ(UCS_OK, ucs_thread_create(GetParam(), &m_thread));
        ASSERT_EQ(UCS_OK, ucs_thread_add(m_thread, step, this, &m_job));
    }

    void TearDown() override
    {
        ucs_thread_destroy(m_thread);
    }

    static uint64_t step(void *arg, uint64_t now)
    {
        test_thread *self = static_cast<test_thread*>(arg);
        std::lock_guard<std::mutex> guard(self->m_lock);
        uint64_t next = self->on_step(now);

        ++self->m_steps;
        self->m_changed.notify_all();
        return next;
    }

    virtual uint64_t on_step(uint64_t)
    {
        m_traps = fegetexcept();
        m_tid   = syscall(SYS_gettid);
        return UINT64_MAX;
    }

    /* It has stepped once, and sleeps */
    void start()
    {
        ASSERT_EQ(UCS_OK, ucs_job_start(m_job));
        await_steps(1);
        await_sleep();
    }

    void await_steps(unsigned count)
    {
        std::unique_lock<std::mutex> guard(m_lock);
        m_changed.wait(guard, [&] { return m_steps >= count; });
    }

    unsigned steps()
    {
        std::lock_guard<std::mutex> guard(m_lock);
        return m_steps;
    }

    /* Processors that the helper may run on */
    int processors()
    {
        cpu_set_t cpus;

        EXPECT_EQ(0, sched_getaffinity(m_tid, sizeof(cpus), &cpus));
        return CPU_COUNT(&cpus);
    }

    /* State of the helper as the kernel sees it */
    char state()
    {
        return thread_state(m_tid);
    }

    void await_sleep()
    {
        while (state() != 'S') {
            std::this_thread::yield();
        }
    }

    ucs_thread_h            m_thread;
    ucs_job_h               m_job;
    std::mutex              m_lock; /* protects what follows */
    std::condition_variable m_changed;
    unsigned                m_steps = 0;
    std::atomic<pid_t>      m_tid{0};
    std::atomic<int>        m_traps{-1}; /* of floating-point exceptions */
};

#endif
