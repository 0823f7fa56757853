/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_HIST_H_
#define UCS_HIST_H_

#include <ucs/sys/sync/atomic.h>

#include <stdint.h>
#include <ucs/sys/compiler_def.h>

/**
 * @file hist.h
 *
 * Histogram of short times: 16 buckets an octave, so a percentile is right to
 * 7 %. Any thread adds, wait-free; a snapshot is not atomic as a whole.
 */

BEGIN_C_DECLS

#define UCS_HIST_SUB_BITS 4
#define UCS_HIST_BUCKETS  (40 << UCS_HIST_SUB_BITS)

typedef struct ucs_hist {
    _Atomic(uint64_t) count[UCS_HIST_BUCKETS];
} ucs_hist_t;

/** Count one time, ns; longer ones go into the last bucket. */
void ucs_hist_add(ucs_hist_t *hist, uint64_t ns);

/** @return Samples so far. */
uint64_t ucs_hist_samples(ucs_hist_t *hist);

/** @return Smallest time, ns, that a share @a quantile (0 to 1) of the samples
 *          does not exceed, to a bucket's precision; 0 without samples. */
uint64_t ucs_hist_quantile(ucs_hist_t *hist, double quantile);

END_C_DECLS

#endif
