/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_PREDICT_USE_H_
#define UCS_PREDICT_USE_H_

#include <stddef.h>
#include <stdint.h>

/*
 * What predictors learn from, and how they name what they know.
 */

/**
 * Something that a predictor knows: a context, a buffer, a label. Stale once the
 * predictor has forgotten it; every function accepts a stale one. All zero is a
 * reference to nothing, always stale. (A generation wraps after 2^32 - 1
 * evictions from one place.)
 */
typedef struct ucs_predict_ref {
    uint32_t index;
    uint32_t generation;
} ucs_predict_ref_t;

/** One use of a buffer by a communication. */
typedef struct ucs_predict_use {
    uint64_t  start_ns; /**< When its registration began */
    uint64_t  path;     /**< Where from: any name of the path of calls */
    uintptr_t address;  /**< Start of the buffer */
    size_t    length;   /**< Its length in bytes */
    unsigned  type;     /**< Kind of communication */
} ucs_predict_use_t;

#endif
