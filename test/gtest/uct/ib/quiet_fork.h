/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef QUIET_FORK_H_
#define QUIET_FORK_H_

#include <cctype>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include <dirent.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/** Whether every thread of this process but the caller is asleep. */
static inline bool other_threads_sleep()
{
    pid_t self   = syscall(SYS_gettid);
    DIR *dir     = opendir("/proc/self/task");
    bool is_busy = false;

    while (struct dirent *entry = readdir(dir)) {
        if (!isdigit(entry->d_name[0]) || (atoi(entry->d_name) == self)) {
            continue;
        }
        std::ifstream file(std::string("/proc/self/task/") + entry->d_name +
                           "/stat");
        std::string text;
        std::getline(file, text);
        size_t end = text.rfind(')'); /* the name may have spaces */
        is_busy   |= (end != std::string::npos) && (text[end + 2] != 'S');
    }
    closedir(dir);
    return !is_busy;
}

/** Wait until no other thread runs, a second at the most: to a child without fork
 * handlers every lock that one holds stays locked. Allocates. */
static inline void wait_for_quiet()
{
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);

    while (!other_threads_sleep() && (std::chrono::steady_clock::now() < end)) {
        std::this_thread::yield();
    }
}

/**
 * fork(), for a child that goes on to allocate. glibc leaves a child an
 * allocator that works; AddressSanitizer's of GCC 12 leaves it locked if another
 * thread was inside, as one is while it starts.
 */
static inline pid_t quiet_fork()
{
#if defined(__SANITIZE_ADDRESS__)
    wait_for_quiet();
#endif
    return fork();
}

#endif
