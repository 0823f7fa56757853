/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "poll.h"

#include <ucs/regcache/regcache_int.h>

#include <ucs/sys/math.h>

/* A look costs the same whatever is at stake */
static uint64_t ucs_regcache_poll_max(ucs_regcache_h cache,
                                      const ucs_regcache_rq_item_t *item,
                                      size_t bytes)
{
    size_t length = ucs_regcache_pinned_length(item->region);
    uint64_t max  = cache->tuning.poll_max_ns;

    if (length < bytes) {
        max *= bytes / length;
    }
    max = ucs_max(max, item->gap / cache->tuning.poll_gap);
    return ucs_min(max, cache->tuning.patrol_ns);
}

/* After which time to look again for a use that may be over since @a late */
static uint64_t ucs_regcache_poll_interval(ucs_regcache_h cache,
                                           const ucs_regcache_rq_item_t *item,
                                           unsigned share, size_t bytes,
                                           uint64_t late)
{
    uint64_t interval = late / share;

    interval = ucs_max(interval, cache->tuning.poll_min_ns);
    interval = ucs_max(interval, item->gap / cache->tuning.poll_gap);
    if (interval > cache->tuning.poll_max_ns) {
        interval = ucs_min(interval, ucs_regcache_poll_max(cache, item, bytes));
    }
    return interval;
}

void ucs_regcache_poll_expected(ucs_regcache_h cache, unsigned share,
                                size_t bytes, uint64_t now,
                                ucs_regcache_poll_t *poll)
{
    ucs_regcache_rq_item_t *item;
    uint64_t interval;

    poll->next     = UCS_REGCACHE_TIME_NEVER;
    poll->shortest = UCS_REGCACHE_TIME_NEVER;
    poll->longest  = 0;
    for (item = ucs_regcache_rq_first(&cache->plan.rq,
                                      UCS_REGCACHE_RQ_EXPECTED);
         item != NULL; item = item->next) {
        if (!ucs_regcache_rq_item_is_current(item)) {
            continue; /* nothing is registered for it */
        }
        if (item->use_end > now) {
            poll->next = ucs_min(poll->next, item->use_end);
            continue;
        }
        interval       = ucs_regcache_poll_interval(cache, item, share, bytes,
                                                    now - item->use_end);
        poll->shortest = ucs_min(poll->shortest, interval);
        poll->longest  = ucs_max(poll->longest, interval);
    }
}
