/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * Memory events and those that listen to them, ucs/sys/sync/listeners.h: a cache is
 * never inside an event after ucs_listeners_leave() has returned, for it is
 * freed then; leave returns although events go on; and what is unmapped while
 * a cache listens reaches it.
 */

#ifndef EVENTS
#define EVENTS 2 /* of each thread */
#endif

bit  cache = 1;   /* slot->object, set by ucs_listeners_join() */
byte readers;
bit  freed;
bit  left;

/* ucs_listeners_enter() and ucs_listeners_exit() */
proctype application()
{
    byte events = EVENTS;
    bit found;

    do
    :: events == 0 -> break
    :: events > 0 ->
        events--;
        if
        :: cache == 0 -> assert(left); goto next
        :: else
        fi;
#ifndef MUTANT_NO_READER
        readers++;
#endif
#ifdef MUTANT_CACHE_NOT_READ_AGAIN
        found = 1;
#else
        found = cache;
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

/* ucs_listeners_leave(), then ucs_regcache_destroy() */
active proctype closing()
{
    run application();
    run application();
    left = 1;
#ifdef MUTANT_WAIT_BEFORE_LEAVE
    readers == 0;
    cache = 0;
#else
    cache = 0;
#ifndef MUTANT_LEAVE_DOES_NOT_WAIT
    readers == 0;
#endif
#endif
    freed = 1
}

ltl leave_ends { <> (freed == 1) }
