/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/regcache/regcache_int.h>
#include <ucs/sys/math.h>

/*
 * The soft ceiling. A limit counts the highest moment, so idle registrations may
 * raise the peak only where that pays. The ceiling begins at the most that uses had
 * registered at once, posted receives for first uses included. What uses lose for
 * want of room is added up. The room grows to what that sum would have paid for since
 * the start and for the rest of the job, at the price of all memory.
 *
 * How long the job will go on nobody knows. What a buffer loses while its uses are
 * learned is lost once, and a peak is for ever: there it is minutes. What no learning
 * would have saved is lost again and again: there the job goes on for as long as it has
 * run.
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

/* @a lost_ns would pay for room that is there for @a job_ns */
static void
ucs_regcache_soft_raise(ucs_regcache_h cache, uint64_t lost_ns, double job_ns)
{
    double room = (double)lost_ns * ucs_regcache_leave_bytes(cache) /
                  (cache->config.max_slowdown * job_ns);

    if (room > (double)cache->soft.room) {
        cache->soft.room = (uint64_t)ucs_min(
                room, (double)cache->memory.seen.bytes);
        ++cache->soft.raises;
    }
}

static void
ucs_regcache_soft_lost(ucs_regcache_h cache, double lost_ns, int is_learning,
                       uint64_t now)
{
    double elapsed   = (double)(now - cache->created);
    uint64_t counted = (uint64_t)(lost_ns * cache->tuning.soft_weight);

    if (!cache->soft.is_kept) {
        return;
    }
    cache->soft.lost_ns += counted;
    ucs_regcache_soft_raise(cache, cache->soft.lost_ns,
                            elapsed + cache->tuning.soft_horizon_ns);
    if (!is_learning) {
        cache->soft.lost_anyway_ns += counted;
        ucs_regcache_soft_raise(cache, cache->soft.lost_anyway_ns, 2 * elapsed);
    }
}

/* A use that follows another one too soon to be registered in between needs room
 * whatever is known of it, and so does a buffer that has been refused often. What else
 * is lost would have been saved by a registration ahead of a use that was foretold. */
static int ucs_regcache_soft_is_learning(ucs_regcache_h cache,
                                         ucs_regcache_region_t *region,
                                         uint64_t now)
{
    double ahead_ns = ucs_predict_cost_estimate(&cache->cost.reg,
                                                ucs_regcache_pages(cache,
                                                                   region)) +
                      (double)ucs_load_relaxed(&cache->walking.react_ns);

    return (region->refusals <= cache->tuning.soft_learned) &&
           /* Another thread's use may be the later one */
           ((double)(int64_t)(now - cache->soft.missed_at) > ahead_ns);
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

void ucs_regcache_soft_was_held(ucs_regcache_h cache,
                                ucs_regcache_region_t *region, uint64_t until)
{
    ucs_regcache_lock(cache);
    if (region->lapsed != 0) {
        region->lapsed = ucs_max(region->lapsed, until);
    }
    ucs_regcache_unlock(cache);
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
                               1, ucs_regcache_now(cache));
    }
}

void ucs_regcache_soft_missed(ucs_regcache_h cache,
                              ucs_regcache_region_t *region, uint64_t now)
{
    uint64_t lapsed = region->lapsed;
    size_t pages;

    region->lapsed = 0;
    if (lapsed >= now) {
        ++region->refusals;
        pages = ucs_regcache_pages(cache, region);
        ucs_regcache_soft_lost(cache,
                               ucs_regcache_missed_ns(cache, pages) +
                                       ucs_predict_cost_estimate(
                                               &cache->cost.dereg, pages),
                               ucs_regcache_soft_is_learning(cache, region, now),
                               now);
    }
    cache->soft.missed_at = now;
}
