/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "heap.h"

#include <stdlib.h>
#include <string.h>

void ucs_heap_init(ucs_heap_t *heap)
{
    memset(heap, 0, sizeof(*heap));
}

void ucs_heap_cleanup(ucs_heap_t *heap)
{
    while (heap->num_segments > 0) {
        free(heap->segments[--heap->num_segments]);
    }
}

void ucs_heap_grow(ucs_heap_t *heap, ucs_regcache_region_t **segment)
{
    heap->segments[heap->num_segments++] = segment;
}

static ucs_regcache_region_t *ucs_heap_get(const ucs_heap_t *heap,
                                           unsigned index)
{
    return *ucs_heap_at(heap, index);
}

static void ucs_heap_place(ucs_heap_t *heap, unsigned index,
                           ucs_regcache_region_t *region)
{
    *ucs_heap_at(heap, index) = region;
    region->lru_index                = index + 1;
}

static void ucs_heap_sift_up(ucs_heap_t *heap, unsigned index)
{
    ucs_regcache_region_t *region = ucs_heap_get(heap, index);
    ucs_regcache_region_t *parent;

    while (index > 0) {
        parent = ucs_heap_get(heap, (index - 1) / 2);
        if (parent->lru_key <= region->lru_key) {
            break;
        }
        ucs_heap_place(heap, index, parent);
        index = (index - 1) / 2;
    }
    ucs_heap_place(heap, index, region);
}

static void ucs_heap_sift_down(ucs_heap_t *heap, unsigned index)
{
    ucs_regcache_region_t *region = ucs_heap_get(heap, index);
    ucs_regcache_region_t *least, *other;
    unsigned child;

    for (child = 2 * index + 1; child < heap->count; child = 2 * index + 1) {
        least = ucs_heap_get(heap, child);
        if (child + 1 < heap->count) {
            other = ucs_heap_get(heap, child + 1);
            if (other->lru_key < least->lru_key) {
                least = other;
                ++child;
            }
        }
        if (region->lru_key <= least->lru_key) {
            break;
        }
        ucs_heap_place(heap, index, least);
        index = child;
    }
    ucs_heap_place(heap, index, region);
}

void ucs_heap_push(ucs_heap_t *heap, ucs_regcache_region_t *region)
{
    region->lru_key = ucs_load_relaxed(&region->last_use);
    ucs_heap_place(heap, heap->count++, region);
    ucs_heap_sift_up(heap, heap->count - 1);
}

void ucs_heap_remove(ucs_heap_t *heap, ucs_regcache_region_t *region)
{
    unsigned index = region->lru_index - 1;
    ucs_regcache_region_t *last;

    if (region->lru_index == 0) {
        return;
    }
    region->lru_index = 0;
    last              = ucs_heap_get(heap, --heap->count);
    if (last != region) {
        ucs_heap_place(heap, index, last);
        ucs_heap_sift_up(heap, index);
        ucs_heap_sift_down(heap, last->lru_index - 1);
    }
}

static int ucs_heap_in_use(ucs_regcache_region_t *region)
{
    return ucs_regcache_word_refs(ucs_load_relaxed(&region->word)) > 0;
}

/* A use that is under way will be over later than now, so its region goes
 * behind all that are idle: once such a one is on top again there are none */
ucs_regcache_region_t *ucs_heap_oldest(ucs_heap_t *heap, uint64_t now,
                                       unsigned *left_p)
{
    ucs_regcache_region_t *best = NULL;
    ucs_regcache_region_t *top;
    uint64_t key;
    int in_use;

    while (heap->count > 0) {
        top    = ucs_heap_get(heap, 0);
        in_use = ucs_heap_in_use(top);
        key    = in_use ? now + 1 : ucs_load_relaxed(&top->last_use);
        if (key <= top->lru_key) {
            return in_use ? NULL : top;
        }
        if (*left_p == 0) {
            break;
        }
        --*left_p;
        top->lru_key = key;
        if (!in_use && ((best == NULL) || (key < best->lru_key))) {
            best = top;
        }
        ucs_heap_sift_down(heap, 0);
    }
    return best;
}

int ucs_heap_is_valid(const ucs_heap_t *heap)
{
    ucs_regcache_region_t *region;
    unsigned i;

    for (i = 0; i < heap->count; ++i) {
        region = ucs_heap_get(heap, i);
        if ((region->lru_index != i + 1) ||
            ((i > 0) &&
             (ucs_heap_get(heap, (i - 1) / 2)->lru_key > region->lru_key))) {
            return 0;
        }
    }
    return heap->count <= ucs_heap_capacity(heap);
}
