/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * fork: session.c's handlers, thread.c's count of steps and process.c's number, with a
 * helper that steps, a thread that uses and unmaps memory, and a thread that closes the
 * domain. Of the child of fork() and of a raw child, which runs no handlers.
 *
 * Parent: a fork waits for the step that is under way, and no step begins until it is
 * over. It holds no lock: a handler of somebody else, between our two, unmaps memory in
 * the thread that forks, which strikes at once, or waits for the thread that closes the
 * domain.
 *
 * Child: what it has of its parent's locks is what they were at the moment of
 * the fork, and nobody opens them. Two of its threads unmap memory, register,
 * enter a domain of their own and exit. Neither may look into the parent's
 * cache, wait for a lock of it, or find its own locks half renewed.
 */

#define STEPS     2

#define FREE      0
#define FORKER    1
#define USER      2
#define HELPER    3
#define CLOSER    4
#define CHILD     5     /* and CHILD + 1 */

/* ucs_process_word; the parent's number is 1 */
#define UNKNOWN   0
#define PARENT    1
#define ADOPTING  2
#define OWN       3

byte session_lock, life_lock, step_lock, index_lock;
bit  lower;             /* the helper is with the domain below */
byte steps;             /* under way */
byte forks;
byte owed;              /* unmaps of the forking thread */
byte struck;
bit  stop, joined, closed;
byte finished;

/* The child's copies */
bit  forked;
byte c_word, c_session_lock, c_index_lock;
bit  c_listens;         /* events lead to the parent's cache */
byte c_adopted;         /* how often */
byte c_entered;         /* domains that the child has opened since */
byte c_finished;

#define lock(_lock, _who)   atomic { _lock == FREE -> _lock = _who }
#define unlock(_lock, _who) atomic { assert(_lock == _who); _lock = FREE }

/* A section under the index lock: a use, an event, a part of a step */
inline section(_who)
{
    lock(index_lock, _who);
    unlock(index_lock, _who)
}

/* An event in the thread that forks */
inline event_of_forker()
{
    owed++;
    section(FORKER);
    struck++
}

/* ucs_thread_begin_step(): one word holds both, so that this is one action */
inline begin_step()
{
    atomic {
#ifdef MUTANT_STEP_IN_A_FORK
        steps++; may = 1
#else
        if
        :: forks == 0 -> steps++; may = 1
        :: else -> may = 0
        fi
#endif
    }
}

/* Between its steps it sleeps; here it runs out of timers at last, as a mutex
 * owes nothing to those who wait while others come and go */
proctype helper()
{
    byte left = STEPS;
    bit may;

    do
    :: stop -> break
    :: !stop && (left > 0) ->
        left--;
        lock(step_lock, HELPER);
        begin_step();
#ifdef MUTANT_FORK_AWAITED_WITH_LOCK
        if
        :: may
        :: else -> forks == 0; begin_step()
        fi;
#endif
        if
        :: may ->
            section(HELPER);
            lower = 1;
            lower = 0;
            section(HELPER);
            steps--
        :: else
        fi;
        unlock(step_lock, HELPER);
        if
        :: may
#ifdef MUTANT_FORK_AWAITED_ONLY
        :: else -> forks == 0
#else
        :: else -> (forks == 0) || stop
#endif
        fi
    od;
    joined = 1
}

proctype user()
{
    section(USER);
    section(USER);
    finished++
}

/* uct_helper_md_close(), or the end of the program */
proctype closer()
{
    lock(step_lock, CLOSER);      /* ucs_job_stop() */
    unlock(step_lock, CLOSER);
    lock(life_lock, CLOSER);
    stop = 1;
    joined == 1;
    unlock(life_lock, CLOSER);
    lock(session_lock, CLOSER);   /* uct_helper_session_leave() */
    closed = 1;
    unlock(session_lock, CLOSER);
    finished++
}

/* uct_helper_session_adopt() */
inline adopt()
{
    assert(c_entered == 0);       /* it would be forgotten */
    c_adopted++;
    c_listens = 0;                /* uct_helper_events_forget() */
#ifndef MUTANT_LOCK_NOT_RENEWED
    c_session_lock = FREE;
#endif
}

