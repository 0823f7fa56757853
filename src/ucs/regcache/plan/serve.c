/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/regcache/regcache_int.h>

#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>

/* Without registrations in advance after one failed, ns; twice as long after each
 * further one */
#define UCS_REGCACHE_BACKOFF_NS 1000000u

/* Doublings of the uses without a registration in advance that follow a
 * refusal */
#define UCS_REGCACHE_REFUSED_MAX 10

static void ucs_regcache_serve_back_off(ucs_regcache_h cache)
{
    uint64_t now = ucs_regcache_now(cache);

    cache->plan.backoff.ns    = ucs_max(2 * cache->plan.backoff.ns,
                                        UCS_REGCACHE_BACKOFF_NS);
    cache->plan.backoff.ns    = ucs_min(cache->plan.backoff.ns,
                                        UCS_REGCACHE_AWAY_NS);
    cache->plan.backoff.until = now + cache->plan.backoff.ns;
}

int ucs_regcache_serve_is_backing_off(ucs_regcache_h cache)
{
    if (ucs_unlikely(ucs_load_relaxed(&cache->pressed))) {
        ucs_store_relaxed(&cache->pressed, 0);
        ucs_regcache_serve_back_off(cache);
    }
    return ucs_regcache_now(cache) < cache->plan.backoff.until;
}

/* Want of memory passes, for all alike, and so does want of room; a buffer that
 * is refused for what it is will be refused again. The verbs domain of UCX 1.13
 * does not tell them apart. */
static ucs_status_t ucs_regcache_serve_register(ucs_regcache_h cache,
                                                ucs_regcache_rq_item_t *item,
                                                ucs_regcache_region_t *region)
{
    ucs_status_t status;

    status = ucs_regcache_register_ahead(cache, region,
                                         UCS_REGCACHE_HELD_AHEAD);
    if (status == UCS_OK) {
        cache->plan.backoff.ns = 0;
        return UCS_OK;
    }
    if (ucs_regcache_status_is_exhausted(status)) {
        ucs_regcache_serve_back_off(cache);
    }
    if ((status != UCS_ERR_NO_MEMORY) && (status != UCS_ERR_NO_RESOURCE) &&
        (status != UCS_ERR_EXCEEDS_LIMIT)) {
        ucs_regcache_rq_refused(item, UCS_REGCACHE_REFUSED_MAX);
    }
    return status;
}

ucs_status_t ucs_regcache_serve_unasked(ucs_regcache_h cache,
                                        ucs_regcache_region_t *region,
                                        ucs_regcache_held_t why)
{
    uint64_t generation = ucs_regcache_region_gen(region);
    ucs_status_t status = ucs_regcache_register_ahead(cache, region, why);

    if (ucs_regcache_status_is_exhausted(status)) {
        ucs_regcache_serve_back_off(cache);
    }
    if ((status == UCS_ERR_EXCEEDS_LIMIT) &&
        !ucs_load_relaxed(&region->planned) &&
        (ucs_regcache_region_gen(region) == generation)) {
        ucs_regcache_plan_forget(cache, region);
    }
    return status;
}

/* Under the lock. A region that another one covers, which is registered, is left alone,
 * and so is one that was struck: it waits to be freed, and what is found in its place is
 * of a later mapping.
 * @return The state that the item's region was in; FREE: there is nothing to do. */
static ucs_regcache_state_t
ucs_regcache_serve_begin(ucs_regcache_h cache,
                         const ucs_regcache_rq_item_t *item)
{
    ucs_regcache_region_t *region = item->region;
    ucs_regcache_region_t *found;
    uint64_t word = ucs_load_relaxed(&region->word);
    ucs_regcache_state_t state;

    found = ucs_regcache_index_find(&cache->index,
                                    ucs_load_relaxed(&region->start),
                                    ucs_load_relaxed(&region->end),
                                    ucs_load_relaxed(&region->access));
    if ((found == NULL) || !ucs_regcache_rq_item_is_current(item) ||
        (word & UCS_REGCACHE_WORD_DOOMED) ||
        ((found != region) &&
         (ucs_regcache_word_state(ucs_load_relaxed(&found->word)) !=
          UCS_REGCACHE_STATE_DORMANT))) {
        return UCS_REGCACHE_STATE_FREE;
    }

    state = ucs_regcache_word_state(word);
    if (state == UCS_REGCACHE_STATE_DORMANT) {
        ucs_store_relaxed(&region->speculative, 1);
        ucs_store_relaxed(&region->wake, UCS_REGCACHE_WAKE_NONE);
        ucs_store_relaxed(&region->idle, UCS_REGCACHE_IDLE_QUEUE);
        ucs_store_release(&region->word, /* [R-LIVE] */
                          ucs_regcache_word_set_state(
                                  word, UCS_REGCACHE_STATE_REGISTERING));
    }
    return state;
}

static void ucs_regcache_serve_due(ucs_regcache_h cache,
                                   ucs_regcache_rq_item_t *item)
{
    ucs_regcache_region_t *region = item->region;
    ucs_regcache_state_t state;
    uint64_t until;

    if (!ucs_regcache_rq_item_is_current(item) ||
        ucs_regcache_serve_is_backing_off(cache) ||
        (ucs_regcache_lock_reserved(cache) != UCS_OK)) {
        ucs_regcache_plan_cancel(cache, item);
        return;
    }

    state = ucs_regcache_serve_begin(cache, item);
    ucs_regcache_unlock(cache);
    cache->plan.did_plans |= (state == UCS_REGCACHE_STATE_DORMANT);

    if ((state == UCS_REGCACHE_STATE_LIVE) ||
        ((state == UCS_REGCACHE_STATE_DORMANT) &&
         (ucs_regcache_serve_register(cache, item, region) == UCS_OK))) {
        /* Now its use must come */
        until = cache->plan.ops->until(cache, item, ucs_regcache_now(cache));
        ucs_regcache_rq_registered(&cache->plan.rq, item, region, until);
        ucs_regcache_plan_awaits(cache, region, until);
        ucs_regcache_plan_replan(cache, region);
    } else {
        /* The use has come already, or its buffer cannot be had */
        ucs_regcache_plan_cancel(cache, item);
    }
}

int ucs_regcache_serve_next(ucs_regcache_h cache)
{
    ucs_regcache_rq_item_t *item = ucs_regcache_rq_first(
            &cache->plan.rq, UCS_REGCACHE_RQ_PENDING);
    ucs_predict_terms_t terms;

    if (item == NULL) {
        return 0;
    }
    if (ucs_regcache_rq_item_is_current(item)) {
        ucs_regcache_terms(cache, item->region, &terms);
        if (ucs_predict_may_delay(ucs_regcache_now(cache), &terms,
                                  item->time) ||
            !ucs_regcache_idle_may(cache, terms.register_ns)) {
            return 0;
        }
    }
    ucs_regcache_serve_due(cache, item);
    return 1;
}

/* The use did not come by deadline and slack */
static void ucs_regcache_serve_expire(ucs_regcache_h cache,
                                      ucs_regcache_rq_item_t *item,
                                      uint64_t now)
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
                               cache->plan.ops->until(cache, item, now));
        return;
    }
    cache->plan.ops->expired(cache, item, now);
}

void ucs_regcache_serve_expired(ucs_regcache_h cache,
                                ucs_regcache_rq_list_t list, uint64_t now)
{
    ucs_regcache_rq_item_t *item;

    while (((item = ucs_regcache_rq_first(&cache->plan.rq, list)) != NULL) &&
           (item->time <= now)) {
        ucs_regcache_serve_expire(cache, item, now);
    }
}
