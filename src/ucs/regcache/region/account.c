/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/regcache/regcache_int.h>

#include <ucs/predict/saturate.h>
#include <ucs/sys/math.h>

void ucs_regcache_account(ucs_regcache_h cache, uint64_t now)
{
    ucs_regcache_account_t *account = &cache->account;
    ucs_regcache_stats_t *stats     = &cache->stats;
    size_t seen                     = cache->memory.seen.bytes;
    double elapsed;

    /* Times were taken outside of the lock, so they may arrive out of order */
    if (now > account->time) {
        elapsed                      = now - account->time;
        account->pinned_ns          += elapsed * stats->pinned_bytes;
        stats->region_ns            += elapsed * stats->regions;
        stats->leave_pinned_byte_ns += elapsed * seen;
        account->time                = now;
    }
    stats->leave_pinned_peak_bytes = ucs_max(stats->leave_pinned_peak_bytes,
                                             seen);
    account->leave_regions_peak    = ucs_max(account->leave_regions_peak,
                                             cache->memory.seen.pieces);
}

/* Why it is held before the helper has planned anything */
static ucs_regcache_held_t
ucs_regcache_account_first_why(ucs_regcache_h cache,
                               const ucs_regcache_region_t *region)
{
    unsigned idle = ucs_load_relaxed(&region->idle);

    if (idle == UCS_REGCACHE_IDLE_DROP) {
        return UCS_REGCACHE_HELD_OTHER;
    }
    if (ucs_regcache_idle_is_queued(idle)) {
        return ucs_load_relaxed(&region->planned) ? UCS_REGCACHE_HELD_SOON :
                                                    UCS_REGCACHE_HELD_UNKNOWN;
    }
    return ((region->size_class == UCS_REGCACHE_CLASS_MANAGED) &&
            ucs_regcache_plan_is_used(cache)) ?
                   UCS_REGCACHE_HELD_LATE : /* there is no helper */
                   UCS_REGCACHE_HELD_SOON;
}

/* Until when, ns */
static uint64_t
ucs_regcache_account_first_kept(ucs_regcache_h cache,
                                const ucs_regcache_region_t *region)
{
    return (ucs_regcache_idle_is_queued(ucs_load_relaxed(&region->idle)) &&
            !cache->plan.ops->keeps) ?
                   0 :
                   UCS_REGCACHE_TIME_NEVER;
}

/* ns of the use that is under way */
static uint64_t ucs_regcache_account_under_way(ucs_regcache_region_t *region,
                                               uint64_t now)
{
    return (ucs_regcache_word_refs(ucs_load_relaxed(&region->word)) > 0) ?
                   ucs_predict_sat_sub(now,
                                       ucs_load_relaxed(&region->use_start)) :
                   0;
}

static void ucs_regcache_account_pinned(ucs_regcache_h cache,
                                        ucs_regcache_region_t *region)
{
    uint64_t now = cache->account.time;

    region->is_pinned    = 1;
    region->accounted    = now;
    region->counted_busy = ucs_regcache_account_under_way(region, now);
    ucs_store_relaxed(&region->why,
                      ucs_regcache_account_first_why(cache, region));
    ucs_store_relaxed(&region->kept,
                      ucs_regcache_account_first_kept(cache, region));
}

void ucs_regcache_account_region(ucs_regcache_h cache,
                                 ucs_regcache_region_t *region, int sign,
                                 uint64_t now)
{
    ucs_regcache_stats_t *stats = &cache->stats;
    size_t length               = ucs_regcache_pinned_length(region);

    ucs_regcache_account(cache, now);
    if (sign > 0) {
        stats->pinned_bytes += length;
        ++stats->regions;
        ucs_regcache_account_pinned(cache, region);
    } else {
        ucs_regcache_account_fold(cache, region);
        region->is_pinned    = 0;
        stats->pinned_bytes -= length;
        --stats->regions;
        if (cache->env.budget != NULL) {
            cache->env.budget->unclaim(cache->env.arg, length);
        }
    }
    if (region->size_class == UCS_REGCACHE_CLASS_SMALL) {
        cache->account.small += sign;
    }
    stats->pinned_peak_bytes = ucs_max(stats->pinned_peak_bytes,
                                       stats->pinned_bytes);
    stats->regions_peak      = ucs_max(stats->regions_peak, stats->regions);
}

static void ucs_regcache_account_held(ucs_regcache_h cache,
                                      const ucs_regcache_region_t *region,
                                      ucs_regcache_held_t held, double ns)
{
    cache->stats.why.held_byte_ns[held] +=
            ns * (double)ucs_regcache_pinned_length(region);
}

/* It was idle for @a idle ns, up to @a end, after a use that ended at @a used. What it
 * was held beyond the plan is the helper's delay, which of several gaps is known of the
 * latest only. */
static void ucs_regcache_account_idle(ucs_regcache_h cache,
                                      ucs_regcache_region_t *region,
                                      uint64_t idle, uint64_t used,
                                      uint64_t end)
{
    ucs_regcache_held_t why = ucs_load_relaxed(&region->why);
    uint64_t hold           = ucs_load_relaxed(&region->hold);
    uint64_t kept           = ucs_load_relaxed(&region->kept);
    uint64_t late           = 0;

    if ((why == UCS_REGCACHE_HELD_SOON) ||
        ((why == UCS_REGCACHE_HELD_UNKNOWN) && (hold > 0))) {
        kept = ucs_max(kept, ucs_predict_sat_add(used, hold));
    }
    if ((why == UCS_REGCACHE_HELD_AHEAD) || (kept != 0)) {
        late = ucs_predict_sat_sub(end, ucs_max(kept, region->accounted));
        late = ucs_min(late, idle);
    }
    if (why == UCS_REGCACHE_HELD_AHEAD) {
        cache->stats.why.ahead_ns += idle;
    }
    ucs_regcache_account_held(cache, region, why, (double)(idle - late));
    ucs_regcache_account_held(cache, region, UCS_REGCACHE_HELD_LATE,
                              (double)late);
}

