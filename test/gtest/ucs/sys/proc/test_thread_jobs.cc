/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

#include <ucs/sys/clock.h>
#include <ucs/sys/sync/futex.h>
#include <ucs/sys/proc/thread.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include <unistd.h>

/*
 * Several jobs of one thread. Both kinds: it comes whenever it is to, or where a core
 * is idle.
 */

class test_thread_jobs : public ::testing::TestWithParam<bool> {
protected:
    /* It steps when it is woken, or after so long, once; consumes what is queued */
    struct work {
        std::atomic<unsigned> steps{0};
        std::atomic<unsigned> queued{0};
        std::atomic<unsigned> consumed{0};
        std::atomic<uint64_t> again{UINT64_MAX};
        std::atomic<bool>     is_held{false}; /* a step does not end */
        std::atomic<work*>    wakes{nullptr}; /* whom a step wakes */
        ucs_job_h             job;
    };

    static uint64_t step(void *arg, uint64_t now)
    {
        work *self     = static_cast<work*>(arg);
        uint64_t again = self->again.exchange(UINT64_MAX);

        self->consumed += self->queued.exchange(0);
        if (self->wakes != nullptr) {
            ucs_job_wake(self->wakes.load()->job);
        }
        ++self->steps;
        while (self->is_held) {
            std::this_thread::yield();
        }
        return (again == UINT64_MAX) ? again : now + again;
    }

    void SetUp() override
    {
        alarm(30);
        ASSERT_EQ(UCS_OK, ucs_thread_create(GetParam(), &m_thread));
        for (work &w : m_work) {
            add(w);
        }
    }

    void TearDown() override
    {
        ucs_thread_destroy(m_thread);
        alarm(0);
    }

    void add(work &w)
    {
        ASSERT_EQ(UCS_OK, ucs_thread_add(m_thread, step, &w, &w.job));
    }

    void start_all()
    {
        for (work &w : m_work) {
            ASSERT_EQ(UCS_OK, ucs_job_start(w.job));
            await(w, 1);
        }
    }

    static void await(work &w, unsigned count)
    {
        while (w.steps < count) {
            std::this_thread::yield();
        }
    }

    static void wake(work &w)
    {
        ++w.queued;
        ucs_job_wake(w.job);
    }

    ucs_thread_h m_thread;
    work         m_work[3];
};

TEST_P(test_thread_jobs, each_steps_when_it_is_woken)
{
    start_all();
    for (unsigned i = 2; i < 20; ++i) {
        work &w = m_work[i % 2];
        unsigned before = w.steps;
        wake(w);
        await(w, before + 1);
    }
    EXPECT_EQ(10u, m_work[0].steps);
    EXPECT_EQ(10u, m_work[1].steps);
    EXPECT_EQ(1u, m_work[2].steps);
}

TEST_P(test_thread_jobs, each_steps_in_its_time)
{
    start_all();
    m_work[0].again = 3600ul * 1000000000;
    wake(m_work[0]);
    await(m_work[0], 2);
    m_work[2].again = 5000000;
    wake(m_work[2]);
    await(m_work[2], 3);
    EXPECT_EQ(2u, m_work[0].steps);
    EXPECT_EQ(1u, m_work[1].steps);
}

/* Its domain may not even be whole; and another step's time is not waited for */
TEST_P(test_thread_jobs, one_that_is_not_started_does_not_step)
{
    uint64_t begin = ucs_clock_now();

    ASSERT_EQ(UCS_OK, ucs_job_start(m_work[0].job));
    await(m_work[0], 1);
    wake(m_work[1]);
    m_work[1].again = 0;
    ASSERT_TRUE(ucs_job_try_step(m_work[1].job, step, &m_work[1]));
    for (unsigned i = 2; i < 20; ++i) {
        wake(m_work[0]);
        await(m_work[0], i);
    }
    EXPECT_EQ(1u, m_work[1].steps);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_LT(ucs_thread_cpu_ns(m_thread), (ucs_clock_now() - begin) / 2);
    ASSERT_EQ(UCS_OK, ucs_job_start(m_work[1].job));
    await(m_work[1], 2);
}

TEST_P(test_thread_jobs, a_stop_waits_for_its_own_step_alone)
{
    start_all();
    m_work[0].is_held = true;
    wake(m_work[0]);
    await(m_work[0], 2);
    ucs_job_stop(m_work[1].job);
    wake(m_work[1]);
    EXPECT_FALSE(ucs_job_try_step(m_work[0].job, step, &m_work[0]));
    std::thread opener([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        m_work[0].is_held = false;
    });
    ucs_job_stop(m_work[0].job);
    EXPECT_FALSE(m_work[0].is_held);
    opener.join();
    wake(m_work[2]);
    await(m_work[2], 2);
    EXPECT_EQ(1u, m_work[1].steps);
}

