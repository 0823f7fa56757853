/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef PATTERN_H_
#define PATTERN_H_

#include "nas.h"

/**
 * @file pattern.h
 *
 * For the kernels that have the communication of an application but not its
 * physics: every message is filled with numbers that follow from its sender and
 * its place in the run, and compared by its receiver to the last element.
 */

/** Field on which a kernel computes while it does not communicate. */
typedef struct pattern_field {
    double *value;
    size_t points;
} pattern_field_t;


void pattern_field_init(const nas_t *nas, size_t points,
                        pattern_field_t *field);

/** Compute @a flops floating-point operations a point. */
void pattern_compute(const pattern_field_t *field, unsigned flops);

/** Fill a message of @a count elements, the @a step th of its sender. */
void pattern_fill(double *message, int count, int sender, long step);

/** @return Elements that are not what @ref pattern_fill wrote. */
long pattern_check(const double *message, int count, int sender, long step);

#endif
