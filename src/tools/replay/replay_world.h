/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCX_HELPER_TOOL_REPLAY_WORLD_H_
#define UCX_HELPER_TOOL_REPLAY_WORLD_H_

#include "replay_process.h"
#include "replay_trace.h"

/**
 * @file replay_world.h
 *
 * A trace drives one process under virtual time: the main thread makes the
 * recorded uses at their recorded times (an event waits only while the one
 * before it is not over).
 */

BEGIN_C_DECLS

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

/** What it took until a steady part that is repeated began for the second time:
 *  by then all that recurs was there once. All 0 if none is. */
typedef struct replay_once {
    double   lost_ns;
    double   first_ns;          /**< the part of it in cold uses */
    double   pinned_byte_ns;
    uint64_t pinned_peak_bytes;
} replay_once_t;

/** What a replay took. */
typedef struct replay_spent {
    double   cpu_s;   /**< seconds of processor time, from when the engine was
                           there until it had taken the last event */
    uint64_t lost_ns; /**< virtual time that the main thread spent with the
                           lower domain, or waiting for the helper */
    uint64_t first_ns; /**< the part of it in cold uses */
    replay_once_t once;
} replay_spent_t;

/**
 * Replay @a trace.
 *
 * @param [out] stats  The engine's own figures at the trace's end.
 * @param       curve  NULL, or an empty curve that is filled.
 * @param [out] spent  NULL, or what it took.
 *
 * @return UCS_OK or what creating the engine returned.
 */
ucs_status_t replay_world_run(const replay_trace_t *trace,
                              const replay_params_t *params,
                              ucs_regcache_stats_t *stats,
                              replay_curve_t *curve, replay_spent_t *spent);

/** Note a value of the curve. */
void replay_curve_add(replay_curve_t *curve, uint64_t time_ns,
                      uint64_t bytes);

END_C_DECLS

#endif
