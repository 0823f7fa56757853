/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/regcache/plan/price.h>

#include <ucs/regcache/regcache_int.h>

#include <ucs/sys/math.h>

/* The helper rests for so long, ns, before it looks for uses only to learn from
 * them: it does not fight hits for cache lines */
#define UCS_REGCACHE_LEARN_REST_NS 1e6

/* A policy that keeps what is registered looks only while a ceiling is passed */
static int ucs_regcache_wakeup_patrols(ucs_regcache_h cache)
{
    return !cache->plan.ops->keeps || ucs_load_relaxed(&cache->is_over);
}

static uint64_t ucs_regcache_wakeup_patrol(ucs_regcache_h cache, uint64_t now)
{
    uint64_t idle = (now > cache->plan.used_at) ? now - cache->plan.used_at : 0;

    return ucs_max(cache->tuning.patrol_ns,
                   ucs_min(idle, UCS_REGCACHE_AWAY_NS));
}

/* When the queue of uses will be half full, at the rate of late */
static uint64_t ucs_regcache_wakeup_queue(ucs_regcache_h cache, uint64_t now)
{
    double elapsed = (double)(now - cache->plan.drained_at);
    double uses    = cache->plan.drained;
    double wait;

    cache->plan.drained    = 0;
    cache->plan.drained_at = now;
    if (uses == 0) {
        return UCS_REGCACHE_TIME_NEVER;
    }
    wait = elapsed * cache->plan.queue_length / (2 * uses);
    wait = ucs_max(wait, UCS_REGCACHE_LEARN_REST_NS);
    return now + (uint64_t)ucs_min(wait, (double)UCS_REGCACHE_AWAY_NS);
}

static uint64_t ucs_regcache_wakeup_expired(ucs_regcache_h cache,
                                            ucs_regcache_rq_list_t list)
{
    ucs_regcache_rq_item_t *item = ucs_regcache_rq_first(&cache->plan.rq, list);

    return (item == NULL) ? UCS_REGCACHE_TIME_NEVER : item->time;
}

uint64_t ucs_regcache_wakeup_next(ucs_regcache_h cache, uint64_t now)
{
    uint64_t begin = UCS_REGCACHE_TIME_NEVER;
    ucs_regcache_rq_item_t *item;
    double leave_bytes;
    unsigned registered;
    uint64_t next;
    int list;

    item = ucs_regcache_rq_first(&cache->plan.rq, UCS_REGCACHE_RQ_PENDING);
    ucs_regcache_lock(cache);
    registered  = cache->lru[UCS_REGCACHE_CLASS_MANAGED].count;
    leave_bytes = ucs_regcache_leave_bytes(cache);
    if (item != NULL) {
        begin = ucs_regcache_terms_begin(cache, item);
    }
    ucs_regcache_unlock(cache);

    next = ucs_regcache_price_look(cache, leave_bytes, now);
    if (cache->plan.drained > 0) {
        /* More will come, and is not to wake it */
        next = ucs_min(next, now + (cache->plan.is_pressing ?
                                            cache->tuning.leisure_ns :
                                            cache->tuning.patrol_ns));
    }
    cache->plan.is_pressing = 0;
    if ((registered > 0) && ucs_regcache_wakeup_patrols(cache)) {
        next = ucs_min(next, now + ucs_regcache_wakeup_patrol(cache, now));
    }
    next = ucs_min(next, ucs_regcache_wakeup_queue(cache, now));
    next = ucs_min(next, cache->plan.sweep.at);
    next = ucs_min(next, ucs_regcache_announced_next(cache));
    for (list = UCS_REGCACHE_RQ_EXPECTED; list < UCS_REGCACHE_RQ_LAST; ++list) {
        next = ucs_min(next, ucs_regcache_wakeup_expired(cache, list));
    }
    return ucs_min(next, begin); /* what was promised is kept */
}
