/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * A hit without a lock, ucs_regcache_region_try_ref(), while its region is given up and
 * becomes another range's: who has a reference has one on a region of the range that was
 * asked for, until it goes.
 */

#ifndef HITS
#define HITS 2  /* of each user */
#endif
#ifndef LIVES
#define LIVES 3
#endif

#define LIVE 1
#define REF  2
#define REFS 6
#define GEN  8

byte word = LIVE;  /* generation, references, state */
bit  range;        /* a field that belongs to the life */

proctype user(bit mine)
{
    byte hits = HITS;
    byte w;
    bit found;

    do
    :: hits == 0 -> break
    :: hits > 0 ->
        hits--;
#ifdef MUTANT_FIELDS_FIRST
        found = range;
#endif
        w = word;
again:
#ifndef MUTANT_FIELDS_FIRST
        found = range;
#endif
        if
        :: !(w & LIVE) || (found != mine) -> goto next
        :: else
        fi;
        if
        :: d_step { word == w -> word = w + REF }
        :: d_step { word != w -> w = word } goto again
        fi;
        assert(range == mine);
        assert(range == mine);
        word = word - REF;
next:
        w = 0; found = 0
    od
}

/* Under the index lock: ucs_regcache_region_take_idle(), _free(), _begin() */
active proctype helper()
{
    byte lives = LIVES;

    atomic {
        run user(0);
        run user(1)
    }
    do
    :: lives == 0 -> break
    :: lives > 0 ->
        lives--;
        d_step { (word & LIVE) && !(word & REFS) -> word = word - LIVE };
#ifndef MUTANT_NO_GENERATION
        word = word + GEN;
#endif
        range = !range;
        word = word + LIVE
    od
}
