/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "share.h"

#include <ucs/predict/saturate.h>
#include <ucs/sys/math.h>

/* For each so many bytes that would be left pinned, and once more, the helper
 * may take its share of a core */
#define UCS_REGCACHE_SHARE_BYTES (1 << 20)

/* It may be so much ahead, or behind, in taking that share */
#define UCS_REGCACHE_CREDIT_NS   UINT64_C(100000000)

void ucs_regcache_share_init(ucs_regcache_share_t *share, double target)
{
    share->target     = target;
    share->now        = target;
    share->spent      = 0;
    share->rest_until = 0;
}

/* Since when what the helper takes is to be its share. What it has not taken
 * yet it may take at once: registrations come by the lump, and what follows one
 * is not to wait for them to be earned. */
static uint64_t ucs_regcache_share_balance(const ucs_regcache_share_t *share,
                                           uint64_t now)
{
    return ucs_max(share->rest_until,
                   ucs_predict_sat_sub(now, UCS_REGCACHE_CREDIT_NS));
}

uint64_t ucs_regcache_share_charge(ucs_regcache_share_t *share, uint64_t spent,
                                   size_t bytes, uint64_t now)
{
    double due = share->target * (1 + (double)bytes / UCS_REGCACHE_SHARE_BYTES);

    share->now = ucs_min(due, 1.0);
    if ((share->spent != 0) && (spent > share->spent)) {
        share->rest_until = ucs_regcache_share_balance(share, now) +
                            (spent - share->spent) / share->now;
        share->rest_until = ucs_min(share->rest_until,
                                    now + UCS_REGCACHE_CREDIT_NS);
    }
    share->spent = spent;
    return share->rest_until;
}

uint64_t ucs_regcache_share_earned(const ucs_regcache_share_t *share,
                                   uint64_t cost, uint64_t now)
{
    if (share->target <= 0) {
        return now;
    }
    return ucs_regcache_share_balance(share, now) +
           (uint64_t)(cost / share->now);
}
