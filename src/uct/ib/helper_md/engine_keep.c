/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "engine_int.h"

#include <ucs/sys/compiler_def.h>

/*
 * Gate
 *
 * A thread that unmapped memory sleeps until its event has been read, and what
 * it does next comes after the gate was shut. The event may still have to be
 * passed on then, and so a hit must wait for it.
 */

void uct_helper_engine_shut(uct_helper_engine_h engine)
{
    /* The read() that follows orders this before the return of who unmapped */
    (void)ucs_or_acq_rel(&engine->gate, UCT_HELPER_GATE_READER);
}

void uct_helper_engine_open(uct_helper_engine_h engine)
{
    /* release [R-GATE]: pairs with the acquire in uct_helper_engine_get() and
     * in uct_helper_engine_pass_gate() */
    if (ucs_and_acq_rel(&engine->gate, ~(uint32_t)(UCT_HELPER_GATE_READER |
                                                   UCT_HELPER_GATE_WAITED)) &
        UCT_HELPER_GATE_WAITED) {
        engine->env.wake_waiters(engine->env.arg, (uint32_t*)&engine->gate);
    }
}

/* Events that wait for the lock need no waiting for here: whoever gets the lock
 * finds them carried out */
void uct_helper_engine_pass_gate(uct_helper_engine_h engine)
{
    uint32_t gate = ucs_load_acquire(&engine->gate); /* [R-GATE] */

    while (ucs_unlikely(gate & UCT_HELPER_GATE_READER)) {
        if ((gate & UCT_HELPER_GATE_WAITED) ||
            ucs_cas_acq_rel(&engine->gate, &gate,
                            gate | UCT_HELPER_GATE_WAITED)) {
            engine->env.wait(engine->env.arg, (uint32_t*)&engine->gate,
                             gate | UCT_HELPER_GATE_WAITED);
        }
        gate = ucs_load_acquire(&engine->gate); /* [R-GATE] */
    }
}

/*
 * Kinds of memory
 */

/* An event since @a events may have been about this very range. While memory is
 * not trusted nothing is said of the range itself. */
static void uct_helper_engine_learn(uct_helper_engine_h engine,
                                    uct_helper_extents_t *set, uint64_t events,
                                    uintptr_t start, uintptr_t end)
{
    uct_helper_engine_lock(engine);
    if ((engine->events == events) &&
        (ucs_load_relaxed(&engine->distrust) == 0)) {
        uct_helper_extents_add(set, start, end);
    }
    uct_helper_engine_unlock(engine);
}

int uct_helper_engine_may_keep(uct_helper_engine_h engine,
                               uct_helper_region_t *region, int is_use)
{
    uintptr_t start = uct_helper_engine_page_down(
            engine, ucs_load_relaxed(&region->start));
    uintptr_t end   = uct_helper_engine_page_up(engine,
                                              ucs_load_relaxed(&region->end));
    unsigned flags  = is_use ? 0 : UCT_HELPER_INSPECT_SPECULATE;
    uintptr_t first = start;
    uintptr_t last  = end;
    int is_kept, is_barred;
    uint64_t events;

    if (engine->env.inspect == NULL) {
        return 1;
    }

    uct_helper_engine_lock(engine);
    events    = engine->events;
    is_kept   = uct_helper_extents_covers(&engine->kept, start, end);
    is_barred = uct_helper_extents_covers(&engine->barred, start, end);
    uct_helper_engine_unlock(engine);
    if (is_barred) {
        return 0;
    }

    flags |= is_kept ? UCT_HELPER_INSPECT_KNOWN : 0;
    if (!engine->env.inspect(engine->env.arg, flags, &first, &last)) {
        if (is_use) {
            uct_helper_engine_learn(engine, &engine->barred, events, start,
                                    end);
        }
        return 0;
    }

    if (!is_kept) {
        uct_helper_engine_learn(engine, &engine->kept, events, first, last);
    }
    return 1;
}
