/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "pattern.h"

#define PATTERN_BLOCK 8

/* Small enough for its elements to be exact */
static double pattern_base(int sender, long step)
{
    return nas_random_next(step + 1, NAS_RANDOM_A) % 1000003 + 17.0 * sender;
}

void pattern_field_init(const nas_t *nas, size_t points,
                        pattern_field_t *field)
{
    size_t i;

    field->points = points;
    field->value  = nas_alloc(nas, points * sizeof(*field->value));
    for (i = 0; i < points; ++i) {
        field->value[i] = 1 + i % 7;
    }
}

/* Some points side by side, as a compiler would interleave those of a real
 * kernel */
static void pattern_compute_block(double *x, size_t count, unsigned flops)
{
    unsigned j;
    size_t i;

    for (j = 0; j < flops; j += 2) {
        for (i = 0; i < count; ++i) {
            x[i] = 0.999 * x[i] + 0.001;
        }
    }
}

void pattern_compute(const pattern_field_t *field, unsigned flops)
{
    size_t i, left;

    for (i = 0; i < field->points; i += PATTERN_BLOCK) {
        left = field->points - i;
        pattern_compute_block(field->value + i,
                              (left < PATTERN_BLOCK) ? left : PATTERN_BLOCK,
                              flops);
    }
}

void pattern_fill(double *message, int count, int sender, long step)
{
    double base = pattern_base(sender, step);
    int i;

    for (i = 0; i < count; ++i) {
        message[i] = base + i;
    }
}

long pattern_check(const double *message, int count, int sender, long step)
{
    double base = pattern_base(sender, step);
    long wrong  = 0;
    int i;

    for (i = 0; i < count; ++i) {
        wrong += (message[i] != base + i);
    }
    return wrong;
}
