/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "regcache_int.h"

#include <ucs/sys/compiler_def.h>

/* --- Unmapped memory ------------------------------------------------------ */

/* What has become of the pages when their event is told */
typedef enum ucs_regcache_fate {
    UCS_REGCACHE_FATE_GOING,  /* they are about to go */
    UCS_REGCACHE_FATE_GONE,   /* they have gone */
    UCS_REGCACHE_FATE_MAPPED  /* others have just taken their place */
} ucs_regcache_fate_t;

/* Under the lock, which is let go */
static void
ucs_regcache_forget(ucs_regcache_h cache, uintptr_t address, size_t length,
                    ucs_regcache_fate_t fate, uint64_t now)
{
    uintptr_t start = ucs_regcache_page_down(cache, address);
    uintptr_t end   = (length > UINTPTR_MAX - address) ?
                              UINTPTR_MAX :
                              ucs_regcache_page_up(cache, address + length);
    int is_called   = ucs_regcache_forget_range(cache, start, end, now);

    if (fate == UCS_REGCACHE_FATE_GOING) {
        ucs_extents_remove(&cache->memory.untouched, start, end);
    } else if (fate == UCS_REGCACHE_FATE_MAPPED) {
        ucs_regcache_cover_mapped(cache, start, end);
    }
    ucs_regcache_unlock(cache);
    if (is_called) {
        cache->env.wake(cache->env.arg);
    }
}

static void ucs_regcache_event(ucs_regcache_h cache, uintptr_t address,
                              size_t length, ucs_regcache_fate_t fate)
{
    uint64_t now = ucs_regcache_now(cache);

    if (ucs_unlikely(ucs_lock_is_mine(&cache->lock))) {
        /* acq_rel [R-GATE]: pairs with the acquire in get */
        (void)ucs_or_acq_rel(&cache->gate, UCS_REGCACHE_GATE_EVENT);
        return;
    }

    ucs_regcache_lock(cache);
    ucs_regcache_forget(cache, address, length, fate, now);
}

void ucs_regcache_unmapped(ucs_regcache_h cache, uintptr_t address,
                           size_t length)
{
    ucs_regcache_event(cache, address, length, UCS_REGCACHE_FATE_GOING);
}

void ucs_regcache_mapped(ucs_regcache_h cache, uintptr_t address, size_t length)
{
    ucs_regcache_event(cache, address, length, UCS_REGCACHE_FATE_MAPPED);
}

int ucs_regcache_try_unmapped(ucs_regcache_h cache, uintptr_t address,
                              size_t length, int is_gone)
{
    uint64_t now = ucs_regcache_now(cache);

    if (!ucs_regcache_try_lock(cache)) {
        return 0;
    }
    ucs_regcache_forget(cache, address, length,
                        is_gone ? UCS_REGCACHE_FATE_GONE :
                                  UCS_REGCACHE_FATE_GOING,
                        now);
    return 1;
}

/*
 * Gate
 *
 * A thread that unmapped memory sleeps until its event has been read, and what
 * it does next comes after the gate was shut. The event may still have to be
 * passed on then, and so a hit must wait for it.
 */

void ucs_regcache_gate_shut(ucs_regcache_h cache)
{
    /* The read() that follows orders this before the return of the thread that
     * unmapped [R-GATE] */
    (void)ucs_or_acq_rel(&cache->gate, UCS_REGCACHE_GATE_READER);
}

void ucs_regcache_gate_open(ucs_regcache_h cache)
{
    /* release [R-GATE]: pairs with the acquire in ucs_regcache_get() and
     * in ucs_regcache_pass_gate() */
    if (ucs_and_acq_rel(&cache->gate, ~(uint32_t)(UCS_REGCACHE_GATE_READER |
                                                  UCS_REGCACHE_GATE_WAITED)) &
        UCS_REGCACHE_GATE_WAITED) {
        cache->env.wake_waiters(cache->env.arg, (uint32_t*)&cache->gate);
    }
}

/* Events that wait for the lock need no waiting for here: the thread that gets
 * the lock finds them carried out */
void ucs_regcache_pass_gate(ucs_regcache_h cache)
{
    uint32_t gate = ucs_load_acquire(&cache->gate); /* [R-GATE] */

    while (ucs_unlikely(gate & UCS_REGCACHE_GATE_READER)) {
        if ((gate & UCS_REGCACHE_GATE_WAITED) ||
            ucs_cas_acq_rel(&cache->gate, &gate, /* [R-GATE] */
                            gate | UCS_REGCACHE_GATE_WAITED)) {
            cache->env.wait(cache->env.arg, (uint32_t*)&cache->gate,
                            gate | UCS_REGCACHE_GATE_WAITED, UINT64_MAX);
        }
        gate = ucs_load_acquire(&cache->gate); /* [R-GATE] */
    }
}

/* --- Distrust ------------------------------------------------------------- */

/* Afterwards the environment is asked again what may be kept */
void ucs_regcache_distrust(ucs_regcache_h cache, unsigned reason)
{
    uint64_t now = ucs_regcache_now(cache);
    unsigned before;

    ucs_regcache_lock(cache);
    /* relaxed: what the lock protects it orders, and a use that reads it
     * without the lock is overtaken anyway: the strike finds its region */
    before = ucs_load_relaxed(&cache->distrust);
    ucs_store_relaxed(&cache->distrust, before | reason);
    if (before == 0) {
        ucs_regcache_account(cache, now);
        (void)ucs_regcache_strike_range(cache, 0, UINTPTR_MAX);
        ucs_regcache_note_event(cache, 0, UINTPTR_MAX, now);
    }
    ucs_extents_remove(&cache->memory.kept, 0, UINTPTR_MAX);
    ucs_extents_remove(&cache->memory.untouched, 0, UINTPTR_MAX);
    ucs_regcache_unlock(cache);

    /* To reclaim, and to look when it may be trusted again */
    cache->env.wake(cache->env.arg);
}

void ucs_regcache_trust(ucs_regcache_h cache, unsigned reason)
{
    ucs_regcache_lock(cache);
    ucs_store_relaxed(&cache->distrust,
                      ucs_load_relaxed(&cache->distrust) & ~reason);
    ucs_regcache_unlock(cache);
}
