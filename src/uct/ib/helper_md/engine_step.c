/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "engine_int.h"

#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>

/* Batches in one step. Where uses come faster than they can be learned from
 * there is no gap to deregister in either; the helper then learns from a sample
 * and sleeps in between, so that it does not fight the hits for cache lines. */
#define UCT_HELPER_BATCHES 4

/* Idle time after which a region whose last use may have been lost is
 * deregistered */
#define UCT_HELPER_STRAY_NS UINT64_C(5000000)

/* Between two lots, of a sweep or of what was unmapped: ten times what it takes
 * to look at one under the index lock, so that it is free for nine parts of ten;
 * and fork() comes in, which waits for the end of a step */
#define UCT_HELPER_LOT_REST_NS UINT64_C(100000)

/* Terms of the paper's t_p that are not measured one by one: a look-up in the
 * call-site table and in the cache, and a step along a queue. Upper bounds. */
#define UCT_HELPER_HASH_NS  500
#define UCT_HELPER_CACHE_NS 500
#define UCT_HELPER_ITEM_NS  5.0

/* After a registration in advance has failed, or a use was short of something,
 * there is none for a while: the longer the more often it fails in a row */
#define UCT_HELPER_BACKOFF_MIN_NS UINT64_C(1000000)
#define UCT_HELPER_BACKOFF_MAX_NS UINT64_C(1000000000)

#define UCT_HELPER_LATENESS_MAX_NS UINT64_C(5000000)

/*
 * Terms
 */

/* Under the lock */
static void uct_helper_step_terms_locked(uct_helper_engine_h engine,
                                         uct_helper_region_t *region,
                                         ucs_predict_terms_t *terms)
{
    size_t pages = uct_helper_engine_pages(engine, region);
    size_t items = engine->rq.count[UCT_HELPER_RQ_PENDING];

    terms->hash_ns   = UCT_HELPER_HASH_NS;
    terms->cache_ns  = UCT_HELPER_CACHE_NS;
    terms->insert_ns = ucs_predict_queue_cost(UCT_HELPER_ITEM_NS, items);
    terms->update_ns = terms->insert_ns;
    terms->wakeup_ns = ucs_max(engine->lateness, engine->shared);

    terms->register_ns   = ucs_predict_cost_estimate(&engine->register_cost,
                                                     pages);
    terms->deregister_ns = ucs_predict_cost_estimate(&engine->deregister_cost,
                                                     pages);
}

void uct_helper_step_terms(uct_helper_engine_h engine,
                           uct_helper_region_t *region,
                           ucs_predict_terms_t *terms)
{
    uct_helper_engine_lock(engine);
    uct_helper_step_terms_locked(engine, region, terms);
    uct_helper_engine_unlock(engine);
}

static void uct_helper_step_lateness(uct_helper_engine_h engine, uint64_t now)
{
    int64_t late;

    if ((engine->next_due == UCT_HELPER_TIME_NEVER) ||
        (now < engine->next_due)) {
        return;
    }
    late = ucs_min(now - engine->next_due, UCT_HELPER_LATENESS_MAX_NS);
    late = late - (int64_t)engine->lateness;
    /* Up fast, down slowly: a missed deadline costs more than a page held */
    engine->lateness += late / ((late > 0) ? 2 : 16);
}

/*
 * Plans: what a region is expected for
 */

void uct_helper_step_remember(uct_helper_engine_h engine,
                              uct_helper_region_t *region, uint64_t generation)
{
    if (ucs_load_relaxed(&region->planned)) {
        return; /* as it is for all but the first use of a life */
    }
    uct_helper_engine_lock(engine);
    if (uct_helper_region_gen(region) == generation) {
        ucs_store_relaxed(&region->planned, 1);
    }
    uct_helper_engine_unlock(engine);
}

void uct_helper_step_forget(uct_helper_engine_h engine,
                            uct_helper_region_t *region)
{
    ucs_store_relaxed(&region->planned, 0);
    uct_helper_engine_lock(engine);
    if ((ucs_load_relaxed(&region->word) &
         (UCT_HELPER_WORD_STATE_MASK | UCT_HELPER_WORD_DOOMED)) ==
        UCT_HELPER_STATE_DORMANT) {
        uct_helper_index_remove(&engine->index, region);
        uct_helper_region_free(engine, region);
    }
    uct_helper_engine_unlock(engine);
}

