/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_PREDICT_WALK_H_
#define UCS_PREDICT_WALK_H_

#include "tuning.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Programs that walk through memory: buffers of one length, each so far from the
 * one before, up or down. Of a buffer that was never used nothing is known, but
 * its neighbours tell when it comes. Three uses at equal distances, with others
 * in between, are a walk; its steps are known by their addresses, for one call
 * site may walk through several places at once, and several through one. A walk
 * that comes again to where it began is expected to go as far as the last time.
 *
 * No allocation, no lock; a call looks at a bounded number of uses. Times are
 * nanoseconds.
 */

BEGIN_C_DECLS

/** Walks that are followed at a time: of more the latest are. */
#define UCS_PREDICT_WALKS 16

/** Latest uses that are no steps, among which a walk is looked for. */
#define UCS_PREDICT_WALK_USES 16

typedef struct ucs_predict_walk {
    uintptr_t from;    /**< start of the first step's buffer */
    uintptr_t at;      /**< start of the latest step's buffer */
    size_t    length;  /**< of each buffer, bytes; 0: there is no walk */
    intptr_t  stride;  /**< from one to the next, bytes; not 0 */
    uint32_t  steps;   /**< so far */
    uint32_t  before;  /**< that it had when it came by the last time; 0: it comes
                            for the first */
    uint32_t  jump;    /**< of them the latest use made: more than one if some are
                            left out */
    uint64_t  time_ns; /**< of the latest */
    double    step_ns; /**< from one to the next, in the mean */
    int       is_over; /**< one of the same stride has begun since */
} ucs_predict_walk_t;

/** A use that was no step. */
typedef struct ucs_predict_walk_use {
    uintptr_t at;
    size_t    length;  /**< 0: there is none */
    uint64_t  time_ns;
} ucs_predict_walk_use_t;

/** All zero: nothing was used yet. */
typedef struct ucs_predict_walks {
    ucs_predict_walk_t     walks[UCS_PREDICT_WALKS];
    ucs_predict_walk_use_t uses[UCS_PREDICT_WALK_USES];
    unsigned               next; /**< use whose place the next one takes */
} ucs_predict_walks_t;

/**
 * Learn of a use. Some may be left out, also steps.
 *
 * @param [in] length  Bytes, above 0.
 *
 * @return The walk that it is a step of, or one of whose latest steps it
 *         repeats; NULL: of none. Another walk may take its place later.
 */
ucs_predict_walk_t *ucs_predict_walks_use(ucs_predict_walks_t *walks,
                                          uintptr_t address, size_t length,
                                          uint64_t now_ns);

/** @return Bytes from one step to the next. */
static inline size_t ucs_predict_walk_stride(const ucs_predict_walk_t *walk)
{
    return (walk->stride > 0) ? (size_t)walk->stride :
                                -(size_t)walk->stride;
}

/** @return Nonzero if it has just begun, or begun again. */
static inline int ucs_predict_walk_is_new(const ucs_predict_walk_t *walk)
{
    return walk->steps == walk->jump;
}

/** @return How many steps ahead of the latest it ended the last time; UINT32_MAX: it is
 *          beyond that, or comes by for the first time. */
static inline uint32_t ucs_predict_walk_left(const ucs_predict_walk_t *walk)
{
    return (walk->steps <= walk->before) ? walk->before - walk->steps : UINT32_MAX;
}

/**
 * How many steps are to be registered together, the latest among them? As many as there
 * were so far, or as are left of as many as there were the last time, at most: a walk
 * that ends has been worth what was registered ahead for it. Each of them waits for half
 * of the others in the mean, which is to cost a small part of a missed use.
 *
 * @param [in] tuning      walk_least, walk_rent.
 * @param [in] rent_ns     Holding the bytes of one stride for so long costs a
 *                         missed step (price.h).
 * @param [in] most_bytes  That they may take.
 *
 * @return Steps; 0: the walk is not expected to go on, or so slow that one step costs
 *         more.
 */
unsigned ucs_predict_walk_window(const ucs_predict_walk_t *walk,
                                 const ucs_predict_tuning_t *tuning,
                                 double rent_ns, double most_bytes);

/**
 * How many steps ahead must a registration begin that takes so long? Twice as
 * early as it must in the mean, and where the next use may be.
 *
 * @return Steps, 1 at least.
 */
unsigned ucs_predict_walk_lead(const ucs_predict_walk_t *walk,
                               double register_ns);

/**
 * For how long is a walk waited for that stands still?
 *
 * @param [in] rent_ns  Holding what is registered ahead of it for so long costs
 *                      registering that (price.h).
 *
 * @return ns, above 0.
 */
double ucs_predict_walk_still(const ucs_predict_walk_t *walk, double rent_ns);

END_C_DECLS

#endif
