/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_REGCACHE_WALK_H_
#define UCS_REGCACHE_WALK_H_

#include <ucs/regcache/region/region.h>

#include <ucs/predict/walk.h>

#include <stddef.h>
#include <stdint.h>

/*
 * Reading ahead. Where the program walks through memory (ucs/predict/walk.h) the
 * steps that are next are registered together, in a *window*: a cover that a walk
 * has made. The use that finds the next step not registered makes one, the helper
 * makes the one behind it while the walk is in the window before. Each is as long as
 * the walk so far, as long as that is worth its price and it is registered before the
 * walk comes there. Windows touch each other.
 *
 * A window is what any cover is: of memory that is of one kind and that no event
 * has touched, doomed by the event of any of its pages. Where the user does not
 * allow it to give others more than was asked for, it reaches as far as they were
 * given access before (given.c): when a walk comes by for the first time, one step.
 * No hint leads to it, so every use of it is seen here, and tells how far the walk is.
 *
 * Functions are called under the index lock, unless they say otherwise.
 */

/** Beside a walk: how far ahead of it is registered, and for whom. */
typedef struct ucs_regcache_pace {
    unsigned access;  /* of its steps */
    int      is_given; /* one of them gives others access: only what they had it of
                          before is registered together */
    unsigned window;  /* steps that are registered together; 0: none are */
    unsigned lead;    /* steps before the next window begins, it is to be
                         registered */
    unsigned again;   /* steps of the walk, before which none is made: one was
                         refused */
    uint64_t still_ns; /* after so long without a step the walk is left */
    ucs_regcache_region_t *in; /* the latest step's; it may have begun another
                                  life */
} ucs_regcache_pace_t;

/** What is walked through. All zeros: nothing is, for it is not looked for. */
typedef struct ucs_regcache_walking {
    int                 is_on;
    ucs_predict_walks_t walks;
    ucs_regcache_pace_t paces[UCS_PREDICT_WALKS];
    size_t              held;     /* bytes of the windows that walks are in, as the
                                     helper knows, and of those registered since */
    _Atomic(unsigned)   wanted;   /* walks of which the helper is to register a
                                     window, a bit each. Read without the lock,
                                     too */
    _Atomic(uint64_t)   react_ns; /* after so long the helper begins to; written
                                     by the helper, without the lock */
} ucs_regcache_walking_t;

/** A use is looked up. Sets the walk in @a request, if it is a step of one of
 *  which windows are made. */
void ucs_regcache_walk_step(ucs_regcache_h cache,
                            ucs_regcache_request_t *request);

/**
 * A step has found its region, or begun it.
 *
 * @return Nonzero if the helper is to be woken, after the lock was let go: the next
 *         window is to be registered, or the one before may be given up.
 */
int ucs_regcache_walk_looks(ucs_regcache_h cache,
                            const ucs_regcache_request_t *request,
                            ucs_regcache_region_t *region);

/** @return A DORMANT window that has what is asked for, and is to be registered for
 *          it; NULL: there is none. */
ucs_regcache_region_t *
ucs_regcache_walk_dormant(ucs_regcache_h cache,
                          const ucs_regcache_request_t *request);

/** Enlarge what is to be registered for the step at @a at to a window. */
void ucs_regcache_walk_enlarge(ucs_regcache_h cache,
                               ucs_regcache_request_t *whole, uintptr_t at);

/**
 * What is to be registered ahead of a walk: the first of the next steps that is
 * not, and the window that begins with it.
 *
 * @param [in]  number    Of the walk.
 * @param [in]  now       ns.
 * @param [out] request   What a use would ask for.
 * @param [out] region_p  DORMANT one to be registered; NULL: a new one.
 *
 * @return Zero if nothing is.
 */
int ucs_regcache_walk_ahead(ucs_regcache_h cache, unsigned number,
                            uint64_t now, ucs_regcache_request_t *request,
                            ucs_regcache_region_t **region_p);

/** A window was refused: for these pages none is made for as many steps as there
 *  were. */
void ucs_regcache_walk_refused(ucs_regcache_h cache, uintptr_t first,
                               uintptr_t last);

/** @return The window in which a walk's latest step was, if it is registered; else
 *          NULL. */
ucs_regcache_region_t *ucs_regcache_walk_window(ucs_regcache_h cache,
                                                unsigned number);

/** @return Nonzero if a walk that goes on is in the region, or just before it. */
int ucs_regcache_walk_is_in(ucs_regcache_h cache,
                            const ucs_regcache_region_t *region, uint64_t now);

#endif
