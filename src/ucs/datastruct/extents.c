/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "extents.h"

#include <ucs/sys/mem/own_memory.h>

#include <stdlib.h>
#include <string.h>

typedef ucs_itree_node_t node_t;

void ucs_extents_init(ucs_extents_t *set)
{
    memset(set, 0, sizeof(*set));
    ucs_itree_init(&set->tree);
}

void ucs_extents_give(ucs_extents_t *set, node_t *node)
{
    node->left = set->spare;
    set->spare = node;
    ++set->spares;
}

static node_t *ucs_extents_take(ucs_extents_t *set)
{
    node_t *node = set->spare;

    if (node != NULL) {
        set->spare = node->left;
        --set->spares;
    }
    return node;
}

void ucs_extents_cleanup(ucs_extents_t *set)
{
    node_t *node;

    ucs_extents_remove(set, 0, UINTPTR_MAX);
    while ((node = ucs_extents_take(set)) != NULL) {
        ucs_own_free(node);
    }
}

int ucs_extents_covers(const ucs_extents_t *set, uintptr_t start, uintptr_t end)
{
    node_t *node = ucs_itree_first(&set->tree, start, end);

    return (node != NULL) && (node->start <= start) && (node->end >= end);
}

static void ucs_extents_drop(ucs_extents_t *set, node_t *node)
{
    ucs_itree_remove(&set->tree, node);
    set->bytes -= node->end - node->start;
}

static void ucs_extents_put(ucs_extents_t *set, node_t *node, uintptr_t start,
                            uintptr_t end)
{
    node->start = start;
    node->end   = end;
    set->bytes += end - start;
    ucs_itree_insert(&set->tree, node);
}

void ucs_extents_add(ucs_extents_t *set, uintptr_t start, uintptr_t end)
{
    node_t *node;

    /* One byte more at either end, so that neighbours that touch merge */
    while ((node = ucs_itree_first(&set->tree, start - 1, end + 1)) != NULL) {
        ucs_extents_drop(set, node);
        start = (node->start < start) ? node->start : start;
        end   = (node->end > end) ? node->end : end;
        ucs_extents_give(set, node);
    }
    node = ucs_extents_take(set);
    if (node != NULL) {
        ucs_extents_put(set, node, start, end);
    }
}

void ucs_extents_remove(ucs_extents_t *set, uintptr_t start, uintptr_t end)
{
    uintptr_t before, after;
    node_t *node, *other;

    while ((node = ucs_itree_first(&set->tree, start, end)) != NULL) {
        ucs_extents_drop(set, node);
        before = (node->start < start) ? start - node->start : 0;
        after  = (node->end > end) ? node->end - end : 0;
        other  = ((before > 0) && (after > 0)) ? ucs_extents_take(set) : NULL;
        if ((before > 0) && (after > 0) && (other == NULL)) {
            set->lost_bytes += (before < after) ? before : after;
            before           = (before < after) ? 0 : before;
            after            = (before > 0) ? 0 : after;
        }
        if (other != NULL) {
            ucs_extents_put(set, other, end, node->end);
        }
        if (before > 0) {
            ucs_extents_put(set, node, node->start, start);
        } else if ((after > 0) && (other == NULL)) {
            ucs_extents_put(set, node, end, node->end);
        } else {
            ucs_extents_give(set, node);
        }
    }
}

static unsigned ucs_extents_count_spares(const ucs_extents_t *set)
{
    unsigned count = 0;
    const node_t *node;

    for (node = set->spare; node != NULL; node = node->left) {
        ++count;
    }
    return count;
}

int ucs_extents_is_valid(const ucs_extents_t *set)
{
    const node_t *last = NULL;
    size_t bytes       = 0;
    size_t count       = 0;
    const node_t *node;

    for (node = ucs_itree_first(&set->tree, 0, UINTPTR_MAX); node != NULL;
         node = ucs_itree_next(&set->tree, node, 0, UINTPTR_MAX)) {
        if ((node->start >= node->end) ||
            ((last != NULL) && (last->end >= node->start))) {
            return 0;
        }
        bytes += node->end - node->start;
        last   = node;
        ++count;
    }
    return ucs_itree_is_valid(&set->tree) && (count == set->tree.count) &&
           (bytes == set->bytes) &&
           (ucs_extents_count_spares(set) == set->spares);
}
