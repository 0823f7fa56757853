/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * The life of regions: threads of the application that use and unmap memory,
 * the helper that registers and deregisters, and the end of the domain.
 *
 * Names are those of src/ucs/regcache. Memory is two pages; range 0
 * is the first of them, range 1 both, so that the two overlap and a use of the
 * first page can be served by a region that also holds the second. Each
 * remapping of a page begins a new epoch of it; a handle remembers the epochs
 * that it pinned.
 *
 * What the application owes: it does not unmap what it is just using itself.
 *
 * A section under the index lock is one step here when it touches the word of
 * at most one region; those that touch several hold the lock over several
 * steps. Outside of the lock each access to shared memory is one step. Memory
 * is sequentially consistent: what the orderings in the code are for is the
 * table in docs/internals.md, not this model.
 *
 * The queues are abstracted to what they may cause: the helper may learn of a
 * use late or never, plan it or not, register at any time, or give up.
 */

#ifndef OPS_A
#define OPS_A 1   /* uses and unmaps of the application's first thread */
#endif
#ifndef OPS_B
#define OPS_B 1   /* of its second */
#endif
/* Masks of what each may do: 1 use, 2 use and invalidate, 4 unmap */
#ifndef KINDS_A
#define KINDS_A 7
#endif
#ifndef KINDS_B
#define KINDS_B 7
#endif
#ifndef TICKS
#define TICKS 1   /* timers of the helper that may run out */
#endif
#define MAINS   2
#ifndef REGIONS
#define REGIONS 3
#endif
#define HANDLES (REGIONS + 1)
#define NONE    255

#define UCS_REGCACHE_STATE_FREE          0
#define UCS_REGCACHE_STATE_DORMANT       1
#define UCS_REGCACHE_STATE_REGISTERING   2
#define UCS_REGCACHE_STATE_LIVE          3
#define UCS_REGCACHE_STATE_DEREGISTERING 4

#define STATE_MASK 7
#define DOOMED     8
#define REF        16
#define REF_MASK   112
#define GEN        128
#define GENS       4

#define state(_w)         ((_w) & STATE_MASK)
#define refs(_w)          (((_w) & REF_MASK) / REF)
#define gen(_w)           ((_w) / GEN)
#define set_state(_w, _s) (((_w) & ~STATE_MASK) | (_s))

#ifdef MUTANT_HIT_IGNORES_DOOM
#define is_hit(_w) (state(_w) == UCS_REGCACHE_STATE_LIVE)
#else
#define is_hit(_w) (((_w) & (STATE_MASK | DOOMED)) == UCS_REGCACHE_STATE_LIVE)
#endif

typedef region_t {
    short word;
    byte  range;
    byte  memh;      /* 0: none */
    bit   indexed;   /* in the look-up by range */
    bit   by_memh;   /* in the look-up by handle */
    bit   planned;
    bit   reclaim;   /* on the reclaim list */
    bit   comp;      /* an invalidation waits for its completion */
    byte  use;       /* entry in the DQ: generation + 1 */
    byte  item;      /* in the RQ: generation + 1 */
};

typedef handle_t {
    bit  pinned;
    byte range;
    byte epoch[2];
};

region_t region[REGIONS];
handle_t handle[HANDLES];
byte     range_hint[2]   = NONE;
byte     memh_hint[HANDLES] = NONE;
bit      index_lock;
byte     account;         /* registrations that are counted as pinned */

bit      is_woken;
bit      stop;
bit      joined;
byte     ticks;

byte     epoch[2];
byte     in_use[2];       /* by the application: it will not unmap this */
bit      unmapping[2];
byte     done;
byte     completions;     /* that the application waits for */

#define page_of(_range, _page) (((_page) == 0) || ((_range) == 1))

/* --- The domain below: hands out the lowest handle that is free --- */

#define is_stale(_h, _range) \
    (!handle[_h].pinned || (handle[_h].range < (_range)) || \
     (handle[_h].epoch[0] != epoch[0]) || \
     (((_range) == 1) && (handle[_h].epoch[1] != epoch[1])))