void uct_helper_step_replan(uct_helper_engine_h engine,
                            uct_helper_region_t *region)
{
    const uct_helper_rq_item_t *item;

    if (engine->steer->remembers) {
        return; /* planned for as long as it is a buffer's home */
    }
    item = uct_helper_rq_of_region(region);
    if (item != NULL) {
        uct_helper_step_remember(engine, region, item->generation);
    } else {
        uct_helper_step_forget(engine, region);
    }
}

/* Earliest time at which the region must be registered; NEVER if none */
static uint64_t uct_helper_step_earliest(uct_helper_region_t *region)
{
    uint64_t earliest = UCT_HELPER_TIME_NEVER;
    uct_helper_rq_item_t *item;

    for (item = uct_helper_rq_of_region(region); item != NULL;
         item = item->region_next) {
        if (item->list != UCT_HELPER_RQ_PENDING) {
            return 0;
        }
        earliest = ucs_min(earliest, item->time);
    }
    return earliest;
}

void uct_helper_step_deregister(uct_helper_engine_h engine,
                                uct_helper_region_t *region)
{
    uint64_t earliest = uct_helper_step_earliest(region);
    ucs_predict_terms_t terms;
    int is_claimed;

    if (engine->steer->keeps_budget && (engine->max_pinned != SIZE_MAX)) {
        return; /* memory that the user granted; evicted when it is needed */
    }

    if (earliest != UCT_HELPER_TIME_NEVER) {
        uct_helper_step_terms(engine, region, &terms);
        if (!ucs_predict_may_deregister(uct_helper_engine_now(engine), &terms,
                                        earliest)) {
            return;
        }
    }

    uct_helper_engine_lock(engine);
    is_claimed = uct_helper_region_claim(engine, region);
    uct_helper_engine_unlock(engine);
    if (is_claimed) {
        uct_helper_region_deregister(engine, region, NULL);
    }
}

void uct_helper_step_cancel(uct_helper_engine_h engine,
                            uct_helper_rq_item_t *item)
{
    uct_helper_region_t *region = item->region;

    if (item->list == UCT_HELPER_RQ_NONE) {
        return;
    }
    if (!uct_helper_rq_item_is_current(item)) {
        uct_helper_rq_remove(&engine->rq, item);
        return;
    }
    uct_helper_rq_remove(&engine->rq, item);
    uct_helper_step_replan(engine, region);
    uct_helper_step_deregister(engine, region);
}

/*
 * Deregistration queue
 */

/* A path that no use has walked, for all were hits, goes by where it ended */
uint64_t uct_helper_step_path(uct_helper_engine_h engine,
                              const uct_helper_use_t *use)
{
    uint64_t path = engine->env.recall(engine->env.arg, use->sp, use->address,
                                       use->length);

    return (path != 0) ? path : use->sp;
}

/* Ends come in another order than starts; the predictor wants the latter */
void uct_helper_step_sort(uct_helper_use_t *uses, unsigned count,
                          const uct_helper_use_t *use)
{
    unsigned i;

    for (i = count; (i > 0) && (uses[i - 1].start_ns > use->start_ns); --i) {
        uses[i] = uses[i - 1];
    }
    uses[i] = *use;
}

static unsigned uct_helper_step_drain(uct_helper_engine_h engine,
                                      uct_helper_use_t *uses)
{
    unsigned count = 0;
    uct_helper_use_t use;

    while ((count < UCT_HELPER_BATCH) &&
           uct_helper_dq_pop(engine->dq, &use)) {
        uct_helper_step_sort(uses, count++, &use);
    }
    return count;
}

/* Under the lock: idle for a while, and not about to be used. That a use is
 * expected later does not matter: the one that was lost would have had the
 * region deregistered until then. */
