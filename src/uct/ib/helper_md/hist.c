/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "hist.h"

#define UCT_HELPER_HIST_SUB (1u << UCT_HELPER_HIST_SUB_BITS)

/* Below 2 * SUB each value has its own bucket; above, SUB of them per octave */
static unsigned uct_helper_hist_bucket(uint64_t ns)
{
    unsigned shift, bucket;

    if (ns < UCT_HELPER_HIST_SUB) {
        return ns;
    }
    shift  = 63 - __builtin_clzll(ns) - UCT_HELPER_HIST_SUB_BITS;
    bucket = (shift << UCT_HELPER_HIST_SUB_BITS) + (unsigned)(ns >> shift);
    return (bucket < UCT_HELPER_HIST_BUCKETS) ? bucket :
                                                UCT_HELPER_HIST_BUCKETS - 1;
}

/* Largest value of a bucket */
static uint64_t uct_helper_hist_limit(unsigned bucket)
{
    unsigned shift;

    if (bucket < 2 * UCT_HELPER_HIST_SUB) {
        return bucket;
    }
    shift = (bucket >> UCT_HELPER_HIST_SUB_BITS) - 1;
    return (((uint64_t)(bucket & (UCT_HELPER_HIST_SUB - 1)) +
             UCT_HELPER_HIST_SUB + 1) << shift) - 1;
}

void uct_helper_hist_add(uct_helper_hist_t *hist, uint64_t ns)
{
    ucs_add_relaxed(&hist->count[uct_helper_hist_bucket(ns)], 1);
}

uint64_t uct_helper_hist_samples(uct_helper_hist_t *hist)
{
    uint64_t total = 0;
    unsigned i;

    for (i = 0; i < UCT_HELPER_HIST_BUCKETS; ++i) {
        total += ucs_load_relaxed(&hist->count[i]);
    }
    return total;
}

uint64_t uct_helper_hist_quantile(uct_helper_hist_t *hist, double quantile)
{
    uint64_t target = quantile * uct_helper_hist_samples(hist);
    uint64_t sum    = 0;
    unsigned i;

    for (i = 0; i < UCT_HELPER_HIST_BUCKETS; ++i) {
        sum += ucs_load_relaxed(&hist->count[i]);
        if ((sum > 0) && (sum >= target)) {
            return uct_helper_hist_limit(i);
        }
    }
    return 0;
}
