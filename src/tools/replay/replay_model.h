/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCX_HELPER_TOOL_REPLAY_MODEL_H_
#define UCX_HELPER_TOOL_REPLAY_MODEL_H_

#include "replay_trace.h"
#include "replay_world.h"

/**
 * @file replay_model.h
 *
 * Yardsticks beside which a policy is put, computed from the trace alone. Bytes
 * are whole pages. A registration takes no time, but what the model says for it
 * counts as lost.
 */

BEGIN_C_DECLS

/**
 * The limit: pages are registered only while they are in use; all warm uses are
 * on time. Pages that two ranges have in common count once.
 *
 * @param [in]  cost   Of a registration.
 * @param       curve  NULL, or an empty curve that is filled.
 */
void replay_model_limit(const replay_trace_t *trace, const replay_cost_t *cost,
                        replay_figures_t *figures, replay_curve_t *curve);

/** Leave pinned: pages stay registered until they are unmapped. */
void replay_model_leave(const replay_trace_t *trace, const replay_cost_t *cost,
                        replay_figures_t *figures, replay_curve_t *curve);

/**
 * Keep or drop, by one who knows when each range is used next and does not
 * register ahead: between two uses a range stays registered if that costs less
 * than to register it again. A byte held for a second, `region_bytes` for each
 * registration among them, costs max_slowdown / what leave pinned holds seconds;
 * deregistering costs nothing, for a helper does that. Ranges are looked at one by
 * one, so pages that two have in common are paid for twice, and the first use of a
 * range whose pages all were used before is on time.
 *
 * @param [in] params  Its `register_cost`, `max_slowdown` and `region_bytes`.
 */
void replay_model_keep_or_drop(const replay_trace_t *trace,
                               const replay_params_t *params,
                               replay_figures_t *figures);

END_C_DECLS

#endif
