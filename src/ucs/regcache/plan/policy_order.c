/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "await.h"
#include "poll.h"
#include "rank.h"

#include <ucs/regcache/regcache_int.h>

#include <ucs/predict/order.h>
#include <ucs/predict/saturate.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>

#include <limits.h>
#include <stdlib.h>

/* Buffers that are asked for at once */
#define UCS_REGCACHE_ORDER_BATCH     32

/*
 * The policy by the order of communications. The predictor tells of each buffer
 * before when it is not used; the queue is brought into line with that for each
 * buffer of which it has learned something (await.h). Uses under way are
 * learned from before they end: what follows them does not wait for that. The
 * times change with what is learned only, so the helper sleeps until the first
 * of them; it learns then, and puts off what was announced anew.
 */

/* The policy's own, in plan.state. Buffers are counted as the predictor counts
 * them, and so are the items of the queue. */
typedef struct ucs_regcache_order {
    ucs_predict_order_h  predictor;
    ucs_regcache_home_t  *homes;      /* by buffer */
    unsigned             num_homes;
    double               miss_target; /* share of uses */
    uint64_t             lead;        /* ns before a deadline, against steps
                                         that are late now and then */
    ucs_regcache_share_t share;
    _Atomic(uint64_t)    learned;     /* uses that the predictor knows; read by
                                         the thread that evicts */
} ucs_regcache_order_t;

static ucs_regcache_order_t *ucs_regcache_order_of(ucs_regcache_h cache)
{
    return cache->plan.state;
}

