/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "poll.h"

#include <ucs/regcache/regcache_int.h>

#include <ucs/sys/math.h>

#define UCS_REGCACHE_POLL_MAX_NS UINT64_C(5000000)

/* What is used rarely is looked for at leisure: held for so small a part of the
 * time between two uses it takes hardly more memory over all */
#define UCS_REGCACHE_POLL_GAP 128

/* A look costs the same whatever is at stake */
static uint64_t ucs_regcache_poll_max(ucs_regcache_h cache,
                                      const ucs_regcache_rq_item_t *item,
                                      size_t bytes)
{
    size_t length = ucs_regcache_pinned_length(cache, item->region);
    uint64_t max  = UCS_REGCACHE_POLL_MAX_NS;

    if (length < bytes) {
        max *= bytes / length;
    }
    max = ucs_max(max, item->gap / UCS_REGCACHE_POLL_GAP);
    return ucs_min(max, UCS_REGCACHE_PATROL_NS);
}

/* After which time to look again for a use that may be over since @a late */
static uint64_t ucs_regcache_poll_interval(ucs_regcache_h cache,
                                           const ucs_regcache_rq_item_t *item,
                                           unsigned share, size_t bytes,
                                           uint64_t late)
{
    uint64_t interval = late / share;

    interval = ucs_max(interval, UCS_REGCACHE_POLL_MIN_NS);
    interval = ucs_max(interval, item->gap / UCS_REGCACHE_POLL_GAP);
    if (interval > UCS_REGCACHE_POLL_MAX_NS) {
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
