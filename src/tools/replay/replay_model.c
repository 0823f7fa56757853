/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "replay_integral.h"

#include <tools/tool.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Deviations that 98 of 100 normal numbers do not pass */
#define REPLAY_98_OF_100 2.0537


/*
 * Limit and leave pinned, by segments
 */

typedef struct replay_segments {
    const replay_trace_t *trace;
    uint32_t             *users;
    uint8_t              *seen;
    uint64_t             *idle_ns;  /* by segment: its last use's end */
    replay_integral_t    integral;
    int                  is_leave;
} replay_segments_t;

/* What it costs to have the pages of a use one lead earlier */
static double replay_segments_lead(const replay_segments_t *segments,
                                   const replay_params_t *params,
                                   const replay_use_t *use)
{
    const replay_trace_t *trace = segments->trace;
    const replay_item_t *item   = &trace->items[use->item];
    double lead                 = replay_model_lead_ns(
            trace, params, replay_item_bytes(item));
    double byte_ns              = 0;
    uint64_t idle;
    uint32_t i;

    for (i = item->first; i < item->last; ++i) {
        if (segments->users[i] == 0) {
            idle     = segments->integral.time_ns - segments->idle_ns[i];
            byte_ns += replay_segment_bytes(trace, i) *
                       ((idle < lead) ? idle : lead);
        }
    }
    return byte_ns;
}

static void replay_segments_use(replay_segments_t *segments,
                                const replay_use_t *use)
{
    const replay_item_t *item = &segments->trace->items[use->item];
    replay_figures_t *figures = segments->integral.figures;
    uint64_t bytes            = 0;
    uint32_t i;

    for (i = item->first; i < item->last; ++i) {
        if (segments->is_leave ? !segments->seen[i] :
                                 (segments->users[i]++ == 0)) {
            bytes += replay_segment_bytes(segments->trace, i);
        }
        segments->seen[i] = 1;
    }
    replay_integral_add(&segments->integral, bytes);
    ++figures->uses;
    figures->cold    += use->is_cold;
    figures->on_time += !use->is_cold;
    if (use->is_cold) {
        replay_integral_register(figures, segments->trace,
                                 replay_item_bytes(item));
    }
}

static void replay_segments_release(replay_segments_t *segments,
                                    const replay_item_t *item)
{
    uint64_t bytes = 0;
    uint32_t i;

    if (segments->is_leave) {
        return;
    }
    for (i = item->first; i < item->last; ++i) {
        if (--segments->users[i] == 0) {
            segments->idle_ns[i] = segments->integral.time_ns;
            bytes += replay_segment_bytes(segments->trace, i);
        }
    }
    replay_integral_add(&segments->integral, -bytes);
}

static void replay_segments_unmap(replay_segments_t *segments,
                                  const replay_unmap_t *unmap)
{
    const replay_trace_t *trace = segments->trace;
    uint64_t bytes              = 0;
    uint32_t i;

    for (i = 0; i < trace->segment_count; ++i) {
        if (replay_segment_is_touched(trace, i, unmap) && segments->seen[i]) {
            segments->seen[i] = 0;
            bytes            += replay_segment_bytes(trace, i);
        }
    }
    if (segments->is_leave) {
        replay_integral_add(&segments->integral, -bytes);
    }
}

static void replay_segments_init(replay_segments_t *segments,
                                 const replay_trace_t *trace, int is_leave,
                                 replay_figures_t *figures,
                                 replay_curve_t *curve)
{
    size_t count = trace->segment_count;

    segments->trace    = trace;
    segments->is_leave = is_leave;
    segments->users    = tool_calloc(count, sizeof(*segments->users));
    segments->seen     = tool_calloc(count, sizeof(*segments->seen));
    segments->idle_ns  = tool_calloc(count, sizeof(*segments->idle_ns));
    replay_integral_init(&segments->integral, trace, figures, curve);
}

static void replay_segments_cleanup(replay_segments_t *segments)
{
    free(segments->users);
    free(segments->seen);
    free(segments->idle_ns);
}

static void replay_segments_event(replay_segments_t *segments,
                                  const replay_event_t *event)
{
    const replay_trace_t *trace = segments->trace;

    switch (event->kind) {
    case REPLAY_USE:
        replay_segments_use(segments, &trace->uses[event->index]);
        break;
    case REPLAY_RELEASE:
        replay_segments_release(
                segments, &trace->items[trace->uses[event->index].item]);
        break;
    default:
        replay_segments_unmap(segments, &trace->unmaps[event->index]);
        break;
    }
}

static void replay_model_segments(const replay_trace_t *trace, int is_leave,
                                  replay_figures_t *figures,
                                  replay_curve_t *curve)
{
    replay_segments_t segments;
    size_t i;

    replay_segments_init(&segments, trace, is_leave, figures, curve);
    for (i = 0; i < trace->event_count; ++i) {
        replay_integral_to(&segments.integral, trace->events[i].time_ns);
        replay_segments_event(&segments, &trace->events[i]);
    }
    replay_integral_to(&segments.integral, trace->end_ns);
    replay_segments_cleanup(&segments);
}

double replay_model_lead_ns(const replay_trace_t *trace,
                            const replay_params_t *params, uint64_t bytes)
{
    return params->register_cost.base_ns +
           params->register_cost.page_ns * (bytes / trace->page_size) +
           params->lateness_ns * exp(REPLAY_LATENESS_SIGMA * REPLAY_98_OF_100);
}

double replay_model_lead(const replay_trace_t *trace,
                         const replay_params_t *params)
{
    double byte_ns = 0;
    const replay_event_t *event;
    replay_segments_t segments;
    replay_figures_t figures;
    size_t i;

    replay_segments_init(&segments, trace, 0, &figures, NULL);
    for (i = 0; i < trace->event_count; ++i) {
        event = &trace->events[i];
        replay_integral_to(&segments.integral, event->time_ns);
        if ((event->kind == REPLAY_USE) &&
            !trace->uses[event->index].is_cold) {
            byte_ns += replay_segments_lead(&segments, params,
                                            &trace->uses[event->index]);
        }
        replay_segments_event(&segments, event);
    }
    replay_segments_cleanup(&segments);
    return byte_ns;
}

void replay_model_limit(const replay_trace_t *trace, replay_figures_t *figures,
                        replay_curve_t *curve)
{
    replay_model_segments(trace, 0, figures, curve);
}

void replay_model_leave(const replay_trace_t *trace, replay_figures_t *figures,
                        replay_curve_t *curve)
{
    replay_model_segments(trace, 1, figures, curve);
}
