/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_REGCACHE_RELEASE_H_
#define UCS_REGCACHE_RELEASE_H_

#include "region.h"
#include "request.h"

#include <ucs/sys/sync/atomic.h>
#include <stddef.h>
#include <stdint.h>

/* The end of a use, and of a registration. */

/** Regions of unmapped memory that may wait for the helper. Beyond that a use that
 *  registers deregisters them. */
#define UCS_REGCACHE_RECLAIM_MAX 64

/** Likewise their bytes. */
#define UCS_REGCACHE_RECLAIM_MAX_BYTES (16ul << 20)

/** Doomed regions without users, to be deregistered. All of it changes under
 *  the index lock. */
typedef struct ucs_regcache_reclaim {
    ucs_regcache_region_t *list;
    _Atomic(unsigned)     count; /* == length of the list */
    _Atomic(size_t)       bytes; /* == sum of what its regions pin */
} ucs_regcache_reclaim_t;

/* --- deregister.c --- */

/**
 * Deregister a region that is DEREGISTERING; it becomes DORMANT or FREE. Outside of
 * the lock.
 *
 * @param [inout] loss  Of a thread of the application; NULL: none, or it counts what
 *                      it loses elsewhere.
 */
void ucs_regcache_region_deregister(ucs_regcache_h cache,
                                    ucs_regcache_region_t *region,
                                    ucs_regcache_comp_t comp,
                                    ucs_regcache_loss_t *loss);

/**
 * Have the helper deregister a large region whose last user has gone, for the
 * caller would wait long. Under the lock; the caller wakes the helper after it.
 *
 * @return Zero if it is not large or not idle, or if there is no helper: the
 *         caller does it.
 */
int ucs_regcache_drop_later(ucs_regcache_h cache,
                            ucs_regcache_region_t *region);

/** Deregister and free all that is on the reclaim list. Outside of the lock. */
void ucs_regcache_reclaim(ucs_regcache_h cache);

/** The same, of @a max regions at most. */
void ucs_regcache_reclaim_some(ucs_regcache_h cache, unsigned max);

/** Deregister every region that is LIVE, with users or without; what waits for
 *  an invalidation is told. No other thread is inside the cache. */
void ucs_regcache_deregister_all(ucs_regcache_h cache);

/* --- put.c --- */

/** Give up a reference on a live region, and do what its last user has to
 *  do. */
void ucs_regcache_region_put(ucs_regcache_h cache,
                             ucs_regcache_region_t *region);

/** The last user of a doomed region has gone. */
void ucs_regcache_doomed(ucs_regcache_h cache, ucs_regcache_region_t *region);

#endif
