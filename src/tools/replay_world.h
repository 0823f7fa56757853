/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCX_HELPER_TOOL_REPLAY_WORLD_H_
#define UCX_HELPER_TOOL_REPLAY_WORLD_H_

#include "replay_trace.h"

#include <uct/ib/helper_md/engine.h>

/**
 * @file replay_world.h
 *
 * The production engine under a virtual clock. Two threads are simulated, each
 * with a time of its own: the main thread makes the recorded uses at their
 * recorded times (an event waits only while the one before it is not over),
 * the helper steps the engine when it asked to or was woken, late by a random
 * time. A registration takes what the cost model says; what the main thread
 * does while the helper registers happens during that registration, so a use
 * of that very buffer is late and waits.
 */

BEGIN_C_DECLS

/** Spread of the lateness, of its logarithm. */
#define REPLAY_LATENESS_SIGMA 0.6

/** nanoseconds = page_ns * pages + base_ns */
typedef struct replay_cost {
    double base_ns;
    double page_ns;
} replay_cost_t;

/** A world's parameters; all costs are modelled. */
typedef struct replay_params {
    uct_helper_policy_t policy;
    uint64_t            max_pinned;    /**< bytes, UINT64_MAX: no ceiling */
    replay_cost_t       register_cost;
    replay_cost_t       deregister_cost;
    double              lateness_ns;   /**< median lateness of the helper's
                                            wake-up, log-normal */
    double              miss_target;   /**< of predict, 0 to 1; 0: default */
    uint64_t            seed;          /**< of the lateness */
} replay_params_t;

/** Registered bytes from a time on. */
typedef struct replay_sample {
    uint64_t time_ns;
    uint64_t bytes;
} replay_sample_t;

/** How registered memory went; off while `samples` is NULL at the start. */
typedef struct replay_curve {
    replay_sample_t *samples; /**< ordered by time */
    size_t          count;
    size_t          capacity;
} replay_curve_t;

/**
 * Replay @a trace.
 *
 * @param [out] stats  The engine's own figures at the trace's end.
 * @param       curve  NULL, or an empty curve that is filled.
 *
 * @return UCS_OK or what creating the engine returned.
 */
ucs_status_t replay_world_run(const replay_trace_t *trace,
                              const replay_params_t *params,
                              uct_helper_stats_t *stats,
                              replay_curve_t *curve);

/** Note a value of the curve. */
void replay_curve_add(replay_curve_t *curve, uint64_t time_ns,
                      uint64_t bytes);

END_C_DECLS

#endif
