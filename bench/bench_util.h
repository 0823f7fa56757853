/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef BENCH_UTIL_H_
#define BENCH_UTIL_H_

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

/**
 * @file bench_util.h
 *
 * Clock, order statistics and size parsing shared by the C benches. Needs libc
 * only, so that the MPI programs do not depend on UCX.
 */

static inline uint64_t bench_clock(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return ((uint64_t)ts.tv_sec * 1000000000ul) + (uint64_t)ts.tv_nsec;
}

/** @return Monotonic time, nanoseconds. Served by the vDSO: no syscall. */
static inline uint64_t bench_now(void)
{
    return bench_clock(CLOCK_MONOTONIC);
}

/** @return Processor time of the calling thread, nanoseconds. */
static inline uint64_t bench_cpu_now(void)
{
    return bench_clock(CLOCK_THREAD_CPUTIME_ID);
}

/** @return Anonymous memory that can be written to. @a flags  MAP_PRIVATE or
 *  MAP_SHARED, and others. Ends the program, with what is wrong, if there is none. */
static inline void *bench_map(size_t length, int flags)
{
    void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE,
                        flags | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(2);
    }
    return memory;
}

static inline int bench_compare_double(const void *a, const void *b)
{
    const double x = *(const double*)a;
    const double y = *(const double*)b;

    return (x > y) - (x < y);
}

static inline void bench_sort(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), bench_compare_double);
}

/**
 * @param [in] sorted  Values in ascending order.
 * @param [in] count   How many; 0 gives 0.
 * @param [in] rank    Quantile, 0.0 to 1.0.
 *
 * @return The quantile, interpolated between its two neighbours.
 */
static inline double
bench_quantile(const double *sorted, size_t count, double rank)
{
    double position, weight;
    size_t index;

    if (count == 0) {
        return 0;
    }

    position = rank * (double)(count - 1);
    index    = (size_t)position;
    if (index + 1 >= count) {
        return sorted[count - 1];
    }

    weight = position - (double)index;
    return (sorted[index] * (1 - weight)) + (sorted[index + 1] * weight);
}

/**
 * Parse a size in bytes with an optional binary suffix k, m or g.
 *
 * @return 0, or -1 when @a text is not a size (then @a size_p is untouched).
 */
static inline int bench_parse_size(const char *text, size_t *size_p)
{
    static const char suffixes[] = "kmg";
    unsigned shift               = 0;
    char *end;
    unsigned long long value;
    unsigned i;

    if ((*text < '0') || (*text > '9')) {
        return -1;
    }

    value = strtoull(text, &end, 10);
    for (i = 0; (i < 3) && (*end != '\0'); ++i) {
        if ((*end | 0x20) == suffixes[i]) {
            shift = 10 * (i + 1);
            ++end;
            break;
        }
    }

    if ((*end != '\0') || (value > (SIZE_MAX >> shift))) {
        return -1;
    }

    *size_p = (size_t)value << shift;
    return 0;
}

#endif
