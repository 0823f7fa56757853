/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/regcache/regcache_int.h>

int ucs_regcache_is_idling(ucs_regcache_h cache)
{
    return cache->plan.idling.budget != UINT64_MAX;
}

int ucs_regcache_idle_may(ucs_regcache_h cache, uint64_t ns)
{
    ucs_regcache_idling_t *idling = &cache->plan.idling;

    if (!ucs_regcache_is_idling(cache)) {
        return 1;
    }
    if (ns > idling->budget) {
        idling->is_short = 1;
        return 0;
    }
    idling->budget -= ns;
    return 1;
}

/* An idle step may come so soon after a use that the next one would miss what
 * the plans reckon the helper has not got around to by then; and a
 * deregistration is in no hurry. What there is no room to note is done: nobody
 * else would. */
int ucs_regcache_idle_leaves(ucs_regcache_h cache,
                             ucs_regcache_region_t *region)
{
    ucs_regcache_idling_t *idling = &cache->plan.idling;

    if (!ucs_regcache_is_idling(cache) ||
        (idling->count == UCS_REGCACHE_LEFT)) {
        return 0;
    }
    idling->is_short                           = 1;
    idling->left[idling->count].region     = region;
    idling->left[idling->count].generation = ucs_regcache_region_gen(region);
    ++idling->count;
    return 1;
}

void ucs_regcache_idle_take_up(ucs_regcache_h cache)
{
    ucs_regcache_idling_t *idling = &cache->plan.idling;
    ucs_regcache_region_t *region;

    while (idling->count > 0) {
        region = idling->left[--idling->count].region;
        if (ucs_regcache_region_gen(region) ==
            idling->left[idling->count].generation) {
            ucs_regcache_plan_deregister(cache, region);
        }
    }
}
