/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCX_HELPER_TOOL_REPLAY_WARP_H_
#define UCX_HELPER_TOOL_REPLAY_WARP_H_

#include <ucs/trace/trace.h>

/**
 * @file replay_warp.h
 *
 * Traces that are a little different from what was recorded: a predictor must
 * not depend on one recording's times.
 */

BEGIN_C_DECLS

typedef struct replay_warp {
    int      is_scaled;     /**< scale each gap by a random 0.5 to 2 */
    double   noise;         /**< deviation of each gap, share of it */
    int      drop;          /**< leave out one iteration in the middle */
    int      insert;        /**< another phase in the middle */
    uint64_t seed;
} replay_warp_t;

/**
 * Change a trace, in order of time, in place; first what is dropped and
 * inserted, then times.
 *
 * @return 0, or -1 after a message if an iteration shall be dropped and none
 *         is found.
 */
int replay_warp_apply(const replay_warp_t *warp, const char *name,
                      ucs_trace_t *trace);

END_C_DECLS

#endif
