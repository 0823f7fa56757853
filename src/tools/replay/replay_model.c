/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "replay_world.h"

#include <tools/tool.h>

#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

/* --- What is registered, and what that comes to --------------------------- */

typedef struct replay_integral {
    const replay_trace_t *trace;
    const replay_cost_t  *cost;
    uint64_t             time_ns;
    uint64_t             bytes;
    uint64_t             regions;
    replay_figures_t     *figures;
    replay_curve_t       *curve;
} replay_integral_t;

static void replay_integral_init(replay_integral_t *integral,
                                 const replay_trace_t *trace,
                                 const replay_cost_t *cost,
                                 replay_figures_t *figures, replay_curve_t *curve)
{
    memset(figures, 0, sizeof(*figures));
    *integral = (replay_integral_t){.trace   = trace,
                                    .cost    = cost,
                                    .time_ns = trace->start_ns,
                                    .figures = figures,
                                    .curve   = curve};
    if (curve != NULL) {
        replay_curve_add(curve, trace->start_ns, 0);
    }
}

static void replay_integral_to(replay_integral_t *integral, uint64_t time_ns)
{
    ucs_regcache_stats_t *stats = &integral->figures->stats;
    double elapsed              = (double)(time_ns - integral->time_ns);

    stats->pinned_byte_ns += elapsed * integral->bytes;
    stats->region_ns      += elapsed * integral->regions;
    integral->time_ns      = time_ns;
}

/* @a bytes and @a regions wrap for less */
static void replay_integral_add(replay_integral_t *integral, uint64_t bytes,
                                uint64_t regions)
{
    ucs_regcache_stats_t *stats = &integral->figures->stats;

    integral->bytes         += bytes;
    integral->regions       += regions;
    stats->pinned_peak_bytes = ucs_max(stats->pinned_peak_bytes,
                                       integral->bytes);
    stats->regions_peak      = ucs_max(stats->regions_peak, integral->regions);
    if (integral->curve != NULL) {
        replay_curve_add(integral->curve, integral->time_ns, integral->bytes);
    }
}

static double replay_integral_cost(const replay_integral_t *integral,
                                   uint64_t bytes)
{
    return integral->cost->base_ns +
           integral->cost->page_ns * (bytes / integral->trace->page_size);
}

/* A first use registers its buffer */
static void replay_integral_first(replay_integral_t *integral, uint64_t bytes)
{
    double cost = replay_integral_cost(integral, bytes);

    ++integral->figures->stats.cold;
    integral->figures->lost_ns  += cost;
    integral->figures->first_ns += cost;
}

/* --- Limit and leave pinned, by segments ---------------------------------- */

typedef struct replay_segments {
    replay_integral_t integral;
    uint32_t          *users;
    uint8_t           *seen;
    uint32_t          *items;   /* users of each range; of leave pinned nonzero
                                   where one of its own is registered */
    int               is_leave;
} replay_segments_t;

static void replay_segments_use(replay_segments_t *segments,
                                const replay_use_t *use)
{
    const replay_trace_t *trace = segments->integral.trace;
    const replay_item_t *item   = &trace->items[use->item];
    uint64_t bytes              = 0;
    uint32_t i;
    int is_new;

    for (i = item->first; i < item->last; ++i) {
        if (segments->is_leave ? !segments->seen[i] :
                                 (segments->users[i]++ == 0)) {
            bytes += replay_segment_bytes(trace, i);
        }
        segments->seen[i] = 1;
    }
    is_new = (segments->items[use->item] == 0) &&
             (!segments->is_leave || (bytes > 0));
    segments->items[use->item] += is_new || !segments->is_leave;
    replay_integral_add(&segments->integral, bytes, is_new);
    ++segments->integral.figures->stats.uses;
    if (use->is_cold) {
        replay_integral_first(&segments->integral, replay_item_bytes(item));
    } else {
        ++segments->integral.figures->stats.on_time;
    }
}

