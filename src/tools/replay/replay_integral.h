/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCX_HELPER_TOOL_REPLAY_INTEGRAL_H_
#define UCX_HELPER_TOOL_REPLAY_INTEGRAL_H_

#include "replay_model.h"

#include <string.h>

/**
 * @file replay_integral.h
 *
 * What the yardsticks have in common: registered bytes, their integral over
 * time, their peak, and their curve where one is asked for.
 */

typedef struct replay_integral {
    uint64_t         time_ns;
    uint64_t         bytes;
    replay_figures_t *figures;
    replay_curve_t   *curve;
} replay_integral_t;


/** Nothing is pinned when the trace begins. @a figures are cleared; @a curve
 *  may be NULL. */
static inline void
replay_integral_init(replay_integral_t *integral, const replay_trace_t *trace,
                     replay_figures_t *figures, replay_curve_t *curve)
{
    memset(figures, 0, sizeof(*figures));
    integral->time_ns = trace->start_ns;
    integral->bytes   = 0;
    integral->figures = figures;
    integral->curve   = curve;
    if (curve != NULL) {
        replay_curve_add(curve, trace->start_ns, 0);
    }
}

/** Time has gone on to @a time_ns, not before the last. */
static inline void replay_integral_to(replay_integral_t *integral,
                                      uint64_t time_ns)
{
    integral->figures->pinned_byte_ns +=
            (double)(time_ns - integral->time_ns) * integral->bytes;
    integral->time_ns = time_ns;
}

/* A use registers its buffer itself. That takes no time in what follows, but is
 * time lost. */
static inline void replay_integral_register(replay_figures_t *figures,
                                            const replay_trace_t *trace,
                                            uint64_t bytes)
{
    figures->lost_ns += trace->register_ns +
                        trace->register_page_ns * (bytes / trace->page_size);
}

/* @a bytes wraps for less */
static inline void replay_integral_add(replay_integral_t *integral,
                                       uint64_t bytes)
{
    integral->bytes += bytes;
    if (integral->bytes > integral->figures->pinned_peak_bytes) {
        integral->figures->pinned_peak_bytes = integral->bytes;
    }
    if (integral->curve != NULL) {
        replay_curve_add(integral->curve, integral->time_ns, integral->bytes);
    }
}

#endif
