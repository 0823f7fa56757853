/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * Covers (src/ucs/regcache/cover/cover.c): registrations that reach a page which
 * nobody has asked for, begun by several users at once, while another thread
 * unmaps that page, maps it anew, and only then asks for it. It must not find a
 * registration of the mapping before.
 *
 * The event comes before the unmapping, and a look at the mappings that comes
 * in between finds the page as it was: so the look cannot guard, and the set of
 * pages that no event has touched does.
 *
 * A cover takes the page if nothing else has it, or reaches into one that has
 * pinned it (ucs_regcache_cover_overlap()). So several may pin the page at once,
 * and an event has to find all of them.
 */

#ifndef USERS
#define USERS  2         /* that register neighbours of the page */
#endif
#ifndef COVERS
#define COVERS 2         /* begun by each */
#endif
#ifndef ROUNDS
#define ROUNDS 2         /* of unmapping, mapping and asking */
#endif

#define NONE        0
#define REGISTERING 1
#define LIVE        2

byte mapping = 1;        /* of the page; 0: it is not mapped */
bit  kept;               /* an inspection found it good */
bit  still = 1;          /* no event has touched it since it was asked for */
byte events;

byte state[USERS];       /* of a user's cover, as look-up sees it */
byte pins[USERS];        /* mapping that it pins */
bit  doomed[USERS];

/* May a cover be begun that takes the page, and one that reaches into it? */
#ifdef MUTANT_COVER_WITHOUT_STILL
#define MAY_TAKE    (kept && !taken)
#else
#define MAY_TAKE    (kept && still && !taken)
#endif
#ifdef MUTANT_OVERLAP_OF_WHAT_IS_GONE
#define MAY_OVERLAP (kept && held)
#else
#define MAY_OVERLAP (kept && still && live)
#endif

active [USERS] proctype user()
{
    byte left = COVERS;
    byte before, pinned, i;
    bit  taken, live, held; /* by others, in look-up; or until their last user */

    do
    :: left > 0 ->
        left--;
        /* ucs_regcache_inspect(), of a piece beside the page */
        atomic { before = events }
        if
        :: mapping != 0 ->
            atomic {
                if
                :: events == before -> kept = 1
                :: else
                fi
            }
        :: else
        fi;
        /* ucs_regcache_begin(), under the index lock */
        atomic {
            i     = 0;
            taken = 0;
            live  = 0;
            held  = 0;
            do
            :: i < USERS ->
                taken = taken || state[i] != NONE;
                live  = live || state[i] == LIVE;
                held  = held || pins[i] != 0;
                i++
            :: else -> break
            od;
            i = 0;
            if
            :: state[_pid] == NONE && (MAY_TAKE || MAY_OVERLAP) ->
                state[_pid]  = REGISTERING;
                doomed[_pid] = 0
            :: else
            fi;
            taken = 0;
            live  = 0;
            held  = 0
        }
        if
        :: state[_pid] == REGISTERING ->
            pinned = mapping;
            atomic {
                if
                :: pinned == 0 || doomed[_pid] -> state[_pid] = NONE
                :: else -> state[_pid] = LIVE; pins[_pid] = pinned
                fi;
                pinned = 0
            }
        :: else
        fi
    :: else -> break
    od
}

active proctype other()
{
    byte left = ROUNDS;
    byte next = 1;
    byte i;

    do
    :: left > 0 ->
        left--;
        /* ucs_regcache_unmapped() */
        atomic {
            events++;
            kept  = 0;
            still = 0;
            i     = 0;
            do
            :: i < USERS ->
#ifndef MUTANT_EVENT_LEAVES_REGISTERING
                if
                :: state[i] == REGISTERING -> doomed[i] = 1
                :: else
                fi;
#endif
                if
                :: state[i] == LIVE ->
                    state[i] = NONE
#ifdef MUTANT_EVENT_DOOMS_ONE
                    ; break
#endif
                :: else
                fi;
                i++
            :: else -> break
            od
        }
#ifdef MUTANT_MAPPED_TOLD_BEFORE
        still = 1;
#endif
        mapping = 0;
        next++;
        mapping = next;
        still   = 1; /* ucs_regcache_mapped() */
        /* ucs_regcache_get(): a hit, or asked for from now on */
        atomic {
            i = 0;
            do
            :: i < USERS ->
                assert(state[i] != LIVE || pins[i] == mapping);
                i++
            :: else -> break
            od;
            still = 1
        }
    :: else -> break
    od
}