inline lower_mem_reg(_r, _h)
{
    d_step {
        _h = 1;
        do
        :: (_h < HANDLES) && handle[_h].pinned -> _h++
        :: else -> break
        od;
        assert(_h < HANDLES);
        handle[_h].pinned   = 1;
        handle[_h].range    = region[_r].range;
        handle[_h].epoch[0] = epoch[0];
        handle[_h].epoch[1] = (region[_r].range == 1 -> epoch[1] : 0)
    }
}

inline lower_mem_dereg(_h)
{
    d_step {
        assert(handle[_h].pinned);       /* no double free */
        handle[_h].pinned   = 0;
        handle[_h].range    = 0;
        handle[_h].epoch[0] = 0;
        handle[_h].epoch[1] = 0
    }
}

/* --- The helper's thread, thread.c --- */

inline helper_wake()
{
    is_woken = 1
}

/* --- region/, register/; those marked so are called
 * under the lock --- */

inline ucs_regcache_region_free(_r)        /* under the lock */
{
    assert(refs(region[_r].word) == 0);
    assert(!region[_r].indexed && !region[_r].by_memh);
    assert(region[_r].memh == 0);
    assert(!region[_r].reclaim && !region[_r].comp);
#ifdef MUTANT_NO_GENERATION
    region[_r].word    = UCS_REGCACHE_STATE_FREE;
#else
    region[_r].word    = ((gen(region[_r].word) + 1) % GENS) * GEN;
#endif
    region[_r].range   = 0;
    region[_r].planned = 0
}

inline ucs_regcache_region_reclaim(_r)     /* under the lock */
{
    assert(!region[_r].reclaim);         /* never on the list twice */
    region[_r].reclaim = 1
}

inline ucs_regcache_region_deregister(_r, _h)
{
    _h = region[_r].memh;
#ifdef MUTANT_HANDLE_KEPT
    skip;
#else
    region[_r].memh = 0;
#endif
    lower_mem_dereg(_h);
    d_step {
        index_lock == 0 ->
        region[_r].memh = 0;
        account--;
        _h = 0;
        if
        :: region[_r].word & DOOMED -> ucs_regcache_region_free(_r)
        :: else ->
            if
            :: region[_r].planned ->
                region[_r].word = set_state(region[_r].word,
                                            UCS_REGCACHE_STATE_DORMANT)
            :: else ->
                region[_r].indexed = 0;
                ucs_regcache_region_free(_r)
            fi
        fi
    }
}

inline ucs_regcache_region_take_idle(_r, _ok)
{
    d_step {
        index_lock == 0 ->
        if
#ifdef MUTANT_CLAIM_IGNORES_USERS
        :: is_hit(region[_r].word) ->
#else
        :: is_hit(region[_r].word) && (refs(region[_r].word) == 0) ->
#endif
            region[_r].word    = set_state(region[_r].word,
                                           UCS_REGCACHE_STATE_DEREGISTERING);
            region[_r].by_memh = 0;
            _ok = 1
        :: else -> _ok = 0
        fi
    }
}

inline ucs_regcache_region_publish(_r, _h, _refs)
{
    d_step {
        index_lock == 0 ->
        region[_r].memh    = _h;
        region[_r].by_memh = 1;
        region[_r].word    = set_state(region[_r].word,
                                       UCS_REGCACHE_STATE_LIVE);
        _h = 0;
#ifndef MUTANT_PUBLISH_FORGETS_DOOMED
        if
        :: (region[_r].word & DOOMED) && (refs(region[_r].word) == 0) ->
            ucs_regcache_region_reclaim(_r)
        :: else
        fi
#endif
    }
}

