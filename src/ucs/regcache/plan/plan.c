/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/regcache/regcache_int.h>

#include <ucs/sys/math.h>

/* Ends come in another order than starts; the predictor wants the latter */
void ucs_regcache_uses_sort(ucs_use_t *uses, unsigned count,
                            const ucs_use_t *use)
{
    unsigned i;

    for (i = count; (i > 0) && (uses[i - 1].start_ns > use->start_ns); --i) {
        uses[i] = uses[i - 1];
    }
    uses[i] = *use;
}

void ucs_regcache_plan_remember(ucs_regcache_h cache,
                                ucs_regcache_region_t *region,
                                uint64_t generation)
{
    if (ucs_load_relaxed(&region->planned)) {
        return; /* as it is for all but the first use of a life */
    }
    ucs_regcache_lock(cache);
    if (ucs_regcache_region_gen(region) == generation) {
        ucs_store_relaxed(&region->planned, 1);
    }
    ucs_regcache_unlock(cache);
}

void ucs_regcache_plan_forget(ucs_regcache_h cache,
                              ucs_regcache_region_t *region)
{
    ucs_store_relaxed(&region->planned, 0);
    ucs_regcache_lock(cache);
    if ((ucs_load_relaxed(&region->word) &
         (UCS_REGCACHE_WORD_STATE_MASK | UCS_REGCACHE_WORD_DOOMED)) ==
        UCS_REGCACHE_STATE_DORMANT) {
        ucs_regcache_region_forget(cache, region);
    }
    ucs_regcache_unlock(cache);
}

void ucs_regcache_plan_replan(ucs_regcache_h cache,
                              ucs_regcache_region_t *region)
{
    const ucs_regcache_rq_item_t *item;

    if (cache->plan.ops->keeps_dormant) {
        return; /* planned for as long as the policy knows a buffer there */
    }
    item = ucs_regcache_rq_of_region(region);
    if (item != NULL) {
        ucs_regcache_plan_remember(cache, region, item->generation);
    } else {
        ucs_regcache_plan_forget(cache, region);
    }
}

uint64_t ucs_regcache_plan_earliest(ucs_regcache_region_t *region)
{
    uint64_t earliest = UCS_REGCACHE_TIME_NEVER;
    ucs_regcache_rq_item_t *item;

    for (item = ucs_regcache_rq_of_region(region); item != NULL;
         item = item->region_next) {
        if (item->list == UCS_REGCACHE_RQ_WATCHED) {
            continue; /* not before its time has been told */
        }
        if (item->list != UCS_REGCACHE_RQ_PENDING) {
            return 0;
        }
        earliest = ucs_min(earliest, item->time);
    }
    return earliest;
}

/* relaxed: only the helper changes both while nobody uses it, and a use that it
 * has not heard of yet changes what it is told of next */
void ucs_regcache_plan_why(ucs_regcache_h cache, ucs_regcache_region_t *region,
                           ucs_regcache_held_t held, uint64_t kept)
{
    if ((ucs_load_relaxed(&region->why) == (unsigned)held) &&
        (ucs_load_relaxed(&region->kept) == kept)) {
        return;
    }
    ucs_regcache_lock(cache);
    ucs_regcache_account(cache, ucs_regcache_now(cache));
    ucs_regcache_account_planned(cache, region, held, kept);
    ucs_regcache_unlock(cache);
}

void ucs_regcache_plan_awaits(ucs_regcache_h cache,
                              ucs_regcache_region_t *region, uint64_t kept)
{
    ucs_regcache_plan_why(cache, region,
                          (ucs_load_relaxed(&region->why) ==
                           UCS_REGCACHE_HELD_AHEAD) ?
                                  UCS_REGCACHE_HELD_AHEAD :
                                  UCS_REGCACHE_HELD_SOON, kept);
}

void ucs_regcache_plan_announced_life(ucs_regcache_region_t *region,
                                      uint64_t generation)
{
    if (region->announced_gen != generation) {
        region->announced_gen = generation;
        region->announced     = 0;
        region->plan_uses     = 0;
        region->plan_lost     = 0;
    }
}

/* A region's place may be another's by now, whose end nobody would see to */
void ucs_regcache_plan_announced(ucs_regcache_region_t *region,
                                 uint64_t generation, int is_ready)
{
    if (is_ready) {
        ucs_regcache_plan_announced_life(region, generation);
    }
    if (region->announced_gen == generation) {
        region->announced += is_ready ? 1 : -1;
    }
}

int ucs_regcache_plan_is_announced(ucs_regcache_region_t *region)
{
    return (region->announced > 0) &&
           (region->announced_gen == ucs_regcache_region_gen(region));
}

void ucs_regcache_plan_deregister(ucs_regcache_h cache,
                                  ucs_regcache_region_t *region)
{
    uint64_t earliest = ucs_regcache_plan_earliest(region);
    ucs_predict_terms_t terms;
    int is_taken;

    if (cache->plan.ops->keeps) {
        return; /* evicted when it is needed, as what follows */
    }
    if (!ucs_regcache_word_is_idle(ucs_load_relaxed(&region->word))) {
        return;
    }
    if ((cache->plan.ops->minds_price &&
         (cache->config.max_pinned != SIZE_MAX)) ||
        ucs_regcache_plan_is_announced(region)) {
        /* Memory that the user granted is evicted when it is needed */
        ucs_regcache_plan_why(cache, region, UCS_REGCACHE_HELD_OTHER,
                              UCS_REGCACHE_TIME_NEVER);
        return;
    }

    if (earliest != UCS_REGCACHE_TIME_NEVER) {
        ucs_regcache_terms(cache, region, &terms);
        if (!ucs_predict_may_deregister(ucs_regcache_now(cache), &terms,
                                        earliest)) {
            return;
        }
    }

    if (ucs_regcache_leaves(cache, region)) {
        return;
    }

    ucs_regcache_lock(cache);
    is_taken = ucs_regcache_region_take_idle(cache, region);
    ucs_regcache_unlock(cache);
    if (is_taken) {
        cache->plan.did_plans = 1;
        ucs_regcache_region_deregister(cache, region, NULL, NULL);
    }
}

void ucs_regcache_plan_cancel(ucs_regcache_h cache,
                              ucs_regcache_rq_item_t *item)
{
    ucs_regcache_region_t *region = item->region;

    if (item->list == UCS_REGCACHE_RQ_NONE) {
        return;
    }
    if (!ucs_regcache_rq_item_is_current(item)) {
        ucs_regcache_rq_remove(&cache->plan.rq, item);
        return;
    }
    ucs_regcache_rq_remove(&cache->plan.rq, item);
    ucs_regcache_plan_replan(cache, region);
    ucs_regcache_plan_deregister(cache, region);
}
