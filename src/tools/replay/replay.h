/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCX_HELPER_TOOL_REPLAY_H_
#define UCX_HELPER_TOOL_REPLAY_H_

#include "replay_world.h"

#include <tools/tool.h>

#include <jansson.h>

/*
 * What `replay`, `plot` and `try` share: options, and the outcome of one policy on one
 * trace.
 */

/** A ceiling of registered memory. */
typedef struct replay_ceiling {
    uint64_t bytes; /**< UINT64_MAX: none */
    double   share; /**< of what leave-pinned holds at most; 0: bytes count */
} replay_ceiling_t;

/** Options that a replay needs. */
typedef struct replay_options {
    replay_params_t       params;   /**< policy and ceiling are not set */
    ucs_regcache_tuning_t tuning;   /**< params.tuning points here if any
                                         constant is not the default */
    replay_ceiling_t      ceiling;
    uint64_t              min_size;
    replay_repeat_t       repeat;
    ucs_regcache_policy_t policies[UCS_REGCACHE_POLICY_LAST];
    size_t                policy_count;
} replay_options_t;

/** One policy, on one trace or summed over several. */
typedef struct replay_row {
    const char           *name;
    ucs_regcache_stats_t once; /**< as of @ref replay_world_run */
    ucs_regcache_stats_t all;
} replay_row_t;

/** Outcome of one trace, or the sum. */
typedef struct replay_outcome {
    const char        *name;
    uint64_t          elapsed_ns; /**< of the longest */
    double            total_ns;   /**< of all together */
    uint64_t          then_ns;    /**< from when the steady part is played for
                                       the second time; of the longest, 0:
                                       never */
    double            total_then_ns;
    replay_repeated_t repeated;   /**< of one trace */
    uint64_t          ceiling;    /**< bytes, UINT64_MAX: none */
    uint64_t          small, unmatched, open, lost;
    replay_row_t      rows[UCS_REGCACHE_POLICY_LAST];
    size_t            row_count;
} replay_outcome_t;

/** Set defaults. */
void replay_options_init(replay_options_t *options);

/** Options of a @ref replay_options_t, for replay, plot and the simulator;
 *  the last has no name. */
extern const tool_option_t replay_options[];

/** Of @ref replay_run: what would be left pinned, without a ceiling; then the
 *  policies, in the options' order. */
enum {
    REPLAY_CURVE_LEAVE,
    REPLAY_CURVE_POLICIES,
    REPLAY_CURVES = REPLAY_CURVE_POLICIES + UCS_REGCACHE_POLICY_LAST
};

/** Read a trace, make it ready. @return 0, or -1 after a message. */
int replay_load(const char *file, const replay_options_t *options,
                replay_trace_t *trace);

/**
 * Run all policies that the options ask for.
 *
 * @param       curves   NULL, or REPLAY_CURVES that are filled.
 * @param [out] outcome  It has no name.
 *
 * @return 0, or -1 after a message.
 */
int replay_run(const replay_trace_t *trace, const replay_options_t *options,
               replay_curve_t *curves, replay_outcome_t *outcome);

/**
 * Read a trace and run all policies that the options ask for.
 *
 * @param [out] outcome  Its name is @a file.
 *
 * @return 0, or -1 after a message.
 */
int replay_file(const char *file, const replay_options_t *options,
                replay_outcome_t *outcome);

/** Sum outcomes, one at least, of the same policies. */
void replay_outcome_sum(const replay_outcome_t *outcomes, size_t count,
                        replay_outcome_t *sum);

/** @return Time lost and memory held at the price of the options' max_slowdown,
 *          as a share of the run time; averages divide by the longest time, as
 *          ucx-helper report merges ranks. The helper has a core of its own. */
double replay_price(const replay_outcome_t *outcome,
                    const ucs_regcache_stats_t *stats,
                    const replay_options_t *options);

/** Print tables for people: each outcome, and their sum if there are more. */
void replay_print_tables(const replay_outcome_t *outcomes, size_t count,
                         const replay_options_t *options, FILE *stream);

/** @return An array of the objects that `replay --json` prints; the caller owns
 *          it. */
json_t *replay_json(const replay_outcome_t *outcomes, size_t count,
                    const replay_options_t *options);

/**
 * Draw what the policies that the options ask for hold over time.
 *
 * @param out  The picture (@ref replay_parse_picture).
 *
 * @return 0, or nonzero after a message.
 */
int replay_plot(const replay_options_t *options, const char *trace,
                const char *out);

/** The name of a picture, which tells its format, and what it may be, in words. */
int replay_parse_picture(void *field, const char *value);
#define REPLAY_PICTURE_ALLOWED "FILE.svg or FILE.png"

#endif
