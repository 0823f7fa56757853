/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/regcache/regcache_int.h>
#include <ucs/regcache/region/state.h>

/* Under the lock: idle for a while, and not about to be used. A use that is expected
 * later does not matter: the lost one would have had the region deregistered until
 * then. */
static int ucs_regcache_sweep_is_stray(ucs_regcache_h cache,
                                       ucs_regcache_region_t *region,
                                       uint64_t now)
{
    uint64_t word = ucs_load_relaxed(&region->word);
    uint64_t earliest;
    ucs_predict_terms_t terms;

    if (!ucs_regcache_word_is_hit(word) || (ucs_regcache_word_refs(word) > 0) ||
        (ucs_load_relaxed(&region->idle) != UCS_REGCACHE_IDLE_QUEUE) ||
        (ucs_load_relaxed(&region->last_use) + UCS_REGCACHE_STRAY_NS > now)) {
        return 0;
    }

    earliest = ucs_regcache_plan_earliest(region);
    ucs_regcache_terms_locked(cache, region, &terms);
    return ucs_predict_may_deregister(now, &terms, earliest);
}

/* Under the lock: DORMANT until the helper hears of its use, which is lost */
static int ucs_regcache_sweep_is_unheard(ucs_regcache_region_t *region,
                                         uint64_t now)
{
    uint64_t word = ucs_load_relaxed(&region->word);

    return (ucs_regcache_word_state(word) == UCS_REGCACHE_STATE_DORMANT) &&
           !(word & UCS_REGCACHE_WORD_DOOMED) &&
           (ucs_regcache_word_refs(word) == 0) &&
           !ucs_load_relaxed(&region->planned) &&
           (ucs_load_relaxed(&region->last_use) + UCS_REGCACHE_STRAY_NS <= now);
}

/* Under the lock: the next stray, once it is claimed; NULL if the lot or the
 * sweep is over */
static ucs_regcache_region_t *ucs_regcache_sweep_next(ucs_regcache_h cache,
                                                      unsigned *left_p,
                                                      uint64_t now)
{
    ucs_regcache_region_t *region;

    for (; *left_p > 0; --*left_p) {
        region = ucs_regcache_walk_next(&cache->plan.sweep.walk);
        if (region == NULL) {
            break;
        }
        if (ucs_regcache_sweep_is_stray(cache, region, now) &&
            ucs_regcache_region_take_idle(cache, region)) {
            --*left_p;
            if (!ucs_load_relaxed(&region->planned)) {
                /* Nobody will hear of its use (state.c) */
                ucs_store_relaxed(&region->learned_start, UINT64_MAX);
            }
            return region;
        }
        if (ucs_regcache_sweep_is_unheard(region, now)) {
            ucs_regcache_region_forget(cache, region);
        }
    }
    return NULL;
}

/* A lot of regions. The lock is not fair: on busy cores a helper that took it again at
 * once would keep it from all others. So it sleeps between two lots. */
static void ucs_regcache_sweep_lot(ucs_regcache_h cache, uint64_t now)
{
    unsigned left = cache->tuning.lot;
    ucs_regcache_region_t *region;

    do {
        ucs_regcache_lock(cache);
        region = ucs_regcache_sweep_next(cache, &left, now);
        ucs_regcache_unlock(cache);
        if (region != NULL) {
            ucs_regcache_region_deregister(cache, region, NULL, NULL);
        }
    } while (region != NULL);

    if (cache->plan.sweep.walk.chunk != NULL) {
        cache->plan.sweep.at = ucs_regcache_now(cache) +
                               UCS_REGCACHE_LOT_REST_NS;
    } else {
        cache->plan.sweep.at       = cache->plan.sweep.is_again ?
                                             now + 2 * UCS_REGCACHE_STRAY_NS :
                                             UCS_REGCACHE_TIME_NEVER;
        cache->plan.sweep.is_again = 0;
    }
}

/* Uses were lost, so regions may be idle that no queue knows of. Not at once: where
 * uses are lost they come fast, and a buffer that was just used will be used again. A
 * sweep that is under way goes on. */
void ucs_regcache_sweep(ucs_regcache_h cache, uint64_t lost, uint64_t now)
{
    if (cache->plan.ops->keeps) {
        cache->plan.sweep.lost = lost;
        cache->plan.sweep.at   = UCS_REGCACHE_TIME_NEVER;
        return; /* what is registered stays */
    }
    if (lost != cache->plan.sweep.lost) {
        cache->plan.sweep.lost = lost;
        if (cache->plan.sweep.walk.chunk == NULL) {
            cache->plan.sweep.at = now + 2 * UCS_REGCACHE_STRAY_NS;
        } else {
            cache->plan.sweep.is_again = 1;
        }
    }
    if (cache->plan.sweep.at > now) {
        return;
    }
    if (cache->plan.sweep.walk.chunk == NULL) {
        ucs_regcache_lock(cache);
        cache->plan.sweep.walk.chunk = cache->store.chunks;
        ucs_regcache_unlock(cache);
    }
    ucs_regcache_sweep_lot(cache, now);
}
