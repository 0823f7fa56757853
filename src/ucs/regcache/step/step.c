/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/regcache/regcache_int.h>

#include <ucs/sys/math.h>

#include <math.h>

/* --- When it comes next --------------------------------------------------- */

/* The helper rests for so long, ns, before it looks for uses only to learn from
 * them: it does not fight hits for cache lines */
#define UCS_REGCACHE_LEARN_REST_NS 1e6

/*
 * When is it time to look whether the uses have ended that are waited for? A look has
 * its price (look_ns), and each moment without one holds what nobody uses any more. The
 * longer a use is late, the longer it may still be; with looks after the square root of
 *
 *     2 * look * late / (lambda * bytes)
 *
 * both costs are the same at the most likely end.
 */
static uint64_t ucs_regcache_wakeup_look(ucs_regcache_h cache,
                                         double leave_bytes, uint64_t now)
{
    uint64_t next = UCS_REGCACHE_TIME_NEVER;
    double bytes  = 0;
    double late   = 0;
    const ucs_regcache_rq_item_t *item;
    double interval, length;

    for (item = ucs_regcache_rq_first(&cache->plan.rq,
                                      UCS_REGCACHE_RQ_EXPECTED);
         item != NULL; item = item->next) {
        if (!ucs_regcache_rq_item_is_current(item)) {
            continue; /* nothing is registered for it */
        }
        if (item->use_end > now) {
            next = ucs_min(next, item->use_end);
            continue;
        }
        /* Of this life or, for once, of the next: it may end meanwhile */
        length = ucs_regcache_held_bytes(
                cache, ucs_regcache_region_length(item->region));
        bytes += length;
        late  += length * (double)(now - item->use_end);
    }
    if (bytes == 0) {
        return next;
    }
    late     = late / bytes + cache->tuning.step_ns;
    interval = sqrt(2 * cache->tuning.look_ns * late * leave_bytes /
                    (cache->config.max_slowdown * bytes));
    interval = ucs_max(interval, 10 * cache->tuning.step_ns);
    interval = ucs_min(interval, (double)cache->tuning.patrol_ns);
    return ucs_min(next, now + (uint64_t)interval + 1);
}

/* A policy that keeps what is registered looks only while a ceiling is passed */
static int ucs_regcache_wakeup_patrols(ucs_regcache_h cache)
{
    return !cache->plan.ops->keeps || ucs_load_relaxed(&cache->is_over);
}

static uint64_t ucs_regcache_wakeup_patrol(ucs_regcache_h cache, uint64_t now)
{
    uint64_t idle = (now > cache->plan.used_at) ? now - cache->plan.used_at : 0;

    return ucs_max(cache->tuning.patrol_ns,
                   ucs_min(idle, UCS_REGCACHE_AWAY_NS));
}

/* When the queue of uses will be half full, at the rate of late */
static uint64_t ucs_regcache_wakeup_queue(ucs_regcache_h cache, uint64_t now)
{
    double elapsed = (double)(now - cache->plan.drained_at);
    double uses    = cache->plan.drained;
    double wait;

    cache->plan.drained    = 0;
    cache->plan.drained_at = now;
    if (uses == 0) {
        return UCS_REGCACHE_TIME_NEVER;
    }
    wait = elapsed * cache->plan.queue_length / (2 * uses);
    wait = ucs_max(wait, UCS_REGCACHE_LEARN_REST_NS);
    return now + (uint64_t)ucs_min(wait, (double)UCS_REGCACHE_AWAY_NS);
}

/* A look is for all that are looked for, so each can wait anew after this one */
static uint64_t ucs_regcache_wakeup_watched(ucs_regcache_h cache, uint64_t next,
                                            uint64_t now)
{
    const ucs_regcache_rq_item_t *item;

    for (item = ucs_regcache_rq_first(&cache->plan.rq, UCS_REGCACHE_RQ_WATCHED);
         (item != NULL) && (item->time < next); item = item->next) {
        next = ucs_min(next, ucs_max(item->time, now + item->every));
    }
    return next;
}

static uint64_t ucs_regcache_wakeup_expired(ucs_regcache_h cache,
                                            ucs_regcache_rq_list_t list)
{
    ucs_regcache_rq_item_t *item = ucs_regcache_rq_first(&cache->plan.rq, list);

    return (item == NULL) ? UCS_REGCACHE_TIME_NEVER : item->time;
}

/* Under the index lock: the first time at which the registration of a pending item may
 * not be delayed any more */
static uint64_t ucs_regcache_wakeup_begin(ucs_regcache_h cache,
                                          ucs_regcache_rq_item_t *item)
{
    ucs_predict_terms_t terms;
    uint64_t cost;

    ucs_regcache_terms_locked(cache, item->region, &terms);
    cost = ucs_predict_register_cost(&terms);
    return (item->time > cost) ? item->time - cost + 1 : 0;
}

