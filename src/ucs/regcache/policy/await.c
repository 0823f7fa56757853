/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "await.h"
#include <ucs/regcache/plan/price.h>

#include <ucs/regcache/regcache_int.h>

#include <ucs/predict/saturate.h>
#include <ucs/sys/math.h>

static int ucs_regcache_await_is_live(ucs_regcache_region_t *region)
{
    return ucs_regcache_word_state(ucs_load_relaxed(&region->word)) ==
           UCS_REGCACHE_STATE_LIVE;
}

/* Registered, and to stay so until it is used or given up */
static void ucs_regcache_await_expect(ucs_regcache_h cache,
                                      ucs_regcache_rq_item_t *item,
                                      ucs_regcache_region_t *region,
                                      uint64_t use_end)
{
    item->use_end = use_end;
    ucs_store_relaxed(&region->until, item->until);
    if (item->list == UCS_REGCACHE_RQ_EXPECTED) {
        ucs_regcache_rq_extend(&cache->plan.rq, item, item->until);
    } else {
        ucs_regcache_rq_registered(&cache->plan.rq, item, region, item->until);
    }
}

/* Registered, and to stay so for a while after each use */
static void ucs_regcache_await_held(ucs_regcache_h cache,
                                    ucs_regcache_region_t *region,
                                    const ucs_predict_forecast_t *forecast)
{
    ucs_regcache_plan_why(cache, region,
                          forecast->is_known ? UCS_REGCACHE_HELD_SOON :
                                               UCS_REGCACHE_HELD_UNKNOWN, 0);
}

/* In use: its end is looked for, if it is not to stay registered for a while
 * anyway. Not for ever, for the end may be lost. */
static void ucs_regcache_await_end(ucs_regcache_h cache,
                                   ucs_regcache_rq_item_t *item,
                                   const ucs_predict_forecast_t *forecast,
                                   uint64_t now)
{
    if (!forecast->is_known) {
        ucs_regcache_await_held(cache, item->region, forecast);
        ucs_regcache_rq_put(&cache->plan.rq, UCS_REGCACHE_RQ_HELD, item->region, item->ref,
                             ucs_predict_sat_add(now, item->hold));
    } else if (item->list != UCS_REGCACHE_RQ_EXPECTED) {
        item->until = now + cache->tuning.patrol_ns;
        ucs_regcache_await_expect(
                cache, item, item->region,
                ucs_load_relaxed(&item->region->use_start) +
                        forecast->duration_ns);
    }
}

/* Is there time to do without the registration until it is due? */
static int ucs_regcache_await_is_far(ucs_regcache_h cache,
                                     ucs_regcache_region_t *region,
                                     uint64_t due_ns, uint64_t now,
                                     ucs_regcache_price_t *price)
{
    uint64_t busy;

    ucs_regcache_price(cache, region, price);
    if (!ucs_regcache_await_is_live(region)) {
        return 1;
    }
    busy = ucs_predict_sat_add(ucs_predict_deregister_cost(&price->terms),
                               ucs_predict_register_cost(&price->terms));
    return due_ns > now + busy;
}

static void ucs_regcache_await_due(ucs_regcache_h cache,
                                   const ucs_regcache_home_t *home,
                                   ucs_regcache_rq_item_t *item,
                                   ucs_regcache_region_t *region,
                                   const ucs_predict_forecast_t *forecast,
                                   uint64_t now)
{
    ucs_regcache_price_t price;
    ucs_regcache_rq_due_t due;

    item->deadline = forecast->due_ns;
    item->until    = forecast->until_ns;
    if (!ucs_regcache_await_is_far(cache, region, forecast->due_ns, now,
                                   &price)) {
        ucs_regcache_plan_awaits(cache, region, item->until);
        ucs_regcache_await_expect(cache, item, region,
                                  forecast->due_ns + forecast->duration_ns);
        return;
    }
    if (home->refused) {
        ucs_regcache_rq_remove(&cache->plan.rq, item);
    } else {
        ucs_store_relaxed(&home->region->until, item->until);
        due.time     = forecast->due_ns;
        due.deadline = forecast->due_ns;
        due.use_end  = forecast->due_ns + forecast->duration_ns;
        ucs_regcache_rq_expect(&cache->plan.rq, home->region, forecast->ref,
                               &due, ucs_predict_rq_gap(&price.terms));
    }
    ucs_regcache_plan_deregister(cache, region);
}

/* What says when it is due has not come: does anything need to be looked
 * for? */
static void ucs_regcache_await_word(ucs_regcache_h cache,
                                    const ucs_regcache_home_t *home,
                                    ucs_regcache_rq_item_t *item,
                                    ucs_regcache_region_t *region,
                                    const ucs_predict_forecast_t *forecast,
                                    uint64_t now)
{
    if ((forecast->watch_ns != 0) && (forecast->until_ns > now) &&
        !home->refused) {
        ucs_regcache_rq_put(&cache->plan.rq, UCS_REGCACHE_RQ_WATCHED, home->region, forecast->ref,
                              ucs_max(forecast->watch_ns,
                                      now + forecast->every_ns / 2));
    } else {
        ucs_regcache_rq_remove(&cache->plan.rq, item);
    }
    ucs_regcache_plan_deregister(cache, region);
}

/* What other buffers share, or the user has granted room for, a thread that
 * ends a use does not deregister */
static int ucs_regcache_await_drops(ucs_regcache_h cache,
                                    const ucs_regcache_home_t *home,
                                    const ucs_predict_forecast_t *forecast)
{
    return forecast->drops && home->is_whole &&
           (cache->config.max_pinned == SIZE_MAX) &&
           (ucs_regcache_plan_earliest(home->region) ==
            UCS_REGCACHE_TIME_NEVER);
}

static void
ucs_regcache_await_next(ucs_regcache_h cache, const ucs_regcache_home_t *home,
                        const ucs_predict_forecast_t *forecast, uint64_t now)
{
    ucs_regcache_rq_item_t *item  = &cache->plan.rq.items[forecast->ref.index];
    ucs_regcache_region_t *region = ucs_regcache_home_waits_in(home, item);
    uint64_t held;

    item->hold = forecast->hold_ns;
    ucs_store_relaxed(&home->region->hold, item->hold);
    if ((item->list != UCS_REGCACHE_RQ_NONE) &&
        ucs_regcache_rq_item_in_use(item)) {
        ucs_regcache_await_end(cache, item, forecast, now);
        return;
    }

    held = ucs_predict_sat_add(ucs_load_relaxed(&region->last_use),
                               item->hold);
    if ((item->hold > 0) && (held > now)) {
        if (ucs_regcache_await_is_live(region)) {
            ucs_regcache_await_held(cache, region, forecast);
            ucs_regcache_rq_put(&cache->plan.rq, UCS_REGCACHE_RQ_HELD, region, forecast->ref, held);
        } else {
            ucs_regcache_rq_remove(&cache->plan.rq, item);
        }
    } else if ((forecast->due_ns != 0) && (forecast->until_ns > now)) {
        ucs_regcache_await_due(cache, home, item, region, forecast, now);
    } else {
        ucs_regcache_await_word(cache, home, item, region, forecast, now);
    }
}

void ucs_regcache_await(ucs_regcache_h cache, const ucs_regcache_home_t *home,
                        const ucs_predict_forecast_t *forecast, uint64_t now)
{
    ucs_regcache_await_next(cache, home, forecast, now);
    ucs_store_relaxed(&home->region->drops,
                      ucs_regcache_await_drops(cache, home, forecast));
}
