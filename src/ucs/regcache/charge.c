/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "charge.h"
#include "regcache_int.h"

#include <ucs/sys/math.h>

/* What it spent before is charged at what is known now: who wanted the core is
 * known only afterwards */
void ucs_regcache_charge(ucs_regcache_h cache)
{
    ucs_regcache_charge_t *charge = &cache->charge;
    uint64_t spent, took;
    double busy;

    if (cache->env.spent == NULL) {
        return;
    }
    if (cache->env.busy != NULL) {
        busy             = cache->env.busy(cache->env.arg);
        charge->is_known = (busy >= 0);
        charge->busy     = ucs_max(busy, 0);
    }
    spent = cache->env.spent(cache->env.arg);
    if (spent == 0) {
        return;
    }
    took  = (spent > charge->spent) ? spent - charge->spent : 0;
    ucs_add_relaxed(&charge->lost_ns, (uint64_t)(took * charge->busy));
    if (charge->spent != 0) {
        charge->step_ns += (took - charge->step_ns) /
                           cache->tuning.step_memory;
    }
    charge->spent = spent;
}
