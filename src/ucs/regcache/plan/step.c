/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/regcache/regcache_int.h>

#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>

/* Batches in one step. Where uses come faster than they can be learned from
 * there is no gap to deregister in either; the helper then learns from a sample
 * and sleeps in between, so that it does not fight the hits for cache lines. */
#define UCS_REGCACHE_BATCHES 4

/* Idle time after which a region whose last use may have been lost is
 * deregistered */
#define UCS_REGCACHE_STRAY_NS UINT64_C(5000000)

/* Between two lots, of a sweep or of what was unmapped: ten times what it takes
 * to look at one under the index lock, so that it is free for nine parts of
 * ten; and fork() comes in, which waits for the end of a step */
#define UCS_REGCACHE_LOT_REST_NS UINT64_C(100000)

/* Terms of the paper's t_p that are not measured one by one: a look-up in the
 * call-site table and in the cache, and a step along a queue. Upper bounds. */
#define UCS_REGCACHE_HASH_NS  500
#define UCS_REGCACHE_CACHE_NS 500
#define UCS_REGCACHE_ITEM_NS  5.0

/* After a registration in advance has failed, or a use was short of something,
 * there is none for a while: the longer the more often it fails in a row */
#define UCS_REGCACHE_BACKOFF_MIN_NS UINT64_C(1000000)
#define UCS_REGCACHE_BACKOFF_MAX_NS UINT64_C(1000000000)

#define UCS_REGCACHE_LATENESS_MAX_NS UINT64_C(5000000)

/*
 * Terms
 */

/* Under the lock */
static void ucs_regcache_step_terms_locked(ucs_regcache_h cache,
                                           ucs_regcache_region_t *region,
                                           ucs_predict_terms_t *terms)
{
    size_t pages = ucs_regcache_pages(cache, region);
    size_t items = cache->plan.rq.count[UCS_REGCACHE_RQ_PENDING];

    terms->hash_ns   = UCS_REGCACHE_HASH_NS;
    terms->cache_ns  = UCS_REGCACHE_CACHE_NS;
    terms->insert_ns = ucs_predict_queue_cost(UCS_REGCACHE_ITEM_NS, items);
    terms->update_ns = terms->insert_ns;
    terms->wakeup_ns = ucs_max(cache->plan.lateness, cache->plan.shared);

    terms->register_ns   = ucs_predict_cost_estimate(&cache->cost.reg, pages);
    terms->deregister_ns = ucs_predict_cost_estimate(&cache->cost.dereg, pages);
}

void ucs_regcache_step_terms(ucs_regcache_h cache,
                             ucs_regcache_region_t *region,
                             ucs_predict_terms_t *terms)
{
    ucs_regcache_lock(cache);
    ucs_regcache_step_terms_locked(cache, region, terms);
    ucs_regcache_unlock(cache);
}

static void ucs_regcache_step_lateness(ucs_regcache_h cache, uint64_t now)
{
    int64_t late;

    if ((cache->plan.next_due == UCS_REGCACHE_TIME_NEVER) ||
        (now < cache->plan.next_due)) {
        return;
    }
    late = ucs_min(now - cache->plan.next_due, UCS_REGCACHE_LATENESS_MAX_NS);
    late = late - (int64_t)cache->plan.lateness;
    /* Up fast, down slowly: a missed deadline costs more than a page held */
    cache->plan.lateness += late / ((late > 0) ? 2 : 16);
}

/*
 * Plans: what a region is expected for
 */

