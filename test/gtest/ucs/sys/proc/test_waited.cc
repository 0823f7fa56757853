/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/proc/waited.h>

#include <gtest/gtest.h>

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/** What processes wait for processors. */
class test_waited : public ::testing::Test {
protected:
    void SetUp() override
    {
        if (access("/proc/self/schedstat", R_OK) != 0) {
            GTEST_SKIP() << "the kernel does not tell of waits for processors";
        }
        ucs_waited_begin();
    }

    void TearDown() override
    {
        for (pid_t pid : m_children) {
            kill(pid, SIGKILL);
            waitpid(pid, nullptr, 0);
        }
        ucs_waited_end();
    }

    /* A process that always runs, on the processor of its siblings */
    pid_t spin()
    {
        pid_t pid = fork();
        if (pid == 0) {
            cpu_set_t cpus;
            CPU_ZERO(&cpus);
            CPU_SET(first_processor(), &cpus);
            sched_setaffinity(0, sizeof(cpus), &cpus);
            for (;;) {
            }
        }
        m_children.push_back(pid);
        return pid;
    }

    static int first_processor()
    {
        cpu_set_t cpus;
        int i = 0;
        sched_getaffinity(0, sizeof(cpus), &cpus);
        while (!CPU_ISSET(i, &cpus)) {
            ++i;
        }
        return i;
    }

    std::vector<pid_t> m_children;
};

TEST_F(test_waited, one_of_two_waits_and_stands_for_others)
{
    pid_t pid = spin();
    spin();
    ucs_waited_t before, after;
    uint64_t one, three, own, beside;

    ucs_waited_beside(pid, 1);
    ucs_waited_read(&before);
    ASSERT_EQ(pid, before.pid);
    /* It has waited once it is told so */
    while (before.beside == 0) {
        usleep(1000);
        ucs_waited_read(&before);
    }
    do {
        usleep(1000);
        ucs_waited_read(&after);
    } while (after.beside < before.beside + 5000000);
    kill(pid, SIGSTOP);
    waitpid(pid, nullptr, WUNTRACED);
    one = ucs_waited_since(&before);
    ucs_waited_beside(pid, 3);
    three = ucs_waited_since(&before);
    ucs_waited_read(&after);
    beside = after.beside - before.beside;
    own    = after.own - before.own; /* this process may have waited as well */
    EXPECT_GE(one, beside);
    EXPECT_LE(one, beside + own);
    EXPECT_GE(three, 3 * beside);
    EXPECT_LE(three, 3 * beside + own);
}

TEST_F(test_waited, what_another_process_has_waited_says_nothing_of_the_next)
{
    pid_t older = spin();
    spin();
    ucs_waited_t before;

    ucs_waited_beside(older, 1);
    do {
        usleep(1000);
        ucs_waited_read(&before);
    } while (before.beside < 50000000);
    ucs_waited_beside(spin(), 1000000);
    do {
        ucs_waited_read(&before);
    } while (before.beside == 0);
    ucs_waited_beside(older, 1000000);
    /* This process may have waited */
    EXPECT_LE(ucs_waited_since(&before), 1000000000u);
    ucs_waited_beside(0, 0);
    EXPECT_LE(ucs_waited_since(&before), 1000000000u);
}

TEST_F(test_waited, nothing_is_known_without_the_file)
{
    ucs_waited_t before;

    ucs_waited_end();
    EXPECT_EQ(0u, ucs_waited_ns());
    ucs_waited_read(&before);
    EXPECT_EQ(0u, before.own);
    EXPECT_EQ(0u, before.pid);
    EXPECT_EQ(0u, ucs_waited_since(&before));
}
