/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef BENCH_PACED_RUN_H_
#define BENCH_PACED_RUN_H_

#include "paced_codes.h"

#include <mpi.h>

/**
 * @file paced_run.h
 *
 * A rank's part of a code, by MPI. Each call site of the pattern is one of the
 * program's, as in a code of its own.
 */

/* What a rank does while it computes: nothing, as where an accelerator or another core
 * has the work, or as much processor time as it takes */

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

/** Sleeps whose lateness is kept. */
#define PACED_LATE_MAX 4096

typedef struct paced_request {
    void     *address;
    uint64_t bytes;
    uint64_t stamp; /**< Of what is to arrive */
    int      is_receive;
} paced_request_t;

typedef struct paced {
    sim_shape_t     shape;
    paced_data_t    data;
    paced_work_t    work;
    int             rank, size;
    unsigned        iterations;
    double          ns_per_flop;
    MPI_Comm        group;          /**< Of this rank's reductions */
    MPI_Request     requests[PACED_REQUESTS];
    MPI_Status      statuses[PACED_REQUESTS];
    paced_request_t open[PACED_REQUESTS];
    int             num_open;
    uint64_t        *sent, *received; /**< By peer and tag */
    uint64_t        reductions;
    uint64_t        message_ns;     /**< In MPI's calls */
    uint64_t        compute_ns;     /**< Otherwise */
    uint64_t        blocks, wrong;  /**< Verified, and not as they were sent */
    double          late_us[PACED_LATE_MAX];
    unsigned        num_late;
} paced_t;

/** End the job with a message. */
void paced_fatal(const paced_t *paced, const char *format, ...)
        __attribute__((format(printf, 2, 3), noreturn));

/**
 * Walk through the whole program, without a message: lengths of buffers, the
 * group of the reductions, and where an iteration takes @a iteration_ms, how
 * long an operation takes. Collective.
 */
void paced_plan(paced_t *paced, double iteration_ms);

/** Run it. Collective. */
void paced_run(paced_t *paced);

#endif
