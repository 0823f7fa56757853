/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * The helper's step by two, and when its turn comes: the helper, the scout that
 * sleeps in its place and gives it turns, and a thread of the program that ends
 * uses, takes steps by try-lock while it waits, and rings the bell
 * (ucs_thread_main(), _turn(), _try_step(); ucs_scout_look(), _give(), _await(),
 * _done(), _wake(), _serve(), _advance(), _stop()).
 *
 * Time: what is due "later" may pass at any moment. The helper's own limit for what
 * is overdue is left out, unless it is what is checked (OVERDUE): it would hide what
 * is lost. STARVED: the scout is never let run. STOP: the program stops the helper
 * in the end.
 *
 * Safety: one step at a time. Liveness, under weak fairness: what was queued is
 * learned of, also what another's step has left; a stop ends the helper, and the
 * bell and what is overdue reach it, whether the scout is let run or not.
 */

#ifndef ROUNDS
#  define ROUNDS 2
#endif

#define UCS_SCOUT_AWAKE    0
#define UCS_SCOUT_NOTIFIED 1
#define UCS_SCOUT_STIRRED  2
#define UCS_SCOUT_ASLEEP   3

#define UCS_SCOUT_LOOKS   0
#define UCS_SCOUT_GIVES   1
#define UCS_SCOUT_STOPPED 2

/* Times: an order */
#define PASSED 0
#define LATER  1
#define NEVER  2

byte scout_word = UCS_SCOUT_NOTIFIED;
byte turn       = UCS_SCOUT_LOOKS;
byte at         = NEVER;
bit  is_rung;
bit  scout_asleep;    /* in the futex of its word */
bit  scout_has_timer;
bit  waits_for_end;   /* the scout in the futex of the turn */
bit  waits_for_turn;  /* the helper likewise */
bit  bell;

bit  step_lock;
byte stepping;        /* threads that are in a step */
byte due = NEVER;    /* under that lock */
bit  bell_seen;

byte queued;
byte learned;
bit  stop;
bit  ended;
bit  helper_ended;

inline lock()
{
    atomic { step_lock == 0 -> step_lock = 1 }
}

inline wake_turn()
{
    d_step { waits_for_end = 0; waits_for_turn = 0 }
}

/* ucs_scout_wake() */
inline wake()
{
    atomic {
        old        = scout_word;
        scout_word = UCS_SCOUT_NOTIFIED
    }
    if
    :: old == UCS_SCOUT_ASLEEP -> scout_asleep = 0
    :: else
    fi
}

/* ucs_scout_serve() */
inline serve()
{
    atomic {
        if
        :: scout_word == UCS_SCOUT_NOTIFIED -> scout_word = UCS_SCOUT_STIRRED
        :: else
        fi
    }
}

/* ucs_scout_advance() */
inline advance(time)
{
    if
    :: time >= at && (time != LATER || at != LATER)
    :: time <= at ->
        at = time;
        atomic {
            old = scout_word;
            if
            :: old == UCS_SCOUT_ASLEEP -> scout_word = UCS_SCOUT_STIRRED
#ifndef MUTANT_STIR_ONLY_SLEEPERS
            :: old == UCS_SCOUT_AWAKE -> scout_word = UCS_SCOUT_STIRRED
#endif
            :: else
            fi
        }
        if
        :: old == UCS_SCOUT_ASLEEP -> scout_asleep = 0
        :: else
        fi
    fi
}

/* Uses end, and it takes steps while it waits */
proctype program()
{
    byte round;
    byte old;
    byte time;

    for (round : 1 .. ROUNDS) {
        if
        :: queued++;
           wake()
        :: bell = 1 - bell;
           waits_for_turn = 0
        /* ucs_thread_try_step() */
#ifdef MUTANT_TRY_STEP_WITHOUT_LOCK
        :: true
#else
        :: atomic { step_lock == 0 -> step_lock = 1 }
#endif
           stepping++;
           assert(stepping == 1);
#ifndef MUTANT_SERVE_AFTER_STEP
           serve();
#endif
           if
           :: learned = queued;
              time    = NEVER
           :: time = LATER;   /* it leaves what is dear */
           fi;
#ifdef MUTANT_SERVE_AFTER_STEP
           if
           :: queued++;
              wake()          /* of another thread */
           :: skip
           fi;
           serve();
#endif
           if
           :: time < due ->
               due = time;
#ifndef MUTANT_LEFT_IS_NOT_TOLD
               advance(time)
#endif
           :: else
           fi;
           stepping--;
           step_lock = 0
        :: skip
        fi
    }
#ifdef STOP
    /* ucs_thread_stop() */
    stop = 1;
    turn = UCS_SCOUT_STOPPED;
#  ifndef MUTANT_STOP_WAKES_THE_SCOUT_ALONE
    wake_turn();
#  endif
    wake();
#endif
    ended = 1
}

