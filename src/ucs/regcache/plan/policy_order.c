/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/regcache/regcache_int.h>

#include <ucs/predict/saturate.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>

#include <limits.h>
#include <stdlib.h>

/* Deregistered if there is time for that and for so many registrations; what
 * was registered for a use that is put off, only for a multiple of it, for it
 * may be put off again and again: more so if little is known. */
#define UCS_REGCACHE_ORDER_FAR       4
#define UCS_REGCACHE_ORDER_FAR_AGAIN 32
#define UCS_REGCACHE_ORDER_FAR_MAX   256

/* What is in use for longer than it would be waited for is looked at again
 * after so long: its end may have been lost from a full DQ */
#define UCS_REGCACHE_ORDER_LOST_NS   UINT64_C(100000000)

/* So much before its time a buffer is to be registered at most, for the helper
 * may be woken late: where all cores are busy, by a time slice now and then.
 * Twice as much whenever a use found it late, and less by a part of the target
 * at each other, so that in balance half the target's share of uses does. */
#define UCS_REGCACHE_ORDER_LEAD_MIN_NS UINT64_C(200000)
#define UCS_REGCACHE_ORDER_LEAD_MAX_NS UINT64_C(5000000)
#define UCS_REGCACHE_ORDER_LEAD_DECAY  0.35

/* Buffers that are asked for at once */
#define UCS_REGCACHE_ORDER_BATCH     32

/*
 * The policy by the order of communications. The predictor tells of each buffer
 * before when it is not used; the queue is brought into line with that for each
 * buffer of which it has learned something:
 *
 *   soon     EXPECTED: stays registered, waited for
 *   later    PENDING: registered when the time has come
 *   in use   EXPECTED, so that its end is looked for
 *
 * What is given up is deregistered, and not known to the queue until it is
 * announced again. Uses under way are learned from before they end: what
 * follows them does not wait for that. The times change with what is learned
 * only, so the helper sleeps until the first of them; it learns then, and puts
 * off what was announced anew.
 */

/* The queue is named by buffer, so both have the same bound */
static ucs_status_t ucs_regcache_order_init(ucs_regcache_h cache,
                                            unsigned max_contexts)
{
    ucs_predict_order_params_t params;
    ucs_status_t status;

    ucs_predict_order_params_init(&params);
    params.max_places = max_contexts;
    params.max_labels = max_contexts;
    if (cache->plan.miss_target > 0) {
        params.miss_target = cache->plan.miss_target;
    }
    cache->plan.miss_target = params.miss_target;

    cache->plan.homes = calloc(max_contexts, sizeof(*cache->plan.homes));
    if (cache->plan.homes == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    status = ucs_predict_order_create(&params, &cache->plan.order);
    if (status != UCS_OK) {
        free(cache->plan.homes);
    }
    return status;
}

static void ucs_regcache_order_cleanup(ucs_regcache_h cache)
{
    ucs_predict_order_destroy(cache->plan.order);
    free(cache->plan.homes);
}

static int ucs_regcache_order_in_use(const ucs_regcache_rq_item_t *item)
{
    return ucs_regcache_rq_item_is_current(item) &&
           (ucs_regcache_word_refs(ucs_load_acquire(&item->region->word)) > 0);
}

static int ucs_regcache_order_is_live(ucs_regcache_region_t *region)
{
    return ucs_regcache_word_state(ucs_load_relaxed(&region->word)) ==
           UCS_REGCACHE_STATE_LIVE;
}

/* Acquire of the word, so that the fields are those of this life or the word
 * changes; a start or stack position that the use is only about to write is
 * that of the use before, which has been learned from and is left out */
static unsigned ucs_regcache_order_under_way(ucs_regcache_h cache,
                                             ucs_use_t *uses, unsigned count)
{
    unsigned max = count + UCS_REGCACHE_UNDER_WAY;
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
            if (!ucs_regcache_order_in_use(item) ||
                (use.start_ns == cache->plan.homes[item->ref.index].begun)) {
                continue;
            }
            use.region     = item->region;
            use.generation = item->generation;
            use.end_ns     = 0;
            use.sp         = ucs_load_relaxed(&item->region->sp);
            use.address    = ucs_load_relaxed(&item->region->start);
            use.length     = ucs_regcache_region_length(item->region);
            ucs_regcache_step_sort(uses, count++, &use);
        }
    }
    return count;
}

