/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCX_HELPER_TOOL_REPLAY_OFFLINE_H_
#define UCX_HELPER_TOOL_REPLAY_OFFLINE_H_

#include "replay_model.h"

/**
 * @file replay_offline.h
 *
 * The yardstick of what memory is worth: one who knew when each buffer is used
 * next and did not register ahead.
 */

BEGIN_C_DECLS

/** Time that a yardstick or policy lost, nanoseconds. */
typedef struct replay_lost {
    double all_ns;
    double first_ns; /**< the part of it in cold uses, which nobody could have
                          registered before */
} replay_lost_t;

/**
 * Keep or drop: between two uses a range stays registered if that costs less
 * than to register it again. A byte held for a second costs max_slowdown /
 * leave-pinned bytes seconds, a registration what the model says,
 * deregistering nothing, for a helper does that. Ranges are looked at one by
 * one, so pages that two have in common are paid for twice, and the first use
 * of a range whose pages all were used before is on time.
 *
 * @param [in]  params   Its `register_cost` and `max_slowdown`.
 * @param [out] figures  As of the other yardsticks.
 * @param [out] lost     What its missed and its cold uses spent registering.
 */
void replay_model_keep_or_drop(const replay_trace_t *trace,
                               const replay_params_t *params,
                               replay_figures_t *figures, replay_lost_t *lost);

END_C_DECLS

#endif
