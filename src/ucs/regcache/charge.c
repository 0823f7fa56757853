/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "regcache_int.h"

#include <ucs/sys/math.h>

/* What it spent before is charged at what is known now: who wanted the core is
 * known only afterwards */
void ucs_regcache_charge(ucs_regcache_h cache)
{
    ucs_regcache_charge_t *charge = &cache->charge;
    uint64_t spent, lost;

    if ((cache->env.spent == NULL) || (cache->env.busy == NULL)) {
        return;
    }

    spent        = cache->env.spent(cache->env.arg);
    charge->busy = cache->env.busy(cache->env.arg);
    if (spent > charge->spent) {
        lost = (spent - charge->spent) * charge->busy;
        ucs_add_relaxed(&charge->lost_ns, lost);
    }
    charge->spent = spent;
}
