/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

#include "thread_fixture.h"

#include <ucs/sys/sync/futex.h>

#include <chrono>
#include <csignal>
#include <future>
#include <string>
#include <vector>

#include <sys/prctl.h>

TEST_P(test_thread, does_nothing_before_it_is_started)
{
    ucs_job_wake(m_job);
    EXPECT_FALSE(ucs_thread_is_running(m_thread));
    EXPECT_EQ(0u, ucs_thread_cpu_ns(m_thread));
    ucs_thread_stop(m_thread);
    EXPECT_EQ(0u, steps());
}

TEST_P(test_thread, sleeps_until_it_is_woken)
{
    ASSERT_EQ(UCS_OK, ucs_job_start(m_job));
    EXPECT_TRUE(ucs_thread_is_running(m_thread));
    for (unsigned i = 1; i <= 20; ++i) {
        await_steps(i);
        await_sleep();
        EXPECT_EQ(i, steps());
        ucs_job_wake(m_job);
    }
    await_steps(21);
}

/* As of gfortran's -ffpe-trap=underflow: a step counts with small numbers, too */
TEST_P(test_thread, a_programs_traps_are_not_for_its_numbers)
{
    feenableexcept(FE_UNDERFLOW);
    start();
    fedisableexcept(FE_UNDERFLOW);
    EXPECT_EQ(0, m_traps);
}

TEST_P(test_thread, starts_once_and_not_again)
{
    ASSERT_EQ(UCS_OK, ucs_job_start(m_job));
    ASSERT_EQ(UCS_OK, ucs_job_start(m_job));
    await_steps(1);
    ucs_thread_stop(m_thread);
    ucs_thread_stop(m_thread);
    EXPECT_FALSE(ucs_thread_is_running(m_thread));
    EXPECT_EQ(UCS_ERR_BUSY, ucs_job_start(m_job));
}

/* A fork handler of the program's may wait for a thread that does any of these */
TEST_P(test_thread, nobody_waits_for_a_fork_to_start_it)
{
    cpu_set_t cpus;

    ASSERT_EQ(0, sched_getaffinity(0, sizeof(cpus), &cpus));
    ucs_thread_hold();
    auto other = std::async(std::launch::async, [&] {
        EXPECT_EQ(UCS_OK, ucs_job_start(m_job));
        EXPECT_EQ(UCS_OK, ucs_thread_bind(m_thread, &cpus));
    });
    EXPECT_EQ(std::future_status::ready, other.wait_for(std::chrono::seconds(10)));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(0u, steps());
    ucs_thread_release();
    await_steps(1);
}

TEST_P(test_thread, nobody_waits_for_a_fork_to_stop_it)
{
    start();
    ucs_thread_hold();
    ucs_job_wake(m_job);
    await_sleep(); /* for the fork, with a step due */
    auto other = std::async(std::launch::async, [&] {
        ucs_job_stop(m_job);
        ucs_thread_stop(m_thread);
    });
    EXPECT_EQ(std::future_status::ready, other.wait_for(std::chrono::seconds(10)));
    ucs_thread_release();
    EXPECT_EQ(1u, steps());
}

TEST_P(test_thread, cpu_time_is_kept_after_the_end)
{
    start();
    const uint64_t running = ucs_thread_cpu_ns(m_thread);
    ucs_thread_stop(m_thread);
    EXPECT_GT(running, 0u);
    EXPECT_GE(ucs_thread_cpu_ns(m_thread), running);
}

TEST_P(test_thread, held_for_fork_runs_no_step)
{
    start();

    ucs_thread_hold();
    ucs_job_wake(m_job);
    /* It has left its futex and waits for the fork's end */
    await_sleep();
    EXPECT_EQ(1u, steps());
    ucs_thread_release();
    await_steps(2);
}

