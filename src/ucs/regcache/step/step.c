/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/regcache/plan/price.h>

#include <ucs/regcache/regcache_int.h>

#include <ucs/sys/math.h>

/* Batches of uses in one step. Where uses come faster the helper learns from a sample,
 * so that it does not fight the hits for cache lines. */
#define UCS_REGCACHE_BATCHES 4

/* Before the plans change by what the uses say. The lock is let go after each lot,
 * as on every walk: threads that communicate wait for it. */
static void ucs_regcache_step_account(ucs_regcache_h cache,
                                      const ucs_use_t *uses, unsigned count)
{
    unsigned i = 0;
    unsigned end;

    while (i < count) {
        end = ucs_min(count, i + (unsigned)cache->tuning.lot);
        ucs_regcache_lock(cache);
        ucs_regcache_account(cache, ucs_regcache_now(cache));
        for (; i < end; ++i) {
            ucs_regcache_account_use(cache, &uses[i]);
        }
        ucs_regcache_unlock(cache);
    }
}

/* The two queues in turn (section 3.2): after each use the registrations that
 * have become due */
static void ucs_regcache_step_learn(ucs_regcache_h cache, unsigned batches,
                                    uint64_t now)
{
    const ucs_regcache_policy_ops_t *policy = cache->plan.ops;
    ucs_use_t uses[UCS_REGCACHE_BATCH + UCS_REGCACHE_UNDER_WAY];
    unsigned count, total, i;

    ucs_regcache_listen_anew(cache);
    do {
        count = total = ucs_regcache_uses_drain(cache, uses);
        cache->plan.drained += count;
        for (i = 0; i < count; ++i) {
            cache->plan.is_pressing |= !ucs_load_relaxed(
                    &uses[i].region->drops);
        }
        if ((policy->under_way != NULL) && (count < UCS_REGCACHE_BATCH)) {
            total = policy->under_way(cache, uses, count);
        }
        if (total > 0) {
            cache->plan.used_at = now;
            ucs_regcache_step_account(cache, uses, total);
        }
        for (i = 0; i < total; ++i) {
            ucs_regcache_listen_use(cache, &uses[i]);
            if (!ucs_regcache_windows_use(cache, &uses[i]) &&
                (policy->use != NULL)) {
                policy->use(cache, &uses[i]);
            }
            while ((policy->plan == NULL) && ucs_regcache_serve_next(cache)) {
            }
        }
    } while ((count == UCS_REGCACHE_BATCH) && (--batches > 0));
    ucs_regcache_listen(cache, UCS_REGCACHE_TIME_NEVER);
    ucs_regcache_windows_pass(cache);
    ucs_regcache_listen_on(cache);
    if (policy->plan != NULL) {
        policy->plan(cache, ucs_regcache_now(cache));
    }
    ucs_regcache_announced_serve(cache);
    ucs_regcache_windows_serve(cache);
    while (ucs_regcache_serve_next(cache)) {
    }
}

/* Tell when the helper comes by itself: threads wake it only if that is too late for
 * them. @return That, or sooner for a use that came during the step. */
static uint64_t
ucs_regcache_step_due(ucs_regcache_h cache, uint64_t next, uint64_t now)
{
    uint64_t patience;

    ucs_store_seq_cst(&cache->plan.next_due, next); /* [R-DUE] */
    patience = ucs_load_seq_cst(&cache->plan.patience); /* [R-DUE] */
    if (patience != 0) {
        next = ucs_min(next, now + patience);
        ucs_store_relaxed(&cache->plan.next_due, next);
    }
    return next;
}

static uint64_t ucs_regcache_step_within(ucs_regcache_h cache, uint64_t now)
{
    uint64_t lost    = ucs_dq_lost(cache->use.queue);
    unsigned batches = (lost == cache->plan.sweep.lost) ?
                               UCS_REGCACHE_BATCHES :
                               1;
    uint64_t next;
    int list;

    /* seq_cst [R-DUE]: before the queue is looked at */
    ucs_store_seq_cst(&cache->plan.patience, 0);
    if (!ucs_regcache_plan_is_used(cache)) {
        ucs_regcache_reclaim(cache);
        return ucs_regcache_step_due(cache, UCS_REGCACHE_TIME_NEVER, now);
    }
    if (ucs_regcache_plan_open(cache) != UCS_OK) {
        /* As if the helper came late: it tries again */
        ucs_regcache_reclaim(cache);
        return ucs_regcache_step_due(cache, now + UCS_REGCACHE_AWAY_NS, now);
    }

    ucs_regcache_reclaim_some(cache, cache->tuning.lot);
    ucs_regcache_step_learn(cache, batches, now);
    /* Not before what it woke up for is served: on time it would find it too
     * early, and sleep again */
    ucs_regcache_terms_late(cache, now);
    ucs_regcache_sweep(cache, lost, ucs_regcache_now(cache));
    for (list = UCS_REGCACHE_RQ_EXPECTED; list < UCS_REGCACHE_RQ_LAST; ++list) {
        ucs_regcache_serve_expired(cache, list, ucs_regcache_now(cache));
    }
    ucs_regcache_reclaim_some(cache, cache->tuning.lot);

    now  = ucs_regcache_now(cache);
    next = ucs_regcache_wakeup_next(cache, now);
    if (ucs_load_relaxed(&cache->reclaim.count) > 0) {
        next = ucs_min(next, now + UCS_REGCACHE_LOT_REST_NS);
    }
    return ucs_regcache_step_due(cache, next, now);
}

uint64_t ucs_regcache_step(ucs_regcache_h cache, uint64_t now)
{
    cache->plan.idling.budget = UINT64_MAX;
    if (ucs_regcache_plan_is_used(cache)) {
        ucs_regcache_idle_take_up(cache);
    }
    return ucs_regcache_step_within(cache, now);
}

uint64_t ucs_regcache_idle_step(ucs_regcache_h cache, uint64_t now,
                                uint64_t spare_ns)
{
    uint64_t next;

    ucs_add_relaxed(&cache->plan.idle_steps, 1);
    ucs_regcache_idle_begin(cache, spare_ns);
    if (ucs_regcache_plan_is_used(cache)) {
        ucs_regcache_idle_take_up(cache);
    }
    next = ucs_regcache_step_within(cache, now);
    ucs_regcache_idle_end(cache);
    return cache->plan.idling.is_short ?
                   now :
                   ucs_min(next, cache->plan.idling.due);
}
