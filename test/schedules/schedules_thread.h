/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef SCHEDULES_THREAD_H_
#define SCHEDULES_THREAD_H_

#include "schedules_sched.h"

/**
 * @file schedules_thread.h
 *
 * A thread of the simulated application: it uses memory, unmaps some of it, and
 * waits.
 */

/** Ranges of memory that threads use. */
#define SIM_NUM_RANGES 10

/** Of others' reads and writes, and of the program's own. */
enum {
    SIM_ACCESS_GET   = 1,
    SIM_ACCESS_PUT   = 2,
    SIM_ACCESS_RMA   = SIM_ACCESS_GET | SIM_ACCESS_PUT,
    SIM_ACCESS_READ  = 4,
    SIM_ACCESS_WRITE = 8
};

typedef struct sim_thread {
    sim_rng_t rng;
    unsigned  number;
    unsigned  ops;
    unsigned  ranges;  /* the first so many are used */
    int       is_leaky; /* keeps a use at its end */
} sim_thread_t;

/** A thread from its first operation to its last. @a arg is its
 *  sim_thread_t. */
void sim_thread_main(void *arg);

#endif
