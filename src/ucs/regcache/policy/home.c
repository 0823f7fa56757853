/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "home.h"

#include <ucs/regcache/regcache_int.h>

int ucs_regcache_home_is_current(const ucs_regcache_home_t *home)
{
    return (home->region != NULL) &&
           (ucs_regcache_region_gen(home->region) == home->generation);
}

void ucs_regcache_home_leave(ucs_regcache_h cache, ucs_regcache_home_t *home)
{
    ucs_regcache_region_t *region = home->region;

    if (ucs_regcache_home_is_current(home)) {
        ucs_regcache_plan_forget(cache, region);
        ucs_regcache_plan_deregister(cache, region);
    }
    home->region = NULL;
}

void ucs_regcache_home_settle(ucs_regcache_h cache, ucs_regcache_home_t *home,
                              ucs_predict_ref_t buffer,
                              ucs_regcache_region_t *region,
                              uint64_t generation)
{
    ucs_regcache_rq_item_t *item = &cache->plan.rq.items[buffer.index];

    if (item->region != region) {
        ucs_regcache_plan_cancel(cache, item);
    }
    if (home->region != region) {
        ucs_regcache_home_leave(cache, home);
    }
    home->region     = region;
    home->generation = generation;
    home->buffer     = buffer.generation;
    ucs_regcache_plan_remember(cache, region, generation);
}

void ucs_regcache_home_confirm(ucs_regcache_h cache,
                               const ucs_regcache_home_t *home,
                               ucs_regcache_rq_item_t *item)
{
    if ((item->region == home->region) &&
        (item->generation != home->generation)) {
        ucs_regcache_rq_remove(&cache->plan.rq, item);
    }
}

ucs_regcache_region_t *
ucs_regcache_home_waits_in(const ucs_regcache_home_t *home,
                           const ucs_regcache_rq_item_t *item)
{
    return (((item->list == UCS_REGCACHE_RQ_EXPECTED) ||
             (item->list == UCS_REGCACHE_RQ_HELD)) &&
            ucs_regcache_rq_item_is_current(item)) ?
                   item->region :
                   home->region;
}