inline ucs_regcache_region_abandon(_r, _refs)
{
    d_step {
        index_lock == 0 ->
        account--;
        region[_r].word = region[_r].word - (_refs) * REF;
        region[_r].indexed = 0;
        if
#ifdef MUTANT_ABANDON_FREES
        :: 1 ->
#else
        :: refs(region[_r].word) == 0 ->
#endif
            ucs_regcache_region_free(_r)
        :: else ->
            region[_r].word = DOOMED | set_state(region[_r].word,
                                                 UCS_REGCACHE_STATE_DORMANT)
        fi
    }
}

inline ucs_regcache_reclaim(_r, _h, _comp)
{
    do
    :: d_step {
           (index_lock == 0) ->
           _r = 0;
           do
           :: (_r < REGIONS) && !region[_r].reclaim -> _r++
           :: else -> break
           od;
           if
           :: _r == REGIONS -> _r = NONE
           :: else ->
               region[_r].reclaim = 0;
               assert(refs(region[_r].word) == 0);
               if
               :: state(region[_r].word) == UCS_REGCACHE_STATE_DORMANT ->
                   ucs_regcache_region_free(_r);
                   _r = REGIONS
               :: else ->
                   assert(state(region[_r].word) == UCS_REGCACHE_STATE_LIVE);
                   region[_r].word = set_state(region[_r].word,
                                               UCS_REGCACHE_STATE_DEREGISTERING);
                   region[_r].by_memh = 0;
                   _comp = region[_r].comp;
                   region[_r].comp = 0
               fi
           fi
       }
       if
       :: _r == NONE -> break
       :: _r == REGIONS                  /* it was not registered */
       :: else ->
           /* ucs_regcache_region_finish() */
           ucs_regcache_region_deregister(_r, _h);
           d_step {
               completions = completions - _comp;
               _comp       = 0
           }
       fi
    od;
    _r = 0
}

/* --- put.c --- */

inline ucs_regcache_doomed(_r, _h, _comp)
{
    d_step {
        index_lock == 0 ->
        _comp = region[_r].comp;
        ucs_regcache_region_reclaim(_r)
    }
    if
    :: _comp -> _comp = 0; ucs_regcache_reclaim(_r, _h, _comp)
    :: else ->
#ifndef MUTANT_DOOMED_WITHOUT_WAKE
        helper_wake()
#endif
    fi
}

inline ucs_regcache_region_put(_r, _w, _h, _comp)
{
    _w = region[_r].word;
    do
    :: d_step {
           region[_r].word == _w ->      /* the compare-and-swap */
           assert(refs(_w) > 0);
           region[_r].word = _w - REF
       }
       break
    :: d_step { region[_r].word != _w -> _w = region[_r].word }
    od;
    if
    :: refs(_w) > 1
#ifndef MUTANT_PUT_IGNORES_DOOM
    :: (refs(_w) == 1) && (_w & DOOMED) ->
        ucs_regcache_doomed(_r, _h, _comp)
#else
    :: (refs(_w) == 1) && (_w & DOOMED)
#endif
    :: else -> region[_r].use = gen(_w) + 1   /* ucs_regcache_queue() */
    fi;
    _w = 0
}

/* The handle leads back to the region: by the hint if that has this handle */
inline ucs_regcache_find_memh(_r, _h)
{
    _r = memh_hint[_h];
    if
    :: d_step { (_r != NONE) && (region[_r].memh == _h) -> skip }
    :: d_step {
           (index_lock == 0) && ((_r == NONE) || (region[_r].memh != _h)) ->
           _r = 0;
           do
           :: (_r < REGIONS) &&
              (!region[_r].by_memh || (region[_r].memh != _h)) -> _r++
           :: else -> break
           od;
           assert(_r < REGIONS);         /* a handle in use is always found */
           memh_hint[_h] = _r
       }
    fi
}

