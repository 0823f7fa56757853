/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef RUN_AGAIN_H_
#define RUN_AGAIN_H_

#include <string>

#include <stdlib.h>
#include <unistd.h>

/* In a child: become this program for one disabled test and no other, also where
 * the tests are shared out among processes. Returns only if that fails. */
inline void run_again(const char *program, const std::string &test)
{
    std::string filter = "--gtest_filter=" + test;

    unsetenv("GTEST_TOTAL_SHARDS");
    unsetenv("GTEST_SHARD_INDEX");
    execl(program, program, filter.c_str(), "--gtest_also_run_disabled_tests",
          (char*)nullptr);
}

#endif
