/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef BENCH_SIM_WORLD_H_
#define BENCH_SIM_WORLD_H_

#include "sim_pattern.h"

#include <tools/replay/replay_process.h>

/**
 * @file sim_world.h
 *
 * All ranks of a job in one process, under one virtual clock, over a network
 * as LogGP describes it; docs/sim.md has the model. Each rank has an engine of
 * its own, or takes its delays from a rank that has one.
 */

BEGIN_C_DECLS

/** LogGP, and where rendezvous begins. Nanoseconds. */
typedef struct sim_network {
    uint64_t latency_ns;  /**< L */
    uint64_t overhead_ns; /**< o, of the processor, a send or a receive */
    uint64_t gap_ns;      /**< g, after a message */
    double   byte_ns;     /**< G */
    uint64_t eager_bytes; /**< shorter messages are copied: no registration */
} sim_network_t;

/** No engine: a registration costs nothing. */
#define SIM_NO_POLICY UCS_REGCACHE_POLICY_LAST

/** A use of a registration, told at its begin and at its end. */
typedef void (*sim_use_func_t)(void *arg, uint32_t rank, uint64_t use,
                               int is_end, uint64_t time_ns, uint64_t address,
                               uint64_t bytes, unsigned access,
                               uint64_t signature);

/** Who does the helper's work. */
typedef enum sim_helper {
    SIM_HELPER_THREAD, /**< a thread that hears registrations alone */
    SIM_HELPER_IDLE    /**< the rank itself while it waits, as with
                            UCX_MD_HELPER_CPU_POLICY=idle: operations are
                            heard, and the thread steps only if the rank has
                            not for the patience of @a process */
} sim_helper_t;

typedef struct sim_params {
    sim_network_t   network;
    replay_params_t process;      /**< costs, lateness, policy, ceiling; the
                                       seed is the run's */
    unsigned        iterations;
    double          flops;        /**< of a rank, a second */
    double          noise;        /**< a compute phase takes longer by this
                                       share of |N(0, 1)| */
    double          straggler;    /**< and one rank's by this share */
    double          late;         /**< share of the uses that wait for a
                                       registration though there is one */
    sim_helper_t    helper;
    uint32_t        engines;      /**< ranks that have one; 0: all */
    int             is_small;     /**< engines with tables that fit */
    sim_use_func_t  on_use;       /**< may be NULL */
    void            *arg;
} sim_params_t;

/** Figures of one run. */
typedef struct sim_result {
    uint64_t             time_ns;      /**< until the last rank has ended */
    uint64_t             compute_ns;   /**< mean of the ranks, noise included */
    uint32_t ranks, engines;
    uint32_t             stuck;        /**< ranks that have not ended: a
                                            deadlock */
    uint32_t             stuck_rank;   /**< one of them */
    uint64_t sends, receives;   /**< completed */
    uint64_t sent_bytes, received_bytes;
    uint64_t             unmatched;    /**< messages that nobody received,
                                            receives that got none */
    uint64_t             rendezvous;   /**< messages */
    uint64_t             borrowed;     /**< delays of ranks without engine */
    uint64_t             guessed;      /**< those whose model rank was not there
                                            yet */
    uint64_t             late_ns;      /**< that uses waited for @a late, all
                                            ranks together */
    uint64_t             events;
    uint64_t             idle_steps;   /**< of ranks that waited */

    /* Of the ranks with engine */
    ucs_regcache_stats_t stats;        /**< counts: sums; byte figures: means */
    uint64_t             peak_max_bytes;
    double               byte_ns_max;
    uint64_t             leave_peak_max_bytes;
} sim_result_t;

/** Uses of registrations that a rank makes in one iteration. */
uint64_t sim_uses(const sim_shape_t *shape, const sim_network_t *network,
                  uint32_t rank);

/**
 * Bytes that a rank's engine is reckoned to take, from above.
 */
size_t sim_engine_bytes(const sim_shape_t *shape, const sim_params_t *params);

/** Run a job. @return UCS_OK, or what creating an engine returned. */
ucs_status_t sim_world_run(const sim_shape_t *shape, const sim_params_t *params,
                           sim_result_t *result);

/** @return Nonzero if all ended and each message was received. */
int sim_result_is_sound(const sim_result_t *result);

END_C_DECLS

#endif