/* ucs_process_id() */
inline process_id()
{
    do
    :: id = c_word;
       if
#ifdef MUTANT_ADOPTED_BY_ALL
       :: id == UNKNOWN ->
            adopt();
            c_word = OWN;
            break
#else
       :: id == UNKNOWN ->
            atomic {
                if
                :: c_word == UNKNOWN -> c_word = ADOPTING; id = ADOPTING
                :: else -> id = UNKNOWN
                fi
            }
            if
            :: id == ADOPTING ->
#ifdef MUTANT_KNOWN_BEFORE_ADOPTED
                c_word = OWN;
                adopt();
#else
                adopt();
                c_word = OWN;
#endif
                break
            :: else
            fi
#endif
       :: id == ADOPTING ->
            c_word != ADOPTING
       :: else -> break
       fi
    od
}

/* Nothing is shared after the copy: whether the parent goes on meanwhile or has
 * done so makes no difference, but for the number of states */
#define come_after_parent() forked && (finished == 3) && joined

/* A thread of the child */
proctype child(byte me)
{
    byte id;
    bit known;

    come_after_parent();

    /* uct_helper_events_callback() */
#ifdef MUTANT_EVENT_DOES_NOT_ASK
    known = 1;
#else
    known = (c_word != UNKNOWN) && (c_word != ADOPTING);
#endif
    if
    :: known && c_listens ->
        assert(c_index_lock == FREE);
        assert(false)             /* it is the parent's */
    :: else
    fi;

    /* uct_helper_md_mem_reg() */
    if
    :: c_word == PARENT ->
        assert(false)             /* it is the parent's */
    :: else
    fi;
    process_id();                 /* uct_helper_child_enter() */
    assert(c_adopted == 1);
    assert(!c_listens);

    /* A domain of its own: uct_helper_session_enter() */
    lock(c_session_lock, me);
    c_entered++;
    unlock(c_session_lock, me);
    c_finished++
}

/* The first thread of a raw child may also do nothing but end */
proctype child_that_exits()
{
    byte id;

    come_after_parent();
    /* uct_helper_session_exit() */
#ifndef MUTANT_EXIT_DOES_NOT_ASK
    process_id();
#endif
    lock(c_session_lock, CHILD);
    unlock(c_session_lock, CHILD);
    c_finished++
}

/* The kernel copies the process; the page is wiped */
inline copy()
{
    c_session_lock = session_lock;
    c_index_lock   = index_lock;
    c_listens      = !closed;
#ifdef MUTANT_PAGE_NOT_WIPED
    c_word         = PARENT
#else
    c_word         = UNKNOWN
#endif
}

/* fork() */
proctype forking()
{
    byte id;

    /* uct_helper_session_prepare() */
    forks++;
#ifndef MUTANT_PREPARE_WITHOUT_WAIT
    steps == 0;
#endif
#ifdef MUTANT_PREPARE_HOLDS_SESSION
    lock(session_lock, FORKER);
#endif
#ifdef MUTANT_PREPARE_HOLDS_ENGINE
    lock(index_lock, FORKER);
#endif
    event_of_forker();
    if
    :: skip -> closed             /* a handler waits for that thread */
    :: skip
    fi;

    d_step {
        assert(!lower);
        copy()
    }

    /* The parent */
    event_of_forker();
#ifdef MUTANT_PREPARE_HOLDS_ENGINE
    unlock(index_lock, FORKER);
#endif
#ifdef MUTANT_PREPARE_HOLDS_SESSION
    unlock(session_lock, FORKER);
#endif
    forks--;
    assert(struck == owed);       /* before fork() returns */
    finished++;

    /* The child: ucs_process_forked() */
    c_word = UNKNOWN;
    process_id();
    forked = 1
}

/* syscall(SYS_fork) */
proctype forking_raw()
{
    d_step { copy() }
    finished++;
    forked = 1
}

init
{
    atomic {
        run helper();
        run user();
        run closer();
        if
        :: run forking()
        :: run forking_raw()
        fi;
        if
        :: run child(CHILD); run child(CHILD + 1)
        :: run child_that_exits(); run child(CHILD + 1)
        fi
    }
    (finished == 3) && (c_finished == 2)
}

ltl all_end { <> ((finished == 3) && (joined == 1) && (c_finished == 2)) }
