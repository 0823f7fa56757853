/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "heap.h"

#include <stdlib.h>
#include <string.h>

void uct_helper_heap_init(uct_helper_heap_t *heap)
{
    memset(heap, 0, sizeof(*heap));
}

void uct_helper_heap_cleanup(uct_helper_heap_t *heap)
{
    while (heap->num_segments > 0) {
        free(heap->segments[--heap->num_segments]);
    }
}

void uct_helper_heap_grow(uct_helper_heap_t *heap,
                          uct_helper_region_t **segment)
{
    heap->segments[heap->num_segments++] = segment;
}

static uct_helper_region_t *uct_helper_heap_get(const uct_helper_heap_t *heap,
                                                unsigned index)
{
    return *uct_helper_heap_at(heap, index);
}

static void uct_helper_heap_place(uct_helper_heap_t *heap, unsigned index,
                                  uct_helper_region_t *region)
{
    *uct_helper_heap_at(heap, index) = region;
    region->lru_index                = index + 1;
}

static void uct_helper_heap_sift_up(uct_helper_heap_t *heap, unsigned index)
{
    uct_helper_region_t *region = uct_helper_heap_get(heap, index);
    uct_helper_region_t *parent;

    while (index > 0) {
        parent = uct_helper_heap_get(heap, (index - 1) / 2);
        if (parent->lru_key <= region->lru_key) {
            break;
        }
        uct_helper_heap_place(heap, index, parent);
        index = (index - 1) / 2;
    }
    uct_helper_heap_place(heap, index, region);
}

static void uct_helper_heap_sift_down(uct_helper_heap_t *heap, unsigned index)
{
    uct_helper_region_t *region = uct_helper_heap_get(heap, index);
    uct_helper_region_t *least, *other;
    unsigned child;

    for (child = 2 * index + 1; child < heap->count; child = 2 * index + 1) {
        least = uct_helper_heap_get(heap, child);
        if (child + 1 < heap->count) {
            other = uct_helper_heap_get(heap, child + 1);
            if (other->lru_key < least->lru_key) {
                least = other;
                ++child;
            }
        }
        if (region->lru_key <= least->lru_key) {
            break;
        }
        uct_helper_heap_place(heap, index, least);
        index = child;
    }
    uct_helper_heap_place(heap, index, region);
}

void uct_helper_heap_push(uct_helper_heap_t *heap, uct_helper_region_t *region)
{
    region->lru_key = ucs_load_relaxed(&region->last_use);
    uct_helper_heap_place(heap, heap->count++, region);
    uct_helper_heap_sift_up(heap, heap->count - 1);
}

void uct_helper_heap_remove(uct_helper_heap_t *heap,
                            uct_helper_region_t *region)
{
    unsigned index = region->lru_index - 1;
    uct_helper_region_t *last;

    if (region->lru_index == 0) {
        return;
    }
    region->lru_index = 0;
    last              = uct_helper_heap_get(heap, --heap->count);
    if (last != region) {
        uct_helper_heap_place(heap, index, last);
        uct_helper_heap_sift_up(heap, index);
        uct_helper_heap_sift_down(heap, last->lru_index - 1);
    }
}

static int uct_helper_heap_in_use(uct_helper_region_t *region)
{
    return uct_helper_word_refs(ucs_load_relaxed(&region->word)) > 0;
}

/* A use that is under way will be over later than now, so its region goes
 * behind all that are idle: once such a one is on top again there are none */
uct_helper_region_t *uct_helper_heap_oldest(uct_helper_heap_t *heap,
                                            uint64_t now, unsigned *left_p)
{
    uct_helper_region_t *best = NULL;
    uct_helper_region_t *top;
    uint64_t key;
    int in_use;

    while (heap->count > 0) {
        top    = uct_helper_heap_get(heap, 0);
        in_use = uct_helper_heap_in_use(top);
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
        uct_helper_heap_sift_down(heap, 0);
    }
    return best;
}

int uct_helper_heap_is_valid(const uct_helper_heap_t *heap)
{
    uct_helper_region_t *region;
    unsigned i;

    for (i = 0; i < heap->count; ++i) {
        region = uct_helper_heap_get(heap, i);
        if ((region->lru_index != i + 1) ||
            ((i > 0) && (uct_helper_heap_get(heap, (i - 1) / 2)->lru_key >
                         region->lru_key))) {
            return 0;
        }
    }
    return heap->count <= uct_helper_heap_capacity(heap);
}
