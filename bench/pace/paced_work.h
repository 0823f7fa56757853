/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef BENCH_PACED_WORK_H_
#define BENCH_PACED_WORK_H_

#include <stdint.h>

/**
 * @file paced_work.h
 *
 * What a rank does while it computes: nothing, as where an accelerator or
 * another core has the work, or as much processor time as it takes.
 */

typedef enum paced_work {
    PACED_WORK_ASLEEP,
    PACED_WORK_BUSY,  /**< on the rank's core; longer where others take it */
    PACED_WORK_MIXED, /**< first half busy, then asleep */
    PACED_WORK_LAST
} paced_work_t;

/** By @ref paced_work_t; ended by NULL. */
extern const char *const paced_work_names[];

/** Have this process woken as soon as the kernel can: its own timers are then
 *  not put together with others'. */
void paced_work_init(void);

/**
 * Compute.
 *
 * @return How late this rank was woken, nanoseconds; 0 if it did not sleep.
 */
uint64_t paced_work(paced_work_t how, uint64_t ns);

#endif
