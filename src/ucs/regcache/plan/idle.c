/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/regcache/regcache_int.h>

#include <ucs/sys/math.h>

/* What the lower domain's calls of an idle step may take at least, ns: a rendezvous
 * message takes about as long */
#define UCS_REGCACHE_IDLE_WORK_NS 5000u

/* So that a wait is at worst twice as long for what is done in it: an idle step
 * takes no longer than the rank has waited already, for waits that have lasted
 * go on (the bound of ski rental). In short ones nothing dear is begun. */
void ucs_regcache_idle_begin(ucs_regcache_h cache, uint64_t spare_ns)
{
    ucs_regcache_idling_t *idling = &cache->plan.idling;

    idling->budget   = ucs_min(ucs_max(spare_ns, UCS_REGCACHE_IDLE_WORK_NS),
                               UINT64_MAX - 1);
    idling->is_short = 0;
    idling->is_used  = 0;
}

int ucs_regcache_is_idling(ucs_regcache_h cache)
{
    return cache->plan.idling.budget != UINT64_MAX;
}

static int ucs_regcache_idle_spend(ucs_regcache_idling_t *idling, uint64_t ns)
{
    if (ns > idling->budget) {
        return 0;
    }
    idling->budget -= ns;
    idling->is_used = 1;
    return 1;
}

/* Uses that registered are what it learns from, so that the next do not */
void ucs_regcache_idle_end(ucs_regcache_h cache)
{
    ucs_regcache_idling_t *idling = &cache->plan.idling;
    uint64_t registered;

    ucs_regcache_lock(cache);
    registered = cache->stats.missed + cache->stats.cold;
    ucs_regcache_unlock(cache);
    idling->is_used    |= (registered != idling->registered);
    idling->registered  = registered;
}

int ucs_regcache_idle_was_used(ucs_regcache_h cache)
{
    return cache->plan.idling.is_used || cache->plan.idling.is_short;
}

int ucs_regcache_idle_may(ucs_regcache_h cache, uint64_t ns)
{
    ucs_regcache_idling_t *idling = &cache->plan.idling;

    if (!ucs_regcache_is_idling(cache) ||
        ucs_regcache_idle_spend(idling, ns)) {
        return 1;
    }
    idling->is_short = 1;
    return 0;
}

/* As soon after the use as the helper would, if there is time. If there is not,
 * it was due then, not now, and nothing has come of this step. */
int ucs_regcache_idle_drops(ucs_regcache_h cache, ucs_regcache_region_t *region)
{
    ucs_predict_terms_t terms;

    ucs_regcache_terms(cache, region, &terms);
    return (ucs_load_relaxed(&region->last_use) + terms.wakeup_ns <=
            ucs_regcache_now(cache)) &&
           ucs_regcache_idle_spend(&cache->plan.idling, terms.deregister_ns);
}
