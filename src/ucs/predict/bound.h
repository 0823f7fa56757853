/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_PREDICT_BOUND_H_
#define UCS_PREDICT_BOUND_H_

#include <ucs/sys/compiler_def.h>

#include <stdint.h>

/**
 * @file bound.h
 *
 * A lower bound of the next delay, learned from a stream of delays. On a shared
 * machine delays have a sharp lower edge and a long upper tail (time slices
 * that went to others), so the mean and its deviation say nothing about the
 * edge: what is tracked is a median, the deviation below it, and the floor.
 */

BEGIN_C_DECLS

/** All zero: no delay seen. */
typedef struct ucs_predict_bound {
    float    floor;  /* about the smallest of the last 250 delays */
    float    median;
    float    below;  /* smoothed deviation of those below the median */
    int16_t  run;    /* successive delays above (> 0) or below the median */
    uint16_t count;  /* delays seen; stops at UINT16_MAX */
} ucs_predict_bound_t;

/** Learn from one delay, in nanoseconds, not negative. */
void ucs_predict_bound_update(ucs_predict_bound_t *bound, double delay);

/**
 * @param [in] caution  How far below the floor, in halves of the distance from
 *                      floor to median; negative: above the floor.
 *
 * @return The bound, nanoseconds; may be negative. 0 if no delay was seen.
 */
double ucs_predict_bound_get(const ucs_predict_bound_t *bound, double caution);

END_C_DECLS

#endif