static void replay_segments_release(replay_segments_t *segments, uint32_t index)
{
    const replay_trace_t *trace = segments->integral.trace;
    const replay_item_t *item   = &trace->items[index];
    uint64_t bytes              = 0;
    uint32_t i;

    if (segments->is_leave) {
        return;
    }
    for (i = item->first; i < item->last; ++i) {
        if (--segments->users[i] == 0) {
            bytes += replay_segment_bytes(trace, i);
        }
    }
    replay_integral_add(&segments->integral, -bytes,
                        -(uint64_t)(--segments->items[index] == 0));
}

/* Ranges of leave pinned that go with their pages */
static uint64_t replay_segments_unmap_items(replay_segments_t *segments,
                                            const replay_unmap_t *unmap)
{
    uint64_t regions = 0;
    uint32_t i       = unmap->before;

    while ((i = replay_item_unmapped(segments->integral.trace, unmap, i)) !=
           REPLAY_NONE) {
        regions           += (segments->items[i] > 0);
        segments->items[i] = 0;
    }
    return regions;
}

static void replay_segments_unmap(replay_segments_t *segments,
                                  const replay_unmap_t *unmap)
{
    const replay_trace_t *trace = segments->integral.trace;
    uint64_t bytes              = 0;
    uint32_t i;

    for (i = unmap->first; i < unmap->last; ++i) {
        if (segments->seen[i]) {
            segments->seen[i] = 0;
            bytes            += replay_segment_bytes(trace, i);
        }
    }
    if (segments->is_leave) {
        replay_integral_add(&segments->integral, -bytes,
                            -replay_segments_unmap_items(segments, unmap));
    }
}

static void replay_segments_event(replay_segments_t *segments,
                                  const replay_event_t *event)
{
    const replay_trace_t *trace = segments->integral.trace;

    switch (event->kind) {
    case REPLAY_USE:
        replay_segments_use(segments, &trace->uses[event->index]);
        break;
    case REPLAY_RELEASE:
        replay_segments_release(segments, trace->uses[event->index].item);
        break;
    case REPLAY_UNMAP:
        replay_segments_unmap(segments, &trace->unmaps[event->index]);
        break;
    case REPLAY_SAY:
        break;
    }
}

void replay_model_pages(const replay_trace_t *trace, int is_leave,
                        const replay_cost_t *cost, replay_figures_t *figures,
                        replay_curve_t *curve)
{
    replay_segments_t segments = {
        .is_leave = is_leave,
        .users    = tool_calloc(trace->segment_count, sizeof(uint32_t)),
        .seen     = tool_calloc(trace->segment_count, 1),
        .items    = tool_calloc(trace->item_count, sizeof(uint32_t))
    };
    size_t i;

    replay_integral_init(&segments.integral, trace, cost, figures, curve);
    for (i = 0; i < trace->event_count; ++i) {
        replay_integral_to(&segments.integral, trace->events[i].time_ns);
        replay_segments_event(&segments, &trace->events[i]);
    }
    replay_integral_to(&segments.integral, trace->end_ns);
    free(segments.users);
    free(segments.seen);
    free(segments.items);
}

/* --- Keep or drop --------------------------------------------------------- */

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
    replay_integral_t integral;
    double            byte_price; /* of a byte, nanoseconds a nanosecond */
    double            region_bytes; /* held for a registration */
    replay_range_t    *ranges;    /* by item */
    uint8_t           *is_kept;   /* by event, a release: until the next use */
} replay_offline_t;

