/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <uct/ib/helper_md/device_limits.h>

#include "quiet_fork.h"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>

/* What the system allows, to a process with and without the right to lock any memory.
 * The effective rights of a child that becomes another user go. */
TEST(test_device_limits, memory_that_may_be_locked)
{
    pid_t pid = fork();

    if (pid == 0) {
        struct rlimit limit = {3 << 20, 3 << 20};
        bool is_root        = (geteuid() == 0);

        if ((setrlimit(RLIMIT_MEMLOCK, &limit) != 0) ||
            (is_root && (uct_helper_limits_memlock() != UINT64_MAX)) ||
            (is_root && (seteuid(65534) != 0)) ||
            (uct_helper_limits_memlock() != 3 << 20)) {
            _exit(1);
        }
        _exit(0);
    }
    EXPECT_EQ(0, wait_for_child(pid));
}

/* A device that is none, or whose library nobody has loaded, says nothing. test/vm has
 * one. */
TEST(test_device_limits, of_no_device_nothing_is_known)
{
    uct_helper_limits_t limits = {7, 7};

    uct_helper_limits_verbs("no such device", &limits);
    EXPECT_EQ(UINT64_MAX, limits.regions);
    EXPECT_EQ(0u, limits.max_length);
}
