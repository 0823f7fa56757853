/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "replay_trace.h"

#include <tools/tool.h>

#include <stdlib.h>
#include <string.h>

static int replay_number_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t*)a;
    uint64_t y = *(const uint64_t*)b;

    return (x > y) - (x < y);
}

static uint32_t replay_bound_find(const replay_trace_t *trace, uint64_t value)
{
    const uint64_t *found = bsearch(&value, trace->bounds, trace->bound_count,
                                    sizeof(value), replay_number_compare);

    return found - trace->bounds; /* every end of an item is a bound */
}

typedef struct replay_range {
    uint64_t start;
    uint64_t end;
    uint32_t use;
} replay_range_t;

static int replay_range_compare(const void *a, const void *b)
{
    const replay_range_t *x = a;
    const replay_range_t *y = b;

    if (x->start != y->start) {
        return (x->start < y->start) ? -1 : 1;
    }
    if (x->end != y->end) {
        return (x->end < y->end) ? -1 : 1;
    }
    return (x->use > y->use) - (x->use < y->use);
}

/* Distinct ranges of pages, by start and end */
static void replay_items_list(replay_trace_t *trace)
{
    replay_range_t *ranges = tool_calloc(trace->use_count, sizeof(*ranges));
    replay_range_t *range;
    replay_item_t *item;
    size_t i;

    trace->items = tool_calloc(trace->use_count, sizeof(*trace->items));
    for (i = 0; i < trace->use_count; ++i) {
        ranges[i].start = replay_page_down(trace, trace->uses[i].address);
        ranges[i].end   = replay_page_up(trace, trace->uses[i].address +
                                                        trace->uses[i].length);
        ranges[i].use   = i;
    }
    qsort(ranges, trace->use_count, sizeof(*ranges), replay_range_compare);

    for (i = 0; i < trace->use_count; ++i) {
        range = &ranges[i];
        item  = &trace->items[trace->item_count];
        if ((i == 0) || (item[-1].start != range->start) ||
            (item[-1].end != range->end)) {
            item->start = range->start;
            item->end   = range->end;
            ++trace->item_count;
        }
        trace->uses[range->use].item = trace->item_count - 1;
    }
    free(ranges);
}

static void replay_items_segments(replay_trace_t *trace)
{
    size_t count     = 2 * trace->item_count;
    uint64_t *bounds = tool_calloc(count, sizeof(*bounds));
    replay_item_t *item;
    size_t i;

    for (i = 0; i < trace->item_count; ++i) {
        bounds[2 * i]     = trace->items[i].start;
        bounds[2 * i + 1] = trace->items[i].end;
    }
    qsort(bounds, count, sizeof(*bounds), replay_number_compare);
    trace->bounds = bounds;
    for (i = 0; i < count; ++i) {
        if ((i == 0) || (bounds[i] != bounds[i - 1])) {
            bounds[trace->bound_count++] = bounds[i];
        }
    }
    /* n bounds make n - 1 segments, holes between items among them */
    trace->segment_count = trace->bound_count - (trace->bound_count > 0);
    for (item = trace->items; item < trace->items + trace->item_count;
         ++item) {
        item->first = replay_bound_find(trace, item->start);
        item->last  = replay_bound_find(trace, item->end);
    }
}

/* @return Nonzero if some item lies in what is unmapped, or ends where that
 * begins */
static int replay_items_touch(const replay_trace_t *trace,
                              const replay_unmap_t *unmap)
{
    const replay_item_t *item = trace->items;
    const replay_item_t *end  = item + trace->item_count;

    for (; (item < end) && (item->start < unmap->end); ++item) {
        if (item->end >= unmap->start) {
            return 1;
        }
    }
    return 0;
}

/* A process unmaps much that it never registered */
static void replay_items_unmaps(replay_trace_t *trace)
{
    size_t kept = 0;
    replay_event_t *event;

    for (event = trace->events; event < trace->events + trace->event_count;
         ++event) {
        if ((event->kind != REPLAY_UNMAP) ||
            replay_items_touch(trace, &trace->unmaps[event->index])) {
            trace->events[kept++] = *event;
        }
    }
    trace->event_count = kept;
}

static int replay_items_see(uint8_t *seen, const replay_item_t *item)
{
    int is_cold = 0;
    uint32_t i;

    for (i = item->first; i < item->last; ++i) {
        is_cold |= !seen[i];
        seen[i]  = 1;
    }
    return is_cold;
}

/* Some page of a cold use was not used before */
static void replay_items_cold(replay_trace_t *trace)
{
    uint8_t *seen = tool_calloc(trace->segment_count, 1);
    const replay_event_t *event;
    replay_use_t *use;
    size_t i, j;

    for (i = 0; i < trace->event_count; ++i) {
        event = &trace->events[i];
        if (event->kind == REPLAY_USE) {
            use          = &trace->uses[event->index];
            use->is_cold = replay_items_see(seen, &trace->items[use->item]);
        } else if (event->kind == REPLAY_UNMAP) {
            for (j = 0; j < trace->segment_count; ++j) {
                seen[j] &= !replay_segment_is_touched(
                        trace, j, &trace->unmaps[event->index]);
            }
        }
    }
    free(seen);
}

void replay_items_make(replay_trace_t *trace)
{
    replay_items_list(trace);
    replay_items_segments(trace);
    replay_items_unmaps(trace);
    replay_items_cold(trace);
}
