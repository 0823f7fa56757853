/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/regcache/regcache_int.h>
#include <ucs/regcache/register/register.h>
#include <ucs/sys/math.h>

/*
 * The soft ceiling. The average forgets a moment, a limit does not; so what
 * lies idle may lift the most that is pinned at once only if that pays. The
 * ceiling begins at the most that uses themselves had registered at once, those
 * among them that are posted and will be a buffer's first. What they lose because
 * of it is added up, and there is so much more room as that would have paid for
 * since the beginning and for some minutes to come, at the same price as all
 * memory. What it costs to learn is lost once, in the first seconds; a peak is for
 * ever, and the job goes on.
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
           (cache->account.pinned + length <= ucs_regcache_soft_bytes(cache));
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
    room = (double)cache->soft.lost_ns * (double)cache->memory.seen.bytes /
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

/* What goes before the helper has heard of its use is forgotten, and nobody will
 * know that it came back: where two buffers are used in turn, each in place of the
 * other, the helper would hear of neither in time. */
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
