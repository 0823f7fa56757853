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
    double   region_ns;
    uint64_t pinned_peak_bytes;
} replay_once_t;

/** What a policy or a yardstick comes to. */
typedef struct replay_figures {
    ucs_regcache_stats_t stats;    /**< of a yardstick `uses`, `on_time`,
                                        `missed`, `cold`, `pinned_peak_bytes`,
                                        `pinned_byte_ns`, `regions_peak` and
                                        `region_ns`; all else is 0 */
    double               lost_ns;  /**< virtual time that the main thread spent
                                        with the lower domain, or waiting for
                                        the helper; of a yardstick what its
                                        uses' registrations would take */
    double               first_ns; /**< the part of it in cold uses, which
                                        nobody could have registered before */
    replay_once_t        once;     /**< of a policy */
} replay_figures_t;

/**
 * Replay @a trace.
 *
 * @param       curve    NULL, or an empty curve that is filled.
 * @param [out] figures  At the trace's end.
 *
 * @return UCS_OK or what creating the engine returned.
 */
ucs_status_t replay_world_run(const replay_trace_t *trace,
                              const replay_params_t *params,
                              replay_curve_t *curve,
                              replay_figures_t *figures);

/** Note a value of the curve. */
void replay_curve_add(replay_curve_t *curve, uint64_t time_ns,
                      uint64_t bytes);

END_C_DECLS

#endif
