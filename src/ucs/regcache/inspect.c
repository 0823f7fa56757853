/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "regcache_int.h"

#include <ucs/sys/compiler_def.h>

/*
 * Gate
 *
 * A thread that unmapped memory sleeps until its event has been read, and what
 * it does next comes after the gate was shut. The event may still have to be
 * passed on then, and so a hit must wait for it.
 */

void ucs_regcache_gate_shut(ucs_regcache_h cache)
{
    /* The read() that follows orders this before the return of who unmapped */
    (void)ucs_or_acq_rel(&cache->gate, UCS_REGCACHE_GATE_READER);
}

void ucs_regcache_gate_open(ucs_regcache_h cache)
{
    /* release [R-GATE]: pairs with the acquire in ucs_regcache_get() and
     * in ucs_regcache_pass_gate() */
    if (ucs_and_acq_rel(&cache->gate, ~(uint32_t)(UCS_REGCACHE_GATE_READER |
                                                  UCS_REGCACHE_GATE_WAITED)) &
        UCS_REGCACHE_GATE_WAITED) {
        cache->env.wake_waiters(cache->env.arg, (uint32_t *)&cache->gate);
    }
}

/* Events that wait for the lock need no waiting for here: whoever gets the lock
 * finds them carried out */
void ucs_regcache_pass_gate(ucs_regcache_h cache)
{
    uint32_t gate = ucs_load_acquire(&cache->gate); /* [R-GATE] */

    while (ucs_unlikely(gate & UCS_REGCACHE_GATE_READER)) {
        if ((gate & UCS_REGCACHE_GATE_WAITED) ||
            ucs_cas_acq_rel(&cache->gate, &gate,
                            gate | UCS_REGCACHE_GATE_WAITED)) {
            cache->env.wait(cache->env.arg, (uint32_t *)&cache->gate,
                            gate | UCS_REGCACHE_GATE_WAITED);
        }
        gate = ucs_load_acquire(&cache->gate); /* [R-GATE] */
    }
}

/*
 * Kinds of memory
 */

/* An event since @a events may have been about this very range. While memory is
 * not trusted nothing is said of the range itself. */
static void ucs_regcache_learn(ucs_regcache_h cache, ucs_extents_t *set,
                               uint64_t events, uintptr_t start, uintptr_t end)
{
    ucs_regcache_lock(cache);
    if ((cache->memory.events == events) &&
        (ucs_load_relaxed(&cache->distrust) == 0)) {
        ucs_extents_add(set, start, end);
    }
    ucs_regcache_unlock(cache);
}

int ucs_regcache_may_keep(ucs_regcache_h cache, ucs_regcache_region_t *region,
                          int is_use)
{
    uintptr_t start = ucs_regcache_page_down(cache,
                                             ucs_load_relaxed(&region->start));
    uintptr_t end = ucs_regcache_page_up(cache, ucs_load_relaxed(&region->end));
    unsigned flags  = is_use ? 0 : UCS_REGCACHE_INSPECT_SPECULATE;
    uintptr_t first = start;
    uintptr_t last  = end;
    int is_kept, is_barred;
    uint64_t events;

    if (cache->env.inspect == NULL) {
        return 1;
    }

    ucs_regcache_lock(cache);
    events    = cache->memory.events;
    is_kept   = ucs_extents_covers(&cache->memory.kept, start, end);
    is_barred = ucs_extents_covers(&cache->memory.barred, start, end);
    ucs_regcache_unlock(cache);
    if (is_barred) {
        return 0;
    }

    flags |= is_kept ? UCS_REGCACHE_INSPECT_KNOWN : 0;
    if (!cache->env.inspect(cache->env.arg, flags, &first, &last)) {
        if (is_use) {
            ucs_regcache_learn(cache, &cache->memory.barred, events, start,
                               end);
        }
        return 0;
    }

    if (!is_kept) {
        ucs_regcache_learn(cache, &cache->memory.kept, events, first, last);
    }
    return 1;
}
