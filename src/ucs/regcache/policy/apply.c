/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "apply.h"

#include <ucs/regcache/regcache_int.h>

#include <ucs/predict/saturate.h>
#include <ucs/sys/math.h>

static int ucs_regcache_apply_is_live(ucs_regcache_region_t *region)
{
    return ucs_regcache_word_state(ucs_load_relaxed(&region->word)) ==
           UCS_REGCACHE_STATE_LIVE;
}

/* It stays registered until it is used or given up */
static void ucs_regcache_apply_expect(ucs_regcache_h cache,
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

/* It stays registered for a while after each use */
static void ucs_regcache_apply_held(ucs_regcache_h cache,
                                    ucs_regcache_region_t *region,
                                    const ucs_predict_forecast_t *forecast)
{
    ucs_regcache_plan_why(cache, region,
                          forecast->is_known ? UCS_REGCACHE_HELD_SOON :
                                               UCS_REGCACHE_HELD_UNKNOWN, 0);
}

/* It is in use. Unless it is rented the helper looks for the end, but not for
 * ever, for the end may be lost. */
static void ucs_regcache_apply_end(ucs_regcache_h cache,
                                   ucs_regcache_rq_item_t *item,
                                   const ucs_predict_forecast_t *forecast,
                                   uint64_t now)
{
    if (!forecast->is_known) {
        ucs_regcache_apply_held(cache, item->region, forecast);
        ucs_regcache_rq_put(&cache->plan.rq, UCS_REGCACHE_RQ_HELD, item->region,
                            item->ref, ucs_predict_sat_add(now, item->hold));
    } else if (item->list != UCS_REGCACHE_RQ_EXPECTED) {
        item->until = now + cache->tuning.patrol_ns;
        ucs_regcache_apply_expect(
                cache, item, item->region,
                ucs_load_relaxed(&item->region->use_start) +
                        forecast->duration_ns);
    }
}

/* Is there time to do without the registration until it is due? */
static int ucs_regcache_apply_is_far(ucs_regcache_h cache,
                                     ucs_regcache_region_t *region,
                                     uint64_t due_ns, uint64_t now,
                                     ucs_regcache_price_t *price)
{
    uint64_t busy;

    ucs_regcache_price(cache, region, price);
    if (!ucs_regcache_apply_is_live(region)) {
        return 1;
    }
    busy = ucs_predict_sat_add(ucs_predict_deregister_cost(&price->terms),
                               ucs_predict_register_cost(&price->terms));
    return due_ns > now + busy;
}

static void ucs_regcache_apply_due(ucs_regcache_h cache,
                                   const ucs_regcache_buffer_t *buffer,
                                   ucs_regcache_rq_item_t *item,
                                   const ucs_predict_forecast_t *forecast,
                                   uint64_t now)
{
    ucs_regcache_region_t *region = buffer->region;
    uint64_t use_end              = forecast->due_ns + forecast->duration_ns;
    ucs_regcache_price_t price;

    item->until = forecast->until_ns;
    if (!ucs_regcache_apply_is_far(cache, region, forecast->due_ns, now,
                                   &price)) {
        ucs_regcache_plan_awaits(cache, region, item->until);
        ucs_regcache_apply_expect(cache, item, region, use_end);
        return;
    }
    if (buffer->refused) {
        ucs_regcache_rq_remove(&cache->plan.rq, item);
    } else {
        ucs_store_relaxed(&region->until, item->until);
        ucs_regcache_rq_expect(&cache->plan.rq, region, forecast->ref,
                               forecast->due_ns,
                               ucs_predict_rq_gap(&price.terms));
        item->use_end = use_end;
        ucs_regcache_announced_plan(cache, region, forecast->due_ns);
    }
    ucs_regcache_plan_deregister(cache, region);
}

/* It is not known yet when it is due */
static void ucs_regcache_apply_unknown(ucs_regcache_h cache,
                                       const ucs_regcache_buffer_t *buffer,
                                       ucs_regcache_rq_item_t *item,
                                       const ucs_predict_forecast_t *forecast,
                                       uint64_t now)
{
    /* Of a window the helper is told when the walk leaves the one before. For others
     * it looks no more often than for ends (step.c). */
    item->every = ucs_load_relaxed(&buffer->region->is_window) ?
                          cache->tuning.patrol_ns :
                          ucs_max(forecast->every_ns,
                                  (uint64_t)cache->tuning.step_ns * 10);

    if ((forecast->watch_ns != 0) && (forecast->until_ns > now) &&
        !buffer->refused) {
        ucs_regcache_rq_put(&cache->plan.rq, UCS_REGCACHE_RQ_WATCHED,
                            buffer->region, forecast->ref,
                            ucs_max(forecast->watch_ns, now + item->every));
    } else {
        ucs_regcache_rq_remove(&cache->plan.rq, item);
    }
    ucs_regcache_plan_deregister(cache, buffer->region);
}

/* The thread that ends a use deregisters nothing that other buffers share, that a
 * walk is in, or that the user has granted room for */
static int ucs_regcache_apply_drops(ucs_regcache_h cache,
                                    const ucs_regcache_buffer_t *buffer,
                                    const ucs_predict_forecast_t *forecast)
{
    return forecast->drops && buffer->is_whole &&
           !ucs_load_relaxed(&buffer->region->is_window) &&
           (cache->config.max_pinned == SIZE_MAX) &&
           (ucs_regcache_plan_earliest(buffer->region) ==
            UCS_REGCACHE_TIME_NEVER);
}

static void
ucs_regcache_apply_next(ucs_regcache_h cache, const ucs_regcache_buffer_t *buffer,
                        const ucs_predict_forecast_t *forecast, uint64_t now)
{
    ucs_regcache_rq_item_t *item  = &cache->plan.rq.items[forecast->ref.index];
    ucs_regcache_region_t *region = buffer->region;
    uint64_t held;

    item->hold = forecast->hold_ns;
    ucs_store_relaxed(&region->hold, item->hold);
    if ((item->list != UCS_REGCACHE_RQ_NONE) &&
        ucs_regcache_rq_item_in_use(item)) {
        ucs_regcache_apply_end(cache, item, forecast, now);
        return;
    }

    held = ucs_predict_sat_add(ucs_load_relaxed(&region->last_use),
                               item->hold);
    if ((item->hold > 0) && (held > now)) {
        if (ucs_regcache_apply_is_live(region)) {
            ucs_regcache_apply_held(cache, region, forecast);
            ucs_regcache_rq_put(&cache->plan.rq, UCS_REGCACHE_RQ_HELD, region,
                                forecast->ref, held);
        } else {
            ucs_regcache_soft_was_held(cache, region, held);
            ucs_regcache_rq_remove(&cache->plan.rq, item);
        }
    } else if ((forecast->due_ns != 0) && (forecast->until_ns > now)) {
        ucs_regcache_apply_due(cache, buffer, item, forecast, now);
    } else {
        ucs_regcache_apply_unknown(cache, buffer, item, forecast, now);
    }
}

void ucs_regcache_apply(ucs_regcache_h cache, const ucs_regcache_buffer_t *buffer,
                        const ucs_predict_forecast_t *forecast, uint64_t now)
{
    ucs_regcache_apply_next(cache, buffer, forecast, now);
    ucs_store_relaxed(&buffer->region->drops,
                      ucs_regcache_apply_drops(cache, buffer, forecast));
}
