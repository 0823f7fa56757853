/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef QUIET_FORK_H_
#define QUIET_FORK_H_

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>

#include <dirent.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/** State letter of a thread of this process, as in /proc; '?' if it is gone. */
static inline char thread_state(pid_t tid)
{
    std::ifstream file("/proc/self/task/" + std::to_string(tid) + "/stat");
    std::string text((std::istreambuf_iterator<char>(file)),
                     std::istreambuf_iterator<char>());
    size_t end = text.rfind(')'); /* the name may have spaces */

    return (end == std::string::npos) ? '?' : text[end + 2];
}

/** Whether every thread of this process but the caller is asleep. */
static inline bool other_threads_sleep()
{
    pid_t self   = syscall(SYS_gettid);
    DIR *dir     = opendir("/proc/self/task");
    bool is_busy = false;

    while (struct dirent *entry = readdir(dir)) {
        pid_t tid = atoi(entry->d_name); /* 0: no thread */
        if ((tid != 0) && (tid != self)) {
            char state = thread_state(tid);
            is_busy   |= (state != 'S') && (state != '?');
        }
    }
    closedir(dir);
    return !is_busy;
}

/** Wait until no other thread runs, a second at the most: to a child without
 * fork handlers every lock that one holds stays locked. Allocates. */
static inline void wait_for_quiet()
{
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);

    while (!other_threads_sleep() && (std::chrono::steady_clock::now() < end)) {
        std::this_thread::yield();
    }
}

/**
 * fork(), for a child that goes on to allocate. glibc leaves a child an
 * allocator that works; AddressSanitizer's of GCC 12 leaves it locked if
 * another thread was inside, as one is while it starts.
 */
static inline pid_t quiet_fork()
{
#if defined(__SANITIZE_ADDRESS__)
    wait_for_quiet();
#endif
    return fork();
}

/** Exit code of a child, once it has ended; what is negative is a signal. */
static inline int wait_for_child(pid_t pid)
{
    int status = -1;

    EXPECT_EQ(pid, waitpid(pid, &status, 0));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/** Exit code of a @ref quiet_fork child that runs the function, within 20
 * seconds; 0 is good. It ends by exit(). */
static inline int in_child(const std::function<int()> &function)
{
    pid_t pid = quiet_fork();

    if (pid == 0) {
        alarm(20);
        exit(function());
    }
    return wait_for_child(pid);
}

#endif