/* The event has come, the mapping has not gone yet */
inline ucs_regcache_unmapped(_page, _r, _w, _reclaim)
{
    d_step { index_lock == 0 -> index_lock = 1 }
    _r = 0;
    do
    :: _r == REGIONS -> break
    :: (_r < REGIONS) && (!region[_r].indexed ||
                          !page_of(region[_r].range, _page)
#ifdef MUTANT_EVENT_SPARES_REGISTERING
                          || (state(region[_r].word) ==
                              UCS_REGCACHE_STATE_REGISTERING)
#endif
#ifdef MUTANT_EVENT_SPARES_DORMANT
                          || (state(region[_r].word) ==
                              UCS_REGCACHE_STATE_DORMANT)
#endif
#ifdef MUTANT_EVENT_SPARES_DEREGISTERING
                          || (state(region[_r].word) ==
                              UCS_REGCACHE_STATE_DEREGISTERING)
#endif
                         ) -> _r++
    :: else ->
        /* ucs_regcache_strike(): what was before tells whether a user
         * will see the doom */
        d_step {
            region[_r].indexed = 0;
            _w = region[_r].word;
            region[_r].word = region[_r].word | DOOMED
        }
#ifdef MUTANT_STRIKE_READS_TWICE
        _w = region[_r].word;
#endif
        d_step {
            if
            :: (refs(_w) == 0) && ((state(_w) == UCS_REGCACHE_STATE_LIVE) ||
                                   (state(_w) == UCS_REGCACHE_STATE_DORMANT)) ->
                ucs_regcache_region_reclaim(_r);
                _reclaim = 1
            :: else
            fi;
            _w = 0;
            _r++
        }
    od;
    _r = 0;
    index_lock = 0;
    if
#ifndef MUTANT_EVENT_WITHOUT_WAKE
    :: _reclaim -> helper_wake(); _reclaim = 0
#endif
    :: else -> _reclaim = 0
    fi
}

/* --- get.c, events.c --- */

#define UCS_REGCACHE_FOUND_LIVE        1
#define UCS_REGCACHE_FOUND_REGISTERING 2
#define UCS_REGCACHE_FOUND_NONE        3
#define UCS_REGCACHE_FOUND_NO_RESERVE    4

#define rank(_i, _range) \
    (!region[_i].indexed -> 0 : \
     ((region[_i].range >= (_range)) && \
      (state(region[_i].word) == UCS_REGCACHE_STATE_LIVE) -> 3 : \
      ((region[_i].range >= (_range)) && \
       (state(region[_i].word) == UCS_REGCACHE_STATE_REGISTERING) -> 2 : \
       ((region[_i].range == (_range)) && \
        (state(region[_i].word) == UCS_REGCACHE_STATE_DORMANT) -> 1 : 0))))

/* Of several of one rank the lowest stands for all */
inline ucs_regcache_index_find(_range, _r, _i)
{
    _r = NONE;
    _i = 0;
    do
    :: _i == REGIONS -> break
    :: else ->
        if
        :: (rank(_i, _range) > 0) && (_r == NONE) -> _r = _i
        :: (rank(_i, _range) > 0) && (_r != NONE) ->
            if
            :: rank(_i, _range) > rank(_r, _range) -> _r = _i
            :: else
            fi
        :: else
        fi;
        _i++
    od;
    _i = 0
}

inline ucs_regcache_look_up(_range, _r, _i, _found)
{
    d_step {
        index_lock == 0 ->
        ucs_regcache_index_find(_range, _r, _i);
        if
        :: (_r != NONE) && (rank(_r, _range) == 3) ->
            region[_r].word = region[_r].word + REF;
            range_hint[_range] = _r;
            _found = UCS_REGCACHE_FOUND_LIVE
        :: (_r != NONE) && (rank(_r, _range) == 2) ->
            region[_r].word = region[_r].word + REF;
            _found = UCS_REGCACHE_FOUND_REGISTERING
        :: else ->
            _found = UCS_REGCACHE_FOUND_NONE;
            if
            :: _r == NONE ->
                _r = 0;
                do
                :: (_r < REGIONS) && (state(region[_r].word) !=
                                      UCS_REGCACHE_STATE_FREE) -> _r++
                :: else -> break
                od;
                if
                :: _r == REGIONS -> _found = UCS_REGCACHE_FOUND_NO_RESERVE
                :: else ->
                    region[_r].range   = _range;
                    region[_r].indexed = 1
                fi
            :: else
            fi;
            if
            :: _found == UCS_REGCACHE_FOUND_NONE ->
                account++;               /* ucs_regcache_admit() */
                region[_r].word = set_state(region[_r].word + REF,
                                            UCS_REGCACHE_STATE_REGISTERING)
            :: else -> _r = 0
            fi
        fi
    }
}

