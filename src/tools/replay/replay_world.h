/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCX_HELPER_TOOL_REPLAY_WORLD_H_
#define UCX_HELPER_TOOL_REPLAY_WORLD_H_

#include "replay_process.h"
#include "replay_trace.h"

/*
 * A trace drives one process under virtual time: the main thread makes the
 * recorded uses at their recorded times (an event waits only while the one
 * before it is not over).
 */

BEGIN_C_DECLS

#define REPLAY_CURVE_BINS 300

/** How registered memory went, for a picture: its integral over each bin. Set
 *  `from_ns` and `width_ns` before. */
typedef struct replay_curve {
    uint64_t from_ns;
    uint64_t width_ns; /**< of a bin */
    double   byte_ns[REPLAY_CURVE_BINS];
    uint64_t time_ns;  /**< up to here */
    uint64_t bytes;    /**< from then on */
    int      is_drawn; /**< something was noted */
} replay_curve_t;

/** What it took until a steady part that is repeated began for the second time:
 *  by then all that recurs was there once. All 0 if none is. */
typedef struct replay_once {
    ucs_regcache_stats_t stats;
    double               lost_ns;
    double               first_ns; /**< the part of it in cold uses */
} replay_once_t;

/** What a policy or a yardstick comes to. */
typedef struct replay_figures {
    ucs_regcache_stats_t stats;    /**< of a yardstick `uses`, `on_time`,
                                        `missed`, `cold`, `pinned_peak_bytes`,
                                        `pinned_byte_ns`, `regions_peak` and
                                        `region_ns`; all else is 0 */
    double               lost_ns;  /**< virtual time that the main thread spent
                                        with the lower domain, or waiting for
                                        the helper; of a yardstick what its
                                        uses' registrations would take */
    double               first_ns; /**< the part of it in cold uses, which
                                        nobody could have registered before */
    replay_once_t        once;     /**< of a policy */
} replay_figures_t;

/**
 * Replay @a trace.
 *
 * @param       curve    NULL, or a curve that is filled.
 * @param [out] figures  At the trace's end.
 *
 * @return UCS_OK or what creating the engine returned.
 */
ucs_status_t replay_world_run(const replay_trace_t *trace,
                              const replay_params_t *params,
                              replay_curve_t *curve, replay_figures_t *figures);

/** Note a value of the curve, from a time on. */
void replay_curve_add(replay_curve_t *curve, uint64_t time_ns, uint64_t bytes);

/**
 * The limit: pages are registered only while they are in use; all warm uses are
 * on time. Or leave pinned: pages stay registered until they are unmapped. Pages
 * that two ranges have in common count once.
 *
 * @param [in]  cost   Of a registration.
 * @param       curve  NULL, or a curve that is filled.
 */
void replay_model_pages(const replay_trace_t *trace, int is_leave,
                        const replay_cost_t *cost, replay_figures_t *figures,
                        replay_curve_t *curve);

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
