/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/regcache/regcache_int.h>

#include <ucs/sys/math.h>

static uint64_t ucs_regcache_wakeup_patrol(ucs_regcache_h cache, uint64_t now)
{
    uint64_t idle = (now > cache->plan.used_at) ? now - cache->plan.used_at : 0;

    return ucs_max(cache->tuning.patrol_ns,
                   ucs_min(idle, cache->tuning.away_max_ns));
}

uint64_t ucs_regcache_wakeup_next(ucs_regcache_h cache, uint64_t now)
{
    uint64_t next  = cache->plan.ops->poll(cache, now);
    uint64_t begin = UCS_REGCACHE_TIME_NEVER;
    ucs_regcache_rq_item_t *item;
    unsigned registered;
    size_t bytes;

    item = ucs_regcache_rq_first(&cache->plan.rq, UCS_REGCACHE_RQ_PENDING);
    ucs_regcache_lock(cache);
    registered = cache->lru[UCS_REGCACHE_CLASS_MANAGED].count;
    bytes      = cache->memory.seen.bytes;
    if (item != NULL) {
        begin = ucs_regcache_terms_begin(cache, item);
    }
    ucs_regcache_unlock(cache);
    if (registered > 0) {
        next = ucs_min(next, now + ucs_regcache_wakeup_patrol(cache, now));
    }
    if (ucs_dq_is_pending(cache->use.queue)) {
        next = ucs_min(next, now + cache->tuning.poll_min_ns);
    }
    next = ucs_min(next, cache->plan.sweep.at);
    item = ucs_regcache_rq_first(&cache->plan.rq, UCS_REGCACHE_RQ_EXPECTED);
    if (item != NULL) {
        next = ucs_min(next, item->time);
    }
    item = ucs_regcache_rq_first(&cache->plan.rq, UCS_REGCACHE_RQ_HELD);
    if (item != NULL) {
        next = ucs_min(next, item->time);
    }
    if (cache->plan.ops->rest != NULL) {
        next = ucs_max(next, cache->plan.ops->rest(cache, bytes, now));
    }
    return ucs_min(next, begin); /* what was promised is kept */
}
