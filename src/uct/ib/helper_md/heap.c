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
    free(heap->array);
}

uct_helper_region_t **uct_helper_heap_grow(uct_helper_heap_t *heap,
                                           uct_helper_region_t **array,
                                           unsigned capacity)
{
    uct_helper_region_t **old = heap->array;

    if (heap->count > 0) {
        memcpy(array, old, heap->count * sizeof(*array));
    }
    heap->array    = array;
    heap->capacity = capacity;
    return old;
}

static void uct_helper_heap_place(uct_helper_heap_t *heap, unsigned index,
                                  uct_helper_region_t *region)
{
    heap->array[index] = region;
    region->lru_index  = index + 1;
}

static void uct_helper_heap_sift_up(uct_helper_heap_t *heap, unsigned index)
{
    uct_helper_region_t *region = heap->array[index];
    unsigned parent;

    while (index > 0) {
        parent = (index - 1) / 2;
        if (heap->array[parent]->lru_key <= region->lru_key) {
            break;
        }
        uct_helper_heap_place(heap, index, heap->array[parent]);
        index = parent;
    }
    uct_helper_heap_place(heap, index, region);
}

static void uct_helper_heap_sift_down(uct_helper_heap_t *heap, unsigned index)
{
    uct_helper_region_t *region = heap->array[index];
    unsigned child;

    for (child = 2 * index + 1; child < heap->count; child = 2 * index + 1) {
        if ((child + 1 < heap->count) && (heap->array[child + 1]->lru_key <
                                          heap->array[child]->lru_key)) {
            ++child;
        }
        if (region->lru_key <= heap->array[child]->lru_key) {
            break;
        }
        uct_helper_heap_place(heap, index, heap->array[child]);
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
    last              = heap->array[--heap->count];
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

/* The oldest idle region at or below @a index that is older than @a best. Keys
 * are lower bounds of the last use, so whole subtrees are left out. */
static uct_helper_region_t *
uct_helper_heap_search(const uct_helper_heap_t *heap, unsigned index,
                       uct_helper_region_t *best)
{
    uct_helper_region_t *region;

    if (index >= heap->count) {
        return best;
    }
    region = heap->array[index];
    if ((best != NULL) &&
        (region->lru_key >= ucs_load_relaxed(&best->last_use))) {
        return best;
    }
    if (!uct_helper_heap_in_use(region) &&
        ((best == NULL) || (ucs_load_relaxed(&region->last_use) <
                            ucs_load_relaxed(&best->last_use)))) {
        best = region;
    }
    best = uct_helper_heap_search(heap, 2 * index + 1, best);
    return uct_helper_heap_search(heap, 2 * index + 2, best);
}

uct_helper_region_t *uct_helper_heap_oldest(uct_helper_heap_t *heap)
{
    uct_helper_region_t *top;
    uint64_t key;

    while (heap->count > 0) {
        top = heap->array[0];
        if (uct_helper_heap_in_use(top)) {
            return uct_helper_heap_search(heap, 0, NULL);
        }
        key = ucs_load_relaxed(&top->last_use);
        if (key <= top->lru_key) {
            return top;
        }
        top->lru_key = key;
        uct_helper_heap_sift_down(heap, 0);
    }
    return NULL;
}

int uct_helper_heap_is_valid(const uct_helper_heap_t *heap)
{
    unsigned i;

    for (i = 0; i < heap->count; ++i) {
        if ((heap->array[i]->lru_index != i + 1) ||
            ((i > 0) && (heap->array[(i - 1) / 2]->lru_key >
                         heap->array[i]->lru_key))) {
            return 0;
        }
    }
    return heap->count <= heap->capacity;
}
