/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_RANGE_H_
#define UCT_HELPER_RANGE_H_

#include <ucs/sys/compiler_def.h>

#include <stddef.h>
#include <stdint.h>

/**
 * @file range.h
 *
 * What kind of memory is it? Only of private anonymous memory does every
 * change of its pages come from this process and through a call that a monitor
 * can see. A file can be truncated, or a hole punched into it, by anybody and
 * without a word to those who map it; the stack of a thread that has ended
 * becomes another one's without being unmapped.
 *
 * Nothing here allocates (but see @ref uct_helper_range_is_own_stack), logs or
 * takes a lock. Thread-safe.
 */

BEGIN_C_DECLS

/** Kinds of memory; of a range that is of several kinds, the last of these. */
typedef enum uct_helper_range_kind {
    UCT_HELPER_RANGE_PRIVATE,   /**< private anonymous, the heap, or the stack
                                     of the main thread */
    UCT_HELPER_RANGE_STACK,     /**< looks like the stack of a thread */
    UCT_HELPER_RANGE_SHARED,    /**< MAP_SHARED, System V */
    UCT_HELPER_RANGE_FILE,      /**< a file or a device, private or not */
    UCT_HELPER_RANGE_NO_ACCESS, /**< not readable */
    UCT_HELPER_RANGE_HOLE,      /**< not mapped in part */
    UCT_HELPER_RANGE_UNKNOWN    /**< /proc/self/maps cannot be read */
} uct_helper_range_kind_t;

/** How the kernel is asked; AUTO takes the first that works. */
typedef enum uct_helper_range_way {
    UCT_HELPER_RANGE_WAY_AUTO,
    UCT_HELPER_RANGE_WAY_QUERY, /**< PROCMAP_QUERY, Linux 6.11 */
    UCT_HELPER_RANGE_WAY_PARSE  /**< reading /proc/self/maps */
} uct_helper_range_way_t;


/**
 * Find the kind of memory.
 *
 * @param [in]    way      How to ask the kernel.
 * @param [inout] start_p  First byte of the range; on return, with
 *                         UCT_HELPER_RANGE_PRIVATE, the start of the mapping
 *                         that it lies in, or of that part of it that cannot
 *                         be a stack. Unchanged otherwise.
 * @param [inout] end_p    First byte behind the range; on return likewise the
 *                         end of the mapping that its last byte lies in.
 */
uct_helper_range_kind_t uct_helper_range_find(uct_helper_range_way_t way,
                                              uintptr_t *start_p,
                                              uintptr_t *end_p);


/**
 * @return Nonzero if the range touches the stack of the calling thread, unless
 *         that is the main thread: its stack stays for as long as the process.
 *         glibc allocates for a moment at a thread's first call.
 */
int uct_helper_range_is_own_stack(uintptr_t start, uintptr_t end);


/** @return Nonzero if all pages of the range are in memory, so that pinning
 *          them faults none of them in. Both ends are page boundaries. */
int uct_helper_range_is_resident(uintptr_t start, uintptr_t end);

END_C_DECLS

#endif
