/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * Uses that wait for a registration: ucs_regcache_wait() and
 * ucs_futex_spin_and_wait(), a futex on the region's word. A futex sleeps only
 * if the word still has the value that was looked at; a wake-up reaches those
 * that sleep then, and nobody later. Liveness, under weak fairness: every
 * waiter is served.
 */

#define WAITERS 2

#define UCS_REGCACHE_STATE_REGISTERING 0
#define UCS_REGCACHE_STATE_LIVE        1

bit  state = UCS_REGCACHE_STATE_REGISTERING;
byte refs;                /* the half of the word that is slept on has both */
bit  asleep[WAITERS];
byte served;

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
    served++
}

/* ucs_regcache_register_use(): publish, then wake all */
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

init
{
    atomic {
        run waiter(0);
        run waiter(1);
        run registrar()
    }
}

ltl waiters_are_served { <> (served == WAITERS) }