/* The region is not where this buffer, or the one before it, is registered any
 * more, and is known by no other name */
static void ucs_regcache_order_leave(ucs_regcache_h cache,
                                     ucs_predict_ref_t ref)
{
    ucs_regcache_home_t *home     = &cache->plan.homes[ref.index];
    ucs_regcache_region_t *region = home->region;

    if ((region != NULL) &&
        (ucs_regcache_region_gen(region) == home->generation)) {
        ucs_regcache_step_forget(cache, region);
        ucs_regcache_step_deregister(cache, region);
    }
    home->region = NULL;
}

/* Where the buffer is registered now */
static void ucs_regcache_order_settle(ucs_regcache_h cache,
                                      ucs_predict_ref_t ref,
                                      ucs_regcache_region_t *region,
                                      uint64_t generation)
{
    ucs_regcache_home_t *home    = &cache->plan.homes[ref.index];
    ucs_regcache_rq_item_t *item = &cache->plan.rq.items[ref.index];

    if (item->region != region) {
        ucs_regcache_step_cancel(cache, item);
    }
    if (home->region != region) {
        ucs_regcache_order_leave(cache, ref);
    }
    home->region     = region;
    home->generation = generation;
    home->place      = ref.generation;
    ucs_regcache_step_remember(cache, region, generation);
}

/* The life that was looked at may have ended before the item was queued, and
 * the item would stand for the region's next one, which is another buffer's: it
 * would be held for as long as that is not used, for nothing */
static void ucs_regcache_order_confirm(ucs_regcache_h cache,
                                       ucs_predict_ref_t ref)
{
    const ucs_regcache_home_t *home = &cache->plan.homes[ref.index];
    ucs_regcache_rq_item_t *item    = &cache->plan.rq.items[ref.index];

    if ((item->region == home->region) &&
        (item->generation != home->generation)) {
        ucs_regcache_rq_remove(&cache->plan.rq, item);
    }
}

/* Where the buffer waits for its use: a region that is registered and covers
 * its own may do instead, and whoever stops waiting there gives that up */
static ucs_regcache_region_t *ucs_regcache_order_place(
        const ucs_regcache_home_t *home, const ucs_regcache_rq_item_t *item)
{
    return ((item->list == UCS_REGCACHE_RQ_EXPECTED) &&
            ucs_regcache_rq_item_is_current(item)) ?
                   item->region :
                   home->region;
}

/* For whoever must choose what to evict */
static void ucs_regcache_order_rank(ucs_regcache_h cache, ucs_predict_ref_t ref,
                                    ucs_regcache_region_t *region,
                                    uint64_t start_ns)
{
    uint64_t next = ucs_predict_order_next(cache->plan.order, ref);
    ucs_predict_order_info_t info;

    ucs_predict_order_info(cache->plan.order, &info);
    ucs_store_relaxed(&cache->plan.learned, info.uses);
    ucs_store_relaxed(&region->learned, info.uses);
    ucs_store_relaxed(&region->learned_start, start_ns);
    ucs_store_relaxed(&region->next_use, next);
    ucs_store_relaxed(&region->again,
                      (next > info.uses) ? next - info.uses : 0);
}

/* Was the helper to have registered it by then? */
static void ucs_regcache_order_judge(ucs_regcache_h cache,
                                     const ucs_regcache_rq_item_t *item,
                                     int is_ready, uint64_t start_ns)
{
    if (is_ready) {
        cache->plan.lead -= cache->plan.lead * cache->plan.miss_target *
                            UCS_REGCACHE_ORDER_LEAD_DECAY;
    } else if (start_ns >= item->deadline) {
        cache->plan.lead = ucs_max(2 * cache->plan.lead,
                                   UCS_REGCACHE_ORDER_LEAD_MIN_NS);
        cache->plan.lead = ucs_min(cache->plan.lead,
                                   UCS_REGCACHE_ORDER_LEAD_MAX_NS);
    }
}

