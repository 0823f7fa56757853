/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * Waiting: uses that wait for a registration (ucs_regcache_wait() and
 * ucs_futex_spin_and_wait(), a futex on the region's word) and the helper that sleeps
 * between its steps, without a scout (ucs_scout_wake(), _look(), _stop(),
 * ucs_thread_main()).
 *
 * A futex sleeps only if the word still has the value that was looked at; a
 * wake-up reaches those that sleep then, and nobody later. Liveness, under weak
 * fairness: every waiter is served, what was queued before a wake-up is
 * learned of, and a stop ends.
 */

#define WAITERS 2

#define UCS_REGCACHE_STATE_REGISTERING 0
#define UCS_REGCACHE_STATE_LIVE        1

#define UCS_SCOUT_AWAKE    0
#define UCS_SCOUT_NOTIFIED 1
#define UCS_SCOUT_ASLEEP   2

bit  state = UCS_REGCACHE_STATE_REGISTERING;
byte refs;                /* the half of the word that is slept on has both */
bit  asleep[WAITERS];
byte served;

byte thread_word = UCS_SCOUT_AWAKE;
bit  thread_asleep;       /* in the futex */
bit  stop;
bit  joined;
byte queued;
byte learned;

/* Atomic in the kernel: compare and go to sleep */
#define ucs_futex_spin_and_wait(_id, _state, _refs) \
    if \
    :: atomic { (state == _state) && (refs == _refs) -> asleep[_id] = 1 } \
       !asleep[_id] \
    :: (state != _state) || (refs != _refs) \
    fi

proctype waiter(byte id)
{
    bit old_state;
    byte old_refs;

    /* ucs_regcache_look_up(), under the lock */
    atomic {
        if
        :: state == UCS_REGCACHE_STATE_REGISTERING -> refs++
        :: else -> goto out
        fi
    }
    do
    :: d_step { old_state = state; old_refs = refs }
       if
       :: old_state != UCS_REGCACHE_STATE_REGISTERING -> break
       :: else
       fi;
#ifdef MUTANT_WAIT_WITHOUT_COMPARE
       atomic { asleep[id] = 1 }
       !asleep[id]
#else
       ucs_futex_spin_and_wait(id, old_state, old_refs)
#endif
    od;
    refs--;
out:
    served++;
    /* The use ends: an entry into the DQ, and the helper is told */
#ifdef MUTANT_WAKE_BEFORE_QUEUE
    queued = queued; /* the entry comes last */
#else
    queued++;
#endif
    /* ucs_thread_wake() */
    atomic {
        if
#ifdef MUTANT_WAKE_ONLY_SLEEPERS
        :: thread_word == UCS_SCOUT_ASLEEP ->
            thread_word   = UCS_SCOUT_NOTIFIED;
            thread_asleep = 0
        :: else
#else
        :: thread_word == UCS_SCOUT_ASLEEP ->
            thread_word = UCS_SCOUT_NOTIFIED;
            goto futex
        :: else -> thread_word = UCS_SCOUT_NOTIFIED
#endif
        fi
    }
    goto woken;
futex:
    thread_asleep = 0;
woken:
#ifdef MUTANT_WAKE_BEFORE_QUEUE
    queued++
#else
    skip
#endif
}

/* ucs_regcache_region_register(): publish, then wake all */
proctype registrar()
{
    state = UCS_REGCACHE_STATE_LIVE;
#ifndef MUTANT_NO_WAKE_WAITERS
#ifdef MUTANT_WAKE_ONE
    if
    :: asleep[0] -> asleep[0] = 0
    :: asleep[1] -> asleep[1] = 0
    :: !asleep[0] && !asleep[1]
    fi
#else
    d_step { asleep[0] = 0; asleep[1] = 0 }
#endif
#endif
}

/* ucs_thread_main(); a timer may also run out, but nothing is owed to
 * that here */
proctype helper()
{
    do
    :: thread_word = UCS_SCOUT_AWAKE;
       if
       :: stop -> break
       :: else
       fi;
       learned = queued;
#ifdef MUTANT_SLEEP_WITHOUT_CAS
       thread_word = UCS_SCOUT_ASLEEP;
       goto futex;
#else
       if
       :: d_step { thread_word == UCS_SCOUT_AWAKE ->
                   thread_word = UCS_SCOUT_ASLEEP }
          goto futex
       :: thread_word != UCS_SCOUT_AWAKE
       fi
#endif
       goto next;
futex:
       if
       :: atomic { thread_word == UCS_SCOUT_ASLEEP ->
                   thread_asleep = 1 }
          !thread_asleep
       :: thread_word != UCS_SCOUT_ASLEEP
       fi;
next:
       skip
    od;
    joined = 1
}

init
{
    atomic {
        run waiter(0);
        run waiter(1);
        run registrar();
        run helper()
    }
    served == WAITERS;
    queued == WAITERS;
    learned == WAITERS;
    /* ucs_thread_stop() */
#ifdef MUTANT_STOP_AFTER_WAKE
    atomic { thread_word = UCS_SCOUT_NOTIFIED; thread_asleep = 0 }
    stop = 1;
#else
    stop = 1;
    atomic { thread_word = UCS_SCOUT_NOTIFIED; thread_asleep = 0 }
#endif
    joined == 1
}

ltl waiters_are_served { <> (served == WAITERS) }
ltl uses_are_learned   { <> (learned == WAITERS) }
ltl stop_ends          { <> (joined == 1) }
