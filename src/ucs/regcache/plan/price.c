/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/regcache/regcache_int.h>

#include <ucs/sys/math.h>

/* Terms of the paper's t_p that are not measured one by one, ns, from above: a
 * look-up in the call-site table, in the cache, a step along a queue */
#define UCS_REGCACHE_HASH_NS  500
#define UCS_REGCACHE_CACHE_NS 500
#define UCS_REGCACHE_ITEM_NS  5

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

void ucs_regcache_price(ucs_regcache_h cache, ucs_regcache_region_t *region,
                        ucs_regcache_price_t *price)
{
    const ucs_predict_terms_t *terms = &price->terms;
    double missed_ns, leave_bytes, bytes;

    ucs_regcache_lock(cache);
    ucs_regcache_terms_locked(cache, region, &price->terms);
    leave_bytes = ucs_regcache_leave_bytes(cache);
    bytes       = ucs_regcache_held_bytes(cache,
                                          ucs_regcache_pinned_length(region));
    missed_ns   = ucs_regcache_missed_ns(cache,
                                         ucs_regcache_pages(cache, region));
    ucs_regcache_unlock(cache);

    price->buffer.rent_ns = ucs_max(
            ucs_predict_price_rent_ns(
                    cache->config.max_slowdown, leave_bytes, bytes, missed_ns),
            1);
    price->buffer.register_ns = ucs_predict_register_cost(terms);
    price->buffer.react_ns    = terms->wakeup_ns;
    price->buffer.late_ns     = cache->plan.late_ns;
    price->buffer.saved       = 0;
    price->buffer.saved_late  = 0;
    /* It is as much in the way as a registration. A look is for all that are looked
     * for. */
    price->buffer.drop_work   = terms->deregister_ns / missed_ns;
    price->buffer.look        = cache->tuning.look_ns / missed_ns /
                                (cache->plan.rq.count[UCS_REGCACHE_RQ_WATCHED] +
                                 1);
    price->buffer.wanted      = ucs_regcache_wanted(cache);
}

/* A share as a whole number, of this */
#define UCS_REGCACHE_WANTED_ALL 65536

/* relaxed, all: numbers */
static double ucs_regcache_share(_Atomic(unsigned) *share)
{
    return (double)ucs_load_relaxed(share) / UCS_REGCACHE_WANTED_ALL;
}

double ucs_regcache_wanted(ucs_regcache_h cache)
{
    return ucs_regcache_share(&cache->plan.wanted);
}

double ucs_regcache_wanted_any(ucs_regcache_h cache)
{
    return ucs_regcache_share(&cache->plan.wanted_any);
}

void ucs_regcache_set_wanted(ucs_regcache_h cache, double share, double any)
{
    ucs_store_relaxed(&cache->plan.wanted,
                      (unsigned)(ucs_min(share, 1) * UCS_REGCACHE_WANTED_ALL));
    ucs_store_relaxed(&cache->plan.wanted_any,
                      (unsigned)(ucs_min(any, 1) * UCS_REGCACHE_WANTED_ALL));
}
