/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * The helper's steps by two, for two jobs, and when its turn comes: the helper, the
 * scout that sleeps in its place and gives it turns, and a thread of the program that
 * ends uses, takes steps by try-lock while it waits, and rings the bell
 * (ucs_thread_main(), _turn(); ucs_job_turn(), _wake(), _serve(), _advance(),
 * _try_step(); ucs_scout_look(), _give(), _await(), _done(), _wake(), _serve(),
 * _advance(), _stop()).
 *
 * Time: what is due "later" may pass at any moment. The helper's own limit for what
 * is overdue is left out, unless it is what is checked (OVERDUE): it would hide what
 * is lost. STARVED: the scout is never let run. STOP: the program stops the helper
 * in the end.
 *
 * Safety: one step of a job at a time. Liveness, under weak fairness: what was queued is
 * learned of, also what another's step has left; a stop ends the helper, and the
 * bell and what is overdue reach it, whether the scout is let run or not.
 */

#ifndef ROUNDS
#  define ROUNDS 2
#endif

#define JOBS 2

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
bit  scout_asleep;    /* in the futex of its word */
bit  scout_has_timer;
bit  waits_for_end;   /* the scout in the futex of the turn */
bit  waits_for_turn;  /* the helper likewise */
bit  bell;

bit  time_lock;
bit  bell_seen;

/* Of each job */
bit  step_lock[JOBS];
bit  is_called[JOBS] = 1;
byte stepping[JOBS];  /* threads that are in a step */
byte due[JOBS] = NEVER;
byte queued[JOBS];
byte learned[JOBS];

bit  stop;
bit  ended;
bit  helper_ended;

inline lock(word)
{
    atomic { word == 0 -> word = 1 }
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

/* ucs_job_wake() */
inline call(j)
{
#ifdef MUTANT_CALLED_AFTER_WAKE
    wake();
    is_called[j] = 1
#else
    atomic {
        old          = is_called[j];
        is_called[j] = 1
    }
    if
    :: old == 0 -> wake()
    :: else
    fi
#endif
}

/* ucs_job_serve(), with ucs_scout_serve() */
inline serve(j)
{
    is_called[j] = 0;
    atomic {
        if
        :: scout_word == UCS_SCOUT_NOTIFIED -> scout_word = UCS_SCOUT_STIRRED
        :: else
        fi
    }
#ifndef MUTANT_SERVE_FOR_ALL
    if
    :: is_called[0] || is_called[1] -> wake()
    :: else
    fi
#endif
}

/* ucs_scout_advance() */
inline advance(time)
{
    if
    :: time >= at && (time != LATER || at != LATER)
    :: time <= at ->
#ifdef MUTANT_WORD_BEFORE_TIME
        old = scout_word;
        at  = time;
        atomic {
            if
            :: old == UCS_SCOUT_ASLEEP || old == UCS_SCOUT_AWAKE ->
                old = scout_word
            :: else
            fi;
#else
        at = time;
        atomic {
            old = scout_word;
#endif
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
    byte j;

    for (round : 1 .. ROUNDS) {
        if
        :: j = 0
        :: round > 1 -> j = 1
        fi;
        if
        :: queued[j]++;
           call(j)
        :: bell = 1 - bell;
           waits_for_turn = 0
        /* ucs_job_try_step() */
#ifdef MUTANT_TRY_STEP_WITHOUT_LOCK
        :: atomic { stepping[j]++; assert(stepping[j] == 1) }
#else
        :: atomic {
               step_lock[j] == 0 ->
               step_lock[j] = 1;
               stepping[j]++;
               assert(stepping[j] == 1)
           }
#endif
#ifndef MUTANT_SERVE_AFTER_STEP
           serve(j);
#endif
           if
           :: learned[j] = queued[j];
              time       = NEVER
           :: time = LATER;   /* it leaves what is dear */
           fi;
#ifdef MUTANT_SERVE_AFTER_STEP
           if
           :: queued[j]++;
              call(j)         /* of another thread */
           :: skip
           fi;
           serve(j);
#endif
           if
           :: time < due[j] ->
               lock(time_lock);
               due[j] = time;
#ifndef MUTANT_LEFT_IS_NOT_TOLD
               advance(time);
#endif
               time_lock = 0
           :: else
           fi;
           d_step { stepping[j]--; step_lock[j] = 0 }
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
           at == LATER || due[0] == LATER || due[1] == LATER ->
           at     = (at == LATER -> PASSED : at);
           due[0] = (due[0] == LATER -> PASSED : due[0]);
           due[1] = (due[1] == LATER -> PASSED : due[1])
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

/* Is a step of it due? */
#define IS_DUE(j) (is_called[j] || due[j] == PASSED || seen != bell_seen)

/* ucs_thread_main() */
proctype helper()
{
    byte old;
    byte time;
    byte j;
    bit  has_turn;
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
        has_turn = (turn == UCS_SCOUT_GIVES);
        if
        :: stop -> break
        :: else
        fi;
        seen = bell;
        for (j : 0 .. JOBS - 1) {
            /* ucs_job_turn() */
            if
            :: IS_DUE(j) ->
                lock(step_lock[j]);
                if
                :: IS_DUE(j) ->
                    atomic {
                        stepping[j]++;
                        assert(stepping[j] == 1);
                        is_called[j] = 0
                    }
                    atomic {
                        learned[j] = queued[j];
                        if
                        :: due[j] = NEVER
                        :: due[j] = LATER   /* something is registered */
                        fi;
                        stepping[j]--
                    }
                :: else
                fi;
                step_lock[j] = 0
            :: else
            fi
        }
        bell_seen = seen;
#ifndef MUTANT_TIME_WITHOUT_LOCK
        lock(time_lock);
#endif
        time = (due[0] < due[1] -> due[0] : due[1]);
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
#ifndef MUTANT_TIME_WITHOUT_LOCK
        time_lock = 0
#endif
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

ltl uses_are_learned {
    [] (ended -> <> (learned[0] == queued[0] && learned[1] == queued[1]))
}
ltl stop_ends { [] (stop -> <> helper_ended) }
ltl bell_is_heard { [] (ended -> <> (bell == bell_seen)) }
ltl overdue_is_done {
    [] (ended -> (<> (due[0] != PASSED) && <> (due[1] != PASSED)))
}
