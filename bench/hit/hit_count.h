/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef BENCH_HIT_COUNT_H_
#define BENCH_HIT_COUNT_H_

#include <stdint.h>

/**
 * @file hit_count.h
 *
 * Counts what the calling thread allocates and which system calls it makes
 * between two points, without privileges and without another process:
 * allocations because this program's malloc is in front of libc's, system calls
 * by Linux' syscall user dispatch (5.11, x86-64), which delivers SIGSYS for
 * the first one after each arming.
 */

typedef struct hit_count {
    uint64_t allocs;       /**< malloc family, free included */
    uint64_t syscalls;     /**< Armed windows with at least one */
    int      last_syscall; /**< Number of the last one seen, -1: none */
} hit_count_t;

/**
 * Install the counters for the calling thread and try them out.
 *
 * @return Nonzero if system calls can be counted here; if not,
 *         @ref hit_count_t::syscalls stays 0 and means nothing.
 */
int hit_count_init(void);

/** Figures of the calling thread so far. */
void hit_count_get(hit_count_t *count);

/** Open and close a window in which a system call counts. */
void hit_count_arm(void);
void hit_count_disarm(void);

#endif
