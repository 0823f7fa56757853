/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "price.h"

#include <ucs/regcache/regcache_int.h>
#include <ucs/regcache/register/register.h>

#include <ucs/sys/math.h>

#include <math.h>

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
    /* It is as much in the way as a registration */
    price->buffer.drop_work   = terms->deregister_ns / missed_ns;
}

uint64_t ucs_regcache_price_look(ucs_regcache_h cache, double leave_bytes,
                                 uint64_t now)
{
    uint64_t next = UCS_REGCACHE_TIME_NEVER;
    double look_ns = cache->tuning.step_ns / 100; /* of nobody's time but not
                                                     quite for nothing */
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
    interval = sqrt(2 * look_ns * late * leave_bytes /
                    (cache->config.max_slowdown * bytes));
    interval = ucs_max(interval, 10 * cache->tuning.step_ns);
    interval = ucs_min(interval, (double)cache->tuning.patrol_ns);
    return ucs_min(next, now + (uint64_t)interval + 1);
}