/* What was registered ahead, or announced, has been used; what lies further ahead
 * in a window has not */
static void ucs_regcache_account_used(ucs_regcache_h cache,
                                      ucs_regcache_region_t *region)
{
    ucs_regcache_held_t why = ucs_load_relaxed(&region->why);

    if (((why == UCS_REGCACHE_HELD_AHEAD) ||
         (why == UCS_REGCACHE_HELD_OTHER)) &&
        !ucs_load_relaxed(&region->is_window) &&
        ucs_regcache_idle_is_queued(ucs_load_relaxed(&region->idle)) &&
        !(ucs_load_relaxed(&region->word) & UCS_REGCACHE_WORD_DOOMED)) {
        ucs_store_relaxed(&region->why, UCS_REGCACHE_HELD_SOON);
        ucs_store_relaxed(&region->kept,
                          ucs_regcache_account_first_kept(cache, region));
    }
}

/* busy_ns may be less than what was counted of a use under way, whose end is guessed */
void ucs_regcache_account_fold(ucs_regcache_h cache,
                               ucs_regcache_region_t *region)
{
    uint64_t now  = cache->account.time;
    uint64_t uses = ucs_load_relaxed(&region->hits) +
                    ucs_load_relaxed(&region->joined);
    uint64_t elapsed, under_way;
    int64_t in_use;

    cache->stats.on_time += uses - region->counted;
    region->counted      = uses;
    if (!region->is_pinned) {
        return;
    }

    elapsed   = now - region->accounted;
    under_way = ucs_regcache_account_under_way(region, now);
    in_use    = (int64_t)(ucs_load_relaxed(&region->busy_ns) + under_way -
                          region->counted_busy);
    in_use    = ucs_min(in_use, (int64_t)elapsed);
    ucs_regcache_account_held(cache, region, UCS_REGCACHE_HELD_IN_USE,
                              (double)in_use);
    ucs_regcache_account_idle(cache, region, elapsed - in_use,
                              ucs_load_relaxed(&region->last_use),
                              now - under_way);
    region->counted_busy += in_use;
    region->accounted     = now;
    if (uses > 0) {
        ucs_regcache_account_used(cache, region);
    }
}

/* Exact where the queue of uses has lost none */
void ucs_regcache_account_use(ucs_regcache_h cache, const ucs_use_t *use)
{
    ucs_regcache_region_t *region = use->region;
    uint64_t now                  = cache->account.time;
    uint64_t start, end;

    if ((ucs_regcache_region_gen(region) != use->generation) ||
        !region->is_pinned ||
        (ucs_max(use->start_ns, use->end_ns) <= region->accounted)) {
        return;
    }

    start = ucs_min(ucs_max(use->start_ns, region->accounted), now);
    end   = ucs_min(ucs_max(use->end_ns, start), now);
    ucs_regcache_account_idle(cache, region, start - region->accounted,
                              region->accounted, start);
    ucs_regcache_account_held(cache, region, UCS_REGCACHE_HELD_IN_USE,
                              (double)(end - start));
    region->counted_busy += end - start;
    region->accounted     = end;
    ucs_regcache_account_used(cache, region);
}

void ucs_regcache_account_why(ucs_regcache_h cache,
                              ucs_regcache_region_t *region,
                              ucs_regcache_held_t held, uint64_t kept)
{
    if (region->is_pinned) {
        ucs_regcache_account_fold(cache, region);
        ucs_store_relaxed(&region->why, held);
        ucs_store_relaxed(&region->kept, kept);
    }
}

void ucs_regcache_account_planned(ucs_regcache_h cache,
                                  ucs_regcache_region_t *region,
                                  ucs_regcache_held_t held, uint64_t kept)
{
    if ((ucs_load_relaxed(&region->why) == UCS_REGCACHE_HELD_SOON) &&
        (ucs_load_relaxed(&region->kept) == 0) &&
        (ucs_load_relaxed(&region->hold) == 0)) {
        ucs_store_relaxed(&region->why, held); /* for this it was kept */
        ucs_store_relaxed(&region->kept, kept);
    } else {
        ucs_regcache_account_why(cache, region, held, kept);
    }
}

void ucs_regcache_account_loss(ucs_regcache_h cache, ucs_regcache_loss_t *loss,
                               uint64_t now)
{
    if (now > loss->since) {
        cache->stats.why.lost_ns[loss->why] += now - loss->since;
        loss->since                            = now;
    }
}

void ucs_regcache_account_end(ucs_regcache_h cache,
                              ucs_regcache_region_t *region)
{
    if (ucs_load_relaxed(&region->speculative) && (region->counted == 0)) {
        ++cache->stats.wasted;
    }
    region->counted      = 0;
    region->counted_busy = 0;
    ucs_store_relaxed(&region->hits, 0);
    ucs_store_relaxed(&region->joined, 0);
    ucs_store_relaxed(&region->busy_ns, 0);
    ucs_store_relaxed(&region->speculative, 0);
}
