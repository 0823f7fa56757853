/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "engine_int.h"

/* After the helper resumes: by then what is in use shows */
#define UCT_HELPER_RESUME_SWEEP_NS UINT64_C(10000000)

/*
 * Room that is shared with others
 */

int uct_helper_engine_claim(uct_helper_engine_h engine, size_t length,
                            unsigned why)
{
    return (engine->env.claim == NULL) ||
           engine->env.claim(engine->env.arg, length, why);
}

uct_helper_room_t uct_helper_engine_ask(uct_helper_engine_h engine,
                                        size_t length, int all,
                                        unsigned *asked_p)
{
    unsigned bit = 1u << !!all;
    uct_helper_room_t room;

    if ((engine->env.claim == NULL) || (*asked_p & bit)) {
        return UCT_HELPER_ROOM_NONE;
    }

    *asked_p |= bit;
    uct_helper_engine_unlock(engine);
    room = engine->env.ask(engine->env.arg, length, all);
    uct_helper_engine_lock(engine);

    /* Another thread took the room below a ceiling of our own meanwhile */
    if ((room == UCT_HELPER_ROOM_GRANTED) &&
        !uct_helper_engine_fits(engine, length)) {
        engine->env.unclaim(engine->env.arg, length);
        room = UCT_HELPER_ROOM_MAYBE;
    }
    return room;
}

/*
 * Rest
 */

/* What is in the queue's hands stays there: an end of a use that nobody takes
 * out of the queue leaves its region registered */
void uct_helper_engine_rest(uct_helper_engine_h engine)
{
    if (!engine->is_resting && uct_helper_engine_needs_helper(engine)) {
        engine->is_resting = 1;
        uct_helper_engine_helper_refused(engine);
    }
}

void uct_helper_engine_rested(uct_helper_engine_h engine)
{
    uct_helper_engine_reclaim(engine);
}

/* Under the lock: what was registered at rest comes into the queue's hands */
static void uct_helper_engine_queue_all(uct_helper_engine_h engine)
{
    uct_helper_region_t *region;

    for (region = uct_helper_index_first(&engine->index, 0, UINTPTR_MAX);
         region != NULL; region = uct_helper_index_next(&engine->index, region,
                                                        0, UINTPTR_MAX)) {
        if ((uct_helper_engine_class(engine,
                                     uct_helper_region_length(region)) ==
             UCT_HELPER_CLASS_MANAGED) &&
            (ucs_load_relaxed(&region->idle) == UCT_HELPER_IDLE_KEEP)) {
            ucs_store_relaxed(&region->idle, UCT_HELPER_IDLE_QUEUE);
        }
    }
}

/* What was used meanwhile is in no queue: it is swept as after a queue that ran
 * over */
void uct_helper_engine_resume(uct_helper_engine_h engine)
{
    if (!engine->is_resting) {
        return;
    }

    engine->is_resting = 0;
    engine->sweep_at   = uct_helper_engine_now(engine) +
                         UCT_HELPER_RESUME_SWEEP_NS;
    ucs_store_relaxed(&engine->helper_refused, 0);
    uct_helper_engine_lock(engine);
    uct_helper_engine_queue_all(engine);
    uct_helper_engine_unlock(engine);
}

void uct_helper_engine_set_shared(uct_helper_engine_h engine, uint64_t ns)
{
    engine->shared = ns;
}
