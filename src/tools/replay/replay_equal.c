/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "replay.h"

#include <tools/tool.h>

#include <string.h>

/* Halvings of a ceiling at each of which an engine runs over the trace */
#define REPLAY_EQUAL_BISECTIONS 10


/* @return Nonzero if predict, so, spends no more than @a row; then it counts
 * if it is more on time than what was tried before */
static int replay_equal_try(const replay_trace_t *trace,
                            const replay_params_t *params, replay_row_t *row)
{
    ucs_regcache_stats_t stats;

    if (replay_world_run(trace, params, &stats, NULL, NULL) != UCS_OK) {
        tool_out_of_memory();
    }
    if (stats.pinned_byte_ns > REPLAY_SAME * row->stats.pinned_byte_ns) {
        return 0;
    }
    if ((row->equal.uses == 0) || (stats.on_time > row->equal.on_time)) {
        row->equal = stats;
    }
    return 1;
}

/* No policy of these ever holds more */
static uint64_t replay_most_bytes(const replay_outcome_t *outcome)
{
    uint64_t most = 0;
    size_t i;

    for (i = 0; i < outcome->row_count; ++i) {
        if (most < outcome->rows[i].stats.pinned_peak_bytes) {
            most = outcome->rows[i].stats.pinned_peak_bytes;
        }
    }
    return most;
}

static int replay_may_equal(const replay_row_t *row)
{
    return (row->kind == REPLAY_ROW_POLICY) &&
           strcmp(row->name,
                  ucs_regcache_policy_names[UCS_REGCACHE_POLICY_PREDICT]);
}

/* Predict has two ways to spend less: a ceiling, by bisection, and a higher
 * price of memory */
void replay_equal(const replay_trace_t *trace, const replay_options_t *options,
                  const replay_outcome_t *outcome, replay_row_t *row)
{
    static const double slowdowns[] = {0.001, 0.002, 0.005, 0.01, 0.02,
                                       0.05,  0.1,   0.2,   0.5,  1};
    uint64_t high                   = replay_most_bytes(outcome);
    replay_params_t params          = options->params;
    uint64_t low                    = 0;
    unsigned i;

    if (!replay_may_equal(row)) {
        return;
    }
    params.policy = UCS_REGCACHE_POLICY_PREDICT;
    for (i = 0; i < REPLAY_EQUAL_BISECTIONS; ++i) {
        params.max_pinned = low + (high - low + 1) / 2;
        if (replay_equal_try(trace, &params, row)) {
            low = params.max_pinned;
        } else {
            high = params.max_pinned;
        }
    }
    params.max_pinned = UINT64_MAX;
    for (i = 0; i < sizeof(slowdowns) / sizeof(slowdowns[0]); ++i) {
        params.max_slowdown = slowdowns[i];
        (void)replay_equal_try(trace, &params, row);
    }
}
