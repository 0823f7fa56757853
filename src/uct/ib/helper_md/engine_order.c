/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "engine_int.h"

#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>

#include <stdlib.h>

/* While a use is late, what follows it is put off. How long until the helper
 * looks again is this share of the time that it has been late by, for so much
 * longer it may well take; what would be due meanwhile is registered at once.
 * So looking costs ever less, and at most this share more is registered. */
#define UCT_HELPER_PUT_OFF_SHARE  4
#define UCT_HELPER_PUT_OFF_MIN_NS UINT64_C(50000)
#define UCT_HELPER_PUT_OFF_MAX_NS UINT64_C(5000000)

/* What is further away than this, and than twice the longest lead, needs no
 * plan yet */
#define UCT_HELPER_HORIZON_NS UINT64_C(500000)

/*
 * The policy by the order of communications. The predictor names the buffers
 * that follow; after each batch of uses the queue is brought into line with
 * what it says now:
 *
 *   named, not yet due   PENDING; deregistered if there is time for it
 *   named, due           EXPECTED: registered, waited for
 *   in use               EXPECTED, so that its end is looked for
 *   not named            dropped, or HELD if its uses do not predict
 *
 * Uses under way are learned from before they end: what follows them does not
 * wait for that.
 */

/* The queue is named by buffer, so both have the same bound */
static ucs_status_t uct_helper_order_init(uct_helper_engine_h engine,
                                          unsigned max_contexts)
{
    ucs_predict_order_params_t params;
    ucs_status_t status;

    ucs_predict_order_params_init(&params);
    params.max_places = max_contexts;
    if (engine->max_events > 0) {
        params.max_events = engine->max_events;
    }
    if (engine->miss_target > 0) {
        params.miss_target = engine->miss_target;
    }

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

/* Where the buffer is registered now; a region that it had before is known by
 * no other name */
static void uct_helper_order_settle(uct_helper_engine_h engine,
                                    ucs_predict_ref_t ref,
                                    uct_helper_region_t *region)
{
    uct_helper_home_t *home  = &engine->homes[ref.index];
    uct_helper_rq_item_t *item = &engine->rq.items[ref.index];
    uct_helper_region_t *old = home->region;

    if ((old != NULL) && (old != region) &&
        (uct_helper_region_gen(old) == home->generation)) {
        uct_helper_rq_remove(&engine->rq, item);
        uct_helper_step_forget(engine, old);
        uct_helper_step_deregister(engine, old);
    }
    home->region     = region;
    home->generation = uct_helper_region_gen(region);
    home->place      = ref.generation;
    ucs_store_relaxed(&region->planned, 1);
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

/* Without a ceiling hardly anything is evicted */
static void uct_helper_order_duel(uct_helper_engine_h engine,
                                  const uct_helper_use_t *use)
{
    if (engine->max_pinned == SIZE_MAX) {
        return;
    }
    uct_helper_engine_lock(engine);
    uct_helper_duel_use(&engine->duel, use->address);
    uct_helper_engine_unlock(engine);
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
    ucs_predict_ref_t ref;

    uct_helper_order_duel(engine, use);
    ref = ucs_predict_order_record(engine->order, &learned, use->end_ns);
    engine->replan = 1;
    if (uct_helper_region_gen(region) != use->generation) {
        return;
    }

    engine->homes[ref.index].refused = !uct_helper_rq_may_expect(&engine->rq,
                                                                 ref);
    uct_helper_order_settle(engine, ref, region);
    engine->homes[ref.index].begun = use->start_ns;
    uct_helper_order_rank(engine, ref, region, use->start_ns);
    /* Until the plan says better */
    uct_helper_rq_hold(&engine->rq, region, ref, UCT_HELPER_TIME_NEVER);
}

/* What is in use stays where its end is looked for */
static void uct_helper_order_watch(uct_helper_engine_h engine,
                                   uct_helper_rq_item_t *item, uint64_t now)
{
    if (item->list != UCT_HELPER_RQ_EXPECTED) {
        item->use_end = now;
        item->until   = UCT_HELPER_TIME_NEVER;
        uct_helper_rq_registered(&engine->rq, item, item->region,
                                 UCT_HELPER_TIME_NEVER);
    }
}

/* Not named: is it held nevertheless? */
static int uct_helper_order_hold(uct_helper_engine_h engine,
                                 uct_helper_rq_item_t *item, uint64_t now)
{
    uint64_t until = ucs_predict_order_hold(engine->order, item->ref);

    if (until <= now) {
        return 0;
    }
    uct_helper_rq_hold(&engine->rq, item->region, item->ref, until);
    return 1;
}

static void uct_helper_order_drop(uct_helper_engine_h engine,
                                  uct_helper_rq_item_t *item, uint64_t now)
{
    uct_helper_region_t *region = item->region;

    if (!uct_helper_rq_item_is_current(item)) {
        uct_helper_rq_remove(&engine->rq, item);
    } else if (uct_helper_order_in_use(item)) {
        uct_helper_order_watch(engine, item, now);
    } else if ((item->list == UCT_HELPER_RQ_PENDING) ||
               !uct_helper_order_hold(engine, item, now)) {
        uct_helper_rq_remove(&engine->rq, item);
        uct_helper_step_deregister(engine, region);
    }
}

/* Worth a deregistration and a registration. What is registered stays so for
 * twice the time at which it would be registered, for the terms vary: the
 * measured lateness of a wake-up most of all. */
static uint64_t uct_helper_order_lead(const ucs_predict_terms_t *terms)
{
    return ucs_predict_deregister_cost(terms) +
           2 * ucs_predict_register_cost(terms);
}

static void uct_helper_order_expect(uct_helper_engine_h engine,
                                    const ucs_predict_forecast_t *forecast,
                                    uint64_t now)
{
    uct_helper_home_t *home    = &engine->homes[forecast->ref.index];
    uct_helper_rq_item_t *item = &engine->rq.items[forecast->ref.index];
    ucs_predict_terms_t terms;
    uint64_t lead, due;
    int is_far;

    if ((home->region == NULL) || (home->place != forecast->ref.generation) ||
        (uct_helper_region_gen(home->region) != home->generation) ||
        (forecast->until_ns <= now)) {
        return;
    }

    item->plan = engine->plans;
    if ((item->list != UCT_HELPER_RQ_NONE) && uct_helper_order_in_use(item)) {
        uct_helper_order_watch(engine, item, now);
        return;
    }

    if (forecast->keep) {
        if (item->list != UCT_HELPER_RQ_NONE) {
            uct_helper_order_drop(engine, item, now);
        }
        return;
    }

    uct_helper_step_terms(engine, home->region, &terms);
    lead         = uct_helper_order_lead(&terms);
    engine->lead = ucs_max(engine->lead, lead);
    if (item->list != UCT_HELPER_RQ_EXPECTED) {
        item->put_off = 0;
    }
    item->put_off = ucs_max(item->put_off, engine->put_off);
    is_far        = now + item->put_off + lead <= forecast->start_ns;
    if (home->refused && (is_far || !uct_helper_order_is_live(home->region))) {
        uct_helper_rq_remove(&engine->rq, item);
        uct_helper_step_deregister(engine, home->region);
        return;
    }
    item->until = forecast->until_ns;
    if ((item->list == UCT_HELPER_RQ_EXPECTED) && !is_far) {
        item->deadline = forecast->start_ns;
        item->use_end  = forecast->end_ns;
        uct_helper_rq_extend(&engine->rq, item, item->until);
        return;
    }
    due = forecast->start_ns;
    if (ucs_predict_may_delay(now, &terms, due) &&
        !ucs_predict_may_delay(now + engine->put_off, &terms, due)) {
        due = now;
    }
    uct_helper_rq_expect(&engine->rq, home->region, forecast->ref, due,
                         forecast->start_ns, forecast->end_ns,
                         ucs_predict_rq_gap(&terms));
    uct_helper_step_deregister(engine, home->region);
}

/* Those of a list that this plan does not name */
static void uct_helper_order_drop_list(uct_helper_engine_h engine,
                                       uct_helper_rq_list_t list, uint64_t now)
{
    uct_helper_rq_item_t *item, *next;

    for (item = uct_helper_rq_first(&engine->rq, list); item != NULL;
         item = next) {
        next = item->next;
        if (item->plan != engine->plans) {
            uct_helper_order_drop(engine, item, now);
        }
    }
}

/* The end of the held list is what was used since the last plan */
static void uct_helper_order_drop_used(uct_helper_engine_h engine, uint64_t now)
{
    uct_helper_rq_item_t *item;

    while (((item = engine->rq.tail[UCT_HELPER_RQ_HELD]) != NULL) &&
           (item->time == UCT_HELPER_TIME_NEVER)) {
        uct_helper_order_drop(engine, item, now);
    }
}

/* What is due may have been put off since by what has not come */
static int uct_helper_order_is_due(uct_helper_engine_h engine, uint64_t now)
{
    uct_helper_rq_item_t *item = uct_helper_rq_first(&engine->rq,
                                                     UCT_HELPER_RQ_PENDING);
    ucs_predict_terms_t terms;

    if (engine->plan_at <= now) {
        return 1;
    }
    if (item == NULL) {
        return 0;
    }
    uct_helper_step_terms(engine, item->region, &terms);
    return !ucs_predict_may_delay(now, &terms, item->time);
}

/* Has a use that is watched ended, and the queue that would say so been full?
 * What is watched is at the end of the list. */
static int uct_helper_order_is_over(uct_helper_engine_h engine)
{
    uct_helper_rq_item_t *item;

    for (item = engine->rq.tail[UCT_HELPER_RQ_EXPECTED];
         (item != NULL) && (item->time == UCT_HELPER_TIME_NEVER);
         item = item->prev) {
        if (!uct_helper_order_in_use(item)) {
            return 1;
        }
    }
    return 0;
}

/* The earliest that has not come holds up the others */
static uint64_t
uct_helper_order_put_off(const ucs_predict_forecast_t *forecasts,
                         unsigned count, uint64_t now)
{
    uint64_t put_off;

    if ((count == 0) || (forecasts[0].start_ns >= now)) {
        return 0;
    }
    put_off = (now - forecasts[0].start_ns) / UCT_HELPER_PUT_OFF_SHARE;
    put_off = ucs_max(put_off, UCT_HELPER_PUT_OFF_MIN_NS);
    return ucs_min(put_off, UCT_HELPER_PUT_OFF_MAX_NS);
}

/* What follows the last that was named is planned when that could be due; it may
 * be registered already, so the queue does not tell */
static uint64_t
uct_helper_order_plan_at(uct_helper_engine_h engine,
                         const ucs_predict_forecast_t *forecasts,
                         unsigned count, uint64_t horizon)
{
    if ((count == 0) || (forecasts[count - 1].start_ns <= horizon)) {
        return UCT_HELPER_TIME_NEVER;
    }
    return forecasts[count - 1].start_ns - engine->lead;
}

static void uct_helper_order_plan(uct_helper_engine_h engine, uint64_t now)
{
    uint64_t horizon = now + engine->put_off +
                       ucs_max(UCT_HELPER_HORIZON_NS, 2 * engine->lead);
    ucs_predict_forecast_t forecasts[UCS_PREDICT_FORECAST_MAX];
    unsigned count, i;

    if (!engine->replan && !uct_helper_order_is_due(engine, now) &&
        !uct_helper_order_is_over(engine)) {
        return;
    }
    engine->replan = 0;
    ++engine->plans;
    count = ucs_predict_order_forecast(engine->order, now, horizon, forecasts,
                                       UCS_PREDICT_FORECAST_MAX);
    engine->lead   -= engine->lead / 64;
    engine->put_off = uct_helper_order_put_off(forecasts, count, now);
    engine->plan_at = uct_helper_order_plan_at(engine, forecasts, count,
                                               horizon);
    for (i = 0; i < count; ++i) {
        uct_helper_order_expect(engine, &forecasts[i], now);
    }
    uct_helper_order_drop_used(engine, now);
    uct_helper_order_drop_list(engine, UCT_HELPER_RQ_PENDING, now);
    uct_helper_order_drop_list(engine, UCT_HELPER_RQ_EXPECTED, now);
    uct_helper_engine_trim(engine);
}

static uint64_t uct_helper_order_until(uct_helper_engine_h engine UCS_V_UNUSED,
                                       const uct_helper_rq_item_t *item,
                                       uint64_t now UCS_V_UNUSED)
{
    return item->until;
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
