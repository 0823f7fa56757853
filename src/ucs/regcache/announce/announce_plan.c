/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "announce_plan.h"
#include "announcer.h"
#include <ucs/regcache/plan/price.h>

#include <ucs/regcache/regcache_int.h>
#include <ucs/regcache/valid.h>

#include <ucs/predict/saturate.h>
#include <ucs/sys/math.h>

double
ucs_regcache_announced_cost(const ucs_regcache_announcement_t *announcement,
                            double after, double delay)
{
    double rent  = (double)announcement->rent;
    double takes = (double)announcement->takes;

    if (delay <= after) {
        return 1;
    }
    if (delay < after + takes) {
        return (after + takes - delay) / takes; /* it waits for the rest */
    }
    if (delay > after + rent) {
        return 2; /* given up, and missed */
    }
    return (delay - after) / rent;
}

/* Of all delays that are known and have not passed */
static double
ucs_regcache_announced_mean(const ucs_regcache_announcement_t *announcement,
                            const ucs_predict_delays_t *delays, double after,
                            double passed)
{
    double sum     = 0;
    unsigned count = 0;
    unsigned i;

    for (i = 0; i < delays->count; ++i) {
        if (delays->sorted[i] > passed) {
            sum += ucs_regcache_announced_cost(announcement, after,
                                               delays->sorted[i]);
            ++count;
        }
    }
    return (count > 0) ? sum / count : 0;
}

ucs_regcache_announced_state_t
ucs_regcache_announced_plan(ucs_regcache_announced_t *announced,
                            ucs_regcache_announcement_t *announcement,
                            double share, double wait_least, uint64_t now)
{
    const ucs_predict_delays_t *delays =
            ucs_regcache_announced_delays(announced, announcement);
    double passed = (double)ucs_predict_sat_sub(now, announcement->posted);
    double best   = passed;
    double least, after, cost;
    unsigned i;

    /* What waiting saves is to be worth the helper's trouble */
    least = ucs_regcache_announced_mean(announcement, delays, passed, passed) -
            wait_least;
    for (i = 0; i < delays->count; ++i) {
        after = share * delays->sorted[i] - (double)announcement->takes -
                (double)announcement->late;
        if (after > passed) {
            cost = ucs_regcache_announced_mean(announcement, delays, after,
                                               passed);
            if (cost < least) {
                least = cost;
                best  = after;
            }
        }
    }
    announcement->due   = announcement->posted + (uint64_t)best;
    announcement->until = ucs_predict_sat_add(announcement->due,
                                              announcement->rent);
    return (least < 1) ? UCS_REGCACHE_ANNOUNCED_WAITING :
                         UCS_REGCACHE_ANNOUNCED_PASSED;
}

void ucs_regcache_announced_price(ucs_regcache_h cache,
                                  ucs_regcache_announcement_t *announcement)
{
    uintptr_t first = ucs_regcache_page_down(cache, announcement->start);
    uintptr_t last  = ucs_regcache_page_up(cache, announcement->end);
    double bytes    = (double)(last - first);
    double leave_bytes;

    ucs_regcache_lock(cache);
    announcement->takes = ucs_predict_cost_estimate(
            &cache->cost.reg, (last - first) / (cache->config.page_mask + 1));
    leave_bytes = (double)cache->memory.seen.bytes;
    if (!ucs_extents_covers(&cache->memory.seen, first, last)) {
        leave_bytes += bytes; /* it will be seen */
    }
    ucs_regcache_unlock(cache);
    announcement->takes = ucs_max(announcement->takes, 1);
    announcement->late  = ucs_max(cache->plan.lateness, cache->plan.shared);
    announcement->rent  = 1 + (uint64_t)ucs_predict_price_rent_ns(
                                     cache->config.max_slowdown, leave_bytes,
                                     bytes, announcement->takes);
}
