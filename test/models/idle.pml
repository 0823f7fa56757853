/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * The helper's step by two: the thread itself, which sleeps between its steps,
 * and a thread of the program that waits and takes one by try-lock
 * (ucs_thread_main(), _turn(), _sleep(), _wake(), _try_step(), _stir()). The
 * thread leaves its steps to the other one for as long as the latest of those is
 * recent (ucs_thread_set_patience()).
 *
 * Time: "left" says that an idle step is recent; it passes when nobody looks. A
 * timer that was set may run out at any time. Safety: one step at a time.
 * Liveness, under weak fairness: what was queued is learned of, also what an idle
 * step has left, and what came while the thread would not come.
 */

#define ROUNDS 3

#define UCS_THREAD_AWAKE    0
#define UCS_THREAD_NOTIFIED 1
#define UCS_THREAD_STIRRED  2
#define UCS_THREAD_ASLEEP   3
#define UCS_THREAD_DOZING   4

byte thread_word = UCS_THREAD_AWAKE;
bit  thread_asleep;       /* in the futex */
bit  has_timer;           /* and not for ever */
bit  step_lock;
byte stepping;            /* threads that are in a step */

/* Under the step's lock */
bit  left;                /* now < left_until */
bit  is_due;              /* next is not for ever */
bit  is_time;             /* now >= next */
bit  is_moved;            /* next is another since the thread set its timer */
bit  is_called;
bit  is_armed;            /* the thread said that it sleeps until a time */

/* Of the cache: what its latest step said of when the thread comes by itself, and
 * that something counts on it */
bit  is_said;
bit  patience;

byte queued;
byte learned;
bit  ended;

inline lock()
{
    atomic { step_lock == 0 -> step_lock = 1 }
}

/* ucs_thread_wake() */
inline wake()
{
    atomic {
        old         = thread_word;
        thread_word = UCS_THREAD_NOTIFIED
    }
    if
    :: old == UCS_THREAD_ASLEEP -> thread_asleep = 0
    :: else
    fi
}

/* ucs_thread_stir(): its loop ends when the word changed to anything else */
inline stir()
{
    atomic {
        old = thread_word;
        if
        :: old == UCS_THREAD_ASLEEP -> thread_word = UCS_THREAD_STIRRED
#ifndef MUTANT_STIR_ONLY_SLEEPERS
        :: old == UCS_THREAD_AWAKE -> thread_word = UCS_THREAD_STIRRED
#endif
        :: else
        fi
    }
    if
    :: old == UCS_THREAD_ASLEEP -> thread_asleep = 0
    :: else
    fi
}

/* ucs_regcache_step_due(), at the end of a step: is_due is what that came to */
inline say_due()
{
    is_said = is_due;
    if
#ifndef MUTANT_PATIENCE_IS_NOT_READ
    :: patience ->
        is_due  = 1;
        is_said = 1
#endif
    :: else
    fi
}

/* Of a thread of the program: uses end, and it takes steps while it waits */
proctype program()
{
    byte round;
    byte old;
    bit  is_sooner;

    for (round : 1 .. ROUNDS) {
        if
        :: queued++;
           wake()
        :: queued++;    /* and it can wait: ucs_regcache_comes_late() */
           patience = 1;
           if
           :: is_said
           :: else -> wake()
           fi
        :: skip
        fi;
        /* ucs_thread_try_step() */
#ifdef MUTANT_IDLE_STEP_WITHOUT_LOCK
        if
        :: true
#else
        if
        :: atomic { step_lock == 0 -> step_lock = 1 }
#endif
           stepping++;
           assert(stepping == 1);
           is_called = 0;
           patience  = 0;
           if
           :: queued++      /* it has become due without a wake-up */
           :: skip
           fi;
           if
           :: learned = queued;
              is_due  = 0
           :: is_due  = 1   /* it leaves what is dear */
           fi;
#ifndef MUTANT_PUT_OFF_IS_NOT_SAID
           say_due();
#endif
           is_time  = 0;
           is_moved = 1;
           stepping--;
           left = 1;
           is_sooner = is_due && !is_armed;
           step_lock = 0;
#ifndef MUTANT_LEFT_IS_NOT_TOLD
           if
           :: is_sooner -> stir()
           :: else
           fi
#endif
        :: step_lock -> skip
        :: skip         /* it does not wait now */
        fi
    }
    ended = 1
}

/* An idle step is recent for a while */
proctype clock()
{
    do
    :: left -> left = 0
    :: ended && !left -> break
    od
}

/* ucs_thread_main() */
proctype helper()
{
    byte old;
    byte word;

    do
    :: atomic {
           old         = thread_word;
           thread_word = UCS_THREAD_AWAKE
       }
       lock();
#ifndef MUTANT_CALL_IS_FORGOTTEN
       is_called = is_called || (old == UCS_THREAD_NOTIFIED);
#endif
       if
       :: !left && (is_called || (is_due && is_time)) ->
           stepping++;
           assert(stepping == 1);
           is_called = 0;
           patience  = 0;
           learned   = queued;
           if
           :: is_due = 0
           :: is_due = 1    /* something is registered */
           fi;
           say_due();
           is_time   = 0;
           stepping--;
       :: else
       fi;
       is_armed = is_called || is_due;
       word     = (left && is_armed -> UCS_THREAD_DOZING : UCS_THREAD_ASLEEP);
#ifdef MUTANT_STIRRED_SLEEPS_ON
       has_timer = (word == UCS_THREAD_DOZING);
#else
       has_timer = is_armed;
#endif
       is_moved  = 0;
       step_lock = 0;
       /* ucs_thread_sleep() */
#ifdef MUTANT_DOZE_WITHOUT_CAS
       thread_word = word;
#else
       if
       :: d_step { thread_word == UCS_THREAD_AWAKE -> thread_word = word }
       :: thread_word != UCS_THREAD_AWAKE -> goto next
       fi;
#endif
       if
       :: atomic { thread_word == word -> thread_asleep = 1 }
end_asleep:
          if
          :: !thread_asleep
          :: has_timer ->
              thread_asleep = 0;
              is_time       = is_time || (is_due && !is_moved)
          fi
       :: thread_word != word
       fi;
next:
       skip
    od
}

init
{
    atomic {
        run program();
        run clock();
        run helper()
    }
}

ltl uses_are_learned { [] (ended -> <> (learned == queued)) }