static int uct_helper_step_is_stray(uct_helper_engine_h engine,
                                    uct_helper_region_t *region, uint64_t now)
{
    uint64_t word = ucs_load_relaxed(&region->word);
    uint64_t earliest;
    ucs_predict_terms_t terms;

    if (!uct_helper_word_is_hit(word) || (uct_helper_word_refs(word) > 0) ||
        (ucs_load_relaxed(&region->idle) != UCT_HELPER_IDLE_QUEUE) ||
        (ucs_load_relaxed(&region->last_use) + UCT_HELPER_STRAY_NS > now)) {
        return 0;
    }

    earliest = uct_helper_step_earliest(region);
    uct_helper_step_terms_locked(engine, region, &terms);
    return ucs_predict_may_deregister(now, &terms, earliest);
}

/* Under the lock: the next stray, once it is claimed; NULL if the lot or the
 * sweep is over */
static uct_helper_region_t *
uct_helper_step_next_stray(uct_helper_engine_h engine, unsigned *left_p,
                           uint64_t now)
{
    uct_helper_region_t *region;

    for (; *left_p > 0; --*left_p) {
        region = uct_helper_walk_next(&engine->sweep);
        if (region == NULL) {
            break;
        }
        if (uct_helper_step_is_stray(engine, region, now) &&
            uct_helper_region_claim(engine, region)) {
            --*left_p;
            return region;
        }
    }
    return NULL;
}

/* A lot of regions. The lock is not fair: a helper that took it again at once
 * would keep it from all others, where cores are busy for as long as the sweep
 * lasts; so it sleeps between two lots. */
static void uct_helper_step_sweep(uct_helper_engine_h engine, uint64_t now)
{
    unsigned left = UCT_HELPER_LOT;
    uct_helper_region_t *region;

    do {
        uct_helper_engine_lock(engine);
        region = uct_helper_step_next_stray(engine, &left, now);
        uct_helper_engine_unlock(engine);
        if (region != NULL) {
            uct_helper_region_deregister(engine, region, NULL);
        }
    } while (region != NULL);

    if (engine->sweep.chunk != NULL) {
        engine->sweep_at = uct_helper_engine_now(engine) +
                           UCT_HELPER_LOT_REST_NS;
    } else {
        engine->sweep_at    = engine->sweep_again ?
                                      now + 2 * UCT_HELPER_STRAY_NS :
                                      UCT_HELPER_TIME_NEVER;
        engine->sweep_again = 0;
    }
}

/* Uses were lost, so regions may be idle that no queue knows of. Not at once:
 * where uses are lost they come fast, and what was used just now will be used
 * again. A sweep that is under way has looked at some already and goes on. */
static void uct_helper_step_lost(uct_helper_engine_h engine, uint64_t lost,
                                 uint64_t now)
{
    if (lost != engine->dq_lost) {
        engine->dq_lost = lost;
        if (engine->sweep.chunk == NULL) {
            engine->sweep_at = now + 2 * UCT_HELPER_STRAY_NS;
        } else {
            engine->sweep_again = 1;
        }
    }
    if (engine->sweep_at > now) {
        return;
    }
    if (engine->sweep.chunk == NULL) {
        uct_helper_engine_lock(engine);
        engine->sweep.chunk = engine->chunks;
        uct_helper_engine_unlock(engine);
    }
    uct_helper_step_sweep(engine, now);
}

/*
 * Registration queue
 */

static void uct_helper_step_back_off(uct_helper_engine_h engine)
{
    uint64_t now = uct_helper_engine_now(engine);

    engine->backoff       = ucs_max(2 * engine->backoff,
                                    UCT_HELPER_BACKOFF_MIN_NS);
    engine->backoff       = ucs_min(engine->backoff, UCT_HELPER_BACKOFF_MAX_NS);
    engine->backoff_until = now + engine->backoff;
}

/* The uses that are due meanwhile register by themselves */
static int uct_helper_step_is_backing_off(uct_helper_engine_h engine)
{
    if (ucs_unlikely(ucs_load_relaxed(&engine->pressed))) {
        ucs_store_relaxed(&engine->pressed, 0);
        uct_helper_step_back_off(engine);
    }
    return uct_helper_engine_now(engine) < engine->backoff_until;
}

/* Want of memory passes, for all alike, and so does want of room; a buffer that
 * is refused for what it is will be refused again. The verbs domain of UCX 1.13
 * does not tell them apart. */
