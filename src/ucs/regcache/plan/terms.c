/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/regcache/regcache_int.h>

#include <ucs/sys/math.h>

/* Terms of the paper's t_p that are not measured one by one, ns, from above: a
 * look-up in the call-site table, in the cache, a step along a queue */
#define UCS_REGCACHE_HASH_NS  500
#define UCS_REGCACHE_CACHE_NS 500
#define UCS_REGCACHE_ITEM_NS  5

/* A time slice of the system, ns: bounds how late the helper counts as, and how
 * much earlier it registers for that */
#define UCS_REGCACHE_SLICE_NS 5000000

/* Steps over which the mean of what they are late is taken */
#define UCS_REGCACHE_LATE_STEPS 16

void ucs_regcache_terms_locked(ucs_regcache_h cache,
                               ucs_regcache_region_t *region,
                               ucs_predict_terms_t *terms)
{
    size_t pages = ucs_regcache_pages(cache, region);
    size_t items = cache->plan.rq.count[UCS_REGCACHE_RQ_PENDING];

    terms->hash_ns   = UCS_REGCACHE_HASH_NS;
    terms->cache_ns  = UCS_REGCACHE_CACHE_NS;
    terms->insert_ns = UCS_REGCACHE_ITEM_NS * items;
    terms->update_ns = terms->insert_ns;
    terms->wakeup_ns = cache->plan.lateness;

    terms->register_ns   = ucs_predict_cost_estimate(&cache->cost.reg, pages);
    terms->deregister_ns = ucs_predict_cost_estimate(&cache->cost.dereg, pages);
}

void ucs_regcache_terms(ucs_regcache_h cache, ucs_regcache_region_t *region,
                        ucs_predict_terms_t *terms)
{
    ucs_regcache_lock(cache);
    ucs_regcache_terms_locked(cache, region, terms);
    ucs_regcache_unlock(cache);
}

void ucs_regcache_terms_late(ucs_regcache_h cache, uint64_t now)
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

uint64_t ucs_regcache_terms_begin(ucs_regcache_h cache,
                                  ucs_regcache_rq_item_t *item)
{
    ucs_predict_terms_t terms;
    uint64_t cost;

    ucs_regcache_terms_locked(cache, item->region, &terms);
    cost = ucs_predict_register_cost(&terms);
    return (item->time > cost) ? item->time - cost + 1 : 0;
}