/* A thread that waits for it, one at a time, has it on its own processor meanwhile */
TEST_P(test_thread, can_be_borrowed)
{
    cpu_set_t before;

    EXPECT_FALSE(ucs_thread_borrow(m_thread)) << "it does not run";
    ASSERT_EQ(UCS_OK, ucs_job_start(m_job));
    await_steps(1);
    ASSERT_EQ(0, sched_getaffinity(m_tid, sizeof(before), &before));

    for (int i = 0; i < 2; ++i) {
        EXPECT_TRUE(ucs_thread_borrow(m_thread));
        EXPECT_FALSE(ucs_thread_borrow(m_thread)) << "another one has it";
        EXPECT_EQ(1, processors());
        ucs_thread_give_back(m_thread);
        EXPECT_EQ(CPU_COUNT(&before), processors());
    }
    ucs_thread_stop(m_thread);
    EXPECT_FALSE(ucs_thread_borrow(m_thread)) << "it has ended";
}

/* Whoever binds it anew, or asks where it may run, is not misled by what is lent. Who has
 * borrowed it may never come back: a signal handler has ended that thread. */
TEST_P(test_thread, that_is_bound_keeps_that_when_it_is_given_back)
{
    cpu_set_t before, got;

    ASSERT_EQ(UCS_OK, ucs_job_start(m_job));
    await_steps(1);
    ASSERT_EQ(0, sched_getaffinity(m_tid, sizeof(before), &before));

    EXPECT_TRUE(ucs_thread_borrow(m_thread));
    ASSERT_TRUE(ucs_thread_hold_binding(m_thread));
    ASSERT_EQ(0, sched_getaffinity(m_tid, sizeof(got), &got));
    EXPECT_TRUE(CPU_EQUAL(&before, &got));
    EXPECT_FALSE(ucs_thread_borrow(m_thread));
    ucs_thread_give_back(m_thread);
    EXPECT_FALSE(ucs_thread_hold_binding(m_thread));
    ucs_thread_release_binding(m_thread);

    EXPECT_TRUE(ucs_thread_borrow(m_thread));
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &before)) {
            CPU_ZERO(&got);
            CPU_SET(cpu, &got);
            EXPECT_EQ(UCS_OK, ucs_thread_bind(m_thread, &got));
        }
    }
    ucs_thread_give_back(m_thread);
    ASSERT_EQ(0, sched_getaffinity(m_tid, sizeof(before), &before));
    EXPECT_TRUE(CPU_EQUAL(&before, &got));
}

TEST_P(test_thread, can_be_bound)
{
    cpu_set_t cpus, got;

    ASSERT_EQ(0, sched_getaffinity(0, sizeof(got), &got));
    int first = 0;
    while (!CPU_ISSET(first, &got)) {
        ++first;
    }

    CPU_ZERO(&cpus);
    CPU_SET(first, &cpus);
    EXPECT_EQ(UCS_ERR_NO_ELEM, ucs_thread_bind(m_thread, &cpus));

    ASSERT_EQ(UCS_OK, ucs_job_start(m_job));
    await_steps(1);
    EXPECT_EQ(UCS_OK, ucs_thread_bind(m_thread, &cpus));
    ASSERT_EQ(0, sched_getaffinity(m_tid, sizeof(got), &got));
    EXPECT_EQ(1, CPU_COUNT(&got));
    EXPECT_TRUE(CPU_ISSET(first, &got));

    CPU_ZERO(&cpus);
    EXPECT_EQ(UCS_ERR_NO_ELEM, ucs_thread_bind(m_thread, &cpus));
}

class test_thread_timed : public test_thread {
protected:
    uint64_t on_step(uint64_t now) override
    {
        EXPECT_GE(now, m_due);
        m_due = now + 200000;
        return m_due;
    }

    uint64_t m_due = 0;
};

TEST_P(test_thread_timed, steps_when_the_time_has_come)
{
    ASSERT_EQ(UCS_OK, ucs_job_start(m_job));
    await_steps(20);
}