static void ucs_regcache_order_use(ucs_regcache_h cache, const ucs_use_t *use)
{
    ucs_regcache_region_t *region = use->region;
    ucs_predict_use_t learned = {
        .start_ns = use->start_ns,
        .path     = ucs_regcache_step_path(cache, use),
        .address  = use->address,
        .length   = use->length,
        .type     = ucs_load_relaxed(&region->access)
    };
    const ucs_regcache_rq_item_t *item;
    ucs_predict_ref_t ref;
    int is_ready;

    item     = (ucs_regcache_region_gen(region) == use->generation) ?
                       ucs_regcache_rq_of_region(region) :
                       NULL;
    is_ready = (item == NULL) || (item->list != UCS_REGCACHE_RQ_PENDING);
    if ((item == NULL) ||
        (cache->plan.homes[item->ref.index].begun != use->start_ns)) {
        ucs_regcache_order_judge(cache, item, is_ready, use->start_ns);
    }
    ref = ucs_predict_order_record(cache->plan.order, &learned, use->end_ns,
                                   is_ready);
    if (ucs_regcache_region_gen(region) != use->generation) {
        /* Another buffer's place, who has been forgotten; the plan will not
         * come back to that one */
        if (cache->plan.homes[ref.index].place != ref.generation) {
            ucs_regcache_step_cancel(cache, &cache->plan.rq.items[ref.index]);
            ucs_regcache_order_leave(cache, ref);
        }
        return;
    }

    cache->plan.homes[ref.index].refused = !ucs_regcache_rq_may_expect(
            &cache->plan.rq, ref);
    ucs_regcache_order_settle(cache, ref, region, use->generation);
    cache->plan.homes[ref.index].begun = use->start_ns;
    ucs_regcache_order_rank(cache, ref, region, use->start_ns);
    /* Until the plan says better */
    ucs_regcache_rq_hold(&cache->plan.rq, region, ref, UCS_REGCACHE_TIME_NEVER);
    ucs_regcache_order_confirm(cache, ref);
}

/* What is in use stays where its end is looked for; not for ever, for the end
 * may be lost */
static void ucs_regcache_order_watch(ucs_regcache_h cache,
                                     ucs_regcache_rq_item_t *item,
                                     uint64_t until_ns, uint64_t now)
{
    if (item->list != UCS_REGCACHE_RQ_EXPECTED) {
        item->use_end = now;
        item->until   = ucs_max(until_ns, now + UCS_REGCACHE_ORDER_LOST_NS);
        ucs_regcache_rq_registered(&cache->plan.rq, item, item->region,
                                   item->until);
    }
}

static int ucs_regcache_order_is_home(const ucs_regcache_home_t *home,
                                      const ucs_predict_forecast_t *forecast)
{
    return (home->region != NULL) &&
           (home->place == forecast->ref.generation) &&
           (ucs_regcache_region_gen(home->region) == home->generation);
}

/* Relaxed: a user that comes meanwhile may be overlooked */
static int ucs_regcache_order_is_unused(ucs_regcache_region_t *region)
{
    return ucs_load_relaxed(&region->speculative) &&
           (ucs_load_relaxed(&region->hits) == 0) &&
           (ucs_load_relaxed(&region->joined) == 0);
}

/* Is there time to do without the registration meanwhile, and does that take
 * the helper no more than its share of it? Only then are the terms of any
 * use. */
static int ucs_regcache_order_is_far(ucs_regcache_h cache,
                                     ucs_regcache_region_t *region,
                                     const ucs_predict_forecast_t *forecast,
                                     uint64_t ready_ns, uint64_t now,
                                     ucs_predict_terms_t *terms)
{
    int is_live = ucs_regcache_order_is_live(region);
    uint64_t deregister, cost, earned;
    unsigned times = !ucs_regcache_order_is_unused(region) ?
                             UCS_REGCACHE_ORDER_FAR :
                     forecast->is_sure ? UCS_REGCACHE_ORDER_FAR_AGAIN :
                                         UCS_REGCACHE_ORDER_FAR_MAX;

    if (is_live && (ready_ns <= now)) {
        return 0;
    }
    ucs_regcache_step_terms(cache, region, terms);
    if (!is_live) {
        return 1;
    }
    deregister = ucs_predict_deregister_cost(terms);
    cost       = ucs_predict_register_cost(terms);
    earned     = ucs_regcache_wakeup_earned(
                cache, terms->register_ns + terms->deregister_ns, now);
    return (forecast->start_ns > earned) &&
           (ready_ns > now + deregister + times * cost);
}