/* The queue is named by buffer, so both have the same bound */
static ucs_status_t ucs_regcache_order_init(ucs_regcache_h cache,
                                            const ucs_regcache_params_t *params,
                                            void **state_p)
{
    ucs_predict_order_params_t predict;
    ucs_regcache_order_t *order;
    ucs_status_t status = UCS_ERR_NO_MEMORY;

    ucs_predict_order_params_init(&predict);
    predict.max_buffers = params->max_contexts;
    predict.max_labels  = params->max_contexts;
    predict.tuning      = &cache->tuning.predict;

    order = calloc(1, sizeof(*order));
    if (order == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    order->num_homes = params->max_contexts;
    order->homes     = calloc(order->num_homes, sizeof(*order->homes));
    if (order->homes == NULL) {
        goto err_free;
    }
    status = ucs_predict_order_create(&predict, &order->predictor);
    if (status != UCS_OK) {
        goto err_free_homes;
    }

    order->miss_target = predict.miss_target;
    ucs_regcache_share_init(&order->share, 0, &cache->tuning);
    *state_p = order;
    return UCS_OK;

err_free_homes:
    free(order->homes);
err_free:
    free(order);
    return status;
}

static void ucs_regcache_order_cleanup(void *state)
{
    ucs_regcache_order_t *order = state;

    ucs_predict_order_destroy(order->predictor);
    free(order->homes);
    free(order);
}

/* Acquire of the word, so that the fields are those of this life or the word
 * changes; a start or stack position that the use is only about to write is
 * that of the use before, which has been learned from and is left out */
static unsigned ucs_regcache_order_under_way(ucs_regcache_h cache,
                                             ucs_use_t *uses, unsigned count)
{
    ucs_regcache_order_t *order = ucs_regcache_order_of(cache);
    unsigned max                = count + UCS_REGCACHE_UNDER_WAY;
    ucs_regcache_rq_item_t *item;
    ucs_use_t use;
    int list;

    for (list = UCS_REGCACHE_RQ_PENDING; list < UCS_REGCACHE_RQ_LAST; ++list) {
        for (item = cache->plan.rq.head[list]; (item != NULL) && (count < max);
             item = item->next) {
            if (ucs_regcache_word_refs(ucs_load_relaxed(&item->region->word)) ==
                0) {
                continue; /* as most are: sooner seen than what follows */
            }
            use.start_ns = ucs_load_relaxed(&item->region->use_start);
            if (!ucs_regcache_rq_item_in_use(item) ||
                (use.start_ns == order->homes[item->ref.index].begun)) {
                continue;
            }
            use.region     = item->region;
            use.generation = item->generation;
            use.end_ns     = 0;
            use.sp         = ucs_load_relaxed(&item->region->sp);
            use.address    = ucs_load_relaxed(&item->region->start);
            use.length     = ucs_regcache_region_length(item->region);
            ucs_regcache_uses_sort(uses, count++, &use);
        }
    }
    return count;
}

/* For the choice of what to evict */
static void ucs_regcache_order_rank(ucs_regcache_order_t *order,
                                    ucs_predict_ref_t ref,
                                    ucs_regcache_region_t *region,
                                    uint64_t start_ns)
{
    uint64_t next = ucs_predict_order_next(order->predictor, ref);
    ucs_predict_order_info_t info;

    ucs_predict_order_info(order->predictor, &info);
    ucs_store_relaxed(&order->learned, info.uses);
    ucs_regcache_rank_set(region, info.uses, next, start_ns);
}

/* Was the helper to have registered it by then? Twice the lead whenever a use
 * found it late, and less by a part of the target at each other, so that in
 * balance half the target's share of uses does. */
static void ucs_regcache_order_judge(ucs_regcache_h cache,
                                     const ucs_regcache_rq_item_t *item,
                                     int is_ready, uint64_t start_ns)
{
    ucs_regcache_order_t *order = ucs_regcache_order_of(cache);

    if (is_ready) {
        order->lead -= order->lead * order->miss_target *
                       cache->tuning.lead_decay;
    } else if (start_ns >= item->deadline) {
        order->lead = ucs_max(2 * order->lead, cache->tuning.lead_min_ns);
        order->lead = ucs_min(order->lead, cache->tuning.slice_ns);
    }
}

/* The use of a life that is over. If its buffer has come into the place of a
 * forgotten one, the plan will not come back to that. */
static void ucs_regcache_order_use_gone(ucs_regcache_h cache,
                                        ucs_regcache_home_t *home,
                                        ucs_predict_ref_t ref)
{
    if (home->buffer != ref.generation) {
        ucs_regcache_plan_cancel(cache, &cache->plan.rq.items[ref.index]);
        ucs_regcache_home_leave(cache, home);
    }
}

static void ucs_regcache_order_use(ucs_regcache_h cache, const ucs_use_t *use)
{
    ucs_regcache_order_t *order   = ucs_regcache_order_of(cache);
    ucs_regcache_region_t *region = use->region;
    ucs_predict_use_t learned = {
        .start_ns = use->start_ns,
        .path     = ucs_regcache_uses_path(cache, use),
        .address  = use->address,
        .length   = use->length,
        .type     = ucs_load_relaxed(&region->access)
    };
    const ucs_regcache_rq_item_t *item;
    ucs_regcache_home_t *home;
    ucs_predict_ref_t ref;
    int is_ready;

    item     = (ucs_regcache_region_gen(region) == use->generation) ?
                       ucs_regcache_rq_of_region(region) :
                       NULL;
    is_ready = (item == NULL) || (item->list != UCS_REGCACHE_RQ_PENDING);
    if ((item == NULL) ||
        (order->homes[item->ref.index].begun != use->start_ns)) {
        ucs_regcache_order_judge(cache, item, is_ready, use->start_ns);
    }
    ref  = ucs_predict_order_record(order->predictor, &learned, use->end_ns,
                                    is_ready);
    home = &order->homes[ref.index];
    if (ucs_regcache_region_gen(region) != use->generation) {
        ucs_regcache_order_use_gone(cache, home, ref);
        return;
    }

    home->refused = !ucs_regcache_rq_may_expect(&cache->plan.rq, ref);
    ucs_regcache_home_settle(cache, home, ref, region, use->generation);
    home->begun = use->start_ns;
    ucs_regcache_order_rank(order, ref, region, use->start_ns);
    /* Until the plan says better */
    ucs_regcache_rq_hold(&cache->plan.rq, region, ref, UCS_REGCACHE_TIME_NEVER);
    ucs_regcache_home_confirm(cache, home, &cache->plan.rq.items[ref.index]);
}

static void ucs_regcache_order_expect(ucs_regcache_h cache,
                                      const ucs_predict_forecast_t *forecast,
                                      uint64_t now)
{
    ucs_regcache_order_t *order = ucs_regcache_order_of(cache);
    uint32_t index              = forecast->ref.index;
    ucs_regcache_home_t *home   = &order->homes[index];
    ucs_regcache_await_t await  = {
        .share = &order->share,
        .lead  = order->lead,
        .now   = now
    };

    if (ucs_regcache_home_is_current(home) &&
        (home->buffer == forecast->ref.generation)) {
        ucs_regcache_await(cache, home, forecast, &await);
        ucs_regcache_home_confirm(cache, home, &cache->plan.rq.items[index]);
    }
}

static void ucs_regcache_order_plan(ucs_regcache_h cache, uint64_t now)
{
    ucs_regcache_order_t *order = ucs_regcache_order_of(cache);
    ucs_predict_forecast_t forecasts[UCS_REGCACHE_ORDER_BATCH];
    unsigned count, i;

    do {
        count = ucs_predict_order_changed(order->predictor, now, forecasts,
                                          UCS_REGCACHE_ORDER_BATCH);
        for (i = 0; i < count; ++i) {
            ucs_regcache_order_expect(cache, &forecasts[i], now);
        }
    } while (count == UCS_REGCACHE_ORDER_BATCH);
    if ((cache->config.max_pinned != SIZE_MAX) ||
        (cache->config.max_regions != ULONG_MAX)) {
        ucs_regcache_trim(cache);
    }
}

/* What is still in use then is looked at again, but rarely */
static uint64_t ucs_regcache_order_until(ucs_regcache_h cache UCS_V_UNUSED,
                                         const ucs_regcache_rq_item_t *item,
                                         uint64_t now)
{
    return (item->until > now) ? item->until : now + cache->tuning.patrol_ns;
}

/* It may never come: what is known of it must not protect it */
static void ucs_regcache_order_unused(ucs_regcache_h cache UCS_V_UNUSED,
                                      const ucs_regcache_rq_item_t *item)
{
    ucs_regcache_rank_forget(item->region);
}

/*
 * The next look
 */

static uint64_t ucs_regcache_order_poll(ucs_regcache_h cache, uint64_t now)
{
    ucs_regcache_poll_t poll;
    uint64_t interval;

    ucs_regcache_poll_expected(cache, cache->tuning.order_poll_share,
                               cache->tuning.order_poll_bytes, now, &poll);
    if (poll.longest == 0) {
        return ucs_max(poll.next, now + cache->tuning.order_poll_rest_ns);
    }
    /* Under a ceiling what is known of each use counts when one is chosen to
     * go, and it is not held for being late */
    if (cache->config.max_pinned != SIZE_MAX) {
        poll.next = ucs_min(poll.next, now + poll.shortest);
        return ucs_max(poll.next, now + cache->tuning.order_poll_rest_ns);
    }
    poll.longest = ucs_min(poll.longest,
                           cache->tuning.order_poll_spread * poll.shortest);
    interval     = (3 * poll.shortest + poll.longest) / 4;
    poll.next    = ucs_max(poll.next, now + cache->tuning.order_poll_wait_ns);
    return ucs_min(poll.next, now + interval);
}

static uint64_t ucs_regcache_order_rest(ucs_regcache_h cache, size_t bytes,
                                        uint64_t now)
{
    ucs_regcache_share_t *share = &ucs_regcache_order_of(cache)->share;

    if (share->target <= 0) {
        return 0;
    }
    return ucs_regcache_share_charge(share, cache->env.spent(cache->env.arg),
                                     bytes, now);
}

/*
 * Eviction
 */

static int ucs_regcache_order_is_home(ucs_regcache_h cache,
                                      const ucs_regcache_region_t *region)
{
    const ucs_regcache_order_t *order = ucs_regcache_order_of(cache);

    return ucs_regcache_home_find(order->homes, order->num_homes, region) !=
           NULL;
}

static int64_t ucs_regcache_order_distance(ucs_regcache_h cache,
                                           ucs_regcache_region_t *region)
{
    uint64_t now = ucs_load_relaxed(&ucs_regcache_order_of(cache)->learned);

    return ucs_regcache_rank_distance(region, now);
}

const ucs_regcache_policy_ops_t ucs_regcache_policy_order = {
    .idle         = UCS_REGCACHE_IDLE_QUEUE,
    .keeps_budget = 1,
    .init         = ucs_regcache_order_init,
    .cleanup      = ucs_regcache_order_cleanup,
    .use          = ucs_regcache_order_use,
    .poll         = ucs_regcache_order_poll,
    .until        = ucs_regcache_order_until,
    .unused       = ucs_regcache_order_unused,
    .under_way    = ucs_regcache_order_under_way,
    .plan         = ucs_regcache_order_plan,
    .rest         = ucs_regcache_order_rest,
    .is_home      = ucs_regcache_order_is_home,
    .distance     = ucs_regcache_order_distance
};
