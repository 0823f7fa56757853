/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "heap.h"

#include <ucs/sys/mem/own_memory.h>

void ucs_heap_cleanup(ucs_heap_t *heap)
{
    while (heap->num_segments > 0) {
        ucs_own_free(heap->segments[--heap->num_segments]);
    }
}

void ucs_heap_grow(ucs_heap_t *heap, ucs_heap_elem_t **segment)
{
    heap->segments[heap->num_segments++] = segment;
}

static ucs_heap_elem_t *ucs_heap_get(const ucs_heap_t *heap, unsigned position)
{
    return *ucs_heap_at(heap, position);
}

static void
ucs_heap_set(ucs_heap_t *heap, unsigned position, ucs_heap_elem_t *elem)
{
    *ucs_heap_at(heap, position) = elem;
    elem->index                  = position + 1;
}

static void
ucs_heap_sift_up(ucs_heap_t *heap, unsigned position, ucs_heap_elem_t *elem)
{
    ucs_heap_elem_t *parent;

    while (position > 0) {
        parent = ucs_heap_get(heap, (position - 1) / 2);
        if (parent->key <= elem->key) {
            break;
        }
        ucs_heap_set(heap, position, parent);
        position = (position - 1) / 2;
    }
    ucs_heap_set(heap, position, elem);
}

static void
ucs_heap_sift_down(ucs_heap_t *heap, unsigned position, ucs_heap_elem_t *elem)
{
    ucs_heap_elem_t *least, *other;
    unsigned child;

    while ((child = 2 * position + 1) < heap->count) {
        least = ucs_heap_get(heap, child);
        if (child + 1 < heap->count) {
            other = ucs_heap_get(heap, child + 1);
            if (other->key < least->key) {
                least = other;
                ++child;
            }
        }
        if (elem->key <= least->key) {
            break;
        }
        ucs_heap_set(heap, position, least);
        position = child;
    }
    ucs_heap_set(heap, position, elem);
}

void ucs_heap_push(ucs_heap_t *heap, ucs_heap_elem_t *elem, uint64_t key)
{
    elem->key = key;
    ucs_heap_sift_up(heap, heap->count++, elem);
}

void ucs_heap_remove(ucs_heap_t *heap, ucs_heap_elem_t *elem)
{
    ucs_heap_elem_t *last;

    if (elem->index == 0) {
        return;
    }
    last = ucs_heap_get(heap, --heap->count);
    if (last != elem) {
        ucs_heap_sift_up(heap, elem->index - 1, last);
        ucs_heap_sift_down(heap, last->index - 1, last);
    }
    elem->index = 0;
}

void ucs_heap_raise(ucs_heap_t *heap, ucs_heap_elem_t *elem, uint64_t key)
{
    elem->key = key;
    ucs_heap_sift_down(heap, elem->index - 1, elem);
}
