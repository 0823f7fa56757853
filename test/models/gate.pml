/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * The gate, cache->gate: what a hit waits for while something is known to be
 * unmapped and is not struck yet. READER: the monitor's thread is reading
 * events of the kernel (monitor_reader.c, events.c). EVENT: an event interrupted
 * the owner of the index lock and left a mark (region/state.h).
 *
 * Memory is one buffer. It is unmapped by a system call of its own, which only
 * userfaultfd sees, and whose caller sleeps until its event has been read; and
 * by a signal handler through UCM, which may interrupt its thread wherever that
 * is, also under the index lock. When either returns the buffer is mapped again
 * (`mapped` counts the mappings) and all may know of it. A thread that asks for
 * a registration then must not get one of an earlier mapping. Nobody asks for
 * it while it is being unmapped: that is what the application owes.
 */

#ifndef RAW
#define RAW     2        /* unmappings that only the reader is told of */
#endif
#ifndef SIGNALS
#define SIGNALS 2        /* handlers that unmap */
#endif
#ifndef GETS
#define GETS    2        /* of a thread that nobody interrupts */
#endif

#define FREE    0
#define OWNER   1        /* does something else, and is interrupted */
#define OTHER   2        /* communicates from the buffer */
#define READER  3
#define RAWMAN  4

byte index_lock;
byte mapped = 1;
bit  using;              /* somebody asks for it */
byte unmapping;          /* so many unmap it */
byte live = 1;           /* mapping that the region in look-up pins, 0: none */

/* cache->gate */
bit  gate_reader, gate_waited, gate_event;
bit  asleep;             /* OTHER, in the futex of the gate */

byte pending;            /* events in the kernel */
byte sleepers;           /* who unmapped, until it is read */
byte kept;               /* read, and not passed on */
byte signals = SIGNALS;
byte finished;

#define strike() live = 0

/* A handler that unmaps, at any place in its thread, or not */
inline maybe_signal(_may)
{
    if
    :: atomic {
           _may && (signals > 0) && !using -> signals--; unmapping++
       };
        /* ucs_regcache_unmapped() */
        if
#ifndef MUTANT_LOCK_HAS_NO_OWNER
        :: index_lock == OWNER ->
#ifndef MUTANT_MARK_NOT_LEFT
            gate_event = 1
#else
            skip
#endif
        :: else ->
#else
        :: true ->
#endif
            atomic { index_lock == FREE -> index_lock = OWNER };
            if
            :: gate_event -> strike(); gate_event = 0
            :: else
            fi;
            strike();
            index_lock = FREE
        fi;
        atomic { mapped++; unmapping-- }
    :: true
    fi
}

/* ucs_regcache_lock(), _unlock(); _may: can be interrupted */
inline index_lock_take(_who, _may)
{
    atomic { index_lock == FREE -> index_lock = _who };
    maybe_signal(_may);
#ifndef MUTANT_LOCK_OVERLOOKS_MARK
    if
    :: gate_event ->
        strike();
        maybe_signal(_may);
        gate_event = 0
    :: else
    fi
#endif
}

inline index_lock_let_go(_who, _may)
{
#ifndef MUTANT_UNLOCK_OVERLOOKS_MARK
    if
    :: gate_event ->
        strike();
        maybe_signal(_may);
        gate_event = 0
    :: else
    fi;
#endif
    maybe_signal(_may);
    index_lock = FREE;
    maybe_signal(_may);
#ifndef MUTANT_LATE_MARK_FORGOTTEN
    if
    :: gate_event -> again = 1
    :: else -> again = 0
    fi
#endif
}

/* Under the lock, and after it has been let go */
inline index_lock_release(_who, _may)
{
    index_lock_let_go(_who, _may);
    do
    :: again -> index_lock_take(_who, _may); index_lock_let_go(_who, _may)
    :: else -> break
    od
}

