/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_VMAS_H_
#define UCT_HELPER_VMAS_H_

#include <ucs/sys/sync/atomic.h>
#include <ucs/sys/compiler_def.h>

#include <stdint.h>

/**
 * @file vmas.h
 *
 * The process's mappings. The kernel allows vm.max_map_count of them; marking
 * pages in the middle of one (MADV_DONTFORK, userfaultfd) makes three of it. At
 * the limit malloc() fails, so the helper stops registering ahead long before.
 */

BEGIN_C_DECLS

/** Parts of the limit that must stay free: below one eighth speculation stops,
 *  above one quarter it may go on. */
#define UCT_HELPER_VMAS_STOP 8
#define UCT_HELPER_VMAS_GO   4

/** A watch over the number of mappings. Zeroed: fresh. */
typedef struct uct_helper_vmas {
    uint64_t      next_ns;  /**< when to count again */
    int           is_near;  /**< near the limit when last counted */
    long          limit;    /**< as it was then */
    _Atomic(long) spare;    /**< ranges that may be watched until the next
                                 count */
} uct_helper_vmas_t;


/**
 * Count if it is time to: once a second, less often where it takes long, and
 * when @ref uct_helper_vmas_spend has said so. One thread at a time.
 *
 * @return Nonzero if the state of @a vmas has changed.
 */
int uct_helper_vmas_watch(uct_helper_vmas_t *vmas, uint64_t now);


/** One more range is watched. Any thread. @return Nonzero if so many have come
 *  since the last count that it is time to count again. */
int uct_helper_vmas_spend(uct_helper_vmas_t *vmas);


/** @return vm.max_map_count as it was when this was called first, LONG_MAX if it could
 *          not be read. It is not read again: what is opened for a moment has a number
 *          that the program may want. */
long uct_helper_vmas_limit(void);


/** Use @a limit for vm.max_map_count from now on, 0: the system's. For tests,
 *  which cannot lower it for the whole machine. */
void uct_helper_vmas_set_limit(long limit);

END_C_DECLS

#endif