class test_thread_inside : public test_thread {
protected:
    uint64_t on_step(uint64_t) override
    {
        char name[16];
        sigset_t blocked;

        prctl(PR_GET_NAME, name);
        m_name  = name;
        m_slack = prctl(PR_GET_TIMERSLACK);
        pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
        for (int signal : {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM,
                           SIGPROF, SIGCHLD, SIGRTMIN, SIGRTMAX}) {
            m_open_signals += !sigismember(&blocked, signal);
        }
        return UINT64_MAX;
    }

    std::string m_name;
    int         m_slack        = 0;
    int         m_open_signals = 0;
};

TEST_P(test_thread_inside, named_without_slack_and_signals)
{
    sigset_t before, after;

    pthread_sigmask(SIG_BLOCK, nullptr, &before);
    ASSERT_EQ(UCS_OK, ucs_job_start(m_job));
    pthread_sigmask(SIG_BLOCK, nullptr, &after);
    await_steps(1);
    ucs_thread_stop(m_thread);

    EXPECT_EQ(UCS_THREAD_NAME, m_name);
    EXPECT_EQ(1, m_slack);
    EXPECT_EQ(0, m_open_signals);
    for (int signal = 1; signal < SIGRTMAX; ++signal) {
        EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal));
    }
}

/* The step consumes what producers queue; a lost wake-up leaves something
 * behind for ever, for no step is due by time */
class test_thread_queue : public test_thread {
protected:
    uint64_t on_step(uint64_t) override
    {
        m_consumed += m_queued.exchange(0);
        return UINT64_MAX;
    }

    std::atomic<unsigned> m_queued{0};
    unsigned              m_consumed = 0;
};

TEST_P(test_thread_queue, stress_no_wake_up_is_lost)
{
    const unsigned rounds = 20000;
    std::vector<std::thread> producers;

    ASSERT_EQ(UCS_OK, ucs_job_start(m_job));
    for (int i = 0; i < 2; ++i) {
        producers.emplace_back([this] {
            for (unsigned n = 0; n < rounds; ++n) {
                m_queued.fetch_add(1);
                ucs_job_wake(m_job);
            }
        });
    }
    for (auto &producer : producers) {
        producer.join();
    }

    std::unique_lock<std::mutex> guard(m_lock);
    m_changed.wait(guard, [&] { return m_consumed == 2 * rounds; });
    EXPECT_EQ(2 * rounds, m_consumed);
}

INSTANTIATE_TEST_SUITE_P(kinds, test_thread, ::testing::Bool());
INSTANTIATE_TEST_SUITE_P(kinds, test_thread_timed, ::testing::Bool());
INSTANTIATE_TEST_SUITE_P(kinds, test_thread_inside, ::testing::Bool());
INSTANTIATE_TEST_SUITE_P(kinds, test_thread_queue, ::testing::Bool());

TEST(test_thread_life, stress_start_and_stop)
{
    auto never = [](void*, uint64_t) { return uint64_t(UINT64_MAX); };
    ucs_thread_h thread;
    ucs_job_h job;

    for (int i = 0; i < 300; ++i) {
        ASSERT_EQ(UCS_OK, ucs_thread_create(i & 2, &thread));
        ASSERT_EQ(UCS_OK, ucs_thread_add(thread, never, nullptr, &job));
        ASSERT_EQ(UCS_OK, ucs_job_start(job));
        if (i & 1) {
            ucs_job_wake(job);
        }
        ucs_thread_destroy(thread);
    }
}

TEST(test_wait, returns_at_once_if_the_word_differs)
{
    std::atomic<uint32_t> word{1};

    ucs_futex_spin_and_wait(&word, 2, UCS_FUTEX_FOREVER);
    ucs_futex_wait(&word, 2, UCS_FUTEX_FOREVER, UCS_FUTEX_SHARED);
    EXPECT_EQ(1u, word);
}

