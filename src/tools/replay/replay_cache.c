/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "replay_integral.h"

#include <tools/tool.h>

#include <stdlib.h>

#define REPLAY_NEVER UINT64_MAX

/* Halvings of the capacity: 1/4096 of all items is near enough */
#define REPLAY_BISECTIONS 12

typedef struct replay_slot {
    uint64_t key;      /* the largest is the next victim */
    uint32_t position; /* in the heap + 1, 0: not idle */
    uint32_t users;
    uint32_t next;     /* place in the trace's next_events */
    uint8_t  is_pinned;
    uint8_t  is_gone;  /* unmapped while in use */
} replay_slot_t;

/* Invariant: the heap holds the idle pinned items, the largest key first */
typedef struct replay_cache {
    const replay_trace_t *trace;
    replay_victim_t      victim;
    uint64_t             capacity;
    replay_slot_t        *slots;
    uint32_t             *heap;
    size_t               count;
    uint32_t             *served;  /* by use: the item that it uses */
    replay_integral_t    integral;
} replay_cache_t;

static int replay_cache_is_before(const replay_cache_t *cache, uint32_t a,
                                  uint32_t b)
{
    const replay_slot_t *x = &cache->slots[a];
    const replay_slot_t *y = &cache->slots[b];

    return (x->key != y->key) ? (x->key > y->key) : (a < b);
}

static void replay_cache_place(replay_cache_t *cache, size_t position,
                               uint32_t item)
{
    cache->heap[position]       = item;
    cache->slots[item].position = position + 1;
}

/* An item goes to @a position, or up or down from there */
static void replay_cache_sift(replay_cache_t *cache, size_t position,
                              uint32_t item)
{
    uint32_t *heap = cache->heap;
    size_t other;

    while ((position > 0) &&
           replay_cache_is_before(cache, item, heap[(position - 1) / 2])) {
        replay_cache_place(cache, position, heap[(position - 1) / 2]);
        position = (position - 1) / 2;
    }
    while ((other = 2 * position + 1) < cache->count) {
        other += (other + 1 < cache->count) &&
                 replay_cache_is_before(cache, heap[other + 1], heap[other]);
        if (!replay_cache_is_before(cache, heap[other], item)) {
            break;
        }
        replay_cache_place(cache, position, heap[other]);
        position = other;
    }
    replay_cache_place(cache, position, item);
}

static void replay_cache_push(replay_cache_t *cache, uint32_t item)
{
    replay_cache_sift(cache, cache->count++, item);
}

static void replay_cache_remove(replay_cache_t *cache, uint32_t item)
{
    size_t position = cache->slots[item].position - 1;
    uint32_t last   = cache->heap[--cache->count];

    cache->slots[item].position = 0;
    if (last != item) {
        replay_cache_sift(cache, position, last);
    }
}

static void replay_cache_unpin(replay_cache_t *cache, uint32_t item)
{
    cache->slots[item].is_pinned = 0;
    replay_integral_add(&cache->integral,
                        -replay_item_bytes(&cache->trace->items[item]));
}

/* Evict until there is room for @a bytes. @return Nonzero if there is. */
static int replay_cache_make_room(replay_cache_t *cache, uint64_t bytes)
{
    uint32_t item;

    while ((cache->integral.bytes > cache->capacity) ||
           (bytes > cache->capacity - cache->integral.bytes)) {
        if (cache->count == 0) {
            return 0;
        }
        item = cache->heap[0];
        replay_cache_remove(cache, item);
        replay_cache_unpin(cache, item);
        ++cache->integral.figures->evicted;
    }
    return 1;
}

/* @return The pinned item with which @a item can be used, itself first; or
 *         itself, not pinned. */
static uint32_t replay_cache_find(const replay_cache_t *cache, uint32_t item)
{
    const replay_trace_t *trace = cache->trace;
    const replay_slot_t *slot;
    uint32_t i;

    if (cache->slots[item].is_pinned && !cache->slots[item].is_gone) {
        return item;
    }
    for (i = trace->cover_first[item]; i < trace->cover_first[item + 1]; ++i) {
        slot = &cache->slots[trace->covers[i]];
        if (slot->is_pinned && !slot->is_gone) {
            return trace->covers[i];
        }
    }
    return item;
}

/* A larger item makes the idle ones inside it superfluous, as in the engine */
static void replay_cache_supersede(replay_cache_t *cache, uint32_t by)
{
    const replay_item_t *items = cache->trace->items;
    uint32_t i                 = by;

    while ((i > 0) && (items[i - 1].start == items[by].start)) {
        --i;
    }
    for (; (i < cache->trace->item_count) && (items[i].start < items[by].end);
         ++i) {
        if ((i != by) && (items[i].end <= items[by].end) &&
            (cache->slots[i].position > 0)) {
            replay_cache_remove(cache, i);
            replay_cache_unpin(cache, i);
        }
    }
}

