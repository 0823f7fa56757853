/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "regcache_int.h"

#include <ucs/predict/saturate.h>

static ucs_regcache_model_t
ucs_regcache_stats_model(const ucs_predict_cost_t *cost)
{
    return (ucs_regcache_model_t){cost->a, cost->b, cost->samples};
}

/* Under the lock: registrations that are not finished have their figures with
 * them */
static void ucs_regcache_stats_lot(ucs_regcache_h cache,
                                   ucs_regcache_walk_t *walk)
{
    unsigned left = cache->tuning.lot;
    ucs_regcache_region_t *region;

    while ((left-- > 0) && ((region = ucs_regcache_walk_next(walk)) != NULL)) {
        ucs_regcache_account_fold(cache, region);
    }
}

static void ucs_regcache_stats_walk(ucs_regcache_h cache, uint64_t now)
{
    ucs_regcache_walk_t walk;

    ucs_regcache_lock(cache);
    ucs_regcache_account(cache, now);
    walk = (ucs_regcache_walk_t){.chunk = cache->store.chunks};
    while (walk.chunk != NULL) {
        ucs_regcache_stats_lot(cache, &walk);
        ucs_regcache_unlock(cache);
        ucs_regcache_lock(cache);
    }
    ucs_regcache_unlock(cache);
}

/* At the cost that is known now: while covers are made the model is new, and
 * they are so few that it would never be right in time. What pages took that
 * were registered ahead was waited for already. */
static uint64_t ucs_regcache_stats_spared(ucs_regcache_h cache)
{
    const ucs_regcache_account_t *account = &cache->account;
    double pages = (double)account->spared_pages - account->ahead_pages;
    double a, b, ns;

    ucs_predict_cost_line(&cache->cost.reg, &a, &b);
    ns = a * pages + b * cache->stats.spared;
    return (ns > 0) ? ucs_predict_sat_ceil(ns) : 0;
}

int ucs_regcache_is_locked_here(ucs_regcache_h cache)
{
    return ucs_lock_is_mine(&cache->lock);
}

void ucs_regcache_stats(ucs_regcache_h cache, uint64_t now,
                        ucs_regcache_stats_t *stats)
{
    ucs_regcache_stats_walk(cache, now);
    ucs_regcache_lock(cache);
    ucs_regcache_account(cache, now);
    *stats = cache->stats;
    /* Up to when each region was looked at */
    stats->pinned_byte_ns            = ucs_regcache_why_held(&stats->why);
    stats->lost_ns                   = ucs_regcache_why_lost(&stats->why);
    stats->leave_pinned_bytes        = cache->memory.seen.bytes;
    stats->leave_pinned_regions_peak = cache->account.leave_regions_peak + 0.5;
    stats->region_bytes              = cache->config.region_bytes;
    stats->spared_ns                 = ucs_regcache_stats_spared(cache);
    stats->soft_ceiling_bytes        = ucs_regcache_soft_bytes(cache);
    stats->soft_ceiling_raises       = cache->soft.raises;
    stats->register_model   = ucs_regcache_stats_model(&cache->cost.reg);
    stats->deregister_model = ucs_regcache_stats_model(&cache->cost.dereg);
    stats->registrations = stats->register_model.samples;
    ucs_regcache_unlock(cache);

    stats->uses = stats->on_time + stats->late + stats->missed + stats->cold;
    stats->in_use_peak_bytes = ucs_load_relaxed(&cache->use.peak);
    stats->heard             = ucs_load_relaxed(&cache->plan.heard);
    stats->announced         = ucs_load_relaxed(&cache->plan.announced);
    stats->announced_on_time = ucs_load_relaxed(&cache->plan.announced_on_time);
    stats->announced_late    = ucs_load_relaxed(&cache->plan.announced_late);
    stats->announced_first   = ucs_load_relaxed(&cache->plan.announced_first);
    stats->idle_steps        = ucs_load_relaxed(&cache->plan.idle_steps);
}

static void ucs_regcache_stats_add_model(ucs_regcache_model_t *sum,
                                        const ucs_regcache_model_t *model)
{
    if (model->samples > sum->samples) {
        *sum = *model;
    }
}

void ucs_regcache_stats_add(ucs_regcache_stats_t *sum,
                            const ucs_regcache_stats_t *stats)
{
#define UCS_FIGURE(_type, _name, ...) sum->_name += stats->_name;
#include <ucs/regcache/stats_table.h>
#undef UCS_FIGURE
    sum->pinned_bytes    += stats->pinned_bytes;
    sum->regions         += stats->regions;
    sum->region_bytes     = stats->region_bytes; /* as all domains' */
    sum->over_ceiling    += stats->over_ceiling;
    sum->failed          += stats->failed;
    sum->announced_first += stats->announced_first;
    ucs_regcache_why_add(&sum->why, &stats->why);
    ucs_regcache_stats_add_model(&sum->register_model, &stats->register_model);
    ucs_regcache_stats_add_model(&sum->deregister_model,
                                 &stats->deregister_model);
}
