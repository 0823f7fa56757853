/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "cost.h"
#include "saturate.h"

#include <ucs/sys/math.h>

/* Samples after which older ones have faded */
#define COST_HORIZON 256

/* A sample counts as at most so many times the estimate, or so small a part of
 * it: bounds the harm of a preempted call */
#define COST_CLIP 2

/* Spread of the sizes from which on samples determine the slope, whose relative
 * error is then 1.8 times a sample's */
#define COST_SPREAD 0.3

/* Longer than any operation takes, and its square is still far from infinity */
#define COST_PRIOR_MAX 1e18

/* A line and how far it is from the recent samples */
typedef struct cost_candidate {
    double a;
    double b;
    double deviation;
} cost_candidate_t;

static double cost_line(const ucs_predict_cost_t *c, double x)
{
    return (c->a * x) + c->b;
}

/* What samples are compared with: no clock is finer than a nanosecond */
static double cost_scale(const ucs_predict_cost_t *c, double x)
{
    return ucs_max(cost_line(c, x), 1.0);
}

static double cost_sane(double value)
{
    if (!__builtin_isfinite(value) || (value < 0)) {
        return 0;
    }

    return ucs_min(value, COST_PRIOR_MAX);
}

void ucs_predict_cost_init(ucs_predict_cost_t *c, double a_ns_per_page,
                           double b_ns)
{
    *c   = (ucs_predict_cost_t){.a = 0};
    c->a = cost_sane(a_ns_per_page);
    c->b = cost_sane(b_ns);
    if ((c->a == 0) && (c->b == 0)) {
        c->b = 1;
    }
}

/*
 * One step of the weighted means and moments, after West, CACM 22(9), 1979, as
 * convex combinations and products: sizes may differ by 2^64, and differences
 * would lose the small ones and could have var_x fall below 0. Returns whether
 * the sample had to be clipped.
 */
static int cost_accumulate(ucs_predict_cost_t *c, ucs_predict_sample_t sample)
{
    double fade   = 1.0 - 1.0 / COST_HORIZON;
    double scale  = cost_scale(c, sample.x);
    double weight = 1 / (scale * scale);
    double past   = c->weight * fade;
    double total  = past + weight;
    double y      = ucs_min(sample.y, scale * COST_CLIP);
    double dx, dy;

    y         = ucs_max(y, scale / COST_CLIP);
    dx        = sample.x - c->mean_x;
    dy        = y - c->mean_y;
    c->var_x  = (c->var_x * fade) + (weight * (past / total) * dx * dx);
    c->cov_xy = (c->cov_xy * fade) + (weight * (past / total) * dx * dy);
    c->mean_x = (c->mean_x * (past / total)) + (sample.x * (weight / total));
    c->mean_y = (c->mean_y * (past / total)) + (y * (weight / total));
    c->weight = total;
    return y != sample.y;
}

static int cost_slope_is_known(const ucs_predict_cost_t *c)
{
    double scale = cost_scale(c, c->mean_x);
    double x     = c->mean_x / scale;

    return c->var_x > (COST_SPREAD * x * x);
}

/* Turn the line to its least squares, around the mean of the samples */
static void cost_fit(ucs_predict_cost_t *c)
{
    c->a = ucs_max(c->cov_xy / c->var_x, 0);
    c->b = c->mean_y - (c->a * c->mean_x);
    if (c->b < 0) {
        c->b = 0;
        c->a = c->mean_y / c->mean_x;
    }
}

/* Raise or lower the line to the samples, without changing its shape */
static void cost_fit_scale(ucs_predict_cost_t *c)
{
    double line = cost_line(c, c->mean_x);

    if (line > 0) {
        c->a *= c->mean_y / line;
        c->b *= c->mean_y / line;
    } else {
        c->b = c->mean_y;
    }
}

static unsigned cost_num_recent(const ucs_predict_cost_t *c)
{
    return (c->samples < UCS_PREDICT_COST_RECENT) ? (unsigned)c->samples :
                                                    UCS_PREDICT_COST_RECENT;
}

/* Take the line (a, b) as the best one if it is closer to the recent samples
 * and nowhere below 0 */
