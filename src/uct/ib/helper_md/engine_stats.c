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

/*
 * Snapshot
 */

static void uct_helper_stats_model(const ucs_predict_cost_t *cost,
                                   uct_helper_model_t *model)
{
    ucs_predict_cost_get(cost, &model->a_ns_per_page, &model->b_ns,
                         &model->samples);
}

/* Registrations that are not finished have their figures with them */
static void uct_helper_stats_region(uct_helper_engine_h engine,
                                    uct_helper_region_t *region, uint64_t now,
                                    uct_helper_stats_t *stats)
{
    size_t length  = uct_helper_engine_pinned_length(engine, region);
    uint64_t word  = ucs_load_relaxed(&region->word);
    uint64_t busy  = ucs_load_relaxed(&region->busy_ns);
    uint64_t start = ucs_load_relaxed(&region->use_start);

    if ((uct_helper_word_refs(word) > 0) && (now > start)) {
        busy += now - start;
    }
    stats->on_time        += ucs_load_relaxed(&region->hits) +
                             ucs_load_relaxed(&region->joined);
    stats->in_use_byte_ns += (double)busy * length;
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
    uct_helper_chunk_t *chunk;
    unsigned i;

    memset(stats, 0, sizeof(*stats));
    uct_helper_engine_lock(engine);
    uct_helper_engine_account(engine, now);
    uct_helper_stats_account(engine, stats);
    for (chunk = engine->chunks; chunk != NULL; chunk = chunk->next) {
        for (i = 0; i < UCT_HELPER_CHUNK; ++i) {
            uct_helper_stats_region(engine, &chunk->regions[i], now, stats);
        }
    }
    uct_helper_stats_model(&engine->register_cost, &stats->register_model);
    uct_helper_stats_model(&engine->deregister_cost, &stats->deregister_model);
    uct_helper_engine_unlock(engine);

    stats->uses = stats->on_time + stats->late + stats->missed + stats->cold;
    stats->in_use_peak_bytes = ucs_load_relaxed(&engine->in_use_peak);
    stats->hit_samples       = uct_helper_hist_samples(&engine->hits);
    stats->hit_ns_p50        = uct_helper_hist_quantile(&engine->hits, 0.5);
    stats->hit_ns_p99        = uct_helper_hist_quantile(&engine->hits, 0.99);
}
