/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "regcache_int.h"

/* A use whose end nobody takes out of the queue leaves its region registered */
void ucs_regcache_rest(ucs_regcache_h cache)
{
    if (ucs_regcache_needs_helper(cache)) {
        cache->plan.is_resting = 1;
        ucs_regcache_helper_refused(cache);
    }
}

void ucs_regcache_rested(ucs_regcache_h cache)
{
    ucs_regcache_reclaim(cache);
}

/* Under the lock: from now on the helper is told of the uses of all regions */
static void ucs_regcache_queue_all(ucs_regcache_h cache)
{
    ucs_regcache_region_t *region;

    for (region = ucs_regcache_index_first(&cache->index, 0, UINTPTR_MAX);
         region != NULL; region = ucs_regcache_index_next(&cache->index, region,
                                                          0, UINTPTR_MAX)) {
        if ((region->size_class == UCS_REGCACHE_CLASS_MANAGED) &&
            (ucs_load_relaxed(&region->idle) == UCS_REGCACHE_IDLE_KEEP)) {
            ucs_store_relaxed(&region->idle, UCS_REGCACHE_IDLE_QUEUE);
        }
    }
}

/* What was used meanwhile is in no queue: it is swept as after a queue that ran over,
 * from the beginning, for an interrupted sweep has passed some of it already */
void ucs_regcache_resume(ucs_regcache_h cache)
{
    if (!cache->plan.is_resting) {
        return;
    }

    cache->plan.is_resting = 0;
    cache->plan.sweep.walk = (ucs_regcache_walk_t){NULL, 0};
    cache->plan.sweep.at   = ucs_regcache_now(cache) +
                           2 * UCS_REGCACHE_STRAY_NS;
    ucs_store_relaxed(&cache->helper_refused, 0);
    ucs_regcache_lock(cache);
    ucs_regcache_queue_all(cache);
    ucs_regcache_unlock(cache);
}
