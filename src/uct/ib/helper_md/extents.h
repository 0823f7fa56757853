/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_EXTENTS_H_
#define UCT_HELPER_EXTENTS_H_

#include "itree.h"
#include <ucs/sys/compiler_def.h>

/**
 * @file extents.h
 *
 * A set of bytes, kept as disjoint intervals: what a leave-pinned cache would
 * hold, the union of the ranges that were ever registered and are still
 * mapped.
 *
 * Protected by the index lock. Nothing is allocated under it: spare nodes are
 * handed over beforehand. A memory event that would split an interval and
 * finds no spare node forgets the smaller half and counts it as lost.
 *
 * Invariant: bytes == sum of (end - start) over the intervals, no two of which
 * touch.
 */

BEGIN_C_DECLS

typedef struct uct_helper_extents {
    uct_helper_itree_t      tree;
    uct_helper_itree_node_t *spare; /* linked by `left` */
    unsigned                spares;
    size_t                  bytes;
    size_t                  lost_bytes;
} uct_helper_extents_t;

/** Spare nodes that the slow path keeps in store for memory events. */
#define UCT_HELPER_EXTENTS_SPARES 64

void uct_helper_extents_init(uct_helper_extents_t *set);

/** Release all nodes. */
void uct_helper_extents_cleanup(uct_helper_extents_t *set);

/** Hand over a node from malloc(). */
void uct_helper_extents_give(uct_helper_extents_t *set,
                             uct_helper_itree_node_t *node);

/** @return Nonzero if the whole of [start, end) is in the set. */
int uct_helper_extents_covers(const uct_helper_extents_t *set, uintptr_t start,
                              uintptr_t end);

/** Add [start, end); does nothing if no spare node is left. */
void uct_helper_extents_add(uct_helper_extents_t *set, uintptr_t start,
                            uintptr_t end);

/** Remove [start, end). */
void uct_helper_extents_remove(uct_helper_extents_t *set, uintptr_t start,
                               uintptr_t end);

END_C_DECLS

#endif
