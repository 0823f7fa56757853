/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef SCHEDULES_INSIDE_H_
#define SCHEDULES_INSIDE_H_

#include <ucs/regcache/regcache.h>

/**
 * @file schedules_inside.h
 *
 * The only place of schedules that knows the cache's inside: equations that
 * must hold whenever the index lock is free.
 */

/** What the cache holds, summed up region by region. */
typedef struct sim_inside_sum {
    size_t   managed;   /**< bytes of LIVE regions of class MANAGED
                             that are not doomed */
    unsigned live;      /**< LIVE regions */
    unsigned dormant;   /**< DORMANT regions that are no buffer's home */
    unsigned busy;      /**< REGISTERING and DEREGISTERING regions */
    unsigned doomed;    /**< doomed regions without users */
} sim_inside_sum_t;

/** Engine that is looked at, NULL: none.
 *  @param [in] max_contexts  As it was created with. */
void sim_inside_bind(ucs_regcache_h cache, unsigned max_contexts);

/** @return Nonzero if the running fiber holds the index lock. */
int sim_inside_is_lock_mine(void);

/** @return Nonzero if nobody holds it. */
int sim_inside_is_lock_free(void);

/** Check the equations; sim_violation() if one does not hold. */
void sim_inside_check(void);

/** @return Nonzero if a region that is not doomed overlaps the range. */
int sim_inside_finds(uintptr_t start, uintptr_t end);

/** @return References on the LIVE region with this handle, 0 if none has. */
unsigned sim_inside_refs(ucs_regcache_memh_t memh);

/** Nobody is inside the cache: the equations are exact, and the helper's
 *  queues are looked at as well. */
void sim_inside_check_quiet(sim_inside_sum_t *sum);

#endif
