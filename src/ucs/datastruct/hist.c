/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "hist.h"

#define UCS_HIST_SUB (1u << UCS_HIST_SUB_BITS)

/* Below 2 * SUB each value has its own bucket; above, SUB of them per octave */
static unsigned ucs_hist_bucket(uint64_t ns)
{
    unsigned shift, bucket;

    if (ns < UCS_HIST_SUB) {
        return ns;
    }
    shift  = 63 - __builtin_clzll(ns) - UCS_HIST_SUB_BITS;
    bucket = (shift << UCS_HIST_SUB_BITS) + (unsigned)(ns >> shift);
    return (bucket < UCS_HIST_BUCKETS) ? bucket : UCS_HIST_BUCKETS - 1;
}

/* Largest value of a bucket */
static uint64_t ucs_hist_limit(unsigned bucket)
{
    unsigned shift;

    if (bucket < 2 * UCS_HIST_SUB) {
        return bucket;
    }
    shift = (bucket >> UCS_HIST_SUB_BITS) - 1;
    return (((uint64_t)(bucket & (UCS_HIST_SUB - 1)) + UCS_HIST_SUB + 1)
            << shift) -
           1;
}

void ucs_hist_add(ucs_hist_t *hist, uint64_t ns)
{
    ucs_add_relaxed(&hist->count[ucs_hist_bucket(ns)], 1);
}

uint64_t ucs_hist_samples(ucs_hist_t *hist)
{
    uint64_t total = 0;
    unsigned i;

    for (i = 0; i < UCS_HIST_BUCKETS; ++i) {
        total += ucs_load_relaxed(&hist->count[i]);
    }
    return total;
}

uint64_t ucs_hist_quantile(ucs_hist_t *hist, double quantile)
{
    uint64_t target = quantile * ucs_hist_samples(hist);
    uint64_t sum    = 0;
    unsigned i;

    for (i = 0; i < UCS_HIST_BUCKETS; ++i) {
        sum += ucs_load_relaxed(&hist->count[i]);
        if ((sum > 0) && (sum >= target)) {
            return ucs_hist_limit(i);
        }
    }
    return 0;
}
