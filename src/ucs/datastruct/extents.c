/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "extents.h"

#include <ucs/sys/mem/own_memory.h>

typedef ucs_extents_node_t node_t;

void ucs_extents_give(ucs_extents_t *set, node_t *node)
{
    node->next = set->spare;
    set->spare = node;
    ++set->spares;
}

/* Intervals are the first members of their nodes */
static node_t *ucs_extents_first(const ucs_extents_t *set, uintptr_t start,
                                 uintptr_t end)
{
    return (node_t*)ucs_itree_first(&set->tree, start, end);
}

static node_t *ucs_extents_take(ucs_extents_t *set)
{
    node_t *node = set->spare;

    if (node != NULL) {
        set->spare = node->next;
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
    const node_t *node = ucs_extents_first(set, start, end);

    return (node != NULL) && (node->range.start <= start) &&
           (node->range.end >= end);
}

static size_t ucs_extents_length(const node_t *node)
{
    return node->range.end - node->range.start;
}

/* An empty set has no rounding to remember */
static void ucs_extents_drop(ucs_extents_t *set, node_t *node)
{
    ucs_itree_remove(&set->tree, &node->range);
    set->bytes -= ucs_extents_length(node);
    set->pieces = (set->bytes > 0) ? set->pieces - node->pieces : 0;
}

static void ucs_extents_put(ucs_extents_t *set, node_t *node, uintptr_t start,
                            uintptr_t end, double pieces)
{
    node->range.start = start;
    node->range.end   = end;
    node->pieces      = pieces;
    set->bytes       += end - start;
    set->pieces      += pieces;
    ucs_itree_insert(&set->tree, &node->range);
}

void ucs_extents_add(ucs_extents_t *set, uintptr_t start, uintptr_t end)
{
    double pieces    = 1;
    uintptr_t before = start;
    uintptr_t after  = end;
    size_t length, outside;
    node_t *node;

    /* One byte more at either end, so that neighbours that touch merge */
    while ((node = ucs_extents_first(set, before - 1, after + 1)) != NULL) {
        ucs_extents_drop(set, node);
        length  = ucs_extents_length(node);
        outside = ((node->range.start < start) ? start - node->range.start : 0) +
                  ((node->range.end > end) ? node->range.end - end : 0);
        outside = (outside < length) ? outside : length;
        pieces += node->pieces * (double)outside / (double)length;
        before  = (node->range.start < before) ? node->range.start : before;
        after   = (node->range.end > after) ? node->range.end : after;
        ucs_extents_give(set, node);
    }
    node = ucs_extents_take(set);
    if (node != NULL) {
        ucs_extents_put(set, node, before, after, pieces);
    }
}

void ucs_extents_remove(ucs_extents_t *set, uintptr_t start, uintptr_t end)
{
    uintptr_t before, after, last;
    node_t *node, *other;
    double per_byte;

    while ((node = ucs_extents_first(set, start, end)) != NULL) {
        ucs_extents_drop(set, node);
        last     = node->range.end;
        per_byte = node->pieces / (double)ucs_extents_length(node);
        before   = (node->range.start < start) ? start - node->range.start : 0;
        after    = (last > end) ? last - end : 0;
        other    = ((before > 0) && (after > 0)) ? ucs_extents_take(set) : NULL;
        if ((before > 0) && (after > 0) && (other == NULL)) {
            before = (before < after) ? 0 : before;
            after  = (before > 0) ? 0 : after;
        }
        if (other != NULL) {
            ucs_extents_put(set, other, end, last, per_byte * (double)after);
        }
        if (before > 0) {
            ucs_extents_put(set, node, node->range.start, start,
                            per_byte * (double)before);
        } else if ((after > 0) && (other == NULL)) {
            ucs_extents_put(set, node, end, last, per_byte * (double)after);
        } else {
            ucs_extents_give(set, node);
        }
    }
}
