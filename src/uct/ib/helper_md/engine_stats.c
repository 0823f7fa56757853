/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "engine_int.h"

#include <string.h>

/*
 * Accounts
 */

void uct_helper_engine_account(uct_helper_engine_h engine, uint64_t now)
{
    uct_helper_account_t *account = &engine->account;
    double elapsed;

    /* Times were taken outside of the lock, so they may arrive out of order */
    if (now > account->time) {
        elapsed             = now - account->time;
        account->pinned_ns += elapsed * account->pinned;
        account->leave_ns  += elapsed * engine->seen.bytes;
        account->time       = now;
    }
    if (engine->seen.bytes > account->leave_peak) {
        account->leave_peak = engine->seen.bytes;
    }
}

void uct_helper_engine_account_region(uct_helper_engine_h engine,
                                      uct_helper_region_t *region, int sign,
                                      uint64_t now)
{
    uct_helper_account_t *account = &engine->account;
    size_t length = uct_helper_engine_pinned_length(engine, region);

    uct_helper_engine_account(engine, now);
    if (sign > 0) {
        account->pinned += length;
        ++account->regions;
    } else {
        account->pinned -= length;
        --account->regions;
        if (engine->env.claim != NULL) {
            engine->env.unclaim(engine->env.arg, length);
        }
    }
    if (uct_helper_engine_class(engine, uct_helper_region_length(region)) ==
        UCT_HELPER_CLASS_SMALL) {
        account->small += sign;
    }
    if (account->pinned > account->pinned_peak) {
        account->pinned_peak = account->pinned;
    }
}

void uct_helper_engine_account_uses(uct_helper_engine_h engine,
                                    uct_helper_region_t *region)
{
    uint64_t uses = ucs_load_relaxed(&region->hits) +
                    ucs_load_relaxed(&region->joined);
    uint64_t busy = ucs_load_relaxed(&region->busy_ns);
    /* Less if what was taken for the end of a use was none */
    int64_t more  = busy - region->counted_busy;

    engine->account.hits      += uses - region->counted;
    engine->account.in_use_ns += (double)more *
                                 uct_helper_engine_pinned_length(engine,
                                                                 region);
    region->counted            = uses;
    region->counted_busy       = busy;
}

/*
 * Snapshot
 */

static void uct_helper_stats_model(const ucs_predict_cost_t *cost,
                                   uct_helper_model_t *model)
{
    ucs_predict_cost_get(cost, &model->a_ns_per_page, &model->b_ns,
                         &model->samples);
}

/* Byte-nanoseconds of a use that is under way */
static double uct_helper_stats_under_way(uct_helper_engine_h engine,
                                         uct_helper_region_t *region,
                                         uint64_t now)
{
    uint64_t word  = ucs_load_relaxed(&region->word);
    uint64_t start = ucs_load_relaxed(&region->use_start);

    return ((uct_helper_word_refs(word) > 0) && (now > start)) ?
                   (double)(now - start) *
                           uct_helper_engine_pinned_length(engine, region) :
                   0;
}

/* Under the lock: registrations that are not finished have their figures with
 * them. @return The above, of a lot. */
static double uct_helper_stats_lot(uct_helper_engine_h engine,
                                   uct_helper_walk_t *walk, uint64_t now)
{
    double in_use = 0;
    unsigned left = UCT_HELPER_LOT;
    uct_helper_region_t *region;

    while ((left-- > 0) && ((region = uct_helper_walk_next(walk)) != NULL)) {
        uct_helper_engine_account_uses(engine, region);
        in_use += uct_helper_stats_under_way(engine, region, now);
    }
    return in_use;
}

/* @return Likewise, of all */
static double uct_helper_stats_walk(uct_helper_engine_h engine, uint64_t now)
{
    double in_use = 0;
    uct_helper_walk_t walk;

    uct_helper_engine_lock(engine);
    walk = (uct_helper_walk_t){.chunk = engine->chunks};
    while (walk.chunk != NULL) {
        in_use += uct_helper_stats_lot(engine, &walk, now);
        uct_helper_engine_unlock(engine);
        uct_helper_engine_lock(engine);
    }
    uct_helper_engine_unlock(engine);
    return in_use;
}

static void uct_helper_stats_account(uct_helper_engine_h engine,
                                     uct_helper_stats_t *stats)
{
    const uct_helper_account_t *account = &engine->account;

    stats->pinned_bytes            = account->pinned;
    stats->pinned_peak_bytes       = account->pinned_peak;
    stats->pinned_byte_ns          = account->pinned_ns;
    stats->leave_pinned_bytes      = engine->seen.bytes;
    stats->leave_pinned_peak_bytes = account->leave_peak;
    stats->leave_pinned_byte_ns    = account->leave_ns;
    stats->in_use_byte_ns          = account->in_use_ns;
    stats->regions                 = account->regions;
    stats->on_time                 = account->hits;
    stats->late                    = account->late;
    stats->missed                  = account->missed;
    stats->cold                    = account->cold;
    stats->wasted                  = account->wasted;
    stats->evicted                 = account->evicted;
    stats->invalidated             = account->invalidated;
    stats->over_ceiling            = account->over_ceiling;
    stats->failed                  = account->failed;
}

void uct_helper_engine_stats(uct_helper_engine_h engine, uint64_t now,
                             uct_helper_stats_t *stats)
{
    double in_use = uct_helper_stats_walk(engine, now);

    memset(stats, 0, sizeof(*stats));
    uct_helper_engine_lock(engine);
    uct_helper_engine_account(engine, now);
    uct_helper_stats_account(engine, stats);
    uct_helper_stats_model(&engine->register_cost, &stats->register_model);
    uct_helper_stats_model(&engine->deregister_cost, &stats->deregister_model);
    uct_helper_engine_unlock(engine);

    stats->in_use_byte_ns   += in_use;
    stats->uses = stats->on_time + stats->late + stats->missed + stats->cold;
    stats->in_use_peak_bytes = ucs_load_relaxed(&engine->in_use_peak);
    stats->hit_samples       = uct_helper_hist_samples(&engine->hits);
    stats->hit_ns_p50        = uct_helper_hist_quantile(&engine->hits, 0.5);
    stats->hit_ns_p99        = uct_helper_hist_quantile(&engine->hits, 0.99);
}
