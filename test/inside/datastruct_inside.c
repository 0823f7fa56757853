/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "datastruct_inside.h"

#include <ucs/sys/math.h>

int ucs_heap_is_valid(const ucs_heap_t *heap)
{
    const ucs_heap_elem_t *elem;
    unsigned i;

    for (i = 0; i < heap->count; ++i) {
        elem = *ucs_heap_at(heap, i);
        if ((elem->index != i + 1) ||
            ((i > 0) && ((*ucs_heap_at(heap, (i - 1) / 2))->key > elem->key))) {
            return 0;
        }
    }
    return heap->count <= ucs_heap_capacity(heap);
}

static int ucs_itree_before(const ucs_itree_node_t *a,
                            const ucs_itree_node_t *b)
{
    return (a == NULL) || (b == NULL) ||
           ((a->start != b->start) ? (a->start < b->start) : (a < b));
}

static uintptr_t ucs_itree_max_end(const ucs_itree_node_t *node)
{
    return (node == NULL) ? 0 : node->max_end;
}

static int ucs_itree_check(const ucs_itree_node_t *node,
                           const ucs_itree_node_t *low,
                           const ucs_itree_node_t *high, size_t *count)
{
    if (node == NULL) {
        return 1;
    }
    ++*count;
    return (node->max_end == ucs_max(node->end,
                                     ucs_max(ucs_itree_max_end(node->left),
                                             ucs_itree_max_end(node->right)))) &&
           ucs_itree_before(low, node) && ucs_itree_before(node, high) &&
           ucs_itree_check(node->left, low, node, count) &&
           ucs_itree_check(node->right, node, high, count);
}

int ucs_itree_is_valid(const ucs_itree_t *tree)
{
    size_t count = 0;

    return ucs_itree_check(tree->root, NULL, NULL, &count) &&
           (count == tree->count);
}

static unsigned ucs_extents_count_spares(const ucs_extents_t *set)
{
    unsigned count = 0;
    const ucs_extents_node_t *node;

    for (node = set->spare; node != NULL; node = node->next) {
        ++count;
    }
    return count;
}

int ucs_extents_is_valid(const ucs_extents_t *set)
{
    const ucs_itree_node_t *last = NULL;
    double pieces                = 0;
    size_t bytes                 = 0;
    size_t count                 = 0;
    const ucs_itree_node_t *range;

    for (range = ucs_itree_first(&set->tree, 0, UINTPTR_MAX); range != NULL;
         range = ucs_itree_next(&set->tree, range, 0, UINTPTR_MAX)) {
        if ((range->start >= range->end) ||
            ((last != NULL) && (last->end >= range->start))) {
            return 0;
        }
        bytes  += range->end - range->start;
        pieces += ((const ucs_extents_node_t*)range)->pieces;
        last    = range;
        ++count;
    }
    return ucs_itree_is_valid(&set->tree) && (count == set->tree.count) &&
           (bytes == set->bytes) &&
           (__builtin_fabs(pieces - set->pieces) <= 1e-6 * (1 + pieces)) &&
           (ucs_extents_count_spares(set) == set->spares);
}