static ucs_status_t uct_helper_step_register(uct_helper_engine_h engine,
                                             uct_helper_rq_item_t *item,
                                             uct_helper_region_t *region)
{
    ucs_status_t status;

    uct_helper_engine_supersede(engine, region);
    status = uct_helper_region_register(engine, region,
                                        ucs_load_relaxed(&region->access), 0);
    if (status == UCS_OK) {
        engine->backoff = 0;
        return UCS_OK;
    }
    if (uct_helper_status_is_exhausted(status)) {
        uct_helper_step_back_off(engine);
    }
    if ((status != UCS_ERR_NO_MEMORY) && (status != UCS_ERR_NO_RESOURCE) &&
        (status != UCS_ERR_EXCEEDS_LIMIT)) {
        uct_helper_rq_refused(item);
    }
    return status;
}

/* What is to be done for an item that is due; under the lock */
static uct_helper_region_t *
uct_helper_step_find(uct_helper_engine_h engine, uct_helper_rq_item_t *item,
                     uct_helper_state_t *state_p)
{
    uct_helper_region_t *region = item->region;
    uct_helper_region_t *found;
    uint64_t word;

    found = uct_helper_index_find(&engine->index,
                                  ucs_load_relaxed(&region->start),
                                  ucs_load_relaxed(&region->end),
                                  ucs_load_relaxed(&region->access));
    if (found == NULL) {
        *state_p = UCT_HELPER_STATE_FREE;
        return NULL;
    }

    word     = ucs_load_relaxed(&found->word);
    *state_p = uct_helper_word_state(word);
    if (*state_p == UCT_HELPER_STATE_DORMANT) {
        ucs_store_relaxed(&found->speculative, 1);
        ucs_store_relaxed(&found->wake, 0);
        ucs_store_relaxed(&found->idle, UCT_HELPER_IDLE_QUEUE);
        ucs_store_release(&found->word, /* [R-LIVE] */
                          uct_helper_word_set_state(
                                  word, UCT_HELPER_STATE_REGISTERING));
    }
    return found;
}

/* The region is registered, or was so already: now its use must come */
static void uct_helper_step_registered(uct_helper_engine_h engine,
                                       uct_helper_rq_item_t *item,
                                       uct_helper_region_t *region)
{
    uct_helper_region_t *before = item->region;
    uint64_t now                = uct_helper_engine_now(engine);

    uct_helper_rq_registered(&engine->rq, item, region,
                             engine->steer->until(engine, item, now));
    uct_helper_step_replan(engine, region);
    if (before != region) {
        uct_helper_step_replan(engine, before);
        uct_helper_step_deregister(engine, before);
    }
}

static void uct_helper_step_due(uct_helper_engine_h engine,
                                uct_helper_rq_item_t *item)
{
    uct_helper_region_t *region;
    uct_helper_state_t state;

    if (!uct_helper_rq_item_is_current(item) ||
        uct_helper_step_is_backing_off(engine) ||
        (uct_helper_engine_stock(engine) != UCS_OK)) {
        uct_helper_step_cancel(engine, item);
        return;
    }

    uct_helper_engine_lock(engine);
    region = uct_helper_step_find(engine, item, &state);
    uct_helper_engine_unlock(engine);

    if ((state == UCT_HELPER_STATE_DORMANT) &&
        (uct_helper_step_register(engine, item, region) == UCS_OK)) {
        state = UCT_HELPER_STATE_LIVE;
    }
    if (state == UCT_HELPER_STATE_LIVE) {
        uct_helper_step_registered(engine, item, region);
    } else {
        /* The use has come already, or its buffer cannot be had */
        uct_helper_step_cancel(engine, item);
    }
}

/* First time at which this item may not be delayed any more. Under the lock. */
uint64_t uct_helper_step_begin_time(uct_helper_engine_h engine,
                                           uct_helper_rq_item_t *item)
{
    ucs_predict_terms_t terms;
    uint64_t cost;

    uct_helper_step_terms_locked(engine, item->region, &terms);
    cost = ucs_predict_register_cost(&terms);
    return (item->time > cost) ? item->time - cost + 1 : 0;
}