proctype clock()
{
end_clock:
    do
    :: d_step {
           at == LATER || due == LATER ->
           at  = (at == LATER -> PASSED : at);
           due = (due == LATER -> PASSED : due)
       }
    od
}

/* ucs_scout_main() */
proctype scout()
{
    byte old;
    byte time;

    do
    :: turn == UCS_SCOUT_STOPPED -> break
    :: else ->
        time = at;
        if
        :: time != PASSED ->
#ifdef MUTANT_ASLEEP_WITHOUT_CAS
            scout_word = UCS_SCOUT_ASLEEP;
#else
            if
            :: d_step { scout_word == UCS_SCOUT_AWAKE ->
                        scout_word = UCS_SCOUT_ASLEEP }
            :: scout_word != UCS_SCOUT_AWAKE -> goto looked
            fi;
#endif
            scout_has_timer = (time == LATER);
            if
            :: atomic { scout_word == UCS_SCOUT_ASLEEP -> scout_asleep = 1 };
end_asleep:    if
               :: !scout_asleep
               :: scout_has_timer -> scout_asleep = 0
               fi
            :: scout_word != UCS_SCOUT_ASLEEP
            fi
        :: else
        fi;
looked:
        atomic {
            old        = scout_word;
            scout_word = UCS_SCOUT_AWAKE
        }
        if
        :: old == UCS_SCOUT_NOTIFIED || at == PASSED ->
            /* ucs_scout_give() */
            is_rung = (old == UCS_SCOUT_NOTIFIED);
            d_step {
                if
                :: turn == UCS_SCOUT_LOOKS -> turn = UCS_SCOUT_GIVES
                :: else
                fi
            }
            wake_turn();
            do
            :: atomic { turn == UCS_SCOUT_GIVES -> waits_for_end = 1 };
end_given:     !waits_for_end
            :: turn != UCS_SCOUT_GIVES -> break
            od
        :: else
        fi
    od
}

/* ucs_thread_main() */
proctype helper()
{
    byte old;
    byte time;
    bit  has_turn;
    bit  is_called;
    bit  seen;

    do
    ::  /* ucs_scout_await() */
        do
        :: atomic { turn == UCS_SCOUT_LOOKS && bell == bell_seen ->
                    waits_for_turn = 1 };
end_waits: if
           :: !waits_for_turn
#ifdef OVERDUE
           :: at == PASSED -> waits_for_turn = 0; break
#endif
           fi
        :: turn != UCS_SCOUT_LOOKS -> break
#ifndef MUTANT_BELL_WAITS_FOR_THE_SCOUT
        :: bell != bell_seen -> break
#endif
        od;
        has_turn  = (turn == UCS_SCOUT_GIVES);
        is_called = has_turn && is_rung;
        if
        :: stop -> break
        :: else
        fi;
        seen = bell;
        lock();
        if
        :: is_called || due == PASSED || seen != bell_seen ->
            stepping++;
            assert(stepping == 1);
            bell_seen = seen;
            learned   = queued;
            if
            :: due = NEVER
            :: due = LATER   /* something is registered */
            fi;
            stepping--
        :: else
        fi;
        time = due;
#ifdef MUTANT_DONE_WITHOUT_LOCK
        step_lock = 0;
#endif
        /* ucs_scout_done() */
        if
        :: !has_turn ->
#ifdef MUTANT_OWN_TIME_IS_NOT_TOLD
            skip
#else
            advance(time)
#endif
        :: else
        fi;
#ifndef MUTANT_TIME_AFTER_TURN
        at = time;
#endif
        if
#ifdef MUTANT_TURN_IS_TAKEN_BACK
        :: true ->
#else
        :: has_turn ->
#endif
#ifdef MUTANT_DONE_WITHOUT_CAS
            turn = UCS_SCOUT_LOOKS;
#else
            d_step {
                if
                :: turn == UCS_SCOUT_GIVES -> turn = UCS_SCOUT_LOOKS
                :: else
                fi
            }
#endif
            waits_for_end = 0
        :: else
        fi;
#ifdef MUTANT_TIME_AFTER_TURN
        at = time;
#endif
        step_lock = 0
    od;
    helper_ended = 1
}

init
{
    atomic {
        run program();
        run clock();
#ifndef STARVED
        run scout();
#endif
        run helper()
    }
}

ltl uses_are_learned { [] (ended -> <> (learned == queued)) }
ltl stop_ends { [] (stop -> <> helper_ended) }
ltl bell_is_heard { [] (ended -> <> (bell == bell_seen)) }
ltl overdue_is_done { [] (ended -> <> (due != PASSED)) }
