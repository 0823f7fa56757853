/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCP_DOOR_LABEL_H_
#define UCP_DOOR_LABEL_H_

#include "tuning.h"

#include <ucs/sys/atomic.h>

#include <ucs/sys/compiler_def.h>

#include <stddef.h>
#include <stdint.h>

/**
 * @file label.h
 *
 * The label of an operation: the return addresses above UCP's entry, the kind
 * and the class of the size (Li et al., CF'11, section 4.2). The stack is
 * walked once for each pair of return address and stack position, which stands
 * for the path from then on; paths that meet in a pair share a label.
 */

BEGIN_C_DECLS

#define UCP_DOOR_PATHS (1u << UCP_DOOR_PATH_BITS)

/**
 * Walks the stack.
 *
 * @return A signature of the return addresses above UCP, never 0.
 */
typedef uint64_t (*ucp_door_walk_func_t)(uintptr_t position, uintptr_t caller);

/** The halves need no lock and no order: one that is old and one that is new
 *  fit no key. Invariant: check == key ^ path, or it is being written. */
typedef struct ucp_door_path {
    _Atomic(uint64_t) check;
    _Atomic(uint64_t) path;
} ucp_door_path_t;

/** All zero knows nothing. It never grows. */
typedef struct ucp_door_labels {
    _Atomic(uint64_t) walks;
    ucp_door_path_t   paths[UCP_DOOR_PATHS];
} ucp_door_labels_t;

/** From where an operation came. */
typedef struct ucp_door_site {
    uintptr_t caller;   /* the return address at UCP's entry */
    uintptr_t position; /* the stack's */
} ucp_door_site_t;


/** Bits of @ref ucp_door_label_size. */
#define UCP_DOOR_SIZE_BITS 7


/** @return The place of the highest bit of a length, from 1; 0 for 0. */
static inline unsigned ucp_door_label_size(size_t length)
{
    return (length == 0) ? 0 : 64 - (unsigned)__builtin_clzll(length);
}


/**
 * Any thread.
 *
 * @param [in] walk   NULL: a path is its return address alone, as it is while
 *                    walks are more than their share.
 * @param [in] heard  Operations of this thread up to now, by which walks have
 *                    a share.
 *
 * @return The path's signature, never 0.
 */
uint64_t ucp_door_labels_path(ucp_door_labels_t *labels,
                              ucp_door_walk_func_t walk,
                              const ucp_door_site_t *site, uint64_t heard);


/** @return Nonzero if the path of the site is remembered: it will not be
 *          another one by and by. */
int ucp_door_labels_know(const ucp_door_labels_t *labels,
                         const ucp_door_site_t *site);


/** @return The label, never 0: of operations of one path and kind, those whose
 *          lengths have their highest bit at one place have one. */
uint32_t ucp_door_label(uint64_t path, unsigned kind, size_t length);

END_C_DECLS

#endif