/* A use that has waited for long enough: a region in no look-up, as those of
 * before it may be by now whatever they are. Sets _r to NONE without one. */
inline open_alone(_range, _r)
{
    d_step {
        index_lock == 0 ->
        _r = 0;
        do
        :: (_r < REGIONS) && (state(region[_r].word) !=
                              UCS_REGCACHE_STATE_FREE) -> _r++
        :: else -> break
        od;
        if
        :: _r == REGIONS -> _r = NONE
        :: else ->
            region[_r].range = _range;
            account++;
            region[_r].word  = DOOMED | set_state(region[_r].word + REF,
                                                  UCS_REGCACHE_STATE_REGISTERING)
        fi
    }
}

/* Sets _r to a region with a reference, or to NONE */
inline ucs_regcache_get(_range, _r, _w, _h, _i, _found, _comp)
{
    _found = 0;
    _r     = range_hint[_range];
    if
    :: _r == NONE -> goto slow
    :: else
    fi;
    /* ucs_regcache_region_try_ref() */
#ifdef MUTANT_FIELDS_FIRST
    if
    :: region[_r].range < _range -> goto slow
    :: else
    fi;
    _w = region[_r].word;
    if
    :: !is_hit(_w) -> goto slow
    :: else
    fi;
    if
    :: d_step { region[_r].word == _w -> region[_r].word = _w + REF }
    :: d_step { region[_r].word != _w -> skip } goto slow
    fi;
    goto have;
#else
    _w = region[_r].word;
again:
    if
    :: !is_hit(_w) -> goto slow
    :: else
    fi;
    if
    :: region[_r].range < _range -> goto slow
    :: else
    fi;
    if
    :: d_step { region[_r].word == _w -> region[_r].word = _w + REF }
    :: d_step { region[_r].word != _w -> _w = region[_r].word } goto again
    fi;
    goto have;
#endif

slow:
    _w = 0;
    ucs_regcache_look_up(_range, _r, _i, _found);
    if
    :: _found == UCS_REGCACHE_FOUND_LIVE -> goto have
    :: _found == UCS_REGCACHE_FOUND_NO_RESERVE -> _r = NONE; goto got
    :: _found == UCS_REGCACHE_FOUND_NONE ->
        /* ucs_regcache_miss() */
        if
        :: lower_mem_reg(_r, _h); ucs_regcache_region_publish(_r, _h, 1);
           goto have
        :: ucs_regcache_region_abandon(_r, 1); _r = NONE; goto got
        fi
    :: _found == UCS_REGCACHE_FOUND_REGISTERING ->
        /* ucs_regcache_wait(): see wait.pml for the futex */
        if
        :: d_step {                      /* ucs_regcache_wait_no_longer() */
               (index_lock == 0) && (state(region[_r].word) ==
                                     UCS_REGCACHE_STATE_REGISTERING) ->
#ifdef MUTANT_LEAVES_REFERENCE
               skip
#else
               region[_r].word = region[_r].word - REF
#endif
           }
           open_alone(_range, _r);
           if
           :: _r == NONE -> goto got
           :: else
           fi;
           lower_mem_reg(_r, _h);
           ucs_regcache_region_publish(_r, _h, 1);
           goto have
        :: skip
        fi;
        d_step {
            state(region[_r].word) != UCS_REGCACHE_STATE_REGISTERING ->
            _w = region[_r].word
        }
        if
        :: is_hit(_w) -> range_hint[_range] = _r; goto have
        :: !is_hit(_w) && (state(_w) == UCS_REGCACHE_STATE_LIVE) ->
            ucs_regcache_region_put(_r, _w, _h, _comp)
        :: else ->
            d_step {
                _w = region[_r].word;
                region[_r].word = region[_r].word - REF
            }
            if
            :: refs(_w) == 1 -> ucs_regcache_doomed(_r, _h, _comp)
            :: else
            fi
        fi;
        goto slow
    fi;

have:
    _h = region[_r].memh;
got:
    _w     = 0;
    _found = 0
}

