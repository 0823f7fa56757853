/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/regcache/regcache_int.h>

#include <ucs/predict/saturate.h>
#include <ucs/sys/math.h>

/*
 * Deregistrations that wait: those that an idle step has no time for, and those that
 * would keep a rank from its processor.
 */

/* --- Until the rank's communication is over ------------------------------- */

void ucs_regcache_leave_learn(ucs_regcache_h cache, const ucs_use_t *use)
{
    if (use->end_ns > use->start_ns) {
        /* Those of its partners may go on for as long */
        cache->plan.leaving.quiet_at = ucs_max(cache->plan.leaving.quiet_at,
                                               2 * use->end_ns - use->start_ns);
    }
}

static int ucs_regcache_leave_is_in_use(ucs_regcache_h cache)
{
    const ucs_regcache_rq_item_t *item;
    int list;

    for (list = UCS_REGCACHE_RQ_PENDING; list < UCS_REGCACHE_RQ_LAST; ++list) {
        for (item = cache->plan.rq.head[list]; item != NULL; item = item->next) {
            if (ucs_regcache_word_refs(ucs_load_relaxed(&item->region->word)) >
                0) {
                return 1;
            }
        }
    }
    return 0;
}

void ucs_regcache_leave_look(ucs_regcache_h cache)
{
    cache->plan.leaving.is_in_use = (ucs_regcache_wanted_any(cache) > 0) &&
                                    (ucs_first_sum_get(&cache->use.bytes) > 0) &&
                                    ucs_regcache_leave_is_in_use(cache);
}

/*
 * Where ranks wait for processors they do so as they communicate, and a deregistration
 * right after a use is in the midst of that: with four ranks on two cores all waits for
 * the helper fell into times when the rank had a buffer in use. To hold what is used no
 * more costs rent. So it waits for no longer than until that costs as much as what it
 * waits for: the work, as far as a rank waits for it at any time.
 *
 * @return When to look again, ns; 0: it may be deregistered now.
 */
static uint64_t ucs_regcache_leave_until(ucs_regcache_h cache,
                                         ucs_regcache_region_t *region)
{
    double any    = ucs_regcache_wanted_any(cache);
    uint64_t used = ucs_load_relaxed(&region->last_use);
    uint64_t now, at, latest;
    ucs_regcache_price_t price;

    if ((any == 0) || !cache->plan.ops->minds_price) {
        return 0;
    }
    ucs_regcache_price(cache, region, &price);
    now    = ucs_regcache_now(cache);
    latest = used + (uint64_t)ucs_min(any * price.buffer.drop_work *
                                              price.buffer.rent_ns,
                                      (double)UCS_REGCACHE_AWAY_NS);
    /* Uses that have lasted go on: the looks become rarer */
    at     = cache->plan.leaving.is_in_use ?
                     now + ucs_max(now - ucs_min(used, now),
                                   (uint64_t)price.terms.deregister_ns) :
                     cache->plan.leaving.quiet_at;
    at     = ucs_min(at, latest);
    return (at > now) ? at : 0;
}

/* --- Those that were left -------------------------------------------------- */

static int ucs_regcache_leave_has(const ucs_regcache_leaving_t *leaving,
                                  ucs_regcache_region_t *region)
{
    uint64_t generation = ucs_regcache_region_gen(region);
    unsigned i;

    for (i = 0; i < leaving->count; ++i) {
        if ((leaving->left[i].region == region) &&
            (leaving->left[i].generation == generation)) {
            return 1;
        }
    }
    return 0;
}

/* A buffer is used often before the helper comes, and noted once: else the room goes to
 * one, and is none for the others. What there is no room to note is done: nobody else
 * would. @return Nonzero if it is noted. */
static int ucs_regcache_leave(ucs_regcache_leaving_t *leaving,
                              ucs_regcache_region_t *region, uint64_t at)
{
    if (!ucs_regcache_leave_has(leaving, region)) {
        if (leaving->count == UCS_REGCACHE_LEFT) {
            return 0;
        }
        leaving->left[leaving->count].region     = region;
        leaving->left[leaving->count].generation = ucs_regcache_region_gen(region);
        ++leaving->count;
    }
    leaving->due = ucs_min(leaving->due, at);
    return 1;
}

/* An idle step may come so soon after a use that the next one would miss what
 * the plans reckon the helper has not got around to by then; and a
 * deregistration is in no hurry. */
int ucs_regcache_leaves(ucs_regcache_h cache, ucs_regcache_region_t *region)
{
    uint64_t at;

    if (!ucs_regcache_is_idling(cache)) {
        at = ucs_regcache_leave_until(cache, region);
    } else if (ucs_regcache_idle_drops(cache, region)) {
        at = 0;
    } else {
        at = ucs_predict_sat_add(ucs_load_relaxed(&region->last_use),
                                 cache->plan.lateness);
    }
    return (at != 0) && ucs_regcache_leave(&cache->plan.leaving, region, at);
}

/* What is left again comes behind those that are looked at: it takes the place of one
 * that has been */
void ucs_regcache_leave_take_up(ucs_regcache_h cache)
{
    ucs_regcache_leaving_t *leaving = &cache->plan.leaving;
    unsigned count                  = leaving->count;
    unsigned i;

    leaving->count = 0;
    leaving->due   = UCS_REGCACHE_TIME_NEVER;
    for (i = 0; i < count; ++i) {
        if (ucs_regcache_region_gen(leaving->left[i].region) ==
            leaving->left[i].generation) {
            ucs_regcache_plan_deregister(cache, leaving->left[i].region);
        }
    }
}
