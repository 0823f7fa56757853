/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/regcache/regcache_int.h>

#include <ucs/predict/saturate.h>
#include <ucs/sys/math.h>

/* A registration on its way */
typedef struct ucs_regcache_attempt {
    ucs_regcache_region_t *region;
    unsigned              flags;       /* for the lower domain */
    int                   is_use;      /* the caller has a reference */
    ucs_regcache_held_t   why;         /* if not: what it is held for */
    int                   is_admitted; /* it is counted as pinned */
    ucs_regcache_loss_t   *loss;       /* the use's, NULL if there is none */
    ucs_regcache_memh_t   memh;        /* set if the status is UCS_OK */
    uint64_t              since;       /* it is to be admitted, ns */
    uint64_t              admitted;    /* and has been */
    uint64_t              took;        /* ns, in the lower domain; likewise */
    ucs_status_t          status;
} ucs_regcache_attempt_t;

static void ucs_regcache_lower_reg(ucs_regcache_h cache,
                                   ucs_regcache_attempt_t *attempt)
{
    ucs_regcache_region_t *region = attempt->region;
    uint64_t start                = ucs_regcache_now(cache);

    attempt->admitted = (attempt->admitted == 0) ? start : attempt->admitted;
    attempt->status = cache->env.mem_reg(
            cache->env.arg, (void*)ucs_load_relaxed(&region->start),
            ucs_regcache_region_length(region), attempt->flags,
            &attempt->memh);
    attempt->took = ucs_regcache_now(cache) - start;
}

/* The verbs domain of UCX 1.13 reports a full device or memlock limit as an
 * I/O error */
int ucs_regcache_status_is_exhausted(ucs_status_t status)
{
    return (status == UCS_ERR_NO_MEMORY) || (status == UCS_ERR_IO_ERROR) ||
           (status == UCS_ERR_NO_RESOURCE);
}

/* A use: what fails for want of memory or regions is tried again after idle
 * registrations have been given up, others' if there are none here. If that helps,
 * what there was before is the limit from now on. Quietly, for the caller has a way
 * left. */
static void ucs_regcache_lower_reg_use(ucs_regcache_h cache,
                                       ucs_regcache_attempt_t *attempt)
{
    const ucs_regcache_budget_t *budget = cache->env.budget;
    size_t length                       = ucs_regcache_pinned_length(
            attempt->region);
    uint64_t limit                      = UINT64_MAX;

    ucs_regcache_lower_reg(cache, attempt);
    if (!ucs_regcache_status_is_exhausted(attempt->status) ||
        attempt->region->is_cover) {
        return; /* of a cover what was asked for can still be had */
    }

    ucs_store_relaxed(&cache->pressed, 1);
    if (budget != NULL) {
        limit = budget->refused(cache->env.arg);
    }
    if ((ucs_regcache_evict_for(cache, length, 0) == 0) && (budget != NULL)) {
        budget->ask_back(cache->env.arg, limit);
    }
    ucs_regcache_lower_reg(cache, attempt);
    if ((budget != NULL) && (attempt->status == UCS_OK)) {
        budget->learn(cache->env.arg, limit);
    }
}

/* Remember what the inspection found, deregister what this region replaces, and keep
 * the ceilings: one taking of the lock, if nothing of this lets go of it */
static void ucs_regcache_register_begin(
        ucs_regcache_h cache, ucs_regcache_attempt_t *attempt,
        const ucs_regcache_inspection_t *inspection)
{
    attempt->since = ucs_regcache_now(cache);
    ucs_regcache_lock(cache);
    ucs_regcache_inspect_end(cache, inspection);
    ucs_regcache_supersede(cache, attempt->region);
    attempt->is_admitted = ucs_regcache_admit(cache, attempt->region,
                                              attempt->is_use, attempt->since);
    if (attempt->is_admitted && !attempt->is_use) {
        ucs_regcache_account_why(cache, attempt->region, attempt->why,
                                 UCS_REGCACHE_TIME_NEVER);
        cache->stats.why.ahead += (attempt->why == UCS_REGCACHE_HELD_AHEAD);
    }
    ucs_regcache_unlock(cache);
}

double ucs_regcache_missed_ns(ucs_regcache_h cache, size_t pages)
{
    double lower = ucs_predict_cost_estimate(&cache->cost.reg, pages);

    return (cache->cost.missed.samples == 0) ?
                   lower :
                   ucs_max(lower, ucs_predict_cost_estimate(
                                          &cache->cost.missed, pages));
}

/* Under the lock. First registrations are dearer and cannot be foretold, so they do
 * not count. What it takes to make room counts in soft.c. */
