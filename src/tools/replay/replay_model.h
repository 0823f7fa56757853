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
 * Yardsticks beside which a policy is put, computed from the trace alone:
 * registrations take no time and nothing is predicted. Bytes are whole pages.
 */

BEGIN_C_DECLS

/** Figures of a yardstick, as an engine's: `uses`, `on_time`, `missed`, `cold`,
 *  `wasted`, `evicted`, `over_ceiling`, `pinned_peak_bytes`, `pinned_byte_ns`
 *  and `lost_ns`, the registrations of uses, cold ones among them, are set, all
 *  else is 0. */
typedef ucs_regcache_stats_t replay_figures_t;

/** What is thrown out of a full cache. */
typedef enum replay_victim {
    REPLAY_VICTIM_LRU, /**< the item that has been idle for longest */
    REPLAY_VICTIM_OPT  /**< Belady: the one whose next use is farthest */
} replay_victim_t;

/**
 * The limit: pages are registered only while they are in use; all warm uses
 * are on time. Pages that two items have in common count once.
 *
 * @param curve  NULL, or an empty curve that is filled; so below.
 */
void replay_model_limit(const replay_trace_t *trace, replay_figures_t *figures,
                        replay_curve_t *curve);

/**
 * The lead: a helper that wants a buffer registered when its use comes has to
 * begin so much earlier. What registering it takes by the cost model, and a
 * lateness of the helper's wake-up that 98 of 100 do not pass.
 *
 * @return Nanoseconds.
 */
double replay_model_lead_ns(const replay_trace_t *trace,
                            const replay_params_t *params, uint64_t bytes);

/**
 * What one lead costs: the byte-nanoseconds by which the limit grows if the
 * pages of each warm use are registered one lead before it; less where a page
 * has not been idle for that long.
 */
double replay_model_lead(const replay_trace_t *trace,
                         const replay_params_t *params);

/** Leave pinned: pages stay registered until they are unmapped. */
void replay_model_leave(const replay_trace_t *trace, replay_figures_t *figures,
                        replay_curve_t *curve);

/**
 * A cache of items with @a capacity bytes. Items in use stay whatever the
 * capacity; what passes it goes as soon as it is idle. A use finds its buffer
 * in any registered item that contains it. OPT is optimal when all items have
 * the same size and none contains another, and the usual yardstick otherwise.
 */
void replay_model_cache(const replay_trace_t *trace, replay_victim_t victim,
                        uint64_t capacity, replay_figures_t *figures);

/**
 * The cache whose byte-seconds come closest to @a byte_ns from below, by
 * bisection of its capacity.
 *
 * @return The capacity; 0 means that nothing is kept.
 */
uint64_t replay_model_cache_at(const replay_trace_t *trace,
                               replay_victim_t victim, double byte_ns,
                               replay_figures_t *figures);

END_C_DECLS

#endif
