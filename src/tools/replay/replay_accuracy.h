/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCX_HELPER_TOOL_REPLAY_ACCURACY_H_
#define UCX_HELPER_TOOL_REPLAY_ACCURACY_H_

#include "replay_trace.h"

#include <ucs/sys/compiler_def.h>

#include <stdint.h>

/**
 * @file replay_accuracy.h
 *
 * How well predictors tell the time of the next use, as in Li et al. (2011),
 * Fig. 5: the error is the distance between the predicted start of a context's
 * next use and its start, as a share of the period between the two starts.
 */

BEGIN_C_DECLS

/** One predictor on one trace, or summed. */
typedef struct replay_accuracy {
    const char *name;
    uint64_t   uses;
    uint64_t   repeated;   /**< uses of a context that was used before: those
                                could be predicted */
    uint64_t   predicted;  /**< of which that were */
    uint64_t   half;       /**< of which within 0.5 % of the period */
    uint64_t   five;       /**< of which within 5 % */
} replay_accuracy_t;

/** How many predictors there are. */
#define REPLAY_PREDICTORS 5

/** Rate all predictors. @param window  Samples of the periodicity detector. */
void replay_accuracy_rate(const replay_trace_t *trace, unsigned window,
                          replay_accuracy_t rated[REPLAY_PREDICTORS]);

END_C_DECLS

#endif
