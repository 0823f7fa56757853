/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "replay_items.h"

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

/* @return For each item the furthest end of it and those before it, by which a
 *         search to the left knows when to stop. The caller frees it. */
static uint64_t *replay_items_furthest(const replay_trace_t *trace)
{
    uint64_t *furthest = tool_calloc(trace->item_count, sizeof(*furthest));
    uint64_t until     = 0;
    size_t i;

    for (i = 0; i < trace->item_count; ++i) {
        until       = (trace->items[i].end > until) ? trace->items[i].end :
                                                      until;
        furthest[i] = until;
    }
    return furthest;
}

/* @return Nonzero if some item lies in what is unmapped, or ends where that
 * begins */
static int replay_items_touch(const replay_trace_t *trace,
                              const uint64_t *furthest,
                              const replay_unmap_t *unmap)
{
    size_t low  = 0; /* items that begin before its end */
    size_t high = trace->item_count;
    size_t middle;

    while (low < high) {
        middle = low + (high - low) / 2;
        if (trace->items[middle].start < unmap->end) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return (low > 0) && (furthest[low - 1] >= unmap->start);
}

/* A process unmaps much that it never registered */
static void replay_items_unmaps(replay_trace_t *trace,
                                const uint64_t *furthest)
{
    size_t kept = 0;
    replay_event_t *event;

    for (event = trace->events; event < trace->events + trace->event_count;
         ++event) {
        if ((event->kind != REPLAY_UNMAP) ||
            replay_items_touch(trace, furthest,
                               &trace->unmaps[event->index])) {
            trace->events[kept++] = *event;
        }
    }
    trace->event_count = kept;
}

static void replay_items_add_cover(replay_trace_t *trace, uint32_t *count_p,
                                   size_t *capacity_p, uint32_t cover)
{
    trace->covers = tool_grow(trace->covers, *count_p, capacity_p,
                              sizeof(*trace->covers));
    trace->covers[(*count_p)++] = cover;
}

/* The other items that contain one begin where it does or before */
static void replay_items_covers(replay_trace_t *trace,
                                const uint64_t *furthest)
{
    const replay_item_t *items = trace->items;
    size_t capacity            = 0;
    uint32_t *first, index, i;

    first = tool_calloc(trace->item_count + 1, sizeof(*first));
    for (index = 0; index < trace->item_count; ++index) {
        first[index + 1] = first[index];
        for (i = index + 1; (i < trace->item_count) &&
                            (items[i].start == items[index].start); ++i) {
            replay_items_add_cover(trace, &first[index + 1], &capacity, i);
        }
        for (i = index; (i > 0) && (furthest[i - 1] >= items[index].end);
             --i) {
            if (items[i - 1].end >= items[index].end) {
                replay_items_add_cover(trace, &first[index + 1], &capacity,
                                       i - 1);
            }
        }
    }
    trace->cover_first = first;
}

/* An event that an item is used by next: item << 32 | event */
typedef struct replay_nexts {
    uint64_t *pairs;
    size_t   count;
    size_t   capacity;
} replay_nexts_t;

static void replay_items_next(replay_nexts_t *nexts, uint64_t item,
                              size_t event)
{
    nexts->pairs = tool_grow(nexts->pairs, nexts->count, &nexts->capacity,
                             sizeof(*nexts->pairs));
    nexts->pairs[nexts->count++] = (item << 32) | event;
}

/* A use of an item is one of all that contain it; what is unmapped is not
 * wanted any more */
static void replay_items_next_event(const replay_trace_t *trace, size_t index,
                                    replay_nexts_t *nexts)
{
    const replay_event_t *event = &trace->events[index];
    const replay_unmap_t *unmap;
    uint32_t item, i;

    if (event->kind == REPLAY_USE) {
        item = trace->uses[event->index].item;
        replay_items_next(nexts, item, index);
        for (i = trace->cover_first[item]; i < trace->cover_first[item + 1];
             ++i) {
            replay_items_next(nexts, trace->covers[i], index);
        }
    } else if (event->kind == REPLAY_UNMAP) {
        unmap = &trace->unmaps[event->index];
        for (i = 0; i < trace->item_count; ++i) {
            if (replay_item_is_touched(&trace->items[i], unmap)) {
                replay_items_next(nexts, i, index);
            }
        }
    }
}

static void replay_items_nexts(replay_trace_t *trace)
{
    replay_nexts_t nexts = {};
    size_t i;

    for (i = 0; i < trace->event_count; ++i) {
        replay_items_next_event(trace, i, &nexts);
    }
    if (nexts.count > 0) {
        qsort(nexts.pairs, nexts.count, sizeof(*nexts.pairs),
              replay_number_compare);
    }

    trace->next_first  = tool_calloc(trace->item_count + 1, sizeof(uint32_t));
    trace->next_events = tool_calloc(nexts.count, sizeof(uint32_t));
    for (i = 0; i < nexts.count; ++i) {
        trace->next_events[i] = (uint32_t)nexts.pairs[i];
        ++trace->next_first[(nexts.pairs[i] >> 32) + 1];
    }
    for (i = 0; i < trace->item_count; ++i) {
        trace->next_first[i + 1] += trace->next_first[i];
    }
    free(nexts.pairs);
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
    uint64_t *furthest;

    replay_items_list(trace);
    replay_items_segments(trace);
    furthest = replay_items_furthest(trace);
    replay_items_unmaps(trace, furthest);
    replay_items_covers(trace, furthest);
    free(furthest);
    replay_items_nexts(trace);
    replay_items_cold(trace);
}
