/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_REGCACHE_ACCOUNT_H_
#define UCS_REGCACHE_ACCOUNT_H_

#include "region.h"
#include "request.h"

#include <stdint.h>

/*
 * Figures of the registration cache, and what changes them. Under the index
 * lock.
 */

/** What the figures in the cache's `stats` are reckoned with. These change under the
 *  lock only as well: pinned_bytes == sum of the pages of all regions that are
 *  REGISTERING, LIVE or DEREGISTERING, and regions == their number. */
typedef struct ucs_regcache_account {
    uint64_t time;      /* up to which the integrals are complete */
    double   pinned_ns; /* == the reasons of `why`, with what each region has held
                           since it was folded in */
    uint64_t small;     /* regions of class SMALL */
    uint64_t transit;   /* those that a thread registers or deregisters; it waits
                           for no other */
    uint64_t wanted;    /* those in transit that a use is registering */
    uint64_t leaving;   /* those in transit that are DEREGISTERING */
    double   leave_regions_peak;
    uint64_t lock_takings;
    uint64_t spared_pages; /* that those spared would have registered */
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

#endif