/* ucs_regcache_get() */
inline get()
{
    atomic { unmapping == 0 -> using = 1 };
    found = 0;
    /* acquire [R-GATE] */
#ifdef MUTANT_HIT_OVERLOOKS_READER
    if
    :: !gate_event -> found = live
    :: else
    fi;
#else
#ifdef MUTANT_HIT_OVERLOOKS_MARK
    if
    :: !gate_reader -> found = live
    :: else
    fi;
#else
    if
    :: !gate_reader && !gate_event && !gate_waited -> found = live
    :: else
    fi;
#endif
#endif
    if
    :: found == 0 ->
        /* ucs_regcache_pass_gate() */
#ifndef MUTANT_SLOW_WAY_PASSES
        do
        :: !gate_reader -> break
        :: else ->
            atomic {
                if
                :: gate_reader ->
#ifndef MUTANT_WAIT_WITHOUT_MARK
                    gate_waited = 1
#else
                    skip
#endif
                :: else
                fi
            };
            /* the futex compares */
            atomic {
                if
#ifdef MUTANT_WAIT_WITHOUT_MARK
                :: gate_reader -> asleep = 1
#else
                :: gate_reader && gate_waited -> asleep = 1
#endif
                :: else
                fi
            };
            !asleep
        od;
#endif
        index_lock_take(OTHER, 0);
        d_step {
            if
            :: live == 0 -> live = mapped
            :: else
            fi;
            found = live
        };
        index_lock_release(OTHER, 0)
    :: else
    fi;
    assert(found == mapped);
    using = 0
}

proctype owner()
{
    bit again;

    index_lock_take(OWNER, 1);
    index_lock_release(OWNER, 1);
    finished++
}

proctype other()
{
    byte gets = GETS;
    byte found;
    bit again;

    do
    :: gets == 0 -> break
    :: gets > 0 ->
        gets--;
        get()
    od;
    finished++
}

/* Unmaps by a system call of its own, some time while it holds the index lock:
 * a signal handler may have interrupted it there */
proctype rawman()
{
    byte raws = RAW;
    bit again;

    if
    :: index_lock_take(RAWMAN, 0)
    :: skip
    fi;
    do
    :: raws == 0 -> break
    :: raws > 0 ->
        raws--;
        if
        :: atomic { !using -> unmapping++; pending++; sleepers++ };
           sleepers == 0;        /* until it has been read */
           atomic { mapped++; unmapping-- }
        :: using
        fi
    od;
    if
    :: index_lock == RAWMAN -> index_lock_release(RAWMAN, 0)
    :: else
    fi;
    finished++
}

inline open()
{
    atomic {
        gate_reader = 0;
        if
        :: gate_waited ->
            gate_waited = 0;
#ifndef MUTANT_OPEN_WITHOUT_WAKE
            asleep = 0
#else
            skip
#endif
        :: else
        fi
    }
}

/* uct_helper_reader_main() */
active proctype reader()
{
    do
    :: (pending > 0) || (kept > 0) ->
#ifndef MUTANT_NOT_SHUT
#ifndef MUTANT_SHUT_AFTER_READ
        gate_reader = 1;
#endif
#endif
        atomic { kept = kept + pending; pending = 0; sleepers = 0 };
#ifdef MUTANT_SHUT_AFTER_READ
        gate_reader = 1;
#endif
        /* ucs_regcache_try_unmapped() */
        if
        :: kept > 0 ->
#ifdef MUTANT_READER_WAITS_FOR_LOCK
            gate_reader = gate_reader;
            atomic { index_lock == FREE -> index_lock = READER }
#else
            if
            :: atomic { index_lock == FREE -> index_lock = READER }
            :: atomic { index_lock != FREE -> goto busy }
            fi;
#endif
            strike();
            kept = 0;
            gate_event = 0;      /* the next owner of the lock carries it out */
            index_lock = FREE
        :: else
        fi;
busy:
#ifndef MUTANT_OPEN_TOO_SOON
        if
        :: kept == 0 -> open()
        :: else
        fi
#else
        open()
#endif
    :: (pending == 0) && (kept == 0) && (finished == 3) -> break
    od
}

init
{
    atomic {
        run owner();
        run other();
        run rawman()
    }
    (finished == 3) && (pending == 0) && (kept == 0) && !gate_reader;
    /* At rest hits are hits again */
    assert(!gate_event && !gate_waited)
}

ltl all_end { <> ((finished == 3) && (kept == 0) && !gate_reader) }