TEST(test_wait, stress_waiters_are_woken)
{
    std::atomic<uint32_t> word{0};
    std::vector<std::thread> waiters;
    const uint32_t last = 2000;

    for (int i = 0; i < 3; ++i) {
        waiters.emplace_back([&] {
            uint32_t seen;
            while ((seen = word) != last) {
                ucs_futex_spin_and_wait(&word, seen, UCS_FUTEX_FOREVER);
            }
        });
    }
    for (uint32_t value = 1; value <= last; ++value) {
        word = value;
        ucs_futex_wake_all(&word, UCS_FUTEX_PRIVATE);
    }
    for (auto &waiter : waiters) {
        waiter.join();
    }
    EXPECT_EQ(last, word);
}

/* As a signal handler does that forks: it would wait for ever */
TEST(test_thread_step, holds_a_thread_whose_step_it_takes)
{
    pid_t child = fork();

    if (child == 0) {
        struct {
            ucs_thread_h thread;
            ucs_job_h    job, other;
        } world;
        auto forks = [](void*, uint64_t) -> uint64_t {
            for (int i = 0; i < 2; ++i) {
                if (!ucs_thread_hold()) {
                    _exit(4);
                }
            }
            for (int i = 0; i < 2; ++i) {
                ucs_thread_release();
            }
            return UINT64_MAX;
        };
        alarm(10);
        if ((ucs_thread_create(0, &world.thread) != UCS_OK) ||
            (ucs_thread_add(world.thread, forks, &world, &world.job) !=
             UCS_OK) ||
            (ucs_thread_add(world.thread, forks, &world, &world.other) !=
             UCS_OK)) {
            _exit(2);
        }
        for (int i = 0; i < 2; ++i) {
            if (!ucs_job_try_step(world.job, forks, &world) ||
                !ucs_job_try_step(world.other, forks, &world)) {
                _exit(3);
            }
        }
        _exit(0);
    }
    EXPECT_EQ(0, wait_for_child(child));
}

/* Nor does a step of another thread's end before that has forked */
TEST(test_thread_step, two_hold_in_steps_of_theirs)
{
    static std::atomic<unsigned> inside, held, in_vain;
    auto forks = [](void*, uint64_t) -> uint64_t {
        for (++inside; inside < 2;) {
            std::this_thread::yield();
        }
        in_vain += !ucs_thread_hold();
        for (++held; held < 2;) {
            std::this_thread::yield();
        }
        ucs_thread_release();
        return UINT64_MAX;
    };
    std::vector<std::thread> threads;
    ucs_thread_h thread;
    ucs_job_h jobs[2];

    ASSERT_EQ(UCS_OK, ucs_thread_create(0, &thread));
    for (ucs_job_h &job : jobs) {
        ASSERT_EQ(UCS_OK, ucs_thread_add(thread, forks, nullptr, &job));
        threads.emplace_back([&job, forks] {
            EXPECT_TRUE(ucs_job_try_step(job, forks, nullptr));
        });
    }
    for (std::thread &each : threads) {
        each.join();
    }
    EXPECT_EQ(0u, in_vain);
    EXPECT_TRUE(ucs_thread_hold());
    ucs_thread_release();
    ucs_thread_destroy(thread);
}

/* All of these together no longer than one wait */
TEST(test_thread_step, a_hold_in_vain_is_followed_by_none_that_waits)
{
    auto holds = [](void*, uint64_t) -> uint64_t {
        std::thread([] {
            EXPECT_FALSE(ucs_thread_hold());
            ucs_thread_release();

            auto start = std::chrono::steady_clock::now();
            for (int i = 0; i < 2; ++i) {
                EXPECT_FALSE(ucs_thread_hold());
                ucs_thread_release();
            }
            EXPECT_GT(std::chrono::seconds(1),
                      std::chrono::steady_clock::now() - start);
        }).join();
        return UINT64_MAX;
    };
    ucs_thread_h thread;
    ucs_job_h job;

    ASSERT_EQ(UCS_OK, ucs_thread_create(0, &thread));
    ASSERT_EQ(UCS_OK, ucs_thread_add(thread, holds, nullptr, &job));
    EXPECT_TRUE(ucs_job_try_step(job, holds, nullptr));
    EXPECT_TRUE(ucs_thread_hold());
    ucs_thread_release();
    ucs_thread_destroy(thread);
}
