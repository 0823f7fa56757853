/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_PREDICT_COST_H_
#define UCS_PREDICT_COST_H_

#include <ucs/sys/compiler_def.h>

#include <stddef.h>
#include <stdint.h>

/*
 * What does a registration, or a deregistration, of so many pages take? The model
 * of Li et al., CF'11, section 3.2: t = a * pages + b, with a and b by linear
 * regression, here online. a and b are never below 0.
 *
 * - **Weights.** Errors grow with the cost, so each sample counts by its error
 *   relative to the estimate. Older samples fade with a time constant of 256.
 * - **Outliers.** A helper that is preempted sees a time that has nothing to do with
 *   the pages. A sample enters as at most twice the estimate and at least its
 *   inverse: with 5 % of the samples far too long the estimate is 6 % too high,
 *   however long they are. Clipping errs to the high side, as the paper wants, and a
 *   bad prior cannot lock the truth out.
 * - **A wrong model.** If half of the last 32 samples were clipped, the prior was
 *   wrong or the machine has changed. The line is then fitted anew to the last
 *   @ref UCS_PREDICT_COST_RECENT samples, by the least sum of absolute relative
 *   deviations, which outliers do not bend, and what was before is forgotten.
 * - **All the same size.** Until n * (deviation of sizes / mean size)^2 exceeds 0.3
 *   the samples do not say what is slope and what is overhead: a and b keep their
 *   ratio and are scaled to the samples.
 */

BEGIN_C_DECLS

/** Raw samples that are kept for a new fit; so many clipped among the last
 *  twice as many, which are 32, start one. */
#define UCS_PREDICT_COST_RECENT  16

/** A sample as it came. */
typedef struct ucs_predict_sample {
    double x; /* pages */
    double y; /* nanoseconds, at least 1 */
} ucs_predict_sample_t;

/**
 * The model: a value, copied by assignment, without anything to release. One
 * thread at a time. Others may read a, b and samples.
 *
 * Invariants: a >= 0, b >= 0, a + b > 0, weight >= 0, var_x >= 0; the latest
 * sample is recent[(samples - 1) % UCS_PREDICT_COST_RECENT].
 */
typedef struct ucs_predict_cost {
    double               a;       /* nanoseconds a page */
    double               b;       /* nanoseconds an operation */
    double               weight;  /* sum of the faded weights */
    double               mean_x;  /* weighted mean of the pages */
    double               mean_y;  /* of the (clipped) nanoseconds */
    double               var_x;   /* weighted sum of (x - mean_x)^2 */
    double               cov_xy;  /* of (x - mean_x) * (y - mean_y) */
    ucs_predict_sample_t recent[UCS_PREDICT_COST_RECENT];
    uint64_t             samples; /* samples seen */
    uint32_t             clipped; /* one bit each for the last 32 samples */
} ucs_predict_cost_t;

/**
 * Start with a prior and no samples.
 *
 * @param [out] c              The model.
 * @param [in]  a_ns_per_page  Prior nanoseconds a page.
 * @param [in]  b_ns           Prior nanoseconds an operation. What is negative
 *                             or not finite counts as 0, what is above 1e18
 *                             as that; if both are 0, b is 1 ns, so that there
 *                             is a scale to start from.
 */
void ucs_predict_cost_init(ucs_predict_cost_t *c, double a_ns_per_page,
                           double b_ns);

/**
 * Learn from one operation.
 *
 * @param [in] pages  Its pages.
 * @param [in] ns     Its duration; 0 counts as 1.
 */
void ucs_predict_cost_update(ucs_predict_cost_t *c, size_t pages, uint64_t ns);

/**
 * @return Estimated nanoseconds of an operation on @a pages pages, rounded up,
 *         at most UINT64_MAX.
 */
uint64_t ucs_predict_cost_estimate(const ucs_predict_cost_t *c, size_t pages);

/**
 * The model for a sum over what is past; while there are so few samples that it may
 * still be a wrong prior's, the line through these. Not for decisions: two samples
 * make a line as well.
 *
 * @param [out] a  Nanoseconds a page.
 * @param [out] b  Nanoseconds an operation.
 */
void ucs_predict_cost_line(const ucs_predict_cost_t *c, double *a, double *b);

END_C_DECLS

#endif
