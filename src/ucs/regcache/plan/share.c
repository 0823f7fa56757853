/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "share.h"

#include <ucs/predict/saturate.h>
#include <ucs/sys/math.h>

void ucs_regcache_share_init(ucs_regcache_share_t *share, double target,
                             const ucs_regcache_tuning_t *tuning)
{
    share->tuning     = tuning;
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
                   ucs_predict_sat_sub(now, share->tuning->credit_ns));
}

uint64_t ucs_regcache_share_charge(ucs_regcache_share_t *share, uint64_t spent,
                                   size_t bytes, uint64_t now)
{
    double due = share->target *
                 (1 + (double)bytes / share->tuning->share_bytes);

    share->now = ucs_min(due, 1.0);
    if ((share->spent != 0) && (spent > share->spent)) {
        share->rest_until = ucs_regcache_share_balance(share, now) +
                            (spent - share->spent) / share->now;
        share->rest_until = ucs_min(share->rest_until,
                                    now + share->tuning->credit_ns);
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