void ucs_regcache_step_remember(ucs_regcache_h cache,
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

void ucs_regcache_step_forget(ucs_regcache_h cache,
                              ucs_regcache_region_t *region)
{
    ucs_store_relaxed(&region->planned, 0);
    ucs_regcache_lock(cache);
    if ((ucs_load_relaxed(&region->word) &
         (UCS_REGCACHE_WORD_STATE_MASK | UCS_REGCACHE_WORD_DOOMED)) ==
        UCS_REGCACHE_STATE_DORMANT) {
        ucs_regcache_index_remove(&cache->index, region);
        ucs_regcache_region_free(cache, region);
    }
    ucs_regcache_unlock(cache);
}

void ucs_regcache_step_replan(ucs_regcache_h cache,
                              ucs_regcache_region_t *region)
{
    const ucs_regcache_rq_item_t *item;

    if (cache->plan.ops->remembers) {
        return; /* planned for as long as it is a buffer's home */
    }
    item = ucs_regcache_rq_of_region(region);
    if (item != NULL) {
        ucs_regcache_step_remember(cache, region, item->generation);
    } else {
        ucs_regcache_step_forget(cache, region);
    }
}

/* Earliest time at which the region must be registered; NEVER if none */
static uint64_t ucs_regcache_step_earliest(ucs_regcache_region_t *region)
{
    uint64_t earliest = UCS_REGCACHE_TIME_NEVER;
    ucs_regcache_rq_item_t *item;

    for (item = ucs_regcache_rq_of_region(region); item != NULL;
         item = item->region_next) {
        if (item->list != UCS_REGCACHE_RQ_PENDING) {
            return 0;
        }
        earliest = ucs_min(earliest, item->time);
    }
    return earliest;
}

void ucs_regcache_step_deregister(ucs_regcache_h cache,
                                  ucs_regcache_region_t *region)
{
    uint64_t earliest = ucs_regcache_step_earliest(region);
    ucs_predict_terms_t terms;
    int is_claimed;

    if (cache->plan.ops->keeps_budget &&
        (cache->config.max_pinned != SIZE_MAX)) {
        return; /* memory that the user granted; evicted when it is needed */
    }

    if (earliest != UCS_REGCACHE_TIME_NEVER) {
        ucs_regcache_step_terms(cache, region, &terms);
        if (!ucs_predict_may_deregister(ucs_regcache_now(cache), &terms,
                                        earliest)) {
            return;
        }
    }

    ucs_regcache_lock(cache);
    is_claimed = ucs_regcache_region_take_idle(cache, region);
    ucs_regcache_unlock(cache);
    if (is_claimed) {
        ucs_regcache_region_deregister(cache, region, NULL);
    }
}

void ucs_regcache_step_cancel(ucs_regcache_h cache,
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
    ucs_regcache_step_replan(cache, region);
    ucs_regcache_step_deregister(cache, region);
}

/*
 * Deregistration queue
 */

/* A path that no use has walked, for all were hits, goes by where it ended */
uint64_t ucs_regcache_step_path(ucs_regcache_h cache, const ucs_use_t *use)
{
    uint64_t path = cache->env.recall(cache->env.arg, use->sp, use->address,
                                      use->length);

    return (path != 0) ? path : use->sp;
}

/* Ends come in another order than starts; the predictor wants the latter */
void ucs_regcache_step_sort(ucs_use_t *uses, unsigned count,
                            const ucs_use_t *use)
{
    unsigned i;

    for (i = count; (i > 0) && (uses[i - 1].start_ns > use->start_ns); --i) {
        uses[i] = uses[i - 1];
    }
    uses[i] = *use;
}

static unsigned ucs_regcache_step_drain(ucs_regcache_h cache, ucs_use_t *uses)
{
    unsigned count = 0;
    ucs_use_t use;

    while ((count < UCS_REGCACHE_BATCH) && ucs_dq_pop(cache->use.queue, &use)) {
        ucs_regcache_step_sort(uses, count++, &use);
    }
    return count;
}

/* Under the lock: idle for a while, and not about to be used. That a use is
 * expected later does not matter: the one that was lost would have had the
 * region deregistered until then. */
static int ucs_regcache_step_is_stray(ucs_regcache_h cache,
                                      ucs_regcache_region_t *region,
                                      uint64_t now)
{
    uint64_t word = ucs_load_relaxed(&region->word);
    uint64_t earliest;
    ucs_predict_terms_t terms;

    if (!ucs_regcache_word_is_hit(word) || (ucs_regcache_word_refs(word) > 0) ||
        (ucs_load_relaxed(&region->idle) != UCS_REGCACHE_IDLE_QUEUE) ||
        (ucs_load_relaxed(&region->last_use) + UCS_REGCACHE_STRAY_NS > now)) {
        return 0;
    }

    earliest = ucs_regcache_step_earliest(region);
    ucs_regcache_step_terms_locked(cache, region, &terms);
    return ucs_predict_may_deregister(now, &terms, earliest);
}

/* Under the lock: the next stray, once it is claimed; NULL if the lot or the
 * sweep is over */
static ucs_regcache_region_t *ucs_regcache_step_next_stray(ucs_regcache_h cache,
                                                           unsigned *left_p,
                                                           uint64_t now)
{
    ucs_regcache_region_t *region;

    for (; *left_p > 0; --*left_p) {
        region = ucs_regcache_walk_next(&cache->plan.sweep);
        if (region == NULL) {
            break;
        }
        if (ucs_regcache_step_is_stray(cache, region, now) &&
            ucs_regcache_region_take_idle(cache, region)) {
            --*left_p;
            return region;
        }
    }
    return NULL;
}

/* A lot of regions. The lock is not fair: a helper that took it again at once
 * would keep it from all others, where cores are busy for as long as the sweep
 * lasts; so it sleeps between two lots. */
static void ucs_regcache_step_sweep(ucs_regcache_h cache, uint64_t now)
{
    unsigned left = UCS_REGCACHE_LOT;
    ucs_regcache_region_t *region;

    do {
        ucs_regcache_lock(cache);
        region = ucs_regcache_step_next_stray(cache, &left, now);
        ucs_regcache_unlock(cache);
        if (region != NULL) {
            ucs_regcache_region_deregister(cache, region, NULL);
        }
    } while (region != NULL);

    if (cache->plan.sweep.chunk != NULL) {
        cache->plan.sweep_at = ucs_regcache_now(cache) +
                               UCS_REGCACHE_LOT_REST_NS;
    } else {
        cache->plan.sweep_at    = cache->plan.sweep_again ?
                                          now + 2 * UCS_REGCACHE_STRAY_NS :
                                          UCS_REGCACHE_TIME_NEVER;
        cache->plan.sweep_again = 0;
    }
}

/* Uses were lost, so regions may be idle that no queue knows of. Not at once:
 * where uses are lost they come fast, and what was used just now will be used
 * again. A sweep that is under way has looked at some already and goes on. */
static void ucs_regcache_step_lost(ucs_regcache_h cache, uint64_t lost,
                                   uint64_t now)
{
    if (lost != cache->plan.lost) {
        cache->plan.lost = lost;
        if (cache->plan.sweep.chunk == NULL) {
            cache->plan.sweep_at = now + 2 * UCS_REGCACHE_STRAY_NS;
        } else {
            cache->plan.sweep_again = 1;
        }
    }
    if (cache->plan.sweep_at > now) {
        return;
    }
    if (cache->plan.sweep.chunk == NULL) {
        ucs_regcache_lock(cache);
        cache->plan.sweep.chunk = cache->store.chunks;
        ucs_regcache_unlock(cache);
    }
    ucs_regcache_step_sweep(cache, now);
}

/*
 * Registration queue
 */

static void ucs_regcache_step_back_off(ucs_regcache_h cache)
{
    uint64_t now = ucs_regcache_now(cache);

    cache->plan.backoff       = ucs_max(2 * cache->plan.backoff,
                                        UCS_REGCACHE_BACKOFF_MIN_NS);
    cache->plan.backoff       = ucs_min(cache->plan.backoff,
                                        UCS_REGCACHE_BACKOFF_MAX_NS);
    cache->plan.backoff_until = now + cache->plan.backoff;
}

/* The uses that are due meanwhile register by themselves */
static int ucs_regcache_step_is_backing_off(ucs_regcache_h cache)
{
    if (ucs_unlikely(ucs_load_relaxed(&cache->pressed))) {
        ucs_store_relaxed(&cache->pressed, 0);
        ucs_regcache_step_back_off(cache);
    }
    return ucs_regcache_now(cache) < cache->plan.backoff_until;
}

/* Want of memory passes, for all alike, and so does want of room; a buffer that
 * is refused for what it is will be refused again. The verbs domain of UCX 1.13
 * does not tell them apart. */
static ucs_status_t ucs_regcache_step_register(ucs_regcache_h cache,
                                               ucs_regcache_rq_item_t *item,
                                               ucs_regcache_region_t *region)
{
    ucs_status_t status;

    status = ucs_regcache_register_ahead(cache, region);
    if (status == UCS_OK) {
        cache->plan.backoff = 0;
        return UCS_OK;
    }
    if (ucs_regcache_status_is_exhausted(status)) {
        ucs_regcache_step_back_off(cache);
    }
    if ((status != UCS_ERR_NO_MEMORY) && (status != UCS_ERR_NO_RESOURCE) &&
        (status != UCS_ERR_EXCEEDS_LIMIT)) {
        ucs_regcache_rq_refused(item);
    }
    return status;
}

/* What is to be done for an item that is due; under the lock */
static ucs_regcache_region_t *
ucs_regcache_step_find(ucs_regcache_h cache, ucs_regcache_rq_item_t *item,
                       ucs_regcache_state_t *state_p)
{
    ucs_regcache_region_t *region = item->region;
    ucs_regcache_region_t *found;
    uint64_t word;

    found = ucs_regcache_index_find(&cache->index,
                                    ucs_load_relaxed(&region->start),
                                    ucs_load_relaxed(&region->end),
                                    ucs_load_relaxed(&region->access));
    if (found == NULL) {
        *state_p = UCS_REGCACHE_STATE_FREE;
        return NULL;
    }

    word     = ucs_load_relaxed(&found->word);
    *state_p = ucs_regcache_word_state(word);
    if (*state_p == UCS_REGCACHE_STATE_DORMANT) {
        ucs_store_relaxed(&found->speculative, 1);
        ucs_store_relaxed(&found->wake, 0);
        ucs_store_relaxed(&found->idle, UCS_REGCACHE_IDLE_QUEUE);
        ucs_store_release(&found->word, /* [R-LIVE] */
                          ucs_regcache_word_set_state(
                                  word, UCS_REGCACHE_STATE_REGISTERING));
    }
    return found;
}

/* The region is registered, or was so already: now its use must come */
static void ucs_regcache_step_registered(ucs_regcache_h cache,
                                         ucs_regcache_rq_item_t *item,
                                         ucs_regcache_region_t *region)
{
    ucs_regcache_region_t *before = item->region;
    uint64_t now                  = ucs_regcache_now(cache);

    ucs_regcache_rq_registered(&cache->plan.rq, item, region,
                               cache->plan.ops->until(cache, item, now));
    ucs_regcache_step_replan(cache, region);
    if (before != region) {
        ucs_regcache_step_replan(cache, before);
        ucs_regcache_step_deregister(cache, before);
    }
}

static void ucs_regcache_step_due(ucs_regcache_h cache,
                                  ucs_regcache_rq_item_t *item)
{
    ucs_regcache_region_t *region;
    ucs_regcache_state_t state;

    if (!ucs_regcache_rq_item_is_current(item) ||
        ucs_regcache_step_is_backing_off(cache) ||
        (ucs_regcache_lock_reserved(cache) != UCS_OK)) {
        ucs_regcache_step_cancel(cache, item);
        return;
    }

    region = ucs_regcache_step_find(cache, item, &state);
    ucs_regcache_unlock(cache);

    if ((state == UCS_REGCACHE_STATE_DORMANT) &&
        (ucs_regcache_step_register(cache, item, region) == UCS_OK)) {
        state = UCS_REGCACHE_STATE_LIVE;
    }
    if (state == UCS_REGCACHE_STATE_LIVE) {
        ucs_regcache_step_registered(cache, item, region);
    } else {
        /* The use has come already, or its buffer cannot be had */
        ucs_regcache_step_cancel(cache, item);
    }
}

/* First time at which this item may not be delayed any more. Under the lock. */
uint64_t ucs_regcache_step_begin_time(ucs_regcache_h cache,
                                      ucs_regcache_rq_item_t *item)
{
    ucs_predict_terms_t terms;
    uint64_t cost;

    ucs_regcache_step_terms_locked(cache, item->region, &terms);
    cost = ucs_predict_register_cost(&terms);
    return (item->time > cost) ? item->time - cost + 1 : 0;
}

static int ucs_regcache_step_rq(ucs_regcache_h cache)
{
    ucs_regcache_rq_item_t *item = ucs_regcache_rq_first(
            &cache->plan.rq, UCS_REGCACHE_RQ_PENDING);
    ucs_predict_terms_t terms;

    if (item == NULL) {
        return 0;
    }
    if (ucs_regcache_rq_item_is_current(item)) {
        ucs_regcache_step_terms(cache, item->region, &terms);
        if (ucs_predict_may_delay(ucs_regcache_now(cache), &terms,
                                  item->time)) {
            return 0;
        }
    }
    ucs_regcache_step_due(cache, item);
    return 1;
}

/* The use did not come by deadline and slack */
static void ucs_regcache_step_expire(ucs_regcache_h cache,
                                     ucs_regcache_rq_item_t *item, uint64_t now)
{
    ucs_regcache_region_t *region = item->region;
    uint64_t word                 = ucs_load_relaxed(&region->word);

    if (!ucs_regcache_rq_item_is_current(item)) {
        ucs_regcache_rq_remove(&cache->plan.rq, item);
        return;
    }
    if (ucs_regcache_word_refs(word) > 0) {
        /* It came; its end will be in the DQ */
        ucs_regcache_rq_extend(&cache->plan.rq, item,
                               ucs_max(cache->plan.ops->until(cache, item, now),
                                       now + UCS_REGCACHE_POLL_MIN_NS));
        return;
    }
    if (cache->plan.ops->unused != NULL) {
        cache->plan.ops->unused(cache, item);
    }
    ucs_regcache_step_cancel(cache, item);
}

static void ucs_regcache_step_expired(ucs_regcache_h cache,
                                      ucs_regcache_rq_list_t list, uint64_t now)
{
    ucs_regcache_rq_item_t *item;

    while (((item = ucs_regcache_rq_first(&cache->plan.rq, list)) != NULL) &&
           (item->time <= now)) {
        ucs_regcache_step_expire(cache, item, now);
    }
}

/*
 * Step
 */

uint64_t ucs_regcache_step(ucs_regcache_h cache, uint64_t now)
{
    uint64_t lost    = ucs_dq_lost(cache->use.queue);
    unsigned batches = (lost == cache->plan.lost) ? UCS_REGCACHE_BATCHES : 1;
    const ucs_regcache_policy_ops_t *steer = cache->plan.ops;
    ucs_use_t uses[UCS_REGCACHE_BATCH + UCS_REGCACHE_UNDER_WAY];
    unsigned count, total, i;

    if (steer == NULL) {
        ucs_regcache_reclaim(cache);
        return UCS_REGCACHE_TIME_NEVER;
    }

    ucs_regcache_step_lateness(cache, now);
    ucs_regcache_reclaim_some(cache, UCS_REGCACHE_LOT);

    /* The two queues in turn (section 3.2): after each use the registrations
     * that have become due */
    do {
        count = total = ucs_regcache_step_drain(cache, uses);
        if ((steer->under_way != NULL) && (count < UCS_REGCACHE_BATCH)) {
            total = steer->under_way(cache, uses, count);
        }
        if (total > 0) {
            cache->plan.used_at = now;
        }
        for (i = 0; i < total; ++i) {
            steer->use(cache, &uses[i]);
            while ((steer->plan == NULL) && ucs_regcache_step_rq(cache)) {
            }
        }
    } while ((count == UCS_REGCACHE_BATCH) && (--batches > 0));
    if (steer->plan != NULL) {
        steer->plan(cache, ucs_regcache_now(cache));
    }
    while (ucs_regcache_step_rq(cache)) {
    }

    ucs_regcache_step_lost(cache, lost, ucs_regcache_now(cache));
    ucs_regcache_step_expired(cache, UCS_REGCACHE_RQ_EXPECTED,
                              ucs_regcache_now(cache));
    ucs_regcache_step_expired(cache, UCS_REGCACHE_RQ_HELD,
                              ucs_regcache_now(cache));
    ucs_regcache_reclaim_some(cache, UCS_REGCACHE_LOT);

    now                  = ucs_regcache_now(cache);
    cache->plan.next_due = ucs_regcache_wakeup_next(cache, now);
    if (ucs_load_relaxed(&cache->reclaim.count) > 0) {
        cache->plan.next_due = ucs_min(cache->plan.next_due,
                                       now + UCS_REGCACHE_LOT_REST_NS);
    }
    ucs_regcache_assert_valid(cache);
    return cache->plan.next_due;
}
