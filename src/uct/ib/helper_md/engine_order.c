/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "engine_int.h"

#include <ucs/predict/saturate.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>

#include <limits.h>
#include <stdlib.h>

/* Deregistered if there is time for that and for so many registrations; what
 * was registered for a use that is put off, only for a multiple of it, for it
 * may be put off again and again: more so if little is known. */
#define UCT_HELPER_ORDER_FAR       4
#define UCT_HELPER_ORDER_FAR_AGAIN 32
#define UCT_HELPER_ORDER_FAR_MAX   256

/* What is in use for longer than it would be waited for is looked at again
 * after so long: its end may have been lost from a full DQ */
#define UCT_HELPER_ORDER_LOST_NS   UINT64_C(100000000)

/* So much before its time a buffer is to be registered at most, for the helper
 * may be woken late: where all cores are busy, by a time slice now and then. Twice
 * as much whenever a use found it late, and less by a part of the target at each
 * other, so that in balance half the target's share of uses does. */
#define UCT_HELPER_ORDER_LEAD_MIN_NS UINT64_C(200000)
#define UCT_HELPER_ORDER_LEAD_MAX_NS UINT64_C(5000000)
#define UCT_HELPER_ORDER_LEAD_DECAY  0.35

/* Buffers that are asked for at once */
#define UCT_HELPER_ORDER_BATCH     32

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
static ucs_status_t uct_helper_order_init(uct_helper_engine_h engine,
                                          unsigned max_contexts)
{
    ucs_predict_order_params_t params;
    ucs_status_t status;

    ucs_predict_order_params_init(&params);
    params.max_places = max_contexts;
    params.max_labels = max_contexts;
    if (engine->miss_target > 0) {
        params.miss_target = engine->miss_target;
    }
    engine->miss_target = params.miss_target;

    engine->homes = calloc(max_contexts, sizeof(*engine->homes));
    if (engine->homes == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    status = ucs_predict_order_create(&params, &engine->order);
    if (status != UCS_OK) {
        free(engine->homes);
    }
    return status;
}

static void uct_helper_order_cleanup(uct_helper_engine_h engine)
{
    ucs_predict_order_destroy(engine->order);
    free(engine->homes);
}

static int uct_helper_order_in_use(const uct_helper_rq_item_t *item)
{
    return uct_helper_rq_item_is_current(item) &&
           (uct_helper_word_refs(ucs_load_acquire(&item->region->word)) > 0);
}

static int uct_helper_order_is_live(uct_helper_region_t *region)
{
    return uct_helper_word_state(ucs_load_relaxed(&region->word)) ==
           UCT_HELPER_STATE_LIVE;
}

/* Acquire of the word, so that the fields are those of this life or the word
 * changes; a start or stack position that the use is only about to write is
 * that of the use before, which has been learned from and is left out */
static unsigned uct_helper_order_under_way(uct_helper_engine_h engine,
                                           uct_helper_use_t *uses,
                                           unsigned count)
{
    unsigned max = count + UCT_HELPER_UNDER_WAY;
    uct_helper_rq_item_t *item;
    uct_helper_use_t use;
    int list;

    for (list = UCT_HELPER_RQ_PENDING; list < UCT_HELPER_RQ_LAST; ++list) {
        for (item = engine->rq.head[list]; (item != NULL) && (count < max);
             item = item->next) {
            if (uct_helper_word_refs(
                        ucs_load_relaxed(&item->region->word)) == 0) {
                continue; /* as most are: sooner seen than what follows */
            }
            use.start_ns = ucs_load_relaxed(&item->region->use_start);
            if (!uct_helper_order_in_use(item) ||
                (use.start_ns == engine->homes[item->ref.index].begun)) {
                continue;
            }
            use.region     = item->region;
            use.generation = item->generation;
            use.end_ns     = 0;
            use.sp         = ucs_load_relaxed(&item->region->sp);
            use.address    = ucs_load_relaxed(&item->region->start);
            use.length     = uct_helper_region_length(item->region);
            uct_helper_step_sort(uses, count++, &use);
        }
    }
    return count;
}

/* The region is not where this buffer, or the one before it, is registered any
 * more, and is known by no other name */
static void uct_helper_order_leave(uct_helper_engine_h engine,
                                   ucs_predict_ref_t ref)
{
    uct_helper_home_t *home     = &engine->homes[ref.index];
    uct_helper_region_t *region = home->region;

    if ((region != NULL) &&
        (uct_helper_region_gen(region) == home->generation)) {
        uct_helper_step_forget(engine, region);
        uct_helper_step_deregister(engine, region);
    }
    home->region = NULL;
}

/* Where the buffer is registered now */
static void uct_helper_order_settle(uct_helper_engine_h engine,
                                    ucs_predict_ref_t ref,
                                    uct_helper_region_t *region,
                                    uint64_t generation)
{
    uct_helper_home_t *home    = &engine->homes[ref.index];
    uct_helper_rq_item_t *item = &engine->rq.items[ref.index];

    if (item->region != region) {
        uct_helper_step_cancel(engine, item);
    }
    if (home->region != region) {
        uct_helper_order_leave(engine, ref);
    }
    home->region     = region;
    home->generation = generation;
    home->place      = ref.generation;
    uct_helper_step_remember(engine, region, generation);
}

/* The life that was looked at may have ended before the item was queued, and
 * the item would stand for the region's next one, which is another buffer's: it
 * would be held for as long as that is not used, for nothing */
static void uct_helper_order_confirm(uct_helper_engine_h engine,
                                     ucs_predict_ref_t ref)
{
    const uct_helper_home_t *home = &engine->homes[ref.index];
    uct_helper_rq_item_t *item    = &engine->rq.items[ref.index];

    if ((item->region == home->region) &&
        (item->generation != home->generation)) {
        uct_helper_rq_remove(&engine->rq, item);
    }
}

/* Where the buffer waits for its use: a region that is registered and covers
 * its own may do instead, and whoever stops waiting there gives that up */
static uct_helper_region_t *
uct_helper_order_place(const uct_helper_home_t *home,
                       const uct_helper_rq_item_t *item)
{
    return ((item->list == UCT_HELPER_RQ_EXPECTED) &&
            uct_helper_rq_item_is_current(item)) ?
                   item->region :
                   home->region;
}

/* For whoever must choose what to evict */
static void uct_helper_order_rank(uct_helper_engine_h engine,
                                  ucs_predict_ref_t ref,
                                  uct_helper_region_t *region,
                                  uint64_t start_ns)
{
    uint64_t next = ucs_predict_order_next(engine->order, ref);
    ucs_predict_order_info_t info;

    ucs_predict_order_info(engine->order, &info);
    ucs_store_relaxed(&engine->learned, info.uses);
    ucs_store_relaxed(&region->learned, info.uses);
    ucs_store_relaxed(&region->learned_start, start_ns);
    ucs_store_relaxed(&region->next_use, next);
    ucs_store_relaxed(&region->again,
                      (next > info.uses) ? next - info.uses : 0);
}

/* Was the helper to have registered it by then? */
static void uct_helper_order_judge(uct_helper_engine_h engine,
                                   const uct_helper_rq_item_t *item,
                                   int is_ready, uint64_t start_ns)
{
    if (is_ready) {
        engine->lead -= engine->lead * engine->miss_target *
                        UCT_HELPER_ORDER_LEAD_DECAY;
    } else if (start_ns >= item->deadline) {
        engine->lead = ucs_max(2 * engine->lead, UCT_HELPER_ORDER_LEAD_MIN_NS);
        engine->lead = ucs_min(engine->lead, UCT_HELPER_ORDER_LEAD_MAX_NS);
    }
}

static void uct_helper_order_use(uct_helper_engine_h engine,
                                 const uct_helper_use_t *use)
{
    uct_helper_region_t *region = use->region;
    ucs_predict_use_t learned   = {
        .start_ns = use->start_ns,
        .path     = uct_helper_step_path(engine, use),
        .address  = use->address,
        .length   = use->length,
        .type     = ucs_load_relaxed(&region->access)
    };
    const uct_helper_rq_item_t *item;
    ucs_predict_ref_t ref;
    int is_ready;

    item     = (uct_helper_region_gen(region) == use->generation) ?
                       uct_helper_rq_of_region(region) :
                       NULL;
    is_ready = (item == NULL) || (item->list != UCT_HELPER_RQ_PENDING);
    if ((item == NULL) ||
        (engine->homes[item->ref.index].begun != use->start_ns)) {
        uct_helper_order_judge(engine, item, is_ready, use->start_ns);
    }
    ref = ucs_predict_order_record(engine->order, &learned, use->end_ns,
                                   is_ready);
    if (uct_helper_region_gen(region) != use->generation) {
        /* Another buffer's place, who has been forgotten; the plan will not
         * come back to that one */
        if (engine->homes[ref.index].place != ref.generation) {
            uct_helper_step_cancel(engine, &engine->rq.items[ref.index]);
            uct_helper_order_leave(engine, ref);
        }
        return;
    }

    engine->homes[ref.index].refused = !uct_helper_rq_may_expect(&engine->rq,
                                                                 ref);
    uct_helper_order_settle(engine, ref, region, use->generation);
    engine->homes[ref.index].begun = use->start_ns;
    uct_helper_order_rank(engine, ref, region, use->start_ns);
    /* Until the plan says better */
    uct_helper_rq_hold(&engine->rq, region, ref, UCT_HELPER_TIME_NEVER);
    uct_helper_order_confirm(engine, ref);
}

/* What is in use stays where its end is looked for; not for ever, for the end
 * may be lost */
static void uct_helper_order_watch(uct_helper_engine_h engine,
                                   uct_helper_rq_item_t *item,
                                   uint64_t until_ns, uint64_t now)
{
    if (item->list != UCT_HELPER_RQ_EXPECTED) {
        item->use_end = now;
        item->until   = ucs_max(until_ns, now + UCT_HELPER_ORDER_LOST_NS);
        uct_helper_rq_registered(&engine->rq, item, item->region, item->until);
    }
}

static int uct_helper_order_is_home(const uct_helper_home_t *home,
                                    const ucs_predict_forecast_t *forecast)
{
    return (home->region != NULL) &&
           (home->place == forecast->ref.generation) &&
           (uct_helper_region_gen(home->region) == home->generation);
}

/* Relaxed: a user that comes meanwhile may be overlooked */
static int uct_helper_order_is_unused(uct_helper_region_t *region)
{
    return ucs_load_relaxed(&region->speculative) &&
           (ucs_load_relaxed(&region->hits) == 0) &&
           (ucs_load_relaxed(&region->joined) == 0);
}

/* Is there time to do without the registration meanwhile, and does that take
 * the helper no more than its share of it? Only then are the terms of any
 * use. */
static int uct_helper_order_is_far(uct_helper_engine_h engine,
                                   uct_helper_region_t *region,
                                   const ucs_predict_forecast_t *forecast,
                                   uint64_t ready_ns, uint64_t now,
                                   ucs_predict_terms_t *terms)
{
    int is_live    = uct_helper_order_is_live(region);
    uint64_t deregister, cost, earned;
    unsigned times = !uct_helper_order_is_unused(region) ?
                             UCT_HELPER_ORDER_FAR :
                     forecast->is_sure ? UCT_HELPER_ORDER_FAR_AGAIN :
                                         UCT_HELPER_ORDER_FAR_MAX;

    if (is_live && (ready_ns <= now)) {
        return 0;
    }
    uct_helper_step_terms(engine, region, terms);
    if (!is_live) {
        return 1;
    }
    deregister = ucs_predict_deregister_cost(terms);
    cost       = ucs_predict_register_cost(terms);
    earned     = uct_helper_look_earned(
            engine, terms->register_ns + terms->deregister_ns, now);
    return (forecast->start_ns > earned) &&
           (ready_ns > now + deregister + times * cost);
}

/* Registered, and to stay so until it is used or given up */
static void uct_helper_order_wait(uct_helper_engine_h engine,
                                  uct_helper_rq_item_t *item,
                                  uct_helper_region_t *region,
                                  const ucs_predict_forecast_t *forecast)
{
    item->deadline = forecast->start_ns;
    item->use_end  = forecast->end_ns;
    item->ref      = forecast->ref;
    if (item->list == UCT_HELPER_RQ_EXPECTED) {
        uct_helper_rq_extend(&engine->rq, item, item->until);
    } else {
        uct_helper_rq_registered(&engine->rq, item, region, item->until);
    }
}

static void uct_helper_order_queue(uct_helper_engine_h engine,
                                   const uct_helper_home_t *home,
                                   const ucs_predict_forecast_t *forecast,
                                   uint64_t now)
{
    uct_helper_rq_item_t *item  = &engine->rq.items[forecast->ref.index];
    uct_helper_region_t *region = uct_helper_order_place(home, item);
    uint64_t ready_ns           = ucs_predict_sat_sub(forecast->start_ns,
                                                      engine->lead);
    ucs_predict_terms_t terms;

    if ((item->list != UCT_HELPER_RQ_NONE) && uct_helper_order_in_use(item)) {
        uct_helper_order_watch(engine, item, forecast->until_ns, now);
        return;
    }

    item->until = forecast->until_ns;
    item->gap   = ((engine->max_pinned == SIZE_MAX) &&
                   (forecast->start_ns > home->begun)) ?
                          forecast->start_ns - home->begun :
                          0;
    if ((forecast->until_ns <= now) ||
        ((home->refused || (forecast->start_ns == 0)) &&
         !uct_helper_order_is_live(region))) {
        uct_helper_rq_remove(&engine->rq, item);
        uct_helper_step_deregister(engine, region);
        return;
    }
    if (!uct_helper_order_is_far(engine, region, forecast, ready_ns, now,
                                 &terms)) {
        uct_helper_order_wait(engine, item, region, forecast);
        return;
    }
    if (home->refused) {
        uct_helper_rq_remove(&engine->rq, item);
    } else {
        uct_helper_rq_expect(&engine->rq, home->region, forecast->ref, ready_ns,
                             forecast->start_ns, forecast->end_ns,
                             ucs_predict_rq_gap(&terms));
    }
    uct_helper_step_deregister(engine, region);
}

static void uct_helper_order_expect(uct_helper_engine_h engine,
                                    const ucs_predict_forecast_t *forecast,
                                    uint64_t now)
{
    uct_helper_home_t *home = &engine->homes[forecast->ref.index];

    if (uct_helper_order_is_home(home, forecast)) {
        uct_helper_order_queue(engine, home, forecast, now);
        uct_helper_order_confirm(engine, forecast->ref);
    }
}

static void uct_helper_order_plan(uct_helper_engine_h engine, uint64_t now)
{
    ucs_predict_forecast_t forecasts[UCT_HELPER_ORDER_BATCH];
    unsigned count, i;

    do {
        count = ucs_predict_order_changed(engine->order, now, forecasts,
                                          UCT_HELPER_ORDER_BATCH);
        for (i = 0; i < count; ++i) {
            uct_helper_order_expect(engine, &forecasts[i], now);
        }
    } while (count == UCT_HELPER_ORDER_BATCH);
    if ((engine->max_pinned != SIZE_MAX) ||
        (engine->max_regions != ULONG_MAX)) {
        uct_helper_engine_trim(engine);
    }
}

/* What is still in use then is looked at again, but rarely */
static uint64_t uct_helper_order_until(uct_helper_engine_h engine UCS_V_UNUSED,
                                       const uct_helper_rq_item_t *item,
                                       uint64_t now)
{
    return (item->until > now) ? item->until : now + UCT_HELPER_ORDER_LOST_NS;
}

/* It may never come: what is known of it must not protect it */
static void uct_helper_order_unused(uct_helper_engine_h engine UCS_V_UNUSED,
                                    const uct_helper_rq_item_t *item)
{
    ucs_store_relaxed(&item->region->next_use, 0);
    ucs_store_relaxed(&item->region->again, 0);
}

const uct_helper_steer_t uct_helper_steer_order = {
    .init         = uct_helper_order_init,
    .cleanup      = uct_helper_order_cleanup,
    .under_way    = uct_helper_order_under_way,
    .use          = uct_helper_order_use,
    .plan         = uct_helper_order_plan,
    .until        = uct_helper_order_until,
    .unused       = uct_helper_order_unused,
    .remembers    = 1,
    .keeps_budget = 1
};