/* A use that finds its range idle, or never used before */
static void replay_offline_begin(replay_offline_t *offline,
                                 const replay_use_t *use, uint64_t time_ns)
{
    const replay_trace_t *trace = offline->integral.trace;
    replay_range_t *range       = &offline->ranges[use->item];
    replay_figures_t *figures   = offline->integral.figures;
    uint64_t bytes              = replay_item_bytes(&trace->items[use->item]);
    double cost                 = replay_integral_cost(&offline->integral,
                                                       bytes);

    if (range->is_seen &&
        (offline->byte_price * (bytes + offline->region_bytes) *
                 (time_ns - range->idle_ns) <= cost)) {
        offline->is_kept[range->release] = 1;
        ++figures->stats.on_time;
    } else if (range->is_seen) {
        figures->lost_ns += cost;
        ++figures->stats.missed;
    } else if (use->is_cold) {
        replay_integral_first(&offline->integral, bytes);
    } else {
        ++figures->stats.on_time;
    }
    range->is_seen = 1;
}

static void replay_offline_unmap(replay_offline_t *offline,
                                 const replay_unmap_t *unmap)
{
    uint32_t i = unmap->before;
    replay_range_t *range;

    while ((i = replay_item_unmapped(offline->integral.trace, unmap, i)) !=
           REPLAY_NONE) {
        range          = &offline->ranges[i];
        range->is_seen = 0;
        range->is_gone = (range->users > 0);
    }
}

/* Which gaps it pays to keep, and what the others cost */
static void replay_offline_decide(replay_offline_t *offline)
{
    const replay_trace_t *trace = offline->integral.trace;
    ucs_regcache_stats_t *stats = &offline->integral.figures->stats;
    const replay_event_t *event;
    const replay_use_t *use;
    replay_range_t *range;
    size_t i;

    for (i = 0; i < trace->event_count; ++i) {
        event = &trace->events[i];
        if (event->kind == REPLAY_UNMAP) {
            replay_offline_unmap(offline, &trace->unmaps[event->index]);
        }
        if (event->kind >= REPLAY_UNMAP) {
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
        ++stats->uses;
        if (range->users++ == 0) {
            replay_offline_begin(offline, use, event->time_ns);
        } else {
            ++stats->on_time;
        }
    }
}

/* What that holds over time */
static void replay_offline_hold(replay_offline_t *offline)
{
    const replay_trace_t *trace = offline->integral.trace;
    const replay_event_t *event;
    replay_range_t *range;
    uint64_t bytes;
    uint32_t item;
    size_t i;

    for (i = 0; i < trace->event_count; ++i) {
        event = &trace->events[i];
        replay_integral_to(&offline->integral, event->time_ns);
        if (event->kind >= REPLAY_UNMAP) {
            continue;
        }
        item  = trace->uses[event->index].item;
        range = &offline->ranges[item];
        bytes = replay_item_bytes(&trace->items[item]);
        if (event->kind == REPLAY_USE) {
            ++range->users;
            if (!range->is_pinned) {
                range->is_pinned = 1;
                replay_integral_add(&offline->integral, bytes, 1);
            }
        } else if ((--range->users == 0) && !offline->is_kept[i]) {
            range->is_pinned = 0;
            replay_integral_add(&offline->integral, -bytes, -UINT64_C(1));
        }
    }
    replay_integral_to(&offline->integral, trace->end_ns);
}

void replay_model_keep_or_drop(const replay_trace_t *trace,
                               const replay_params_t *params,
                               replay_figures_t *figures)
{
    const replay_cost_t *cost = &params->register_cost;
    replay_offline_t offline  = {
        .ranges  = tool_calloc(trace->item_count, sizeof(replay_range_t)),
        .is_kept = tool_calloc(trace->event_count, 1)
    };
    double most;

    offline.region_bytes = (double)params->region_bytes;
    replay_model_pages(trace, 1, cost, figures, NULL);
    most               = replay_held(figures->stats.pinned_peak_bytes,
                                     figures->stats.regions_peak, params);
    offline.byte_price = (most > 0) ? params->max_slowdown / most : 0;
    replay_integral_init(&offline.integral, trace, cost, figures, NULL);
    replay_offline_decide(&offline);
    replay_offline_hold(&offline);
    free(offline.ranges);
    free(offline.is_kept);
}
