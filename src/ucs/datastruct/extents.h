/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_EXTENTS_H_
#define UCS_EXTENTS_H_

#include "itree.h"
#include <ucs/sys/compiler_def.h>

/*
 * A set of bytes, kept as disjoint intervals.
 *
 * The caller's lock protects it. Nothing is allocated under that lock: the
 * caller adds spare nodes before. A removal that splits an interval without a
 * spare node drops the smaller half.
 *
 * An interval knows of how many pieces it was added, a part of one where a part of
 * it is left.
 *
 * Invariants:
 *   bytes  == sum of (end - start) over the intervals, none of which is empty
 *             and no two of which touch
 *   pieces == sum over the intervals, but for rounding
 *   spares == length of the list of spare nodes
 */

BEGIN_C_DECLS

/** An interval, or a spare node. */
typedef struct ucs_extents_node {
    ucs_itree_node_t            range;
    union {
        double                  pieces; /**< of an interval */
        struct ucs_extents_node *next;  /**< of a spare node */
    };
} ucs_extents_node_t;

/** All zeros if empty, without spare nodes. */
typedef struct ucs_extents {
    ucs_itree_t        tree;
    ucs_extents_node_t *spare;
    unsigned           spares;
    size_t             bytes;
    double             pieces;
} ucs_extents_t;

/** Spare nodes that an owner keeps for removals. */
#define UCS_EXTENTS_SPARES 64

/** Release all nodes, spare ones too. May make system calls. */
void ucs_extents_cleanup(ucs_extents_t *set);

/** Hand over a node from ucs_own_alloc(), which the set owns from now on. */
void ucs_extents_give(ucs_extents_t *set, ucs_extents_node_t *node);

/** @return Nonzero if the whole of [start, end) is in the set. */
int ucs_extents_covers(const ucs_extents_t *set, uintptr_t start,
                       uintptr_t end);

/** Add [start, end), start above 0 and below end, as one piece in place of what was
 *  there. Takes one spare node at most; does nothing if there is none. */
void ucs_extents_add(ucs_extents_t *set, uintptr_t start, uintptr_t end);

/** Remove [start, end), start below end. For want of a spare node the smaller half
 *  of what it splits goes as well. */
void ucs_extents_remove(ucs_extents_t *set, uintptr_t start, uintptr_t end);

END_C_DECLS

#endif