static void ucs_regcache_register_learn(ucs_regcache_h cache,
                                        const ucs_regcache_attempt_t *attempt,
                                        uint64_t now)
{
    size_t pages = ucs_regcache_pages(cache, attempt->region);

    ucs_predict_cost_update(&cache->cost.reg, pages, attempt->took);
    if (cache->cost.missed.samples == 0) {
        /* What the lower domain takes is the better guess */
        ucs_predict_cost_init(&cache->cost.missed, cache->cost.reg.a,
                              cache->cost.reg.b);
    }
    if ((attempt->loss != NULL) &&
        (attempt->loss->why != UCS_REGCACHE_LOST_FIRST)) {
        ucs_predict_cost_update(&cache->cost.missed, pages,
                                ucs_predict_sat_sub(attempt->since,
                                                    attempt->loss->since) +
                                ucs_predict_sat_sub(now, attempt->admitted));
    }
}

static ucs_status_t ucs_regcache_register_end(ucs_regcache_h cache,
                                              ucs_regcache_attempt_t *attempt)
{
    ucs_regcache_region_t *region = attempt->region;
    ucs_status_t status           = attempt->status;
    uint64_t now                  = ucs_regcache_now(cache);
    uint32_t *word                = ucs_regcache_region_wait_word(region);

    ucs_regcache_lock(cache);
    cache->account.transit -= attempt->is_admitted;
    cache->account.wanted  -= attempt->is_admitted && attempt->is_use;
    if (status == UCS_OK) {
        cache->stats.covers        += region->is_cover;
        cache->account.ahead_pages += region->ahead;
        ucs_regcache_register_learn(cache, attempt, now);
        cache->stats.repinned      += (region->pins++ > 0);
        region->ahead               = 0;
        status = ucs_regcache_region_publish(cache, region, attempt->memh, now,
                                             attempt->is_use);
    } else {
        if (attempt->is_admitted) {
            ucs_regcache_account_region(cache, region, -1, now);
            ++cache->stats.failed;
            cache->memory.cover_failures += region->is_cover;
        }
        ucs_regcache_region_fail(cache, region, status, attempt->is_use);
    }
    if (attempt->loss != NULL) {
        ucs_regcache_account_loss(cache, attempt->loss, now);
    }
    ucs_regcache_unlock(cache);

    cache->env.wake_waiters(cache->env.arg, word);
    return status;
}

ucs_status_t
ucs_regcache_register_use(ucs_regcache_h cache, ucs_regcache_region_t *region,
                          unsigned flags,
                          const ucs_regcache_inspection_t *inspection,
                          ucs_regcache_loss_t *loss)
{
    ucs_regcache_attempt_t attempt = {
            .region = region, .flags = flags, .is_use = 1, .loss = loss};

    ucs_regcache_register_begin(cache, &attempt, inspection);
    ucs_regcache_lower_reg_use(cache, &attempt);
    return ucs_regcache_register_end(cache, &attempt);
}

/* Asked anew each time: the memory was let go of since the last use */
static int ucs_regcache_may_speculate(ucs_regcache_h cache,
                                      ucs_regcache_region_t *region,
                                      ucs_regcache_inspection_t *inspection)
{
    ucs_regcache_lock(cache);
    ucs_regcache_inspect_begin(cache, region, inspection);
    ucs_regcache_unlock(cache);
    return ucs_regcache_inspect(cache, UCS_REGCACHE_INSPECT_SPECULATE,
                                inspection);
}

ucs_status_t ucs_regcache_register_ahead(ucs_regcache_h cache,
                                         ucs_regcache_region_t *region,
                                         ucs_regcache_held_t why)
{
    ucs_regcache_attempt_t attempt = {
            .region = region,
            .flags  = ucs_load_relaxed(&region->access),
            .why    = why,
            .status = UCS_ERR_REJECTED};
    ucs_regcache_inspection_t inspection;

    if (ucs_regcache_may_speculate(cache, region, &inspection)) {
        ucs_regcache_register_begin(cache, &attempt, &inspection);
        if (attempt.is_admitted) {
            ucs_regcache_lower_reg(cache, &attempt);
        } else {
            attempt.status = UCS_ERR_EXCEEDS_LIMIT;
        }
    }
    return ucs_regcache_register_end(cache, &attempt);
}

void ucs_regcache_register_refuse(ucs_regcache_h cache,
                                  ucs_regcache_region_t *region)
{
    uint32_t *word = ucs_regcache_region_wait_word(region);

    ucs_regcache_lock(cache);
    ucs_regcache_cover_refused(cache, region);
    ucs_regcache_region_fail(cache, region, UCS_ERR_REJECTED, 1);
    ucs_regcache_unlock(cache);
    cache->env.wake_waiters(cache->env.arg, word);
}