static uint64_t ucs_regcache_wakeup_next(ucs_regcache_h cache, uint64_t now)
{
    uint64_t begin = UCS_REGCACHE_TIME_NEVER;
    ucs_regcache_rq_item_t *item;
    double leave_bytes;
    unsigned registered;
    uint64_t next;
    int list;

    item = ucs_regcache_rq_first(&cache->plan.rq, UCS_REGCACHE_RQ_PENDING);
    ucs_regcache_lock(cache);
    registered  = cache->lru[UCS_REGCACHE_CLASS_MANAGED].count;
    leave_bytes = ucs_regcache_leave_bytes(cache);
    if (item != NULL) {
        begin = ucs_regcache_wakeup_begin(cache, item);
    }
    ucs_regcache_unlock(cache);

    next = ucs_regcache_wakeup_look(cache, leave_bytes, now);
    if (cache->plan.drained > 0) {
        /* More will come, and is not to wake it */
        next = ucs_min(next, now + (cache->plan.is_pressing ?
                                            cache->tuning.leisure_ns :
                                            cache->tuning.patrol_ns));
    }
    cache->plan.is_pressing = 0;
    if ((registered > 0) && ucs_regcache_wakeup_patrols(cache)) {
        next = ucs_min(next, now + ucs_regcache_wakeup_patrol(cache, now));
    }
    next = ucs_min(next, ucs_regcache_wakeup_queue(cache, now));
    next = ucs_min(next, cache->plan.sweep.at);
    next = ucs_min(next, cache->plan.leaving.due);
    next = ucs_min(next, ucs_regcache_announced_next(cache));
    for (list = UCS_REGCACHE_RQ_EXPECTED; list < UCS_REGCACHE_RQ_WATCHED;
         ++list) {
        next = ucs_min(next, ucs_regcache_wakeup_expired(cache, list));
    }
    next = ucs_regcache_wakeup_watched(cache, next, now);
    return ucs_min(next, begin); /* what was promised is kept */
}

/* --- Uses that were lost -------------------------------------------------- */

/* Under the lock: idle for a while, and not about to be used. A use that is expected
 * later does not matter: the lost one would have had the region deregistered until
 * then. */
static int ucs_regcache_sweep_is_stray(ucs_regcache_h cache,
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

    earliest = ucs_regcache_plan_earliest(region);
    ucs_regcache_terms_locked(cache, region, &terms);
    return ucs_predict_may_deregister(now, &terms, earliest);
}

/* Under the lock: DORMANT until the helper hears of its use, which is lost */
static int ucs_regcache_sweep_is_unheard(ucs_regcache_region_t *region,
                                         uint64_t now)
{
    uint64_t word = ucs_load_relaxed(&region->word);

    return (ucs_regcache_word_state(word) == UCS_REGCACHE_STATE_DORMANT) &&
           !(word & UCS_REGCACHE_WORD_DOOMED) &&
           (ucs_regcache_word_refs(word) == 0) &&
           !ucs_load_relaxed(&region->planned) &&
           (ucs_load_relaxed(&region->last_use) + UCS_REGCACHE_STRAY_NS <= now);
}

/* Under the lock: the next stray, once it is claimed; NULL if the lot or the
 * sweep is over */
static ucs_regcache_region_t *ucs_regcache_sweep_next(ucs_regcache_h cache,
                                                      unsigned *left_p,
                                                      uint64_t now)
{
    ucs_regcache_region_t *region;

    for (; *left_p > 0; --*left_p) {
        region = ucs_regcache_walk_next(&cache->plan.sweep.walk);
        if (region == NULL) {
            break;
        }
        if (ucs_regcache_sweep_is_stray(cache, region, now) &&
            ucs_regcache_region_take_idle(cache, region)) {
            --*left_p;
            if (!ucs_load_relaxed(&region->planned)) {
                /* Nobody will hear of its use (state.c) */
                ucs_store_relaxed(&region->learned_start, UINT64_MAX);
            }
            return region;
        }
        if (ucs_regcache_sweep_is_unheard(region, now)) {
            ucs_regcache_region_forget(cache, region);
        }
    }
    return NULL;
}

/* A lot of regions. The lock is not fair: on busy cores a helper that took it again at
 * once would keep it from all others. So it sleeps between two lots. */
static void ucs_regcache_sweep_lot(ucs_regcache_h cache, uint64_t now)
{
    unsigned left = cache->tuning.lot;
    ucs_regcache_region_t *region;

    do {
        ucs_regcache_lock(cache);
        region = ucs_regcache_sweep_next(cache, &left, now);
        ucs_regcache_unlock(cache);
        if (region != NULL) {
            ucs_regcache_region_deregister(cache, region, NULL, NULL);
        }
    } while (region != NULL);

    if (cache->plan.sweep.walk.chunk != NULL) {
        cache->plan.sweep.at = ucs_regcache_now(cache) +
                               UCS_REGCACHE_LOT_REST_NS;
    } else {
        cache->plan.sweep.at       = cache->plan.sweep.is_again ?
                                             now + 2 * UCS_REGCACHE_STRAY_NS :
                                             UCS_REGCACHE_TIME_NEVER;
        cache->plan.sweep.is_again = 0;
    }
}

/* Uses were lost, so regions may be idle that no queue knows of. Not at once: where
 * uses are lost they come fast, and a buffer that was just used will be used again. A
 * sweep that is under way goes on. */
