/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "regcache_int.h"

/*
 * Room that is shared with others
 */

int ucs_regcache_claim(ucs_regcache_h cache, size_t length, unsigned why)
{
    return (cache->env.claim == NULL) ||
           cache->env.claim(cache->env.arg, length, why);
}

ucs_regcache_room_t ucs_regcache_ask(ucs_regcache_h cache, size_t length,
                                     int all, unsigned *asked_p)
{
    unsigned bit = 1u << !!all;
    ucs_regcache_room_t room;

    if ((cache->env.claim == NULL) || (*asked_p & bit)) {
        return UCS_REGCACHE_ROOM_NONE;
    }

    *asked_p |= bit;
    ucs_regcache_unlock(cache);
    room = cache->env.ask(cache->env.arg, length, all);
    ucs_regcache_lock(cache);

    /* Another thread took the room below a ceiling of our own meanwhile */
    if ((room == UCS_REGCACHE_ROOM_GRANTED) &&
        !ucs_regcache_fits(cache, length)) {
        cache->env.unclaim(cache->env.arg, length);
        room = UCS_REGCACHE_ROOM_MAYBE;
    }
    return room;
}

/*
 * Rest
 */

/* What is in the queue's hands stays there: an end of a use that nobody takes
 * out of the queue leaves its region registered */
void ucs_regcache_rest(ucs_regcache_h cache)
{
    if (!cache->plan.is_resting && ucs_regcache_needs_helper(cache)) {
        cache->plan.is_resting = 1;
        ucs_regcache_helper_refused(cache);
    }
}

void ucs_regcache_rested(ucs_regcache_h cache)
{
    ucs_regcache_reclaim(cache);
}

/* Under the lock: what was registered at rest comes into the queue's hands */
static void ucs_regcache_queue_all(ucs_regcache_h cache)
{
    ucs_regcache_region_t *region;

    for (region = ucs_regcache_index_first(&cache->index, 0, UINTPTR_MAX);
         region != NULL; region = ucs_regcache_index_next(&cache->index, region,
                                                          0, UINTPTR_MAX)) {
        if ((ucs_regcache_class(cache, ucs_regcache_region_length(region)) ==
             UCS_REGCACHE_CLASS_MANAGED) &&
            (ucs_load_relaxed(&region->idle) == UCS_REGCACHE_IDLE_KEEP)) {
            ucs_store_relaxed(&region->idle, UCS_REGCACHE_IDLE_QUEUE);
        }
    }
}

/* What was used meanwhile is in no queue: it is swept as after a queue that ran
 * over */
void ucs_regcache_resume(ucs_regcache_h cache)
{
    if (!cache->plan.is_resting) {
        return;
    }

    cache->plan.is_resting = 0;
    cache->plan.sweep.at   = ucs_regcache_now(cache) +
                           2 * cache->tuning.stray_ns;
    ucs_store_relaxed(&cache->helper_refused, 0);
    ucs_regcache_lock(cache);
    ucs_regcache_queue_all(cache);
    ucs_regcache_unlock(cache);
}

void ucs_regcache_set_shared(ucs_regcache_h cache, uint64_t ns)
{
    cache->plan.shared = ns;
}
