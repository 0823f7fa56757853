/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCX_HELPER_TOOL_REPLAY_WORLD_H_
#define UCX_HELPER_TOOL_REPLAY_WORLD_H_

#include "replay_process.h"
#include "replay_trace.h"

/*
 * A trace drives one process under virtual time: the main thread makes the
 * recorded uses at their recorded times (an event waits only while the one
 * before it is not over).
 */

BEGIN_C_DECLS

#define REPLAY_CURVE_BINS 300

/** What is registered over time, for a picture. */
typedef struct replay_curve {
    uint64_t from_ns;
    uint64_t width_ns; /**< of a bin */
    double   byte_ns[REPLAY_CURVE_BINS]; /**< the integral over each */
    uint64_t time_ns;  /**< up to here */
    uint64_t bytes;    /**< from then on */
} replay_curve_t;

/** Note a value of a @ref replay_curve_t, from a time on. */
void replay_curve_add(void *arg, uint64_t time_ns, uint64_t bytes);

/**
 * Replay @a trace.
 *
 * @param       curve NULL, or one that is filled.
 * @param [out] once  When a steady part that is repeated began for the second
 *                    time: by then all that recurs was there once. All 0 if none
 *                    is.
 * @param [out] all   At the trace's end. Of both `lost_ns` is virtual time that the
 *                    main thread spent with the lower domain, or waiting for the
 *                    helper.
 *
 * @return UCS_OK or what creating the engine returned.
 */
ucs_status_t replay_world_run(const replay_trace_t *trace,
                              const replay_params_t *params,
                              replay_curve_t *curve,
                              ucs_regcache_stats_t *once,
                              ucs_regcache_stats_t *all);

/** @return What was lost but for first uses, which nobody could have registered
 *          before. */
static inline double replay_lost(const ucs_regcache_stats_t *stats)
{
    return (double)stats->lost_ns -
           (double)stats->why.lost_ns[UCS_REGCACHE_LOST_FIRST];
}

END_C_DECLS

#endif
