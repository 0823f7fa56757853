/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCX_HELPER_TOOL_TRY_H_
#define UCX_HELPER_TOOL_TRY_H_

#include <tools/doctor/doctor.h>
#include <tools/replay/replay.h>
#include <tools/report/report.h>
#include <tools/run/run.h>

#include <sys/types.h>

/*
 * What a job would gain: a run with everything left pinned, which is recorded;
 * each policy's forecast from the recording; and runs that show it.
 */

/** Left pinned, the two best, left pinned again: what drifts meanwhile counts the
 *  same on both sides. */
#define TOOL_TRY_RUNS       4
#define TOOL_TRY_CANDIDATES 2

/** A policy is worth it if its price is below that share of leave pinned's; another than
 *  the default, if the default saves less than that share of what it saves.
 *  Halved: what saves a third is not told; doubled: jobs without a gain run four
 *  times. */
#define TOOL_TRY_GAIN 0.8

/** A rank that holds less over time holds about what the helper itself takes
 *  (README.md). Halved: jobs are tried that gain nothing; doubled: small ones are
 *  not. */
#define TOOL_TRY_OWN_BYTES 2e6

/** A job is judged by so long a run, seconds: what is being learned in the first ones is
 *  most of a run of some seconds. As long as other forecasts of the tree (bench/predict).
 *  Halved and doubled: jobs that take a minute to learn are judged otherwise. */
#define TOOL_TRY_LONG 600

/** One part in so many of the run at least, by its time, is what goes on; else the run
 *  itself is judged. Halved: programs of three phases are judged by less; doubled: a burst
 *  of an eighth of a run is taken for all of it. */
#define TOOL_TRY_STEADY 4

/** With fewer uses a rank nothing says that they go on like that. Halved and doubled: a
 *  job of so few is judged otherwise. */
#define TOOL_TRY_USES 16

/** A run of the job. */
typedef struct tool_try_run {
    ucs_regcache_policy_t policy;
    tool_merge_t          merge;
} tool_try_run_t;

/** What was foretold. */
typedef struct tool_try_forecast {
    replay_outcome_t sum;      /**< of the recordings that were replayed */
    size_t           replayed; /**< so many were */
} tool_try_forecast_t;

typedef struct tool_try {
    tool_run_t         run;
    int                is_once;  /**< the forecast alone */
    double             limit;    /**< of the first run, seconds; 0: none */
    int                is_cut;   /**< it was ended by that, without a report */
    int                is_json;
    const char         *plot;    /**< a picture, or NULL */
    int                lacks_plot; /**< it could not be drawn */
    char               *dir;     /**< for all that is written meanwhile */
    char               *traces;  /**< in it, of the first run */
    off_t              input;    /**< where stdin began, -1: no file */
    uint64_t           start_ns;
    tool_try_run_t     runs[TOOL_TRY_RUNS];
    size_t             run_count;
    int                is_measured; /**< the costs are this machine's */
    replay_options_t   options;
    size_t             recordings;
    tool_try_forecast_t forecast; /**< of the first run */
    tool_try_forecast_t longer;   /**< if it goes on as its steady part; of no
                                       recording if that is not foretold */
    ucs_regcache_policy_t best[TOOL_TRY_CANDIDATES + 1]; /**< by the longer
                                                            forecast, the default
                                                            first; then leave
                                                            pinned */
    size_t             best_count;
} tool_try_t;

/** @return A policy's figures. */
const ucs_regcache_stats_t *tool_try_stats(const tool_try_forecast_t *forecast,
                                           ucs_regcache_policy_t policy);

/** @return By the forecast, what time lost and memory held cost together, as a
 *          share of the run; but for first uses, which nobody saves. */
double tool_try_price(const tool_try_t *try, const tool_try_forecast_t *forecast,
                      ucs_regcache_policy_t policy);

/** Print table and advice, or the object, to stdout. @return An exit status. */
int tool_try_print(const tool_try_t *try);

#endif