static int uct_helper_step_rq(uct_helper_engine_h engine)
{
    uct_helper_rq_item_t *item = uct_helper_rq_first(&engine->rq,
                                                     UCT_HELPER_RQ_PENDING);
    ucs_predict_terms_t terms;

    if (item == NULL) {
        return 0;
    }
    if (uct_helper_rq_item_is_current(item)) {
        uct_helper_step_terms(engine, item->region, &terms);
        if (ucs_predict_may_delay(uct_helper_engine_now(engine), &terms,
                                  item->time)) {
            return 0;
        }
    }
    uct_helper_step_due(engine, item);
    return 1;
}

/* The use did not come by deadline and slack */
static void uct_helper_step_expire(uct_helper_engine_h engine,
                                   uct_helper_rq_item_t *item, uint64_t now)
{
    uct_helper_region_t *region = item->region;
    uint64_t word               = ucs_load_relaxed(&region->word);

    if (!uct_helper_rq_item_is_current(item)) {
        uct_helper_rq_remove(&engine->rq, item);
        return;
    }
    if (uct_helper_word_refs(word) > 0) {
        /* It came; its end will be in the DQ */
        uct_helper_rq_extend(&engine->rq, item,
                             ucs_max(engine->steer->until(engine, item, now),
                                     now + UCT_HELPER_POLL_MIN_NS));
        return;
    }
    if (engine->steer->unused != NULL) {
        engine->steer->unused(engine, item);
    }
    uct_helper_step_cancel(engine, item);
}

static void uct_helper_step_expired(uct_helper_engine_h engine,
                                    uct_helper_rq_list_t list, uint64_t now)
{
    uct_helper_rq_item_t *item;

    while (((item = uct_helper_rq_first(&engine->rq, list)) != NULL) &&
           (item->time <= now)) {
        uct_helper_step_expire(engine, item, now);
    }
}

/*
 * Step
 */

uint64_t uct_helper_engine_step(uct_helper_engine_h engine, uint64_t now)
{
    uint64_t lost = uct_helper_dq_lost(engine->dq);
    unsigned batches = (lost == engine->dq_lost) ? UCT_HELPER_BATCHES : 1;
    const uct_helper_steer_t *steer = engine->steer;
    uct_helper_use_t uses[UCT_HELPER_BATCH + UCT_HELPER_UNDER_WAY];
    unsigned count, total, i;

    if (steer == NULL) {
        uct_helper_engine_reclaim(engine);
        return UCT_HELPER_TIME_NEVER;
    }

    uct_helper_step_lateness(engine, now);
    uct_helper_engine_reclaim_some(engine, UCT_HELPER_LOT);

    /* The two queues in turn (section 3.2): after each use the registrations
     * that have become due */
    do {
        count = total = uct_helper_step_drain(engine, uses);
        if ((steer->under_way != NULL) && (count < UCT_HELPER_BATCH)) {
            total = steer->under_way(engine, uses, count);
        }
        if (total > 0) {
            engine->used_at = now;
        }
        for (i = 0; i < total; ++i) {
            steer->use(engine, &uses[i]);
            while ((steer->plan == NULL) && uct_helper_step_rq(engine)) {
            }
        }
    } while ((count == UCT_HELPER_BATCH) && (--batches > 0));
    if (steer->plan != NULL) {
        steer->plan(engine, uct_helper_engine_now(engine));
    }
    while (uct_helper_step_rq(engine)) {
    }

    uct_helper_step_lost(engine, lost, uct_helper_engine_now(engine));
    uct_helper_step_expired(engine, UCT_HELPER_RQ_EXPECTED,
                            uct_helper_engine_now(engine));
    uct_helper_step_expired(engine, UCT_HELPER_RQ_HELD,
                            uct_helper_engine_now(engine));
    uct_helper_engine_reclaim_some(engine, UCT_HELPER_LOT);

    now              = uct_helper_engine_now(engine);
    engine->next_due = uct_helper_look_next(engine, now);
    if (ucs_load_relaxed(&engine->reclaimable) > 0) {
        engine->next_due = ucs_min(engine->next_due,
                                   now + UCT_HELPER_LOT_REST_NS);
    }
    return engine->next_due;
}
