/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <gtest/gtest.h>

#include <ucs/sys/proc/dead.h>

#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

/* Whether a process lives, with and without a parent that waits for it */
class test_dead : public ::testing::Test {
protected:
    /* Until it has come to its end, which stays to be waited for */
    static void ended(pid_t pid)
    {
        siginfo_t info;

        ASSERT_EQ(0, waitid(P_PID, pid, &info, WEXITED | WNOWAIT));
    }

    void SetUp() override
    {
        m_page = mmap(NULL, page_size, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(MAP_FAILED, m_page);
    }

    void TearDown() override
    {
        munmap(m_page, page_size);
    }

    const size_t page_size = sysconf(_SC_PAGESIZE);
    void *m_page           = NULL; /* of shared memory, which a child has, too */
};

TEST_F(test_dead, who_lives_is_not_dead)
{
    EXPECT_FALSE(ucs_pid_is_dead(getpid()));
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    EXPECT_FALSE(ucs_pid_is_dead(child));
    kill(child, SIGSTOP);
    EXPECT_EQ(child, waitpid(child, NULL, WUNTRACED));
    EXPECT_FALSE(ucs_pid_is_dead(child));
    kill(child, SIGKILL);
    EXPECT_EQ(child, waitpid(child, NULL, 0));
}

TEST_F(test_dead, who_is_dead_and_not_waited_for_is_dead)
{
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    ended(child);
    EXPECT_TRUE(ucs_pid_is_dead(child));
    EXPECT_EQ(child, waitpid(child, NULL, 0));
    EXPECT_TRUE(ucs_pid_is_dead(child));
}

TEST_F(test_dead, who_has_another_program_has_lost_its_mappings)
{
    int ready[2];
    char byte;

    ASSERT_EQ(0, pipe2(ready, O_CLOEXEC));
    pid_t child = fork();
    if (child == 0) {
        raise(SIGSTOP);
        execl("/bin/sleep", "sleep", "60", (char *)NULL);
        _exit(127);
    }
    close(ready[1]);
    EXPECT_EQ(child, waitpid(child, NULL, WUNTRACED));
    EXPECT_FALSE(ucs_pid_has_lost(child, m_page, page_size, m_page));
    kill(child, SIGCONT);
    EXPECT_EQ(0, read(ready[0], &byte, 1)); /* until exec() */
    EXPECT_FALSE(ucs_pid_is_dead(child));
    EXPECT_TRUE(ucs_pid_has_lost(child, m_page, page_size, m_page));
    EXPECT_FALSE(ucs_pid_has_lost(child, m_page, page_size, NULL))
            << "as where no mappings are shown";
    kill(child, SIGKILL);
    ended(child);
    EXPECT_FALSE(ucs_pid_has_lost(child, m_page, page_size, m_page))
            << "is for ucs_pid_is_dead() to say";
    EXPECT_EQ(child, waitpid(child, NULL, 0));
    close(ready[0]);
}

TEST_F(test_dead, whose_first_thread_has_ended_is_not_dead)
{
    int ready[2];
    char byte;

    ASSERT_EQ(0, pipe(ready));
    pid_t child = fork();
    if (child == 0) {
        std::thread([ready]() {
            while (true) { /* until the first thread is gone */
                char path[64], target[16];
                snprintf(path, sizeof(path), "/proc/%d/exe", getpid());
                if (readlink(path, target, sizeof(target)) < 0) {
                    break;
                }
            }
            (void)!write(ready[1], "", 1);
            pause();
        }).detach();
        syscall(SYS_exit, 0); /* of this thread, without an exception */
    }
    ASSERT_EQ(1, read(ready[0], &byte, 1));
    EXPECT_FALSE(ucs_pid_is_dead(child));
    EXPECT_FALSE(ucs_pid_has_lost(child, m_page, page_size, m_page));
    kill(child, SIGKILL);
    ended(child);
    EXPECT_TRUE(ucs_pid_is_dead(child));
    EXPECT_EQ(child, waitpid(child, NULL, 0));
    close(ready[0]);
    close(ready[1]);
}