#define USE        0
#define INVALIDATE 1
#define UNMAP      2

proctype application(byte ops; byte kinds)
{
    byte kind, range, r, h, i, found;
    short w;
    bit comp;

    do
    :: ops == 0 -> break
    :: ops > 0 ->
        ops--;
        if
        :: range = 0
        :: range = 1
        fi;
        if
        :: kinds & (1 << USE)        -> kind = USE
        :: kinds & (1 << INVALIDATE) -> kind = INVALIDATE
        :: kinds & (1 << UNMAP)      -> kind = UNMAP
        fi;
        if
        :: kind == UNMAP ->
            /* range names a page here */
            d_step {
                !unmapping[range] && (in_use[range] == 0) ->
                unmapping[range] = 1
            }
#ifndef MUTANT_NO_EVENT
            ucs_regcache_unmapped(range, r, w, comp);
#endif
            d_step {
                epoch[range]++;
                unmapping[range] = 0
            }
        :: else ->
            d_step {
                !unmapping[0] && ((range == 0) || !unmapping[1]) ->
                in_use[0]++;
                in_use[1] = in_use[1] + range
            }
            ucs_regcache_get(range, r, w, h, i, found, comp);
            if
            :: r == NONE
            :: else ->
                assert(!is_stale(h, range));
                assert(!is_stale(h, range)); /* until it is given back */
                ucs_regcache_find_memh(r, h);
                if
                :: kind == INVALIDATE ->
                    /* ucs_regcache_region_invalidate(): one completion stands
                     * for the list */
                    d_step {
                        index_lock == 0 ->
                        if
                        :: !region[r].comp ->
                            region[r].comp = 1;
                            completions++
                        :: else
                        fi;
                        region[r].indexed = 0;
                        region[r].word = region[r].word | DOOMED
                    }
                :: else
                fi;
                h = 0;
                ucs_regcache_region_put(r, w, h, comp)
            fi;
            d_step {
                in_use[0]--;
                in_use[1] = in_use[1] - range;
                r = 0; h = 0; w = 0
            }
        fi;
        range = 0;
        kind  = 0
    od;
    done++
}

/* --- step/ --- */

inline ucs_regcache_plan_replan(_r)
{
    d_step {
        index_lock == 0 ->
        if
        :: !region[_r].planned &&
           ((region[_r].word & (STATE_MASK | DOOMED)) ==
            UCS_REGCACHE_STATE_DORMANT) ->
            region[_r].indexed = 0;
            ucs_regcache_region_free(_r)
        :: else
        fi
    }
}

inline ucs_regcache_plan_deregister(_r, _h, _ok)
{
    if
    :: skip                              /* its next use comes too soon */
    :: ucs_regcache_region_take_idle(_r, _ok);
       if
       :: _ok -> _ok = 0; ucs_regcache_region_deregister(_r, _h)
       :: else
       fi
    fi
}

inline helper_hears(_r, _h, _ok)
{
    d_step {
        _ok = (region[_r].use == gen(region[_r].word) + 1);
        region[_r].use = 0
    }
    if
    :: !_ok
    :: else ->
        _ok = 0;
        if
        :: d_step {
               region[_r].item    = gen(region[_r].word) + 1;
               region[_r].planned = 1
           }
        :: d_step {
               region[_r].item    = 0;
               region[_r].planned = 0
           }
           ucs_regcache_plan_replan(_r)
        fi;
        ucs_regcache_plan_deregister(_r, _h, _ok)
    fi
}

