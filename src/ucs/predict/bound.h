/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_PREDICT_BOUND_H_
#define UCS_PREDICT_BOUND_H_

#include <ucs/predict/tuning.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>

#include <math.h>
#include <stdint.h>

/**
 * @file bound.h
 *
 * A lower bound of the next delay, learned from a stream of delays. On a shared
 * machine delays have a sharp lower edge and a long upper tail (time slices
 * that went to others), so a mean and its deviation say nothing about the edge:
 * what is tracked is the least delay, which creeps up where none comes near it.
 */

BEGIN_C_DECLS

/** All zero: no delay seen. */
typedef struct ucs_predict_bound {
    float    floor;   /* ns */
    float    typical; /* ns; not below the floor */
    uint32_t count;   /* delays seen; stops at UINT32_MAX */
} ucs_predict_bound_t;

/** Learn from one delay, in nanoseconds, not negative. A single long one lifts
 *  the floor by no more than its share of the floor itself. */
static inline void
ucs_predict_bound_update(ucs_predict_bound_t *bound, double delay_ns,
                         const ucs_predict_tuning_t *tuning)
{
    float delay = (float)delay_ns;

    if (bound->count == 0) {
        bound->typical = delay;
    }
    bound->typical += (ucs_min(delay, 2 * bound->typical) - bound->typical) /
                      (float)tuning->bound_recent;
    if ((bound->count == 0) || (delay < bound->floor)) {
        bound->floor = delay;
    } else {
        bound->floor += (ucs_min(delay, 2 * bound->floor) - bound->floor) /
                        (float)tuning->bound_memory;
    }
    bound->typical = ucs_max(bound->typical, bound->floor);
    bound->count  += (bound->count != UINT32_MAX);
}

/**
 * The least of n delays is the quantile 1/n of them. For a rarer one, @a share,
 * the floor is lowered as if their distribution rose with the third power, with
 * few delays seen much, with 1 / share of them not at all.
 *
 * @param [in] share  Of delays that may be below the bound, above 0.
 *
 * @return How far it is lowered, 1 being all of it, after @a count delays.
 */
static inline double ucs_predict_bound_lack(double share, uint32_t count)
{
    double known = share * count;

    return (known < 1) ? 1 - cbrt(known) : 0;
}

/**
 * The floor is lowered by no more than four times the distance from floor to
 * typical, and what so few delays may have hidden: where all were alike the
 * next one will be, too.
 *
 * @param [in] lack     @ref ucs_predict_bound_lack after that many delays. With
 *                      none, 0, the bound is not below that with any.
 * @param [in] caution  0 to 1: how far below that, its square being the share,
 *                      so that of a long delay little is given up at first.
 *                      Below 0: how far above, -1 by what is typical more.
 *
 * @return The bound, nanoseconds, not negative. 0 if no delay was seen.
 */
static inline double
ucs_predict_bound_get(const ucs_predict_bound_t *bound, double lack,
                      double caution)
{
    double spread = bound->typical - bound->floor;
    double time   = bound->floor;
    double hidden;

    if (lack > 0) {
        hidden = 4 * spread + bound->floor / (bound->count + 1.0);
        time  -= lack * ucs_min((double)bound->floor, hidden);
    }
    return (caution > 0) ? time * (1 - caution * caution) :
                           time - caution * spread;
}

END_C_DECLS

#endif
