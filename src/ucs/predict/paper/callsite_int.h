/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_PREDICT_CALLSITE_INT_H_
#define UCS_PREDICT_CALLSITE_INT_H_

#include "callsite.h"
#include <ucs/predict/lru.h>

enum {
    CALLSITE_FLAG_LAST    = 1 << 0, /* the next use is to be measured from
                                       last_ns */
    CALLSITE_FLAG_SPENT   = 1 << 1, /* the prediction since last_ns was
                                       reported unused */
    CALLSITE_FLAG_RELEARN = 1 << 2  /* has been forgotten before */
};

/*
 * Invariants: (period_ns != 0) == (confidence != 0)
 *             period_ns != 0  implies  CALLSITE_FLAG_LAST
 */
typedef struct callsite_entry {
    ucs_predict_lru_node_t node;         /* its key is the signature */
    uint64_t               last_ns;
    uint64_t               period_ns;
    uint64_t               gap_ns;       /* between the latest two uses */
    uint64_t               deviation_ns; /* smoothed difference between gaps */
    uint64_t               uses;
    uint8_t                confidence;
    uint8_t                flags;
} callsite_entry_t;

struct ucs_predict_table {
    ucs_predict_params_t params;
    ucs_predict_window_t window;
    ucs_predict_lru_t    contexts; /* of callsite_entry_t */
};

#endif
