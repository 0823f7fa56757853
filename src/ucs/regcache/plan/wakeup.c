/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/regcache/regcache_int.h>

#include <ucs/predict/saturate.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>

/*
 * When the helper looks in next
 */

/* A hit does not wake the helper, so while a use is expected the helper looks
 * into the DQ: first when the use would be over that comes at its deadline and
 * lasts as long as the last one, then ever less often, so that a use that comes
 * late by t leaves its region registered for t / POLL_SHARE at most */
#define UCS_REGCACHE_POLL_MAX_NS UINT64_C(5000000)
#define UCS_REGCACHE_POLL_SHARE  4

/* What is used rarely is looked for at leisure: held for so small a part of the
 * time between two uses it takes hardly more memory over all */
#define UCS_REGCACHE_POLL_GAP 128

/* Under predict many items wait together: one look serves them all, and none
 * follows another sooner than this. Uses come in an order: what is not late yet
 * waits a little for what is, and the most late is likely to be the next, so
 * its interval counts for a quarter, up to so many times the shortest. */
#define UCS_REGCACHE_POLL_SHARE_ALL 2
#define UCS_REGCACHE_POLL_REST_NS   UINT64_C(100000)
#define UCS_REGCACHE_POLL_WAIT_NS   UINT64_C(2500000)
#define UCS_REGCACHE_POLL_SPREAD    8

/* Less than so many bytes are looked for less often */
#define UCS_REGCACHE_POLL_BYTES  (size_t)(1 << 20)

/* For each so many bytes that would be left pinned, and once more, the helper
 * may take its share of a core */
#define UCS_REGCACHE_SHARE_BYTES (1 << 20)

/* It may be so much ahead, or behind, in taking that share */
#define UCS_REGCACHE_CREDIT_NS   UINT64_C(100000000)

/* While anything is registered the helper looks in now and then in any case,
 * for uses may have been lost from a full DQ: after twice as long each time
 * that there was none */
#define UCS_REGCACHE_PATROL_NS     UINT64_C(100000000)
#define UCS_REGCACHE_PATROL_MAX_NS UINT64_C(1000000000)


/* A look costs the same whatever is at stake. Under paper all that is expected
 * is about to be used. */
static uint64_t ucs_regcache_wakeup_poll_max(ucs_regcache_h cache,
                                             const ucs_regcache_rq_item_t *item)
{
    size_t length = ucs_regcache_pinned_length(item->region);
    uint64_t max  = UCS_REGCACHE_POLL_MAX_NS;

    if ((cache->plan.ops->plan != NULL) && (length < UCS_REGCACHE_POLL_BYTES)) {
        max *= UCS_REGCACHE_POLL_BYTES / length;
    }
    max = ucs_max(max, item->gap / UCS_REGCACHE_POLL_GAP);
    return ucs_min(max, UCS_REGCACHE_PATROL_NS);
}

/* After which time to look again for a use that may be over since @a late */
static uint64_t ucs_regcache_wakeup_poll_interval(
        ucs_regcache_h cache, const ucs_regcache_rq_item_t *item, uint64_t late)
{
    uint64_t interval = (cache->plan.ops->plan != NULL) ?
                                late / UCS_REGCACHE_POLL_SHARE_ALL :
                                late / UCS_REGCACHE_POLL_SHARE;

    interval = ucs_max(interval, UCS_REGCACHE_POLL_MIN_NS);
    interval = ucs_max(interval, item->gap / UCS_REGCACHE_POLL_GAP);
    if (interval > UCS_REGCACHE_POLL_MAX_NS) {
        interval = ucs_min(interval, ucs_regcache_wakeup_poll_max(cache, item));
    }
    return interval;
}

static uint64_t ucs_regcache_wakeup_poll_time(ucs_regcache_h cache,
                                              uint64_t now)
{
    int is_joint      = (cache->plan.ops->plan != NULL);
    uint64_t rest     = is_joint ? UCS_REGCACHE_POLL_REST_NS : 0;
    uint64_t next     = UCS_REGCACHE_TIME_NEVER;
    uint64_t shortest = UCS_REGCACHE_TIME_NEVER;
    uint64_t longest  = 0;
    ucs_regcache_rq_item_t *item;
    uint64_t interval;

    for (item               = ucs_regcache_rq_first(&cache->plan.rq,
                                                    UCS_REGCACHE_RQ_EXPECTED);
         item != NULL; item = item->next) {
        if (!ucs_regcache_rq_item_is_current(item)) {
            continue; /* nothing is registered for it */
        }
        if (item->use_end > now) {
            next = ucs_min(next, item->use_end);
            continue;
        }
        interval = ucs_regcache_wakeup_poll_interval(cache, item,
                                                     now - item->use_end);
        shortest = ucs_min(shortest, interval);
        longest  = ucs_max(longest, interval);
    }
    if (longest == 0) {
        return ucs_max(next, now + rest);
    }
    /* Under a ceiling what is known of each use counts when one is chosen to
     * go, and it is not held for being late */
    if (!is_joint || (cache->config.max_pinned != SIZE_MAX)) {
        next = ucs_min(next, now + shortest);
        return ucs_max(next, now + rest);
    }
    longest  = ucs_min(longest, UCS_REGCACHE_POLL_SPREAD * shortest);
    interval = (3 * shortest + longest) / 4;
    next     = ucs_max(next, now + UCS_REGCACHE_POLL_WAIT_NS);
    return ucs_min(next, now + interval);
}

