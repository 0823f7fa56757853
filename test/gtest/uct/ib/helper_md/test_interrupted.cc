/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "decorator_fixture.h"

#include <ucs/sys/sync/exit_mutex.h>
#include <uct/ib/helper_md/hear.h>
#include <uct/ib/helper_md/session.h>

#include <functional>
#include <sys/resource.h>
#include <thread>

/*
 * A signal handler forks, or ends the program, while its thread is inside of us. What
 * is called there stands for the signal.
 */

class test_interrupted : public test_decorator {
protected:
    void start(fake_lower &lower, ucs_regcache_policy_t policy)
    {
        m_config.policy = policy;
        attach(lower);
        dereg(lower, reg(lower, m_buffer, TEST_LENGTH));
    }

    /* How often children of this process, and theirs, have slept. A wait for a lock that
     * the waiting thread itself has sleeps @ref UCS_EXIT_MUTEX_TRIES times, however loaded
     * the machine is. */
    static long sleeps()
    {
        struct rusage usage;

        EXPECT_EQ(0, getrusage(RUSAGE_CHILDREN, &usage));
        return usage.ru_nvcsw;
    }

    static void waits_for_nobody(const std::function<void()> &function)
    {
        long before = sleeps();

        function();
        EXPECT_GT(UCS_EXIT_MUTEX_TRIES / 2, sleeps() - before);
    }

    static void fork_once()
    {
        pid_t pid = fork();

        if (pid == 0) {
            _exit(0);
        }
        EXPECT_EQ(0, wait_for_child(pid));
    }

    /* exit(5) ends a child that has a helper and is to report; it is called in what
     * @a enter does */
    void ends(ucs_regcache_policy_t policy,
              const std::function<void(fake_lower&)> &enter)
    {
        waits_for_nobody([&]() {
            EXPECT_EQ(5, in_child([&]() {
                static fake_lower lower;

                m_config.report.kind   = UCT_HELPER_REPORT_TEXT;
                m_config.report.stream = 2;
                start(lower, policy);
                enter(lower);
                return 1;
            }));
        });
    }
};

TEST_F(test_interrupted, forks_while_all_domains_give_memory_back)
{
    waits_for_nobody([&]() {
        EXPECT_EQ(0, in_child([&]() {
            fake_lower lower;

            alarm(5);
            start(lower, UCS_REGCACHE_POLICY_LEAVE_PINNED);
            lower.on_dereg = [](void*, size_t) { fork_once(); };
            uct_helper_session_yield();
            lower.on_dereg = nullptr;
            fork_once();
            close(lower);
            return HasFailure() ? 1 : 0;
        }));
    });
}

/* A process's signal comes to whichever of its threads, and again to another one */
static std::function<void()> test_interrupted_fork;

static unsigned test_interrupted_fork_beside(ucs_operation_t*, unsigned)
{
    static bool is_first = true;

    if (is_first) {
        is_first = false;
        std::thread(test_interrupted_fork).detach(); /* it waits for this step */
        usleep(50000);
        test_interrupted_fork();
    }
    return 0;
}

TEST_F(test_interrupted, forks_in_an_idle_step_while_another_thread_forks)
{
    test_interrupted_fork = fork_once;
    waits_for_nobody([&]() {
        EXPECT_EQ(0, in_child([&]() {
            static fake_lower lower;

            alarm(10);
            start(lower, UCS_REGCACHE_POLICY_PAPER);
            uct_helper_hear_from(test_interrupted_fork_beside, nullptr);
            while (uct_helper_idle_step(0) == UCS_IDLE_NOT_TAKEN) {
            }
            _exit(HasFailure() ? 1 : 0);
            return 0;
        }));
    });
}

static unsigned test_interrupted_drain(ucs_operation_t*, unsigned)
{
    exit(5);
}

TEST_F(test_interrupted, ends_in_an_idle_step)
{
    ends(UCS_REGCACHE_POLICY_PAPER, [](fake_lower&) {
        uct_helper_hear_from(test_interrupted_drain, nullptr);
        while (uct_helper_idle_step(0) == UCS_IDLE_NOT_TAKEN) {
        }
    });
}

TEST_F(test_interrupted, ends_while_all_domains_give_memory_back)
{
    ends(UCS_REGCACHE_POLICY_LEAVE_PINNED, [&](fake_lower &lower) {
        lower.on_dereg = [](void*, size_t) { exit(5); };
        uct_helper_session_yield();
    });
}
