/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <uct/ib/helper_md/log_capture.h>

#include <ucs/sys/clock.h>
#include <ucs/sys/futex.h>
#include <ucs/sys/thread.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <fstream>
#include <mutex>
#include <thread>
#include <vector>

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

class test_thread : public ::testing::Test {
protected:
    void SetUp() override
    {
        ASSERT_EQ(UCS_OK, ucs_thread_create(step, this, &m_thread));
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
        m_tid = syscall(SYS_gettid);
        return UINT64_MAX;
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

    /* State of the helper as the kernel sees it */
    char state()
    {
        std::ifstream file("/proc/self/task/" + std::to_string(m_tid.load()) +
                           "/stat");
        std::string text((std::istreambuf_iterator<char>(file)),
                         std::istreambuf_iterator<char>());
        return text[text.rfind(')') + 2];
    }

    void await_sleep()
    {
        while (state() != 'S') {
            std::this_thread::yield();
        }
    }

    ucs_thread_h m_thread;
    std::mutex              m_lock; /* protects what follows */
    std::condition_variable m_changed;
    unsigned                m_steps = 0;
    std::atomic<pid_t>      m_tid{0};
};

TEST_F(test_thread, does_nothing_before_it_is_started)
{
    ucs_thread_wake(m_thread);
    EXPECT_FALSE(ucs_thread_is_running(m_thread));
    EXPECT_EQ(0u, ucs_thread_cpu_ns(m_thread));
    ucs_thread_stop(m_thread);
    EXPECT_EQ(0u, steps());
}

TEST_F(test_thread, sleeps_until_it_is_woken)
{
    ASSERT_EQ(UCS_OK, ucs_thread_start(m_thread));
    EXPECT_TRUE(ucs_thread_is_running(m_thread));
    for (unsigned i = 1; i <= 20; ++i) {
        await_steps(i);
        await_sleep();
        EXPECT_EQ(i, steps());
        ucs_thread_wake(m_thread);
    }
    await_steps(21);
}

TEST_F(test_thread, starts_once_and_not_again)
{
    ASSERT_EQ(UCS_OK, ucs_thread_start(m_thread));
    ASSERT_EQ(UCS_OK, ucs_thread_start(m_thread));
    await_steps(1);
    ucs_thread_stop(m_thread);
    ucs_thread_stop(m_thread);
    EXPECT_FALSE(ucs_thread_is_running(m_thread));
    EXPECT_EQ(UCS_ERR_BUSY, ucs_thread_start(m_thread));
}

TEST_F(test_thread, cpu_time_is_kept_after_the_end)
{
    ASSERT_EQ(UCS_OK, ucs_thread_start(m_thread));
    await_steps(1);
    await_sleep();
    const uint64_t running = ucs_thread_cpu_ns(m_thread);
    ucs_thread_stop(m_thread);
    EXPECT_GT(running, 0u);
    EXPECT_GE(ucs_thread_cpu_ns(m_thread), running);
}

TEST_F(test_thread, held_for_fork_runs_no_step)
{
    ASSERT_EQ(UCS_OK, ucs_thread_start(m_thread));
    await_steps(1);
    await_sleep();

    ucs_thread_hold(m_thread);
    ucs_thread_wake(m_thread);
    /* It has left its futex and waits for the lock that is held */
    await_sleep();
    EXPECT_EQ(1u, steps());
    ucs_thread_release(m_thread);
    await_steps(2);
}

TEST_F(test_thread, can_be_bound)
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

    ASSERT_EQ(UCS_OK, ucs_thread_start(m_thread));
    await_steps(1);
    EXPECT_EQ(UCS_OK, ucs_thread_bind(m_thread, &cpus));
    ASSERT_EQ(0, sched_getaffinity(m_tid, sizeof(got), &got));
    EXPECT_EQ(1, CPU_COUNT(&got));
    EXPECT_TRUE(CPU_ISSET(first, &got));

    CPU_ZERO(&cpus);
    EXPECT_EQ(UCS_ERR_NO_ELEM, ucs_thread_bind(m_thread, &cpus));
}

