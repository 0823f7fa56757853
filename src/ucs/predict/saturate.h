/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_PREDICT_SATURATE_H_
#define UCS_PREDICT_SATURATE_H_

/*
 * Arithmetic on times that stops at the ends of the range. A deadline that
 * wrapped around would lie in the past and have memory pinned for nothing.
 */

#include <stdint.h>

/** @return a + b, UINT64_MAX at most. */
static inline uint64_t ucs_predict_sat_add(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/** @return a - b, 0 at least. */
static inline uint64_t ucs_predict_sat_sub(uint64_t a, uint64_t b)
{
    return (a > b) ? (a - b) : 0;
}

/**
 * The least integer that is not below @a value, which is not negative.
 * UINT64_MAX is no double: the test is against 2^64, and with `!(<)`, so that
 * a NaN saturates too.
 */
static inline uint64_t ucs_predict_sat_ceil(double value)
{
    uint64_t floor_value;

    if (!(value < 18446744073709551616.0)) {
        return UINT64_MAX;
    }

    floor_value = (uint64_t)value;
    return ((double)floor_value < value) ? (floor_value + 1) : floor_value;
}

#endif
