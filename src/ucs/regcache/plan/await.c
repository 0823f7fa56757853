/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "await.h"

#include <ucs/regcache/regcache_int.h>

#include <ucs/predict/saturate.h>
#include <ucs/sys/math.h>

static int ucs_regcache_await_is_live(ucs_regcache_region_t *region)
{
    return ucs_regcache_word_state(ucs_load_relaxed(&region->word)) ==
           UCS_REGCACHE_STATE_LIVE;
}

/* What is in use stays where its end is looked for; not for ever, for the end
 * may be lost */
static void ucs_regcache_await_watch(ucs_regcache_h cache,
                                     ucs_regcache_rq_item_t *item,
                                     uint64_t until_ns, uint64_t now)
{
    if (item->list != UCS_REGCACHE_RQ_EXPECTED) {
        item->use_end = now;
        item->until   = ucs_max(until_ns, now + cache->tuning.patrol_ns);
        ucs_regcache_rq_registered(&cache->plan.rq, item, item->region,
                                   item->until);
    }
}

/* Relaxed: a user that comes meanwhile may be overlooked */
static int ucs_regcache_await_is_unused(ucs_regcache_region_t *region)
{
    return ucs_load_relaxed(&region->speculative) &&
           (ucs_load_relaxed(&region->hits) == 0) &&
           (ucs_load_relaxed(&region->joined) == 0);
}

/* By when the buffer is to be registered */
static uint64_t
ucs_regcache_await_ready(const ucs_predict_forecast_t *forecast,
                         const ucs_regcache_await_t *await)
{
    return ucs_predict_sat_sub(forecast->start_ns, await->lead);
}

/* Is there time to do without the registration meanwhile, and does that take
 * the helper no more than its share of it? Only then are the terms of any
 * use. */
static int ucs_regcache_await_is_far(ucs_regcache_h cache,
                                     ucs_regcache_region_t *region,
                                     const ucs_predict_forecast_t *forecast,
                                     const ucs_regcache_await_t *await,
                                     ucs_predict_terms_t *terms)
{
    uint64_t ready_ns = ucs_regcache_await_ready(forecast, await);
    int is_live       = ucs_regcache_await_is_live(region);
    uint64_t deregister, cost, earned;
    unsigned times = !ucs_regcache_await_is_unused(region) ?
                             cache->tuning.far :
                     forecast->is_sure ? cache->tuning.far_again :
                                         cache->tuning.far_max;

    if (is_live && (ready_ns <= await->now)) {
        return 0;
    }
    ucs_regcache_terms(cache, region, terms);
    if (!is_live) {
        return 1;
    }
    deregister = ucs_predict_deregister_cost(terms);
    cost       = ucs_predict_register_cost(terms);
    earned     = ucs_regcache_share_earned(
                await->share, terms->register_ns + terms->deregister_ns,
                await->now);
    return (forecast->start_ns > earned) &&
           (ready_ns > await->now + deregister + times * cost);
}

/* Registered, and to stay so until it is used or given up */
static void ucs_regcache_await_wait(ucs_regcache_h cache,
                                    ucs_regcache_rq_item_t *item,
                                    ucs_regcache_region_t *region,
                                    const ucs_predict_forecast_t *forecast)
{
    item->deadline = forecast->start_ns;
    item->use_end  = forecast->end_ns;
    item->ref      = forecast->ref;
    if (item->list == UCS_REGCACHE_RQ_EXPECTED) {
        ucs_regcache_rq_extend(&cache->plan.rq, item, item->until);
    } else {
        ucs_regcache_rq_registered(&cache->plan.rq, item, region, item->until);
    }
}

void ucs_regcache_await(ucs_regcache_h cache, const ucs_regcache_home_t *home,
                        const ucs_predict_forecast_t *forecast,
                        const ucs_regcache_await_t *await)
{
    ucs_regcache_rq_item_t *item  = &cache->plan.rq.items[forecast->ref.index];
    ucs_regcache_region_t *region = ucs_regcache_home_waits_in(home, item);
    ucs_predict_terms_t terms;
    ucs_regcache_rq_due_t due;

    if ((item->list != UCS_REGCACHE_RQ_NONE) &&
        ucs_regcache_rq_item_in_use(item)) {
        ucs_regcache_await_watch(cache, item, forecast->until_ns, await->now);
        return;
    }

    item->until = forecast->until_ns;
    item->gap   = ((cache->config.max_pinned == SIZE_MAX) &&
                 (forecast->start_ns > home->begun)) ?
                          forecast->start_ns - home->begun :
                          0;
    if ((forecast->until_ns <= await->now) ||
        ((home->refused || (forecast->start_ns == 0)) &&
         !ucs_regcache_await_is_live(region))) {
        ucs_regcache_rq_remove(&cache->plan.rq, item);
        ucs_regcache_plan_deregister(cache, region);
        return;
    }
    if (!ucs_regcache_await_is_far(cache, region, forecast, await, &terms)) {
        ucs_regcache_await_wait(cache, item, region, forecast);
        return;
    }
    if (home->refused) {
        ucs_regcache_rq_remove(&cache->plan.rq, item);
    } else {
        due.time     = ucs_regcache_await_ready(forecast, await);
        due.deadline = forecast->start_ns;
        due.use_end  = forecast->end_ns;
        ucs_regcache_rq_expect(&cache->plan.rq, home->region, forecast->ref,
                               &due, ucs_predict_rq_gap(&terms));
    }
    ucs_regcache_plan_deregister(cache, region);
}
