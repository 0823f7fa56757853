/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "replay_offline.h"
#include "replay_integral.h"

#include <tools/tool.h>

#include <stdlib.h>

/* A range of pages, while it is not known yet what follows */
typedef struct replay_range {
    uint64_t idle_ns; /* the end of its last use */
    size_t   release; /* event that ended it */
    uint32_t users;
    uint8_t  is_seen; /* it was used, and not unmapped since */
    uint8_t  is_gone; /* unmapped while in use */
    uint8_t  is_pinned;
} replay_range_t;

typedef struct replay_offline {
    const replay_trace_t  *trace;
    const replay_params_t *params;
    double                byte_price; /* of a byte, nanoseconds a nanosecond */
    replay_range_t        *ranges;    /* by item */
    uint8_t               *is_kept;   /* by event, a release: until the next
                                         use */
    replay_integral_t     integral;
    replay_lost_t         *lost;
} replay_offline_t;


static double replay_offline_cost(const replay_offline_t *offline,
                                  uint64_t bytes)
{
    const replay_cost_t *cost = &offline->params->register_cost;

    return cost->base_ns + cost->page_ns * (bytes / offline->trace->page_size);
}

/* A use that finds its range idle, or never used before */
static void replay_offline_begin(replay_offline_t *offline,
                                 const replay_use_t *use, uint64_t time_ns)
{
    replay_range_t *range     = &offline->ranges[use->item];
    replay_figures_t *figures = offline->integral.figures;
    uint64_t bytes = replay_item_bytes(&offline->trace->items[use->item]);
    double cost    = replay_offline_cost(offline, bytes);

    if (range->is_seen &&
        (offline->byte_price * bytes * (time_ns - range->idle_ns) <= cost)) {
        offline->is_kept[range->release] = 1;
        ++figures->on_time;
    } else if (range->is_seen) {
        offline->lost->all_ns += cost;
        ++figures->missed;
    } else if (use->is_cold) {
        offline->lost->all_ns   += cost;
        offline->lost->first_ns += cost;
        ++figures->cold;
    } else {
        ++figures->on_time;
    }
    range->is_seen = 1;
}

static void replay_offline_unmap(replay_offline_t *offline,
                                 const replay_unmap_t *unmap)
{
    replay_range_t *range;
    size_t i;

    for (i = 0; i < offline->trace->item_count; ++i) {
        if (replay_item_is_touched(&offline->trace->items[i], unmap)) {
            range          = &offline->ranges[i];
            range->is_seen = 0;
            range->is_gone = (range->users > 0);
        }
    }
}

/* Which gaps it pays to keep, and what the others cost */
static void replay_offline_decide(replay_offline_t *offline)
{
    const replay_trace_t *trace = offline->trace;
    const replay_event_t *event;
    const replay_use_t *use;
    replay_range_t *range;
    size_t i;

    for (i = 0; i < trace->event_count; ++i) {
        event = &trace->events[i];
        if (event->kind == REPLAY_UNMAP) {
            replay_offline_unmap(offline, &trace->unmaps[event->index]);
            continue;
        }
        use   = &trace->uses[event->index];
        range = &offline->ranges[use->item];
        if (event->kind == REPLAY_RELEASE) {
            if (--range->users == 0) {
                range->idle_ns = event->time_ns;
                range->release = i;
                range->is_seen = !range->is_gone;
                range->is_gone = 0;
            }
            continue;
        }
        ++offline->integral.figures->uses;
        if (range->users++ == 0) {
            replay_offline_begin(offline, use, event->time_ns);
        } else {
            ++offline->integral.figures->on_time;
        }
    }
}

/* What that holds over time */
static void replay_offline_hold(replay_offline_t *offline)
{
    const replay_trace_t *trace = offline->trace;
    const replay_event_t *event;
    replay_range_t *range;
    uint64_t bytes;
    uint32_t item;
    size_t i;

    for (i = 0; i < trace->event_count; ++i) {
        event = &trace->events[i];
        replay_integral_to(&offline->integral, event->time_ns);
        if (event->kind == REPLAY_UNMAP) {
            continue;
        }
        item  = trace->uses[event->index].item;
        range = &offline->ranges[item];
        bytes = replay_item_bytes(&trace->items[item]);
        if (event->kind == REPLAY_USE) {
            ++range->users;
            if (!range->is_pinned) {
                range->is_pinned = 1;
                replay_integral_add(&offline->integral, bytes);
            }
        } else if ((--range->users == 0) && !offline->is_kept[i]) {
            range->is_pinned = 0;
            replay_integral_add(&offline->integral, -bytes);
        }
    }
    replay_integral_to(&offline->integral, trace->end_ns);
}

void replay_model_keep_or_drop(const replay_trace_t *trace,
                               const replay_params_t *params,
                               replay_figures_t *figures, replay_lost_t *lost)
{
    replay_offline_t offline = {
        .trace  = trace,
        .params = params,
        .lost   = lost
    };
    replay_figures_t leave;

    replay_model_leave(trace, &leave, NULL);
    if (leave.pinned_peak_bytes > 0) {
        offline.byte_price = params->max_slowdown / leave.pinned_peak_bytes;
    }
    memset(lost, 0, sizeof(*lost));
    offline.ranges  = tool_calloc(trace->item_count, sizeof(*offline.ranges));
    offline.is_kept = tool_calloc(trace->event_count, 1);
    replay_integral_init(&offline.integral, trace, figures, NULL);
    replay_offline_decide(&offline);
    replay_offline_hold(&offline);
    figures->lost_ns = lost->all_ns;
    free(offline.ranges);
    free(offline.is_kept);
}