static void replay_cache_use(replay_cache_t *cache, uint32_t index)
{
    const replay_use_t *use   = &cache->trace->uses[index];
    replay_figures_t *figures = cache->integral.figures;
    uint32_t item             = replay_cache_find(cache, use->item);
    replay_slot_t *slot       = &cache->slots[item];
    uint64_t bytes;

    ++figures->uses;
    cache->served[index] = item;
    if (slot->position > 0) {
        replay_cache_remove(cache, item);
    }
    if (slot->is_pinned) {
        ++figures->on_time;
    } else {
        figures->missed += !use->is_cold;
        figures->cold   += use->is_cold;
        replay_cache_supersede(cache, item);
        bytes = replay_item_bytes(&cache->trace->items[item]);
        replay_integral_register(figures, cache->trace, bytes);
        figures->over_ceiling += !replay_cache_make_room(cache, bytes);
        slot->is_pinned        = 1;
        replay_integral_add(&cache->integral, bytes);
    }
    ++slot->users;
}

/* When an idle item is used next; NEVER if it is unmapped before */
static uint64_t replay_cache_next(replay_cache_t *cache, uint32_t item,
                                  size_t event)
{
    const replay_trace_t *trace = cache->trace;
    replay_slot_t *slot         = &cache->slots[item];
    uint32_t next               = trace->next_first[item] + slot->next;

    while ((next < trace->next_first[item + 1]) &&
           (trace->next_events[next] <= event)) {
        ++next;
    }
    slot->next = next - trace->next_first[item];
    if ((next == trace->next_first[item + 1]) ||
        (trace->events[trace->next_events[next]].kind == REPLAY_UNMAP)) {
        return REPLAY_NEVER;
    }
    return trace->next_events[next];
}

static void replay_cache_release(replay_cache_t *cache, uint32_t use,
                                 size_t event)
{
    uint32_t item       = cache->served[use];
    replay_slot_t *slot = &cache->slots[item];

    if (--slot->users > 0) {
        return;
    }
    if (slot->is_gone) {
        slot->is_gone = 0;
        replay_cache_unpin(cache, item);
        return;
    }
    slot->key = (cache->victim == REPLAY_VICTIM_LRU) ?
                        REPLAY_NEVER - event :
                        replay_cache_next(cache, item, event);
    replay_cache_push(cache, item);
    (void)replay_cache_make_room(cache, 0);
}

static void replay_cache_unmap(replay_cache_t *cache,
                               const replay_unmap_t *unmap)
{
    const replay_item_t *items = cache->trace->items;
    replay_slot_t *slot;
    uint32_t i;

    for (i = 0; i < cache->trace->item_count; ++i) {
        if (!replay_item_is_touched(&items[i], unmap)) {
            continue;
        }
        slot          = &cache->slots[i];
        slot->is_gone = (slot->users > 0);
        if (slot->position > 0) {
            replay_cache_remove(cache, i);
            replay_cache_unpin(cache, i);
        }
    }
}

static uint64_t replay_cache_all_items(const replay_trace_t *trace)
{
    uint64_t bytes = 0;
    size_t i;

    for (i = 0; i < trace->item_count; ++i) {
        bytes += replay_item_bytes(&trace->items[i]);
    }
    return bytes;
}

void replay_model_cache(const replay_trace_t *trace, replay_victim_t victim,
                        uint64_t capacity, replay_figures_t *figures)
{
    replay_cache_t cache = {.trace    = trace,
                            .victim   = victim,
                            .capacity = capacity};
    const replay_event_t *event;
    size_t i;

    cache.slots  = tool_calloc(trace->item_count, sizeof(*cache.slots));
    cache.heap   = tool_calloc(trace->item_count, sizeof(*cache.heap));
    cache.served = tool_calloc(trace->use_count, sizeof(*cache.served));
    replay_integral_init(&cache.integral, trace, figures, NULL);
    for (i = 0; i < trace->event_count; ++i) {
        event = &trace->events[i];
        replay_integral_to(&cache.integral, event->time_ns);
        switch (event->kind) {
        case REPLAY_USE:
            replay_cache_use(&cache, event->index);
            break;
        case REPLAY_RELEASE:
            replay_cache_release(&cache, event->index, i);
            break;
        default:
            replay_cache_unmap(&cache, &trace->unmaps[event->index]);
            break;
        }
    }
    replay_integral_to(&cache.integral, trace->end_ns);
    free(cache.slots);
    free(cache.heap);
    free(cache.served);
}

uint64_t replay_model_cache_at(const replay_trace_t *trace,
                               replay_victim_t victim, double byte_ns,
                               replay_figures_t *figures)
{
    uint64_t low  = 0;
    uint64_t high = replay_cache_all_items(trace);
    replay_figures_t attempt;
    uint64_t middle;
    unsigned i;

    replay_model_cache(trace, victim, 0, figures);
    for (i = 0; i < REPLAY_BISECTIONS; ++i) {
        middle = low + (high - low + 1) / 2;
        replay_model_cache(trace, victim, middle, &attempt);
        if (attempt.pinned_byte_ns <= byte_ns) {
            low      = middle;
            *figures = attempt;
        } else {
            high = middle;
        }
    }
    return low;
}
