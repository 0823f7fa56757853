/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "oracle.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

size_t oracle_page;


uint64_t oracle_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec * UINT64_C(1000000000)) + now.tv_nsec;
}

void oracle_die(const char *what)
{
    fprintf(stderr, "oracle: %s%s%s\n", what, (errno != 0) ? ": " : "",
            (errno != 0) ? strerror(errno) : "");
    _exit(2);
}

/* splitmix64: any seed is as good as another */
uint64_t oracle_random(oracle_worker_t *worker)
{
    uint64_t value = (worker->random += UINT64_C(0x9e3779b97f4a7c15));

    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}
