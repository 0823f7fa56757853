/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_REGCACHE_VALID_H_
#define UCS_REGCACHE_VALID_H_

#include "regcache.h"

#include <assert.h>

/**
 * @file valid.h
 *
 * What tests and debug builds ask of a cache beyond regcache.h: its equations,
 * and the lock under which they hold.
 */

BEGIN_C_DECLS

/** What a cache holds, region by region. */
typedef struct ucs_regcache_census {
    size_t   managed; /**< bytes of LIVE regions of class MANAGED that are not
                           doomed */
    unsigned live;    /**< LIVE regions */
    unsigned dormant; /**< DORMANT regions that the policy knows nothing of */
    unsigned busy;    /**< REGISTERING and DEREGISTERING regions */
    unsigned doomed;  /**< doomed regions without users */
} ucs_regcache_census_t;

/**
 * Hold the index lock, as a thread does that an event interrupts. For the
 * duration no other function of the cache may be called but
 * @ref ucs_regcache_unmapped; both also carry out what such an event left
 * behind.
 */
void ucs_regcache_lock(ucs_regcache_h cache);
void ucs_regcache_unlock(ucs_regcache_h cache);

/**
 * The equations that hold whenever the index lock is free. Looks at every
 * region; takes no lock and changes nothing: the caller holds the lock, or
 * knows that no other thread has it.
 *
 * @return NULL if all of them hold, else the text of one that does not.
 */
const char *ucs_regcache_find_invalid(ucs_regcache_h cache);

/** The same, and those that hold only while no other thread is inside.
 *  @param [out] census  What was counted. */
const char *ucs_regcache_find_invalid_quiet(ucs_regcache_h cache,
                                            ucs_regcache_census_t *census);

/** @return Nonzero if the equations hold. Takes the lock. */
int ucs_regcache_is_valid(ucs_regcache_h cache);

/** @return Nonzero if a region that is not doomed overlaps [start, end), in the
 *  index or not. As @ref ucs_regcache_find_invalid. */
int ucs_regcache_has_region(ucs_regcache_h cache, uintptr_t start,
                            uintptr_t end);

/** @return References on the LIVE region with this handle, 0 if none has it.
 *  Likewise. */
unsigned ucs_regcache_count_users(ucs_regcache_h cache,
                                  ucs_regcache_memh_t memh);

/** In debug builds: all equations hold. Outside of the lock. */
#ifdef ENABLE_ASSERT
#  define ucs_regcache_assert_valid(_cache) assert(ucs_regcache_is_valid(_cache))
#else
#  define ucs_regcache_assert_valid(_cache) ((void)(_cache))
#endif

END_C_DECLS

#endif
