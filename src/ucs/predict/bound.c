/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "bound.h"

#include <math.h>

/* A first delay is known to a sixteenth and a microsecond */
#define BOUND_FIRST_SHARE 16
#define BOUND_FIRST_NS    1000
#define BOUND_BELOW_MIN   500

/* The median moves by a quarter of the deviation; after three moves in the same
 * direction by twice as much each, for then it is far away */
#define BOUND_STEP      0.25
#define BOUND_RUN       3
#define BOUND_RUN_MAX   12

/* One stray delay must not set the floor, so it falls by so many deviations at
 * most, and the deviation grows by so many; the first few delays are no stray
 * ones */
#define BOUND_FALL      3
#define BOUND_GROW      6
#define BOUND_SMOOTHING 8
#define BOUND_EARLY     4

/* The floor climbs by this share of its distance to the median: it remembers
 * some 250 delays, for what is to be found is the hundredth part of them */
#define BOUND_CREEP     0.004

static void bound_first(ucs_predict_bound_t *bound, double delay)
{
    bound->median = delay;
    bound->below  = delay / BOUND_FIRST_SHARE + BOUND_FIRST_NS;
    bound->floor  = delay - bound->below;
    bound->run    = 0;
}

static void bound_median(ucs_predict_bound_t *bound, double delay)
{
    double step = bound->below * BOUND_STEP;
    double diff = delay - bound->median;
    int run;

    if (diff > 0) {
        bound->run = fmax(bound->run, 0) + (bound->run < BOUND_RUN_MAX);
    } else {
        bound->run = fmin(bound->run, 0) - (bound->run > -BOUND_RUN_MAX);
    }
    run = (bound->run > 0) ? bound->run : -bound->run;
    if (run > BOUND_RUN) {
        step *= 1 << (run - BOUND_RUN);
    }
    bound->median += fmax(fmin(diff, step), -step);
}

void ucs_predict_bound_update(ucs_predict_bound_t *bound, double delay)
{
    int early   = bound->count < BOUND_EARLY;
    double diff = bound->median - delay;

    if (bound->count++ == 0) {
        bound_first(bound, delay);
        return;
    }
    if (bound->count == 0) {
        bound->count = UINT16_MAX;
    }

    bound_median(bound, delay);
    if (diff > 0) {
        diff = early ? diff : fmin(diff, BOUND_GROW * bound->below);
        bound->below += (diff - bound->below) / BOUND_SMOOTHING;
    }
    bound->below = fmax(bound->below, BOUND_BELOW_MIN);

    diff = bound->floor - delay;
    if (diff > 0) {
        bound->floor -= early ? diff : fmin(diff, BOUND_FALL * bound->below);
    } else {
        bound->floor += fmax(bound->median - bound->floor, 0) * BOUND_CREEP;
    }
}

double ucs_predict_bound_get(const ucs_predict_bound_t *bound, double caution)
{
    double width = fmax(bound->median - bound->floor, bound->below);

    return (bound->count == 0) ? 0 : bound->floor - caution * width / 2;
}
