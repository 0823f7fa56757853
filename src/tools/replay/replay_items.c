/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "replay_items.h"
#include <tools/tool.h>

#include <stdlib.h>
#include <string.h>


static int replay_bound_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t*)a;
    uint64_t y = *(const uint64_t*)b;

    return (x > y) - (x < y);
}

static size_t replay_unique(uint64_t *values, size_t count)
{
    size_t kept = 0;
    size_t i;

    qsort(values, count, sizeof(*values), replay_bound_compare);
    for (i = 0; i < count; ++i) {
        if ((i == 0) || (values[i] != values[i - 1])) {
            values[kept++] = values[i];
        }
    }
    return kept;
}

static uint32_t replay_bound_find(const replay_trace_t *trace, uint64_t value)
{
    size_t low  = 0;
    size_t high = trace->bound_count;
    size_t middle;

    while (low < high) {
        middle = low + (high - low) / 2;
        if (trace->bounds[middle] < value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
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

static void replay_items_list(replay_trace_t *trace)
{
    size_t count = trace->use_count;
    replay_range_t *ranges, *range;
    replay_item_t *item;
    size_t i;

    ranges        = tool_realloc(NULL, (count + 1) * sizeof(*ranges));
    trace->items  = tool_realloc(NULL, (count + 1) * sizeof(*trace->items));
    trace->bounds = tool_realloc(NULL, (2 * count + 1) *
                                               sizeof(*trace->bounds));
    for (i = 0; i < count; ++i) {
        ranges[i].start = replay_page_down(trace, trace->uses[i].address);
        ranges[i].end   = replay_page_up(trace, trace->uses[i].address +
                                                        trace->uses[i].length);
        ranges[i].use   = i;
    }
    qsort(ranges, count, sizeof(*ranges), replay_range_compare);

    for (i = 0; i < count; ++i) {
        range = &ranges[i];
        item  = &trace->items[trace->item_count];
        if ((trace->item_count == 0) || (item[-1].start != range->start) ||
            (item[-1].end != range->end)) {
            item->start                              = range->start;
            item->end                                = range->end;
            trace->bounds[2 * trace->item_count]     = range->start;
            trace->bounds[2 * trace->item_count + 1] = range->end;
            ++trace->item_count;
        }
        trace->uses[range->use].item = trace->item_count - 1;
    }
    free(ranges);

    trace->bound_count = replay_unique(trace->bounds, 2 * trace->item_count);
    for (i = 0; i < trace->item_count; ++i) {
        item        = &trace->items[i];
        item->first = replay_bound_find(trace, item->start);
        item->last  = replay_bound_find(trace, item->end);
    }
    /* n bounds make n - 1 segments, holes between items among them */
    trace->segment_count = trace->bound_count - (trace->bound_count > 0);
}

/* @return For each segment how many of those before it some item has; a
 *         segment that none has is a hole. The caller frees it. */
static uint32_t *replay_items_covered(const replay_trace_t *trace)
{
    size_t segments   = trace->segment_count;
    uint32_t *covered = tool_realloc(NULL, (segments + 1) * sizeof(*covered));
    uint32_t until    = 0;
    size_t next       = 0;
    size_t i;

    covered[0] = 0;
    for (i = 0; i < segments; ++i) {
        for (; (next < trace->item_count) && (trace->items[next].first <= i);
             ++next) {
            if (trace->items[next].last > until) {
                until = trace->items[next].last;
            }
        }
        covered[i + 1] = covered[i] + (i < until);
    }
    return covered;
}

static int replay_items_touch(const replay_trace_t *trace,
                                const uint32_t *covered,
                                const replay_unmap_t *unmap)
{
    uint32_t first = replay_bound_find(trace, unmap->start);
    uint32_t last  = replay_bound_find(trace, unmap->end);

    if (trace->segment_count == 0) {
        return 0;
    }
    /* The segment that the first page lies within begins before it */
    first -= (first > 0);
    last   = (last > trace->segment_count) ? trace->segment_count : last;
    return (last > first) && (covered[last] > covered[first]);
}

/* A process unmaps much that it never registered */
static void replay_items_unmaps(replay_trace_t *trace)
{
    uint32_t *covered = replay_items_covered(trace);
    size_t kept       = 0;
    replay_event_t *event;
    size_t i;

    for (i = 0; i < trace->event_count; ++i) {
        event = &trace->events[i];
        if ((event->kind != REPLAY_UNMAP) ||
            replay_items_touch(trace, covered,
                                 &trace->unmaps[event->index])) {
            trace->events[kept++] = *event;
        }
    }
    trace->event_count = kept;
    free(covered);
}

/*
 * Containment
 */

/* Calls @a func for each other item that contains @a index. Those begin where
 * it does or before; the furthest end of all that begin before tells when to
 * stop. */
typedef void (*replay_cover_func_t)(replay_trace_t *trace, uint32_t index,
                                    uint32_t cover);

static void replay_items_each_cover(replay_trace_t *trace,
                                    const uint64_t *furthest, uint32_t index,
                                    replay_cover_func_t func)
{
    const replay_item_t *items = trace->items;
    uint32_t i;

    for (i = index + 1; (i < trace->item_count) &&
                        (items[i].start == items[index].start); ++i) {
        func(trace, index, i);
    }
    for (i = index; (i > 0) && (furthest[i - 1] >= items[index].end); --i) {
        if (items[i - 1].end >= items[index].end) {
            func(trace, index, i - 1);
        }
    }
}

static void replay_items_count_cover(replay_trace_t *trace, uint32_t index,
                                     uint32_t cover UCS_V_UNUSED)
{
    ++trace->cover_first[index + 1];
}

static void replay_items_put_cover(replay_trace_t *trace, uint32_t index,
                                   uint32_t cover)
{
    trace->covers[trace->cover_first[index]++] = cover;
}

/* Turn counts, one place on, into first indices. @return The sum. */
static size_t replay_items_accumulate(uint32_t *first, size_t count)
{
    size_t i;

    for (i = 1; i <= count; ++i) {
        first[i] += first[i - 1];
    }
    return first[count];
}

/* Filling moved each first index to the next one's place: move them back */
static void replay_items_restore(uint32_t *first, size_t count)
{
    memmove(&first[1], &first[0], count * sizeof(*first));
    first[0] = 0;
}

static uint32_t *replay_items_firsts(const replay_trace_t *trace)
{
    size_t size     = (trace->item_count + 1) * sizeof(uint32_t);
    uint32_t *first = tool_realloc(NULL, size);

    memset(first, 0, size);
    return first;
}

static void replay_items_covers(replay_trace_t *trace)
{
    size_t count       = trace->item_count;
    uint64_t *furthest = tool_realloc(NULL, (count + 1) * sizeof(*furthest));
    size_t i;

    trace->cover_first = replay_items_firsts(trace);
    for (i = 0; i < count; ++i) {
        furthest[i] = trace->items[i].end;
        if ((i > 0) && (furthest[i - 1] > furthest[i])) {
            furthest[i] = furthest[i - 1];
        }
        replay_items_each_cover(trace, furthest, i, replay_items_count_cover);
    }
    trace->covers = tool_realloc(NULL, (1 + replay_items_accumulate(
                                                    trace->cover_first,
                                                    count)) *
                                               sizeof(*trace->covers));
    for (i = 0; i < count; ++i) {
        replay_items_each_cover(trace, furthest, i, replay_items_put_cover);
    }
    replay_items_restore(trace->cover_first, count);
    free(furthest);
}

/*
 * Next uses
 */

static void replay_items_next(replay_trace_t *trace, uint32_t item,
                              size_t event)
{
    if (trace->next_events == NULL) {
        ++trace->next_first[item + 1];
    } else {
        trace->next_events[trace->next_first[item]++] = event;
    }
}

/* A use of an item is one of all that contain it; what is unmapped is not
 * wanted any more */
static void replay_items_next_event(replay_trace_t *trace, size_t index)
{
    const replay_event_t *event = &trace->events[index];
    const replay_unmap_t *unmap;
    uint32_t item, i;

    if (event->kind == REPLAY_USE) {
        item = trace->uses[event->index].item;
        replay_items_next(trace, item, index);
        for (i = trace->cover_first[item]; i < trace->cover_first[item + 1];
             ++i) {
            replay_items_next(trace, trace->covers[i], index);
        }
    } else if (event->kind == REPLAY_UNMAP) {
        unmap = &trace->unmaps[event->index];
        for (i = 0; i < trace->item_count; ++i) {
            if ((trace->items[i].start < unmap->end) &&
                (trace->items[i].end > unmap->start)) {
                replay_items_next(trace, i, index);
            }
        }
    }
}

static void replay_items_nexts(replay_trace_t *trace)
{
    size_t count = trace->item_count;
    size_t total, i;

    trace->next_first = replay_items_firsts(trace);
    for (i = 0; i < trace->event_count; ++i) {
        replay_items_next_event(trace, i);
    }
    total              = replay_items_accumulate(trace->next_first, count);
    trace->next_events = tool_realloc(NULL, (total + 1) *
                                                    sizeof(uint32_t));
    for (i = 0; i < trace->event_count; ++i) {
        replay_items_next_event(trace, i);
    }
    replay_items_restore(trace->next_first, count);
}

/*
 * First uses
 */

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

static void replay_items_cold(replay_trace_t *trace)
{
    uint8_t *seen = tool_realloc(NULL, trace->segment_count + 1);
    const replay_event_t *event;
    const replay_unmap_t *unmap;
    replay_use_t *use;
    size_t i, j;

    memset(seen, 0, trace->segment_count + 1);
    for (i = 0; i < trace->event_count; ++i) {
        event = &trace->events[i];
        if (event->kind == REPLAY_USE) {
            use          = &trace->uses[event->index];
            use->is_cold = replay_items_see(seen, &trace->items[use->item]);
        } else if (event->kind == REPLAY_UNMAP) {
            unmap = &trace->unmaps[event->index];
            for (j = 0; j < trace->segment_count; ++j) {
                seen[j] &= (trace->bounds[j] >= unmap->end) ||
                           (trace->bounds[j + 1] <= unmap->start);
            }
        }
    }
    free(seen);
}

void replay_items_make(replay_trace_t *trace)
{
    replay_items_list(trace);
    replay_items_unmaps(trace);
    replay_items_covers(trace);
    replay_items_nexts(trace);
    replay_items_cold(trace);
}