/* While the helper is in a step of one, another one's may be taken */
TEST_P(test_thread_jobs, steps_of_two_jobs_go_side_by_side)
{
    start_all();
    m_work[0].is_held = true;
    wake(m_work[0]);
    await(m_work[0], 2);
    EXPECT_TRUE(ucs_job_try_step(m_work[1].job, step, &m_work[1]));
    m_work[0].is_held = false;
}

static uint64_t do_inside(void *arg, uint64_t)
{
    (*static_cast<std::function<void()>*>(arg))();
    return UINT64_MAX;
}

/* A signal handler ends the program in a step that its thread takes. A turn goes from
 * the last job to the first: when the second has woken the first, the helper is on its
 * way to a step that waits for this one. */
TEST_P(test_thread_jobs, an_end_inside_of_a_step_does_not_wait_for_it)
{
    uint64_t took = UINT64_MAX;

    std::function<void()> end = [&] {
        m_work[1].wakes = &m_work[0];
        wake(m_work[1]);
        await(m_work[1], 2);
        took = ucs_clock_now();
        EXPECT_FALSE(ucs_thread_end(m_thread));
        took = ucs_clock_now() - took;
    };

    start_all();
    while (!ucs_job_try_step(m_work[0].job, do_inside, &end)) {
        std::this_thread::yield();
    }
    EXPECT_GT(4000000000u, took); /* it would wait for five seconds */
}

/* It has been told for both */
TEST_P(test_thread_jobs, what_another_jobs_step_served_is_its_own_alone)
{
    for (unsigned i = 2; i < 1000; ++i) {
        start_all();
        wake(m_work[1]);
        wake(m_work[0]);
        while (!ucs_job_try_step(m_work[0].job, step, &m_work[0])) {
            std::this_thread::yield();
        }
        await(m_work[1], i);
    }
}

TEST_P(test_thread_jobs, the_bell_is_for_all)
{
    uint32_t bell = 0;

    ucs_thread_set_bell(m_thread, &bell);
    start_all();
    __atomic_store_n(&bell, 1, __ATOMIC_SEQ_CST);
    ucs_futex_wake(reinterpret_cast<_Atomic(uint32_t)*>(&bell), 1,
                   UCS_FUTEX_SHARED);
    for (work &w : m_work) {
        await(w, 2);
    }
    ucs_thread_stop(m_thread);
}

TEST_P(test_thread_jobs, held_for_fork_none_steps)
{
    start_all();
    ucs_thread_hold();
    for (work &w : m_work) {
        wake(w);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    for (work &w : m_work) {
        EXPECT_EQ(1u, w.steps);
    }
    ucs_thread_release();
    for (work &w : m_work) {
        await(w, 2);
    }
}

/* Domains come and go while others stay */
TEST_P(test_thread_jobs, one_takes_the_place_of_one_that_was_removed)
{
    ucs_job_h first = m_work[1].job;

    start_all();
    for (unsigned i = 2; i < 1000; ++i) {
        ucs_job_remove(m_work[1].job);
        add(m_work[1]);
        EXPECT_EQ(first, m_work[1].job);
        ASSERT_EQ(UCS_OK, ucs_job_start(m_work[1].job));
        await(m_work[1], i);
    }
}

/* A lost wake-up leaves something behind for ever, for no step is due by time; a lost
 * time as well */
TEST_P(test_thread_jobs, stress_nothing_is_lost)
{
    const unsigned rounds = 10000;
    std::vector<std::thread> producers;
    unsigned dated = 0;

    start_all();
    for (int of : {0, 1, 1}) {
        producers.emplace_back([this, of] {
            for (unsigned n = 0; n < rounds; ++n) {
                wake(m_work[of]);
            }
        });
    }
    for (unsigned n = 0; n < rounds; ++n) { /* a thread that waits */
        work &w = m_work[n % 2];
        (void)ucs_job_try_step(w.job, step, &w);
        if (n % 100 == 0) {
            unsigned before = m_work[2].steps;
            m_work[2].again = 1000;
            while (!ucs_job_try_step(m_work[2].job, step, &m_work[2])) {
                std::this_thread::yield();
            }
            await(m_work[2], before + 2);
            ++dated;
        }
    }
    for (auto &producer : producers) {
        producer.join();
    }
    while ((m_work[0].consumed < rounds) || (m_work[1].consumed < 2 * rounds)) {
        std::this_thread::yield();
    }
    EXPECT_EQ(rounds / 100, dated);
}

INSTANTIATE_TEST_SUITE_P(kinds, test_thread_jobs, ::testing::Bool());