static void ucs_regcache_sweep(ucs_regcache_h cache, uint64_t lost,
                               uint64_t now)
{
    if (cache->plan.ops->keeps) {
        cache->plan.sweep.lost = lost;
        cache->plan.sweep.at   = UCS_REGCACHE_TIME_NEVER;
        return; /* what is registered stays */
    }
    if (lost != cache->plan.sweep.lost) {
        cache->plan.sweep.lost = lost;
        if (cache->plan.sweep.walk.chunk == NULL) {
            cache->plan.sweep.at = now + 2 * UCS_REGCACHE_STRAY_NS;
        } else {
            cache->plan.sweep.is_again = 1;
        }
    }
    if (cache->plan.sweep.at > now) {
        return;
    }
    if (cache->plan.sweep.walk.chunk == NULL) {
        ucs_regcache_lock(cache);
        cache->plan.sweep.walk.chunk = cache->store.chunks;
        ucs_regcache_unlock(cache);
    }
    ucs_regcache_sweep_lot(cache, now);
}

/* --- The step ------------------------------------------------------------- */

/* A time slice of the system, ns: bounds how late the helper counts as, and how
 * much earlier it registers for that */
#define UCS_REGCACHE_SLICE_NS 5000000

/* Steps over which the mean of what they are late is taken */
#define UCS_REGCACHE_LATE_STEPS 16

/* Batches of uses in one step. Where uses come faster the helper learns from a sample,
 * so that it does not fight the hits for cache lines. */
#define UCS_REGCACHE_BATCHES 4

/* Take uses that are over from their queue, UCS_REGCACHE_BATCH at most */
static unsigned ucs_regcache_uses_drain(ucs_regcache_h cache, ucs_use_t *uses)
{
    unsigned count = 0;
    ucs_use_t use;

    while ((count < UCS_REGCACHE_BATCH) && ucs_dq_pop(cache->use.queue, &use)) {
        ucs_regcache_uses_sort(uses, count++, &use);
    }
    return count;
}

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

/* Must the next use of this one be heard of soon? Not if the thread that ends it drops it,
 * nor if it is held for longer than that anyway. A step is a switch to the helper and
 * back, which ranks that share a core wait for. */
static int ucs_regcache_step_presses(ucs_regcache_h cache, const ucs_use_t *use)
{
    return !ucs_load_relaxed(&use->region->drops) &&
           (ucs_load_relaxed(&use->region->hold) <= cache->tuning.leisure_ns);
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
            cache->plan.is_pressing |= ucs_regcache_step_presses(cache,
                                                                 &uses[i]);
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
            ucs_regcache_leave_learn(cache, &uses[i]);
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
    /* What is posted right after its use stays: the plan would drop it */
    ucs_regcache_announced_serve(cache);
    if (policy->plan != NULL) {
        policy->plan(cache, ucs_regcache_now(cache));
    }
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

/* Learn how late a step is that begins now */
static void ucs_regcache_step_late(ucs_regcache_h cache, uint64_t now)
{
    uint64_t due  = ucs_load_relaxed(&cache->plan.next_due);
    double mean   = cache->plan.late_ns;
    int64_t since = (now > due) ? ucs_min(now - due,
                                          UCS_REGCACHE_AWAY_NS) : 0;
    int64_t late;

    /* That a rank finds something overdue says that the helper has not come; that
     * it finds it in time says nothing of the helper */
    if (ucs_regcache_is_idling(cache) && ((double)since < mean)) {
        return;
    }
    /* One that is woken before its time counts as in time: where all else is left
     * to others it would never be measured again */
    cache->plan.late_ns += ((double)since - mean) / UCS_REGCACHE_LATE_STEPS;
    if (now < due) {
        return;
    }
    late = ucs_min(since, (int64_t)UCS_REGCACHE_SLICE_NS) -
           (int64_t)cache->plan.lateness;
    /* Up fast, down slowly: a missed deadline costs more than a page held */
    cache->plan.lateness += late / ((late > 0) ? 2 : 16);
}

static uint64_t ucs_regcache_step_within(ucs_regcache_h cache, uint64_t now)
{
    uint64_t lost    = ucs_dq_lost(cache->use.queue);
    unsigned batches = (lost == cache->plan.sweep.lost) ? UCS_REGCACHE_BATCHES :
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
    ucs_regcache_step_late(cache, now);
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

int ucs_regcache_step_did_plans(ucs_regcache_h cache)
{
    return cache->plan.did_plans;
}

uint64_t ucs_regcache_step(ucs_regcache_h cache, uint64_t now)
{
    cache->plan.did_plans = 0;
    cache->plan.idling.budget = UINT64_MAX;
    if (ucs_regcache_plan_is_used(cache)) {
        ucs_regcache_leave_look(cache);
        ucs_regcache_leave_take_up(cache);
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
        ucs_regcache_leave_take_up(cache);
    }
    next = ucs_regcache_step_within(cache, now);
    ucs_regcache_idle_end(cache);
    return cache->plan.idling.is_short ? now : next;
}
