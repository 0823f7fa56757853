/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCP_DOOR_LABEL_H_
#define UCP_DOOR_LABEL_H_

#include <ucs/sys/hash.h>
#include <ucs/sys/proc/stack.h>

#include <ucs/sys/compiler_def.h>

#include <stddef.h>
#include <stdint.h>

/**
 * @file label.h
 *
 * The label of an operation: call site, kind and size class (Li et al., CF'11,
 * section 4.2). Pure.
 */

BEGIN_C_DECLS

/** Call site of an operation. */
typedef struct ucp_door_site {
    uintptr_t caller;   /* the return address at UCP's entry */
    uintptr_t position; /* the stack's, from ucs_stack_position() */
} ucp_door_site_t;

/** The entry point's call site; expand in the entry point itself. */
#define UCP_DOOR_SITE \
    ((ucp_door_site_t){(uintptr_t)__builtin_return_address(0), \
                       ucs_stack_position(__builtin_frame_address(0))})


/** @return The number of the highest bit of a length, from 1; 0 for 0. */
static inline unsigned ucp_door_label_size(size_t length)
{
    return (length == 0) ? 0 : 64 - (unsigned)__builtin_clzll(length);
}


/** @return The label, never 0. The size class is the highest bit of the
 *  length. */
static inline uint32_t ucp_door_label(ucp_door_site_t site, unsigned kind,
                                      size_t length)
{
    uint64_t what = kind * 65u + ucp_door_label_size(length) + 1;
    uint32_t label;

    /* The high bits depend on all three products */
    label = (uint32_t)(((site.caller * UCS_HASH_FACTOR) ^
                        (site.position * UCS_HASH_FACTOR_2) ^
                        (what * UCS_HASH_FACTOR_3)) >> 32);
    return (label != 0) ? label : 1;
}

END_C_DECLS

#endif