/* Woken, it takes no core from the thread that wakes it */
TEST_F(test_thread, can_be_in_no_hurry)
{
    ucs_thread_set_batch(m_thread); /* does nothing: it does not run */
    ASSERT_EQ(UCS_OK, ucs_thread_start(m_thread));
    await_steps(1);
    int before = sched_getscheduler(m_tid);
    ucs_thread_set_batch(m_thread);
    EXPECT_EQ((before == SCHED_OTHER) ? SCHED_BATCH : before,
              sched_getscheduler(m_tid));
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

TEST_F(test_thread_timed, steps_when_the_time_has_come)
{
    ASSERT_EQ(UCS_OK, ucs_thread_start(m_thread));
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

TEST_F(test_thread_inside, named_without_slack_and_signals)
{
    sigset_t before, after;

    pthread_sigmask(SIG_BLOCK, nullptr, &before);
    ASSERT_EQ(UCS_OK, ucs_thread_start(m_thread));
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

TEST_F(test_thread_queue, stress_no_wake_up_is_lost)
{
    const unsigned rounds = 20000;
    std::vector<std::thread> producers;

    ASSERT_EQ(UCS_OK, ucs_thread_start(m_thread));
    for (int i = 0; i < 2; ++i) {
        producers.emplace_back([this] {
            for (unsigned n = 0; n < rounds; ++n) {
                m_queued.fetch_add(1);
                ucs_thread_wake(m_thread);
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

TEST(test_thread_life, stress_start_and_stop)
{
    auto never = [](void*, uint64_t) { return uint64_t(UINT64_MAX); };
    ucs_thread_h thread;

    for (int i = 0; i < 300; ++i) {
        ASSERT_EQ(UCS_OK, ucs_thread_create(never, nullptr, &thread));
        ASSERT_EQ(UCS_OK, ucs_thread_start(thread));
        if (i & 1) {
            ucs_thread_wake(thread);
        }
        ucs_thread_destroy(thread);
    }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* Without address space for its stack a thread is refused. Stacks of threads
 * that have ended are kept by libc and would serve, so a thread that lives as
 * long as the test takes each of them first. */
TEST(test_thread_life, refused_in_one_line)
{
    auto never = [](void*, uint64_t) { return uint64_t(UINT64_MAX); };
    std::vector<ucs_thread_h> threads;
    ucs_status_t status = UCS_OK;
    struct rlimit old, none;
    log_capture log;

    getrlimit(RLIMIT_AS, &old);
    none          = old;
    none.rlim_cur = 1 << 20;
    threads.reserve(4096);
    while ((status == UCS_OK) && (threads.size() < threads.capacity())) {
        threads.emplace_back();
        ASSERT_EQ(UCS_OK, ucs_thread_create(never, nullptr, &threads.back()));
        setrlimit(RLIMIT_AS, &none);
        status = ucs_thread_start(threads.back());
        setrlimit(RLIMIT_AS, &old);
    }

    EXPECT_EQ(UCS_ERR_NO_RESOURCE, status);
    EXPECT_FALSE(ucs_thread_is_running(threads.back()));
    EXPECT_EQ(UCS_ERR_BUSY, ucs_thread_start(threads.back()));
    EXPECT_EQ(1u, log.lines().size());
    for (auto thread : threads) {
        ucs_thread_destroy(thread);
    }
}
#endif

TEST(test_wait, returns_at_once_if_the_word_differs)
{
    std::atomic<uint32_t> word{1};

    ucs_futex_spin_and_wait(&word, 2);
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
                ucs_futex_spin_and_wait(&word, seen);
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

/*
 * A thread that leaves its steps to others
 */

class test_thread_patience : public test_thread {
protected:
    static constexpr uint64_t MS      = 1000000;
    static constexpr uint64_t FOREVER = 100000 * MS;

    uint64_t on_step(uint64_t now) override
    {
        ucs_thread_set_patience(m_thread, m_patience);
        return test_thread::on_step(now);
    }

    static uint64_t idle(void *arg, uint64_t now)
    {
        uint64_t due = *static_cast<uint64_t*>(arg);

        return (due == UINT64_MAX) ? due : now + due;
    }

    /* A step of a thread that waits; the next one is due after so long */
    void idle_step(uint64_t due = UINT64_MAX)
    {
        while (!ucs_thread_try_step(m_thread, idle, &due)) {
            std::this_thread::yield();
        }
    }

    void start(uint64_t patience)
    {
        m_patience = patience;
        ASSERT_EQ(UCS_OK, ucs_thread_start(m_thread));
        await_steps(1);
        await_sleep();
    }

    /* The thread has come so often, in time */
    bool has_come(unsigned count)
    {
        std::unique_lock<std::mutex> guard(m_lock);

        return m_changed.wait_for(guard, std::chrono::seconds(10),
                                  [&] { return m_steps >= count; });
    }

    uint64_t m_patience = 0;
};

TEST_F(test_thread_patience, it_does_not_come_while_others_take_its_steps)
{
    start(FOREVER);
    idle_step();
    for (unsigned i = 0; i < 20; ++i) {
        ucs_thread_wake(m_thread);
        idle_step(0);
        await_sleep();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(1u, steps());
}

/* And is not kept from its end */
TEST_F(test_thread_patience, one_that_dozes_is_stopped)
{
    start(FOREVER);
    idle_step(0);
    ucs_thread_wake(m_thread);
    await_sleep();
    ucs_thread_stop(m_thread);
    EXPECT_FALSE(ucs_thread_is_running(m_thread));
    EXPECT_EQ(1u, steps());
}

TEST_F(test_thread_patience, a_wake_up_that_no_other_step_served_is_not_lost)
{
    start(5 * MS);
    for (unsigned i = 1; i <= 20; ++i) {
        idle_step();
        ucs_thread_wake(m_thread);
        ASSERT_TRUE(has_come(i + 1));
    }
}

TEST_F(test_thread_patience, what_an_idle_step_leaves_is_not_lost)
{
    start(5 * MS);
    for (unsigned i = 1; i <= 20; ++i) {
        await_sleep();
        idle_step((i % 2) * MS);
        ASSERT_TRUE(has_come(i + 1));
    }
}

/* Without a wake-up and with nothing due there is nothing to come for */
TEST_F(test_thread_patience, what_an_idle_step_served_is_not_done_again)
{
    start(MS);
    idle_step();
    await_sleep();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(1u, steps());
}

/* That a step will be due sooner than it said is no step yet */
TEST_F(test_thread_patience, told_of_a_sooner_time_it_waits_for_that)
{
    start(MS);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    idle_step(500 * MS);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    await_sleep();
    EXPECT_EQ(1u, steps());
    EXPECT_TRUE(has_come(2));
}

/* Nor is it when what was due has been put off */
TEST_F(test_thread_patience, what_others_put_off_is_waited_for_anew)
{
    start(MS);
    idle_step(50 * MS);
    await_sleep();
    idle_step(500 * MS);
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    await_sleep();
    EXPECT_EQ(1u, steps());
    EXPECT_TRUE(has_come(2));
}

/* Each look at whether others still take the steps is a wake-up */
TEST_F(test_thread_patience, it_looks_ever_more_rarely)
{
    uint64_t patience = 20 * MS;
    uint64_t begin;

    start(patience);
    begin = ucs_clock_now();
    while (ucs_clock_now() - begin < 40 * patience) {
        ucs_thread_wake(m_thread);
        idle_step(0);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ucs_thread_stop(m_thread);
    EXPECT_LT(ucs_thread_switches(m_thread), 20u);
}

TEST_F(test_thread_patience, it_comes_in_the_end_whoever_takes_its_steps)
{
    std::atomic<bool> is_over{false};

    start(100 * MS);
    std::thread other([&] {
        while (!is_over) {
            idle_step(0);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    });
    EXPECT_TRUE(has_come(2));
    is_over = true;
    other.join();
}

/* After a gap it looks as often as at first: it is not to be late for as long as
 * was waited once */
TEST_F(test_thread_patience, waits_that_had_ended_do_not_count)
{
    uint64_t begin;

    start(200 * MS);
    idle_step(); /* nothing is due: it sleeps on */
    std::this_thread::sleep_for(std::chrono::milliseconds(1000));
    ASSERT_EQ(1u, steps());
    idle_step(0);
    begin = ucs_clock_now();
    ASSERT_TRUE(has_come(2));
    EXPECT_LT(ucs_clock_now() - begin, 700 * MS);
}

TEST_F(test_thread_patience, its_bell_is_answered_in_any_case)
{
    uint32_t bell = 0;

    ucs_thread_set_bell(m_thread, &bell);
    start(FOREVER);
    idle_step(0);
    await_sleep();
    __atomic_store_n(&bell, 1, __ATOMIC_SEQ_CST);
    ucs_futex_wake(reinterpret_cast<_Atomic(uint32_t)*>(&bell), 1,
                   UCS_FUTEX_SHARED);
    EXPECT_TRUE(has_come(2));
}
