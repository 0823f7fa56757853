/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * Memory events and the domains that listen to them, events.c: an engine is
 * never inside an event after uct_helper_events_leave() has returned, for it is
 * freed then; leave returns although events go on; and what is unmapped while
 * an engine listens reaches it.
 */

#ifndef EVENTS
#define EVENTS 2 /* of each thread */
#endif

bit  engine = 1;   /* slot->engine, set by uct_helper_events_join() */
byte readers;
bit  freed;
bit  left;

/* uct_helper_events_pass() */
proctype application()
{
    byte events = EVENTS;
    bit found;

    do
    :: events == 0 -> break
    :: events > 0 ->
        events--;
        if
        :: engine == 0 -> assert(left); goto next
        :: else
        fi;
#ifndef MUTANT_NO_READER
        readers++;
#endif
#ifdef MUTANT_ENGINE_NOT_READ_AGAIN
        found = 1;
#else
        found = engine;
#endif
        if
        :: found ->
            assert(!freed);       /* ucs_regcache_unmapped() begins */
            assert(!freed)        /* and ends */
        :: else -> assert(left)
        fi;
#ifndef MUTANT_NO_READER
#ifndef MUTANT_READER_STAYS
        readers--;
#endif
#endif
next:
        found = 0
    od
}

/* uct_helper_events_leave(), then ucs_regcache_destroy() */
active proctype closing()
{
    run application();
    run application();
    left = 1;
#ifdef MUTANT_WAIT_BEFORE_LEAVE
    readers == 0;
    engine = 0;
#else
    engine = 0;
#ifndef MUTANT_LEAVE_DOES_NOT_WAIT
    readers == 0;
#endif
#endif
    freed = 1
}

ltl leave_ends { <> (freed == 1) }
