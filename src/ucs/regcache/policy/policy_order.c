/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "apply.h"
#include <ucs/regcache/plan/rank.h>

#include <ucs/regcache/regcache_int.h>

#include <ucs/predict/saturate.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>
#include <ucs/sys/mem/own_memory.h>

#include <limits.h>

/* Buffers that are asked for at once */
#define UCS_REGCACHE_ORDER_BATCH     32

/*
 * The policies that mind the price of memory: predict, by the order of
 * communications, and rent, which is the same without any prediction. The
 * predictor tells of each buffer for how long it is to stay registered and by
 * when it is to be registered again; the queue is brought into line with that
 * for each buffer of which it has learned something (apply.h). Uses under way
 * are learned from before they end: what follows them does not wait for that.
 * The times change with what is learned only, so the helper sleeps until the
 * first of them; it learns then, and puts off what was announced anew.
 */

/* The policy's own, in plan.state. Buffers are counted as the predictor counts
 * them, and so are the items of the queue. */
typedef struct ucs_regcache_order {
    ucs_regcache_buffers_t buffers;
    ucs_predict_order_h  predictor;
    _Atomic(uint64_t)    learned;     /* uses that the predictor knows; read by
                                         the thread that evicts */
} ucs_regcache_order_t;

static ucs_regcache_order_t *ucs_regcache_order_of(ucs_regcache_h cache)
{
    return cache->plan.state;
}

static int ucs_regcache_buffer_is_current(const ucs_regcache_buffer_t *buffer)
{
    return (buffer->region != NULL) &&
           (ucs_regcache_region_gen(buffer->region) == buffer->generation);
}

static void ucs_regcache_buffer_leave(ucs_regcache_h cache,
                                      ucs_regcache_buffer_t *buffer)
{
    ucs_regcache_region_t *region = buffer->region;

    if (ucs_regcache_buffer_is_current(buffer)) {
        ucs_regcache_plan_forget(cache, region);
        ucs_regcache_plan_deregister(cache, region);
    }
    buffer->region = NULL;
}

static void ucs_regcache_buffer_set(ucs_regcache_h cache,
                                    ucs_regcache_buffer_t *buffer,
                                    ucs_predict_ref_t ref,
                                    ucs_regcache_region_t *region,
                                    uint64_t generation)
{
    ucs_regcache_rq_item_t *item = &cache->plan.rq.items[ref.index];

    if (item->region != region) {
        ucs_regcache_plan_cancel(cache, item);
    }
    if (buffer->region != region) {
        ucs_regcache_buffer_leave(cache, buffer);
    }
    buffer->region         = region;
    buffer->generation     = generation;
    buffer->ref_generation = ref.generation;
    ucs_regcache_plan_remember(cache, region, generation);
}

/* An item that was queued after its region's life had ended would hold the region's
 * next life, which is another buffer's */
static void ucs_regcache_buffer_confirm(ucs_regcache_h cache,
                                        const ucs_regcache_buffer_t *buffer,
                                        ucs_regcache_rq_item_t *item)
{
    if ((item->region == buffer->region) &&
        (item->generation != buffer->generation)) {
        ucs_regcache_rq_remove(&cache->plan.rq, item);
    }
}

