/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/regcache/regcache_int.h>
#include <ucs/regcache/register/register.h>
#include <ucs/sys/math.h>

/*
 * The soft ceiling. A limit counts the highest moment, so idle registrations may
 * raise the peak only where that pays. The ceiling begins at the most that uses had
 * registered at once, posted receives for first uses included. What uses lose for
 * want of room is added up. The room grows to what that sum would have paid for since
 * the start and for some minutes to come, at the price of all memory.
 */

uint64_t ucs_regcache_soft_bytes(ucs_regcache_h cache)
{
    return cache->soft.is_kept ? cache->soft.in_use + cache->soft.room +
                                         (uint64_t)cache->tuning.soft_least :
                                 0;
}

int ucs_regcache_soft_fits(ucs_regcache_h cache, size_t length)
{
    return !cache->soft.is_kept ||
           (cache->stats.pinned_bytes + length <= ucs_regcache_soft_bytes(cache));
}

static void ucs_regcache_soft_lost(ucs_regcache_h cache, uint64_t lost_ns,
                                   uint64_t now)
{
    double elapsed = (double)(now - cache->created) +
                     cache->tuning.soft_horizon_ns;
    double room;

    if (!cache->soft.is_kept) {
        return;
    }
    cache->soft.lost_ns += (uint64_t)(lost_ns * cache->tuning.soft_weight);
    room = (double)cache->soft.lost_ns * ucs_regcache_leave_bytes(cache) /
           (cache->config.max_slowdown * elapsed);
    if (room > (double)cache->soft.room) {
        cache->soft.room = (uint64_t)ucs_min(
                room, (double)cache->memory.seen.bytes);
        ++cache->soft.raises;
    }
}

void ucs_regcache_soft_make_room(ucs_regcache_h cache, size_t length)
{
    uint64_t in_use;

    if (!cache->soft.is_kept) {
        return;
    }
    while (!ucs_regcache_soft_fits(cache, length)) {
        if (ucs_regcache_evict_soft(cache, NULL) > 0) {
            continue;
        }
        if (cache->account.leaving == 0) {
            break;
        }
        ucs_regcache_let_others(cache);
    }
    /* All else is in use, or another thread is about to release it */
    in_use             = ucs_first_sum_get(&cache->use.bytes) + length;
    cache->soft.in_use = ucs_max(cache->soft.in_use, in_use);
}

void ucs_regcache_soft_posted(ucs_regcache_h cache, size_t posted)
{
    uint64_t in_use = ucs_first_sum_get(&cache->use.bytes) + posted;

    cache->soft.in_use = ucs_max(cache->soft.in_use, in_use);
}

/* Until when it would have stayed registered */
static uint64_t ucs_regcache_soft_until(ucs_regcache_region_t *region)
{
    return ucs_max(ucs_load_relaxed(&region->until),
                   ucs_load_relaxed(&region->last_use) +
                           ucs_load_relaxed(&region->hold));
}

void ucs_regcache_soft_give_up(ucs_regcache_region_t *region)
{
    region->lapsed = ucs_regcache_soft_until(region);
}

/* The helper has not heard of the latest use yet, so it will not learn that the buffer
 * came back: two buffers that are used in turn, each in place of the other, would
 * never be noticed. The eviction itself counts as a loss. */
void ucs_regcache_soft_evicted(ucs_regcache_h cache,
                               ucs_regcache_region_t *region)
{
    ucs_regcache_soft_give_up(region);
    if (ucs_load_relaxed(&region->use_start) !=
        ucs_load_relaxed(&region->learned_start)) {
        ucs_regcache_soft_lost(cache,
                               ucs_predict_cost_estimate(
                                       &cache->cost.dereg,
                                       ucs_regcache_pages(cache, region)),
                               ucs_regcache_now(cache));
    }
}

void ucs_regcache_soft_missed(ucs_regcache_h cache,
                              ucs_regcache_region_t *region, uint64_t now)
{
    uint64_t lapsed = region->lapsed;
    size_t pages;

    region->lapsed = 0;
    if (lapsed >= now) {
        pages = ucs_regcache_pages(cache, region);
        ucs_regcache_soft_lost(cache,
                               ucs_regcache_missed_ns(cache, pages) +
                                       ucs_predict_cost_estimate(
                                               &cache->cost.dereg, pages),
                               now);
    }
}
