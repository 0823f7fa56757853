/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_REGCACHE_ACCOUNT_H_
#define UCS_REGCACHE_ACCOUNT_H_

#include "region.h"
#include "request.h"
#include "why.h"

#include <stdint.h>

/**
 * @file account.h
 *
 * Figures of the registration cache, and what changes them. Under the index
 * lock.
 */

BEGIN_C_DECLS

/** Figures that change under the lock only; see ucs_regcache_stats_t. */
typedef struct ucs_regcache_account {
    uint64_t time;      /* up to which the integrals are complete */
    uint64_t pinned;    /* == sum of the pages of all regions that are
                           REGISTERING, LIVE or DEREGISTERING */
    uint64_t pinned_peak;
    double   pinned_ns;
    uint64_t regions;   /* == number of these regions */
    uint64_t regions_peak;
    double   region_ns;
    uint64_t small;     /* those of class SMALL among them */
    uint64_t transit;   /* those that a thread registers or deregisters; it waits
                           for no other */
    uint64_t wanted;    /* those in transit that a use is registering */
    uint64_t leaving;   /* those in transit that are DEREGISTERING */
    uint64_t leave_peak;
    double   leave_ns;
    double   leave_regions_peak;
    uint64_t hits;      /* of what has been folded in */
    uint64_t late, missed, cold, wasted, evicted, invalidated;
    uint64_t over_ceiling, failed;
    uint64_t lock_takings;
    ucs_regcache_why_t why; /* reasons: with what each region has held since it
                               was folded in, == pinned_ns */
    uint64_t repinned;  /* registrations of regions that had been given up */
    uint64_t covers;    /* registrations of more than was asked for */
    uint64_t spared;    /* first uses that found theirs made by that */
    uint64_t spared_pages; /* that those would have registered */
    uint64_t ahead_pages; /* that covers have registered beyond what was asked
                             for at the time */
} ucs_regcache_account_t;

/* --- account.c: under the lock --- */

/** Bring the integrals up to @a now. */
void ucs_regcache_account(ucs_regcache_h cache, uint64_t now);

/** Count a region as pinned (@a sign is 1) or not any more (-1). */
void ucs_regcache_account_region(ucs_regcache_h cache,
                                 ucs_regcache_region_t *region, int sign,
                                 uint64_t now);

/** Take what a thread of the application has lost up to @a now into the
 *  totals. */
void ucs_regcache_account_loss(ucs_regcache_h cache, ucs_regcache_loss_t *loss,
                               uint64_t now);

/** Fold in what a region's users have counted, and for what it has been held,
 *  up to the time of the totals. */
void ucs_regcache_account_fold(ucs_regcache_h cache,
                               ucs_regcache_region_t *region);

/** The helper has heard of a use: until it began the region was held as planned
 *  before. */
void ucs_regcache_account_use(ucs_regcache_h cache, const ucs_use_t *use);

/**
 * From now on a region is held for this reason.
 *
 * @param [in] kept  ns, until when the plan keeps it, unless it is that long
 *                   after its latest use that it is to be held; 0: no longer.
 */
void ucs_regcache_account_why(ucs_regcache_h cache,
                              ucs_regcache_region_t *region,
                              ucs_regcache_held_t held, uint64_t kept);

/** The same for what the helper has planned, since the latest use that it heard of if
 *  it had planned nothing since. */
void ucs_regcache_account_planned(ucs_regcache_h cache,
                                  ucs_regcache_region_t *region,
                                  ucs_regcache_held_t held, uint64_t kept);

/** At the end of a registration; what the next one's users count begins
 *  anew. */
void ucs_regcache_account_end(ucs_regcache_h cache,
                              ucs_regcache_region_t *region);

END_C_DECLS

#endif