/* The queue is named by buffer, so both have the same bound */
static ucs_status_t ucs_regcache_order_init(ucs_regcache_h cache, unsigned max,
                                            void **state_p)
{
    const ucs_predict_order_params_t predict = {
            .max_buffers = max,
            .max_labels  = max,
            .only_rent   = cache->plan.is_deaf,
            .tuning      = &cache->tuning.predict};
    ucs_regcache_order_t *order;
    ucs_status_t status = UCS_ERR_NO_MEMORY;

    order = ucs_own_alloc(sizeof(*order));
    if (order == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    order->buffers.count = max;
    order->buffers.list  = ucs_own_alloc(order->buffers.count *
                                         sizeof(*order->buffers.list));
    if (order->buffers.list == NULL) {
        goto err_free;
    }
    status = ucs_predict_order_create(&predict, &order->predictor);
    if (status != UCS_OK) {
        goto err_free_buffers;
    }
    *state_p = order;
    return UCS_OK;

err_free_buffers:
    ucs_own_free(order->buffers.list);
err_free:
    ucs_own_free(order);
    return status;
}

static void ucs_regcache_order_cleanup(void *state)
{
    ucs_regcache_order_t *order = state;

    ucs_predict_order_destroy(order->predictor);
    ucs_own_free(order->buffers.list);
    ucs_own_free(order);
}

/* Acquire of the word, so that the fields are those of this life or the word
 * changes; a start or stack position that the use is only about to write is
 * that of the use before, which has been learned from and is left out */
static unsigned ucs_regcache_order_under_way(ucs_regcache_h cache,
                                             ucs_use_t *uses, unsigned count)
{
    ucs_regcache_order_t *order = ucs_regcache_order_of(cache);
    unsigned max                = count + UCS_REGCACHE_UNDER_WAY;
    /* Bytes of these that are still to be found: there may be a thousand buffers, and a
     * few in use. What begins meanwhile is found in the next step. */
    uint64_t left               = ucs_first_sum_get(&cache->use.bytes);
    ucs_regcache_rq_item_t *item;
    ucs_use_t use;
    uint64_t word;
    int list;

    for (list = UCS_REGCACHE_RQ_PENDING; list < UCS_REGCACHE_RQ_LAST; ++list) {
        for (item = cache->plan.rq.head[list];
             (item != NULL) && (count < max) && (left > 0); item = item->next) {
            word = ucs_load_relaxed(&item->region->word);
            if (ucs_regcache_word_refs(word) == 0) {
                continue; /* as most are: sooner seen than what follows */
            }
            /* One item of those for each call site; what is REGISTERING has references
             * and is not counted yet */
            if ((item->region_prev == NULL) &&
                (ucs_regcache_word_state(word) == UCS_REGCACHE_STATE_LIVE)) {
                left -= ucs_min(left, ucs_regcache_pinned_length(item->region));
            }
            if (ucs_load_relaxed(&item->region->is_window)) {
                continue; /* learned of when the walk has left */
            }
            use.start_ns = ucs_load_relaxed(&item->region->use_start);
            if (!ucs_regcache_rq_item_in_use(item) ||
                (use.start_ns == order->buffers.list[item->ref.index].begun)) {
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
    uint64_t uses = ucs_predict_order_uses(order->predictor);

    ucs_store_relaxed(&order->learned, uses);
    ucs_regcache_rank_set(region, uses, next, start_ns);
}

/* The use of a life that is over. If its buffer has come into the place of a
 * forgotten one, the plan will not come back to that. */
static void ucs_regcache_order_use_gone(ucs_regcache_h cache,
                                        ucs_regcache_buffer_t *buffer,
                                        ucs_predict_ref_t ref)
{
    if (buffer->ref_generation != ref.generation) {
        ucs_regcache_plan_cancel(cache, &cache->plan.rq.items[ref.index]);
        ucs_regcache_buffer_leave(cache, buffer);
    }
}

/* Was it registered when the use came? The latest use that registered is known;
 * of earlier ones the helper, which comes late then, knows what it had a hand in.
 * @return As of ucs_predict_order_record(). */
static int ucs_regcache_order_is_ready(const ucs_use_t *use)
{
    const ucs_regcache_rq_item_t *item;

    if (ucs_regcache_region_gen(use->region) != use->generation) {
        return 1; /* nobody knows any more */
    }
    if (ucs_load_relaxed(&use->region->missed) == use->start_ns) {
        return ucs_load_relaxed(&use->region->missed_room) ? -1 : 0;
    }
    item = ucs_regcache_rq_of_region(use->region);
    return (item != NULL) && ((item->list == UCS_REGCACHE_RQ_EXPECTED) ||
                              (item->list == UCS_REGCACHE_RQ_HELD));
}

static void ucs_regcache_order_use(ucs_regcache_h cache, const ucs_use_t *use)
{
    ucs_regcache_order_t *order   = ucs_regcache_order_of(cache);
    ucs_regcache_region_t *region = use->region;
    ucs_predict_use_t learned     = ucs_regcache_policy_learns(use);
    ucs_regcache_price_t price;
    ucs_regcache_buffer_t *buffer;
    ucs_predict_ref_t ref;
    int is_ready;

    ucs_regcache_price(cache, region, &price);
    is_ready = ucs_regcache_announced_saved(cache, &price.buffer) ?
                       1 :
                       ucs_regcache_order_is_ready(use);
    ref    = ucs_predict_order_record(order->predictor, &learned, use->end_ns,
                                      &price.buffer, is_ready);
    buffer = &order->buffers.list[ref.index];
    if (ucs_regcache_region_gen(region) != use->generation) {
        ucs_regcache_order_use_gone(cache, buffer, ref);
        return;
    }

    buffer->refused = !ucs_regcache_rq_may_expect(&cache->plan.rq, ref);
    ucs_regcache_buffer_set(cache, buffer, ref, region, use->generation);
    buffer->begun    = use->start_ns;
    buffer->is_whole = (use->address == ucs_load_relaxed(&region->start)) &&
                       (use->length == ucs_regcache_region_length(region));
    ucs_regcache_order_rank(order, ref, region, use->start_ns);
    /* Until the plan says better */
    ucs_regcache_rq_put(&cache->plan.rq, UCS_REGCACHE_RQ_HELD, region, ref,
                        UCS_REGCACHE_TIME_NEVER);
    ucs_regcache_buffer_confirm(cache, buffer,
                                &cache->plan.rq.items[ref.index]);
}

static void ucs_regcache_order_hear(ucs_regcache_h cache, uint64_t what,
                                    uint64_t time)
{
    ucs_predict_order_hear(ucs_regcache_order_of(cache)->predictor, what, time);
}

static int ucs_regcache_order_listens(ucs_regcache_h cache)
{
    return ucs_predict_order_listens(ucs_regcache_order_of(cache)->predictor);
}

static void ucs_regcache_order_begin(ucs_regcache_h cache)
{
    ucs_predict_order_begin(ucs_regcache_order_of(cache)->predictor);
}

static void ucs_regcache_order_expect(ucs_regcache_h cache,
                                      const ucs_predict_forecast_t *forecast,
                                      uint64_t now)
{
    ucs_regcache_order_t *order = ucs_regcache_order_of(cache);
    uint32_t index              = forecast->ref.index;
    ucs_regcache_buffer_t *buffer   = &order->buffers.list[index];

    if (ucs_regcache_buffer_is_current(buffer) &&
        (buffer->ref_generation == forecast->ref.generation)) {
        ucs_regcache_apply(cache, buffer, forecast, now);
        ucs_regcache_buffer_confirm(cache, buffer,
                                    &cache->plan.rq.items[index]);
    }
}

static void ucs_regcache_order_plan(ucs_regcache_h cache, uint64_t now)
{
    ucs_regcache_order_t *order = ucs_regcache_order_of(cache);
    ucs_predict_forecast_t forecasts[UCS_REGCACHE_ORDER_BATCH];
    unsigned count, i;

    do {
        count = ucs_predict_order_changed(order->predictor, forecasts,
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

/* What is still in use then is looked at again, but rarely: a use may last for as
 * long as the job, and its end is heard of in any case */
static uint64_t ucs_regcache_order_until(ucs_regcache_h cache,
                                         const ucs_regcache_rq_item_t *item,
                                         uint64_t now)
{
    if (item->list == UCS_REGCACHE_RQ_HELD) {
        return ucs_predict_sat_add(now, ucs_max(item->hold,
                                                cache->tuning.patrol_ns));
    }
    return (item->until > now) ? item->until : now + cache->tuning.patrol_ns;
}

/* A use that the helper has not heard of puts off the end of what is held */
static void ucs_regcache_order_expired(ucs_regcache_h cache,
                                       ucs_regcache_rq_item_t *item,
                                       uint64_t now)
{
    ucs_regcache_order_t *order = ucs_regcache_order_of(cache);
    ucs_regcache_region_t *region = item->region;
    ucs_predict_forecast_t forecast;

    if (ucs_predict_order_forecast(order->predictor, item->ref, &forecast)) {
        ucs_regcache_order_expect(cache, &forecast, now);
    }
    if ((item->list != UCS_REGCACHE_RQ_NONE) &&
        (item->list != UCS_REGCACHE_RQ_PENDING) && (item->time <= now)) {
        ucs_regcache_plan_cancel(cache, item);
    }
    /* It may never come: what is known of it must not protect it */
    if (item->list == UCS_REGCACHE_RQ_NONE) {
        ucs_regcache_rank_forget(region);
    }
}

/* --- Eviction ------------------------------------------------------------- */

static int64_t ucs_regcache_order_distance(ucs_regcache_h cache,
                                           ucs_regcache_region_t *region)
{
    ucs_regcache_order_t *order = ucs_regcache_order_of(cache);
    uint64_t now = (order != NULL) ? ucs_load_relaxed(&order->learned) : 0;

    return ucs_regcache_rank_distance(region, now);
}

const ucs_regcache_policy_ops_t ucs_regcache_policy_order = {
    .idle         = UCS_REGCACHE_IDLE_QUEUE,
    .minds_price  = 1,
    .keeps_dormant = 1,
    .init         = ucs_regcache_order_init,
    .cleanup      = ucs_regcache_order_cleanup,
    .use          = ucs_regcache_order_use,
    .until        = ucs_regcache_order_until,
    .expired      = ucs_regcache_order_expired,
    .under_way    = ucs_regcache_order_under_way,
    .plan         = ucs_regcache_order_plan,
    .hear         = ucs_regcache_order_hear,
    .listens      = ucs_regcache_order_listens,
    .begin        = ucs_regcache_order_begin,
    .distance     = ucs_regcache_order_distance
};
