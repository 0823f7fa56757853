/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "replay_integral.h"
#include "tool.h"

#include <stdlib.h>
#include <string.h>


/*
 * Limit and leave pinned, by segments
 */

typedef struct replay_segments {
    const replay_trace_t *trace;
    uint32_t             *users;
    uint8_t              *seen;
    replay_integral_t    integral;
    int                  is_leave;
} replay_segments_t;

static uint64_t replay_segment_bytes(const replay_trace_t *trace, uint32_t i)
{
    return trace->bounds[i + 1] - trace->bounds[i];
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
        if ((trace->bounds[i] < unmap->end) &&
            (trace->bounds[i + 1] > unmap->start) && segments->seen[i]) {
            segments->seen[i] = 0;
            bytes            += replay_segment_bytes(trace, i);
        }
    }
    if (segments->is_leave) {
        replay_integral_add(&segments->integral, -bytes);
    }
}

static void replay_model_segments(const replay_trace_t *trace, int is_leave,
                                  replay_figures_t *figures,
                                  replay_curve_t *curve)
{
    size_t count               = trace->segment_count + 1;
    replay_segments_t segments = {.trace = trace, .is_leave = is_leave};
    const replay_event_t *event;
    size_t i;

    segments.users = tool_realloc(NULL, count * sizeof(*segments.users));
    segments.seen  = tool_realloc(NULL, count);
    memset(segments.users, 0, count * sizeof(*segments.users));
    memset(segments.seen, 0, count);
    replay_integral_init(&segments.integral, trace, figures, curve);
    for (i = 0; i < trace->event_count; ++i) {
        event = &trace->events[i];
        replay_integral_to(&segments.integral, event->time_ns);
        switch (event->kind) {
        case REPLAY_USE:
            replay_segments_use(&segments, &trace->uses[event->index]);
            break;
        case REPLAY_RELEASE:
            replay_segments_release(
                    &segments,
                    &trace->items[trace->uses[event->index].item]);
            break;
        default:
            replay_segments_unmap(&segments, &trace->unmaps[event->index]);
            break;
        }
    }
    replay_integral_to(&segments.integral, trace->end_ns);
    free(segments.users);
    free(segments.seen);
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