/* An item of the RQ is due */
inline ucs_regcache_step_due(_r, _h, _ok)
{
    d_step {
        index_lock == 0 ->
        /* ucs_regcache_serve_begin() */
        _ok = (region[_r].item == gen(region[_r].word) + 1) &&
#ifndef MUTANT_PLAN_IGNORES_DOOM
              !(region[_r].word & DOOMED) &&
#endif
              (state(region[_r].word) == UCS_REGCACHE_STATE_DORMANT);
        if
        :: _ok ->
            account++;
            region[_r].word = set_state(region[_r].word,
                                        UCS_REGCACHE_STATE_REGISTERING)
        :: else
        fi
    }
    if
    :: _ok ->
        _ok = 0;
        if
        :: lower_mem_reg(_r, _h); ucs_regcache_region_publish(_r, _h, 0)
        :: ucs_regcache_region_abandon(_r, 0); region[_r].item = 0
        fi
    :: else
    fi
}

/* The use did not come */
inline ucs_regcache_serve_expired(_r, _h, _ok)
{
    d_step {
        _ok = (region[_r].item == gen(region[_r].word) + 1);
        region[_r].item = 0
    }
    if
    :: _ok ->
        _ok = 0;
        region[_r].planned = 0;
        ucs_regcache_plan_replan(_r);
        ucs_regcache_plan_deregister(_r, _h, _ok)
    :: else
    fi
}

proctype helper()
{
    byte r, h;
    bit ok;

    do
    :: is_woken = 0;
       if
       :: stop -> break
       :: else
       fi;
       /* ucs_regcache_step() */
       ucs_regcache_reclaim(r, h, ok);
       do
       :: r == REGIONS -> break
       :: r < REGIONS ->
           if
           :: region[r].use != 0  -> helper_hears(r, h, ok)
           :: region[r].item != 0 -> ucs_regcache_step_due(r, h, ok)
           :: region[r].item != 0 -> ucs_regcache_serve_expired(r, h, ok)
           :: skip
           fi;
           r++
       od;
       ucs_regcache_reclaim(r, h, ok);
       if                                /* it sleeps: see scout.pml */
       :: is_woken
       :: !is_woken && (ticks < TICKS) -> ticks++
       fi
    od;
    joined = 1
}

/* uct_helper_md_close(), at any time after the last use; with AT_REST when
 * nothing moves any more by itself, which tells what is owed at the latest then:
 * every run ends here, so this is liveness */
init
{
    byte i, h;
    bit comp;

    atomic {
        run application(OPS_A, KINDS_A);
        run application(OPS_B, KINDS_B);
        run helper()
    }
#ifdef AT_REST
    timeout;
    assert(done == MAINS);               /* every waiter was served */
    d_step {
        for (i : 0 .. REGIONS - 1) {
            assert(!(region[i].word & DOOMED)) /* and all that is gone too */
        }
    }
    assert(completions == 0);
#else
    done == MAINS;
#endif
    stop = 1;                            /* ucs_thread_stop() */
#ifndef MUTANT_STOP_WITHOUT_WAKE
    helper_wake();
#endif
#ifndef MUTANT_NO_JOIN
    joined == 1;
#endif
    /* ucs_regcache_destroy() */
    ucs_regcache_reclaim(i, h, comp);
    d_step {
        for (i : 0 .. REGIONS - 1) {
            if
            :: region[i].memh != 0 ->
                lower_mem_dereg(region[i].memh);
                region[i].memh = 0;
                account--
            :: else
            fi
        }
    }
    d_step {
        for (i : 1 .. HANDLES - 1) {
            assert(!handle[i].pinned)
        }
    }
    assert(account == 0);
    assert(completions == 0);
    assert(joined)
}