static uint64_t ucs_regcache_wakeup_patrol(ucs_regcache_h cache, uint64_t now)
{
    uint64_t idle = (now > cache->plan.used_at) ? now - cache->plan.used_at : 0;

    return ucs_max(UCS_REGCACHE_PATROL_NS,
                   ucs_min(idle, UCS_REGCACHE_PATROL_MAX_NS));
}

/*
 * Processor time
 */

static int ucs_regcache_wakeup_is_bounded(ucs_regcache_h cache)
{
    return (cache->env.spent != NULL) && (cache->plan.cpu_target > 0) &&
           (cache->plan.ops->plan != NULL);
}

/* Since when what the helper takes is to be its share. What it has not taken
 * yet it may take at once: registrations come by the lump, and what follows one
 * is not to wait for them to be earned. */
static uint64_t ucs_regcache_wakeup_balance(ucs_regcache_h cache, uint64_t now)
{
    return ucs_max(cache->plan.rest_until,
                   ucs_predict_sat_sub(now, UCS_REGCACHE_CREDIT_NS));
}

static void ucs_regcache_wakeup_charge(ucs_regcache_h cache, size_t bytes,
                                       uint64_t now)
{
    uint64_t spent = cache->env.spent(cache->env.arg);
    double share   = cache->plan.cpu_target *
                   (1 + (double)bytes / UCS_REGCACHE_SHARE_BYTES);

    cache->plan.share = ucs_min(share, 1.0);
    if ((cache->plan.spent != 0) && (spent > cache->plan.spent)) {
        cache->plan.rest_until = ucs_regcache_wakeup_balance(cache, now) +
                                 (spent - cache->plan.spent) /
                                         cache->plan.share;
        cache->plan.rest_until = ucs_min(cache->plan.rest_until,
                                         now + UCS_REGCACHE_CREDIT_NS);
    }
    cache->plan.spent = spent;
}

uint64_t ucs_regcache_wakeup_earned(ucs_regcache_h cache, uint64_t cost,
                                    uint64_t now)
{
    if (!ucs_regcache_wakeup_is_bounded(cache)) {
        return now;
    }
    return ucs_regcache_wakeup_balance(cache, now) +
           (uint64_t)(cost / cache->plan.share);
}

/*
 * The next look
 */

uint64_t ucs_regcache_wakeup_next(ucs_regcache_h cache, uint64_t now)
{
    uint64_t next  = ucs_regcache_wakeup_poll_time(cache, now);
    uint64_t begin = UCS_REGCACHE_TIME_NEVER;
    ucs_regcache_rq_item_t *item;
    unsigned registered;
    size_t bytes;

    item = ucs_regcache_rq_first(&cache->plan.rq, UCS_REGCACHE_RQ_PENDING);
    ucs_regcache_lock(cache);
    registered = cache->lru[UCS_REGCACHE_CLASS_MANAGED].count;
    bytes      = cache->memory.seen.bytes;
    if (item != NULL) {
        begin = ucs_regcache_step_begin_time(cache, item);
    }
    ucs_regcache_unlock(cache);
    if (registered > 0) {
        next = ucs_min(next, now + ucs_regcache_wakeup_patrol(cache, now));
    }
    if (ucs_dq_is_pending(cache->use.queue)) {
        next = ucs_min(next, now + UCS_REGCACHE_POLL_MIN_NS);
    }
    next = ucs_min(next, cache->plan.sweep_at);
    item = ucs_regcache_rq_first(&cache->plan.rq, UCS_REGCACHE_RQ_EXPECTED);
    if (item != NULL) {
        next = ucs_min(next, item->time);
    }
    item = ucs_regcache_rq_first(&cache->plan.rq, UCS_REGCACHE_RQ_HELD);
    if (item != NULL) {
        next = ucs_min(next, item->time);
    }
    if (ucs_regcache_wakeup_is_bounded(cache)) {
        ucs_regcache_wakeup_charge(cache, bytes, now);
        next = ucs_max(next, cache->plan.rest_until);
    }
    return ucs_min(next, begin); /* what was promised is kept */
}
