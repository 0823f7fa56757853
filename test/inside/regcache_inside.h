/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef REGCACHE_INSIDE_H_
#define REGCACHE_INSIDE_H_

#include <ucs/regcache/plan/rq.h>
#include <ucs/regcache/region/state.h>

/**
 * @file regcache_inside.h
 *
 * What tests look at inside of a cache: the equations that hold whenever the
 * index lock is free.
 */

BEGIN_C_DECLS

/** @return Nonzero if the order and the links of a queue hold. */
int ucs_regcache_rq_is_valid(const ucs_regcache_rq_t *rq);

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

/** @return Nonzero if a region that is not doomed overlaps [start, end), in the
 *  index or not. As @ref ucs_regcache_find_invalid. */
int ucs_regcache_has_region(ucs_regcache_h cache, uintptr_t start,
                            uintptr_t end);

/** @return How often the index lock was taken. Under it. */
uint64_t ucs_regcache_lock_takings(ucs_regcache_h cache);

/** @return References on the LIVE region with this handle, 0 if none has it.
 *  Likewise. */
unsigned ucs_regcache_count_users(ucs_regcache_h cache,
                                  ucs_regcache_memh_t memh);

END_C_DECLS

#endif
