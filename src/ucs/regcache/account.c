/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "account.h"
#include "regcache_int.h"
#include "request.h"

void ucs_regcache_account(ucs_regcache_h cache, uint64_t now)
{
    ucs_regcache_account_t *account = &cache->account;
    double elapsed;

    /* Times were taken outside of the lock, so they may arrive out of order */
    if (now > account->time) {
        elapsed             = now - account->time;
        account->pinned_ns += elapsed * account->pinned;
        account->leave_ns  += elapsed * cache->memory.seen.bytes;
        account->time       = now;
    }
    if (cache->memory.seen.bytes > account->leave_peak) {
        account->leave_peak = cache->memory.seen.bytes;
    }
}

void ucs_regcache_account_region(ucs_regcache_h cache,
                                 ucs_regcache_region_t *region, int sign,
                                 uint64_t now)
{
    ucs_regcache_account_t *account = &cache->account;
    size_t length                   = ucs_regcache_pinned_length(region);

    ucs_regcache_account(cache, now);
    if (sign > 0) {
        account->pinned += length;
        ++account->regions;
    } else {
        account->pinned -= length;
        --account->regions;
        if (cache->env.budget != NULL) {
            cache->env.budget->unclaim(cache->env.arg, length);
        }
    }
    if (region->size_class == UCS_REGCACHE_CLASS_SMALL) {
        account->small += sign;
    }
    if (account->pinned > account->pinned_peak) {
        account->pinned_peak = account->pinned;
    }
}

void ucs_regcache_account_uses(ucs_regcache_h cache,
                               ucs_regcache_region_t *region)
{
    uint64_t uses = ucs_load_relaxed(&region->hits) +
                    ucs_load_relaxed(&region->joined);
    uint64_t busy = ucs_load_relaxed(&region->busy_ns);
    /* Less if what was taken for the end of a use was none */
    int64_t more  = busy - region->counted_busy;

    cache->account.hits      += uses - region->counted;
    cache->account.in_use_ns += (double)more *
                                ucs_regcache_pinned_length(region);
    region->counted           = uses;
    region->counted_busy      = busy;
}

void ucs_regcache_account_loss(ucs_regcache_h cache, ucs_regcache_loss_t *loss,
                               uint64_t now)
{
    if (now > loss->since) {
        cache->account.lost_ns += now - loss->since;
        loss->since             = now;
    }
    cache->account.late_ns += loss->waited_ns;
    loss->waited_ns         = 0;
}

void ucs_regcache_account_end(ucs_regcache_h cache,
                              ucs_regcache_region_t *region)
{
    ucs_regcache_account_uses(cache, region);
    if (ucs_load_relaxed(&region->speculative) && (region->counted == 0)) {
        ++cache->account.wasted;
    }
    region->counted      = 0;
    region->counted_busy = 0;
    ucs_store_relaxed(&region->hits, 0);
    ucs_store_relaxed(&region->joined, 0);
    ucs_store_relaxed(&region->busy_ns, 0);
    ucs_store_relaxed(&region->speculative, 0);
}