static void cost_consider(const ucs_predict_cost_t *c, cost_candidate_t *best,
                          double a, double b)
{
    double deviation = 0;
    unsigned i;

    if (!(a >= 0) || !(b >= 0) || !(a + b > 0) ||
        !__builtin_isfinite(a + b)) {
        return;
    }

    for (i = 0; i < cost_num_recent(c); ++i) {
        const ucs_predict_sample_t *s = &c->recent[i];

        deviation += __builtin_fabs(((a * s->x) + b) - s->y) / s->y;
    }

    if (deviation < best->deviation) {
        *best = (cost_candidate_t){a, b, deviation};
    }
}

/* The current shape, through each of the recent samples */
static void cost_consider_scales(const ucs_predict_cost_t *c,
                                 cost_candidate_t *best)
{
    unsigned i;

    for (i = 0; i < cost_num_recent(c); ++i) {
        double ratio = c->recent[i].y / cost_scale(c, c->recent[i].x);

        cost_consider(c, best, c->a * ratio, c->b * ratio);
    }
}

/* Some line of least absolute deviations goes through two of the samples, or
 * through one of them where a or b is 0: these are few enough to try all. Nothing is
 * divided by 0, for which a program may have its threads end. */
static void cost_consider_shapes(const ucs_predict_cost_t *c,
                                 cost_candidate_t *best)
{
    unsigned i, j;
    double a;

    for (i = 0; i < cost_num_recent(c); ++i) {
        const ucs_predict_sample_t *s = &c->recent[i];

        cost_consider(c, best, 0, s->y);
        if (s->x > 0) {
            cost_consider(c, best, s->y / s->x, 0);
        }
        for (j = 0; j < i; ++j) {
            const ucs_predict_sample_t *t = &c->recent[j];

            if (s->x != t->x) {
                a = (s->y - t->y) / (s->x - t->x);
                cost_consider(c, best, a, s->y - (a * s->x));
            }
        }
    }
}

/* Whether the sizes of the recent samples determine a slope, judged as in
 * cost_slope_is_known() */
static int cost_recent_spread(const ucs_predict_cost_t *c)
{
    unsigned count = cost_num_recent(c);
    double mean    = 0;
    double var     = 0;
    unsigned i;

    for (i = 0; i < count; ++i) {
        mean += c->recent[i].x / count;
    }
    for (i = 0; i < count; ++i) {
        var += (c->recent[i].x - mean) * (c->recent[i].x - mean);
    }

    return var > (COST_SPREAD * mean * mean);
}

/* The line of the recent samples alone */
static cost_candidate_t cost_of_recent(const ucs_predict_cost_t *c)
{
    cost_candidate_t best = {c->a, c->b, __builtin_inf()};

    cost_consider_scales(c, &best);
    if (cost_recent_spread(c)) {
        cost_consider_shapes(c, &best);
    }
    return best;
}

/* The model has been wrong: only the recent samples count from here on */
static void cost_restart(ucs_predict_cost_t *c)
{
    const cost_candidate_t best = cost_of_recent(c);
    unsigned i;

    c->a       = best.a;
    c->b       = best.b;
    c->weight  = 0;
    c->mean_x  = 0;
    c->mean_y  = 0;
    c->var_x   = 0;
    c->cov_xy  = 0;
    c->clipped = 0;
    for (i = 0; i < cost_num_recent(c); ++i) {
        cost_accumulate(c, c->recent[i]);
    }
}

void ucs_predict_cost_update(ucs_predict_cost_t *c, size_t pages, uint64_t ns)
{
    ucs_predict_sample_t sample = {(double)pages, ucs_max((double)ns, 1)};
    int clipped                 = cost_accumulate(c, sample);

    c->recent[c->samples++ % UCS_PREDICT_COST_RECENT] = sample;

    c->clipped = (c->clipped << 1) | (uint32_t)clipped;
    if (__builtin_popcount(c->clipped) >= UCS_PREDICT_COST_RECENT) {
        cost_restart(c);
    } else if (cost_slope_is_known(c)) {
        cost_fit(c);
    } else {
        cost_fit_scale(c);
    }
}

uint64_t ucs_predict_cost_estimate(const ucs_predict_cost_t *c, size_t pages)
{
    return ucs_predict_sat_ceil(cost_line(c, (double)pages));
}

void ucs_predict_cost_line(const ucs_predict_cost_t *c, double *a, double *b)
{
    cost_candidate_t line = {.a = c->a, .b = c->b};

    /* With so many a wrong prior has been left */
    if (c->samples < 2 * UCS_PREDICT_COST_RECENT) {
        line = cost_of_recent(c);
    }
    *a = line.a;
    *b = line.b;
}
