/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucp/wire/wire_thread.h>
#include <uct/ib/helper_md/quiet_fork.h>

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <unistd.h>

/* Of the thread: it comes in, and leaves some time later, or when the other says so */
struct visit {
    std::atomic<bool> is_inside{false}, may_leave{false}, has_left{false};
    unsigned          microseconds;

    static void *run(void *arg)
    {
        visit *self = static_cast<visit*>(arg);

        EXPECT_TRUE(ucp_wire_thread_enter());
        self->is_inside = true;
        usleep(self->microseconds);
        for (unsigned left = 5000; !self->may_leave && (left > 0); --left) {
            usleep(1000);
        }
        self->has_left = true;
        ucp_wire_thread_leave();
        return nullptr;
    }

    void start(unsigned us)
    {
        microseconds = us;
        ASSERT_EQ(0, ucp_wire_thread_start(&m_id, run, this));
        while (!is_inside) {
            usleep(1000);
        }
    }

    void join()
    {
        ucs_spawn_join(&m_id);
    }

private:
    ucs_spawned_t m_id;
};

static void *signals_main(void *arg)
{
    EXPECT_EQ(0, pthread_sigmask(SIG_SETMASK, nullptr, (sigset_t*)arg));
    return nullptr;
}

TEST(test_wire_thread, no_handler_of_the_program_runs_there)
{
    sigset_t there, before, after;
    ucs_spawned_t id;

    sigemptyset(&there);
    pthread_sigmask(SIG_SETMASK, nullptr, &before);
    ASSERT_EQ(0, ucp_wire_thread_start(&id, signals_main, &there));
    ucs_spawn_join(&id);
    pthread_sigmask(SIG_SETMASK, nullptr, &after);
    for (int number : {SIGALRM, SIGUSR1, SIGCHLD, SIGRTMIN + 3}) {
        EXPECT_EQ(1, sigismember(&there, number)) << number;
        EXPECT_EQ(sigismember(&before, number), sigismember(&after, number));
    }
}

TEST(test_wire_thread, a_fork_waits_until_it_is_outside)
{
    visit one;

    one.may_leave = true;
    one.start(100000);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(20);
#if defined(__SANITIZE_THREAD__) /* which does not see that the child has a new lock */
        bool may_enter = true;
#else
        bool may_enter = ucp_wire_thread_enter();
#endif
        _exit((may_enter && one.has_left) ? 0 : 1);
    }
    EXPECT_EQ(0, wait_for_child(pid));
    one.join();
}

static int tries_in_fork; /* 0: not at all; then -1: could not enter, -2: could */

static void *try_main(void *arg)
{
    tries_in_fork = ucp_wire_thread_enter() ? -2 : -1;
    return nullptr;
}

/* A fork handler of the program's that was registered first, so that it is the last */
static const int has_fork_handler = pthread_atfork([] {
    pthread_t id;
    if ((tries_in_fork > 0) && (pthread_create(&id, nullptr, try_main, nullptr) == 0)) {
        pthread_join(id, nullptr);
    }
}, nullptr, nullptr);

/* What waits for the end of such a thread may be waited for by a fork handler */
TEST(test_wire_thread, who_comes_in_a_fork_does_not_wait)
{
    visit one;

    ASSERT_EQ(0, has_fork_handler);
    one.may_leave = true;
    one.start(0);
    one.join();
    pid_t pid = quiet_fork();
    if (pid == 0) {
        alarm(20); /* or it waits for ever */
        tries_in_fork = 1;
        pid = fork();
        if (pid == 0) {
            _exit(0);
        }
        _exit(((wait_for_child(pid) == 0) && (tries_in_fork == -1)) ? 0 : 1);
    }
    EXPECT_EQ(0, wait_for_child(pid));
}

TEST(test_wire_thread, a_fork_does_not_wait_for_ever)
{
    visit one;

    one.start(0); /* it waits for the thread that forks */
    pid_t pid = fork();
    if (pid == 0) {
        _exit(one.has_left ? 1 : 0);
    }
    EXPECT_EQ(0, wait_for_child(pid));
    one.may_leave = true;
    one.join();
}