/* Registered, and to stay so until it is used or given up */
static void ucs_regcache_order_wait(ucs_regcache_h cache,
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

static void ucs_regcache_order_queue(ucs_regcache_h cache,
                                     const ucs_regcache_home_t *home,
                                     const ucs_predict_forecast_t *forecast,
                                     uint64_t now)
{
    ucs_regcache_rq_item_t *item  = &cache->plan.rq.items[forecast->ref.index];
    ucs_regcache_region_t *region = ucs_regcache_order_place(home, item);
    uint64_t ready_ns             = ucs_predict_sat_sub(forecast->start_ns,
                                                        cache->plan.lead);
    ucs_predict_terms_t terms;

    if ((item->list != UCS_REGCACHE_RQ_NONE) &&
        ucs_regcache_order_in_use(item)) {
        ucs_regcache_order_watch(cache, item, forecast->until_ns, now);
        return;
    }

    item->until = forecast->until_ns;
    item->gap   = ((cache->config.max_pinned == SIZE_MAX) &&
                 (forecast->start_ns > home->begun)) ?
                          forecast->start_ns - home->begun :
                          0;
    if ((forecast->until_ns <= now) ||
        ((home->refused || (forecast->start_ns == 0)) &&
         !ucs_regcache_order_is_live(region))) {
        ucs_regcache_rq_remove(&cache->plan.rq, item);
        ucs_regcache_step_deregister(cache, region);
        return;
    }
    if (!ucs_regcache_order_is_far(cache, region, forecast, ready_ns, now,
                                   &terms)) {
        ucs_regcache_order_wait(cache, item, region, forecast);
        return;
    }
    if (home->refused) {
        ucs_regcache_rq_remove(&cache->plan.rq, item);
    } else {
        ucs_regcache_rq_expect(&cache->plan.rq, home->region, forecast->ref,
                               ready_ns, forecast->start_ns, forecast->end_ns,
                               ucs_predict_rq_gap(&terms));
    }
    ucs_regcache_step_deregister(cache, region);
}

static void ucs_regcache_order_expect(ucs_regcache_h cache,
                                      const ucs_predict_forecast_t *forecast,
                                      uint64_t now)
{
    ucs_regcache_home_t *home = &cache->plan.homes[forecast->ref.index];

    if (ucs_regcache_order_is_home(home, forecast)) {
        ucs_regcache_order_queue(cache, home, forecast, now);
        ucs_regcache_order_confirm(cache, forecast->ref);
    }
}

static void ucs_regcache_order_plan(ucs_regcache_h cache, uint64_t now)
{
    ucs_predict_forecast_t forecasts[UCS_REGCACHE_ORDER_BATCH];
    unsigned count, i;

    do {
        count = ucs_predict_order_changed(cache->plan.order, now, forecasts,
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
    return (item->until > now) ? item->until : now + UCS_REGCACHE_ORDER_LOST_NS;
}

/* It may never come: what is known of it must not protect it */
static void ucs_regcache_order_unused(ucs_regcache_h cache UCS_V_UNUSED,
                                      const ucs_regcache_rq_item_t *item)
{
    ucs_store_relaxed(&item->region->next_use, 0);
    ucs_store_relaxed(&item->region->again, 0);
}

const ucs_regcache_policy_ops_t ucs_regcache_policy_order = {
        .init         = ucs_regcache_order_init,
        .cleanup      = ucs_regcache_order_cleanup,
        .under_way    = ucs_regcache_order_under_way,
        .use          = ucs_regcache_order_use,
        .plan         = ucs_regcache_order_plan,
        .until        = ucs_regcache_order_until,
        .unused       = ucs_regcache_order_unused,
        .remembers    = 1,
        .keeps_budget = 1};
