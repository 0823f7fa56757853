/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_ITREE_H_
#define UCS_ITREE_H_

#include <stddef.h>
#include <stdint.h>
#include <ucs/sys/compiler_def.h>

/*
 * Interval tree: a treap ordered by (start, node address), each node knowing
 * the greatest end below it. Intrusive: nothing is allocated, so a memory
 * event may remove. Intervals [start, end) may overlap. Expected depth is
 * logarithmic; priorities come from a hash of the node's address.
 *
 * Not thread-safe; the caller's lock protects tree and nodes.
 *
 * Invariant of each node n:
 *   n.max_end == max(n.end, left.max_end, right.max_end)
 *   left.key < n.key < right.key,  n.priority >= children's priority
 */

BEGIN_C_DECLS

typedef struct ucs_itree_node {
    struct ucs_itree_node *left;
    struct ucs_itree_node *right;
    uintptr_t             start;
    uintptr_t             end;
    uintptr_t             max_end;
} ucs_itree_node_t;

/** All zeros if empty. */
typedef struct ucs_itree {
    ucs_itree_node_t *root;
    size_t           count;
} ucs_itree_t;

/** Insert a node whose start and end are set, start below end, and which is in
 *  no tree. It is the caller's, and stays where it is until it is removed. */
void ucs_itree_insert(ucs_itree_t *tree, ucs_itree_node_t *node);

/** Remove a node that is in the tree. */
void ucs_itree_remove(ucs_itree_t *tree, ucs_itree_node_t *node);

/** @return The node with the lowest start that overlaps [start, end), or
 *          NULL. */
ucs_itree_node_t *ucs_itree_first(const ucs_itree_t *tree, uintptr_t start,
                                  uintptr_t end);

/**
 * @return The next node after @a node, in order of start, that overlaps
 *         [start, end), or NULL. @a node need not be in the tree any more,
 *         but its start must be unchanged.
 */
ucs_itree_node_t *ucs_itree_next(const ucs_itree_t *tree,
                                 const ucs_itree_node_t *node, uintptr_t start,
                                 uintptr_t end);

END_C_DECLS

#endif
