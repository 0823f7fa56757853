/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "account.h"
#include "charge.h"
#include "regcache_int.h"
#include "register.h"
#include "request.h"
#include "valid.h"

#include <ucs/sys/math.h>

/*
 * The floor under the whole cache. To leave everything pinned is always a
 * choice, and costs what all of the memory is worth. What was lost and held so
 * far may cost an eighth more than that, and a credit: a missed use of each
 * buffer, from which to learn, and something for the helper's start. Beyond it
 * everything stays pinned and the helper rests, until the eighth has made up for
 * it. Each buffer's own floor (plans.h) cannot see what the helper's work costs
 * all of them where cores are wanted.
 */

void ucs_regcache_floor_init(ucs_regcache_h cache)
{
    cache->floor.is_kept = cache->soft.is_kept;
}

/* By the model: a registration that was preempted, or whose pages were not there
 * yet, is no fault of the policy */
static uint64_t ucs_regcache_floor_cost(ucs_regcache_h cache, uintptr_t first,
                                        uintptr_t last)
{
    return ucs_regcache_missed_ns(cache, (last - first) /
                                                 (cache->config.page_mask + 1));
}

void ucs_regcache_floor_came(ucs_regcache_h cache, uintptr_t first,
                             uintptr_t last)
{
    cache->floor.came_ns += ucs_regcache_floor_cost(cache, first, last);
}

void ucs_regcache_floor_missed(ucs_regcache_h cache,
                               const ucs_regcache_request_t *request)
{
    if (cache->floor.is_kept &&
        !ucs_extents_covers(&cache->memory.barred, request->first,
                            request->last)) {
        cache->floor.lost_ns += ucs_regcache_floor_cost(cache, request->first,
                                                        request->last);
    }
}

void ucs_regcache_floor_dropped(ucs_regcache_h cache,
                                const ucs_regcache_region_t *region)
{
    if (cache->floor.is_kept) {
        cache->floor.lost_ns += ucs_predict_cost_estimate(
                &cache->cost.dereg, ucs_regcache_pages(cache, region));
    }
}

/* Under the lock: ns that have been lost so far, memory at its price among
 * them, beyond what leaving pinned would have cost and an eighth */
static double ucs_regcache_floor_debt(ucs_regcache_h cache, uint64_t now)
{
    const ucs_regcache_account_t *account = &cache->account;
    double price, lost, kept;

    ucs_regcache_account(cache, now);
    price = cache->config.max_slowdown /
            (double)ucs_max(account->leave_peak, UINT64_C(1));
    lost  = (double)(cache->floor.lost_ns +
                    account->why.lost_ns[UCS_REGCACHE_LOST_WAITED] +
                    ucs_load_relaxed(&cache->charge.lost_ns)) +
           price * account->pinned_ns;
    kept = price * account->leave_ns;
    return lost - kept * (1 + cache->tuning.floor_allowance);
}

double ucs_regcache_floor_between(ucs_regcache_h cache, double look_ns)
{
    return look_ns * 2 /
           (cache->config.max_slowdown * cache->tuning.floor_allowance);
}

/* With more looks it would never be worn off */
static uint64_t ucs_regcache_floor_rest(ucs_regcache_h cache)
{
    double rest = ucs_regcache_floor_between(cache, cache->charge.step_ns);

    return ucs_max((uint64_t)ucs_min(rest, 1e18), cache->tuning.patrol_ns);
}

/* Of a job whose iterations take seconds the first ones, in which all is learned,
 * take as much time as the whole of another */
static double ucs_regcache_floor_credit(ucs_regcache_h cache)
{
    return cache->config.max_slowdown * cache->tuning.floor_credit_ns +
           (double)cache->floor.came_ns;
}

uint64_t ucs_regcache_floor_holds(ucs_regcache_h cache, uint64_t now)
{
    ucs_regcache_floor_t *floor = &cache->floor;
    int was_on                  = floor->is_on;
    double debt;

    if (!floor->is_kept) {
        return 0;
    }

    ucs_regcache_lock(cache);
    debt          = ucs_regcache_floor_debt(cache, now);
    floor->is_on  = (debt > (was_on ? 0 : ucs_regcache_floor_credit(cache))) &&
                   (was_on || ucs_regcache_needs_helper(cache));
    floor->times += floor->is_on && !was_on;
    /* Leaving pinned has no ceiling */
    cache->soft.is_kept = !floor->is_on;
    ucs_regcache_unlock(cache);

    if (floor->is_on != was_on) {
        if (floor->is_on) {
            ucs_regcache_rest_for(cache, UCS_REGCACHE_REST_FLOOR);
        } else {
            ucs_regcache_resume_from(cache, UCS_REGCACHE_REST_FLOOR);
        }
    }
    return floor->is_on ? now + ucs_regcache_floor_rest(cache) : 0;
}
