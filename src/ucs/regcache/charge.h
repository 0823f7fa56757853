/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_REGCACHE_CHARGE_H_
#define UCS_REGCACHE_CHARGE_H_

#include "region.h"
#include "request.h"

#include <ucs/regcache/plan/plan.h>
#include <ucs/sys/atomic.h>
#include <stdint.h>

/**
 * @file charge.h
 *
 * What the helper costs: its processor time, and where it costs more than it saves.
 */

BEGIN_C_DECLS

/** What the helper costs. It is the only one that writes this. */
typedef struct ucs_regcache_charge {
    uint64_t          spent;    /* ns of its processor time, as last read */
    double            step_ns;  /* of it that a step takes, smoothed */
    double            busy;     /* share of it that others want, 0 to 1 */
    int               is_known; /* that has been measured */
    _Atomic(uint64_t) lost_ns;  /* == sum of what it spent times that share */
} ucs_regcache_charge_t;

/** Whether all of it is worth what it costs (floor.c). Protected by the index
 *  lock; only the helper changes is_on. */
typedef struct ucs_regcache_floor {
    int      is_kept;   /* as the soft ceiling at first */
    int      is_on;     /* everything stays pinned */
    uint64_t times;     /* that it was */
    uint64_t lost_ns;   /* by uses that register what leaving pinned would have
                           had, or make room for it; by the model */
    uint64_t came_ns;   /* by uses of memory that was new, which nobody can
                           save; by the model */
} ucs_regcache_floor_t;

/* --- charge.c --- */

/** Charge the helper for what it took from others since the last time. The
 *  helper only, in each of its steps. */
void ucs_regcache_charge(ucs_regcache_h cache);

/* --- floor.c --- */

/** Set it up, once the soft ceiling is. */
void ucs_regcache_floor_init(ucs_regcache_h cache);

/** @return ns between two looks that cost the application @a look_ns each, so
 *          that they take half of what the floor lets all cost more. */
double ucs_regcache_floor_between(ucs_regcache_h cache, double look_ns);

/** The first use of the pages from @a first to @a last, which was not on time, or
 *  was so because it was announced. Under the lock. */
void ucs_regcache_floor_came(ucs_regcache_h cache, uintptr_t first,
                             uintptr_t last);

/** The thread that ends a use deregisters a region which the policy does not
 *  hold. Under the lock. */
void ucs_regcache_floor_dropped(ucs_regcache_h cache,
                                const ucs_regcache_region_t *region);

/** A use registers what was registered once. Under the lock. */
void ucs_regcache_floor_missed(ucs_regcache_h cache,
                               const ucs_regcache_request_t *request);

/**
 * Has it cost more so far than leaving everything pinned would have, by more
 * than it may? The helper only, once its own time is charged; it stands down or
 * resumes.
 *
 * @param [in] now  ns.
 *
 * @return 0; or when to look again, ns, if everything stays pinned: there is
 *         nothing to do until then.
 */
uint64_t ucs_regcache_floor_holds(ucs_regcache_h cache, uint64_t now);

/* --- rest.c --- */

/** Stand down, or resume once no reason is left: see @ref ucs_regcache_rest.
 *  The helper only. */
void ucs_regcache_rest_for(ucs_regcache_h cache, ucs_regcache_rest_t why);
void ucs_regcache_resume_from(ucs_regcache_h cache, ucs_regcache_rest_t why);

END_C_DECLS

#endif
