/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "try.h"

#include <tools/tool.h>

#include <ucs/sys/math.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Run times that differ by less say nothing, however well two runs agree */
#define TOOL_TRY_NOISE 0.01

/* Where two runs of the same differ by more, half of it, the machine is busy with
 * others */
#define TOOL_TRY_NOISE_MAX 0.1

/* A buffer that is used less often than so many times in a run does not recur. Halved:
 * one that is used once is said to be used every few seconds; doubled: one that is used
 * every tenth of the run is said not to be. */
#define TOOL_TRY_RECURS 4

/* What a row shows, of a rank */
typedef struct tool_try_row {
    ucs_regcache_policy_t policy;
    double                seconds; /* of the run, 0: it was not made */
    double                ratio;   /* of that to leave pinned's */
    double                peak, average, registrations, ready;
    double                price;   /* at which the policies are compared */
} tool_try_row_t;

static double tool_try_seconds(const tool_try_t *try, size_t i)
{
    return tool_report_number(try->runs[i].merge.total, "elapsed_seconds");
}

/* Leave pinned's at the place of a run, between its first and its last */
static double tool_try_expected(const tool_try_t *try, size_t i)
{
    size_t last  = try->run_count - 1;
    double first = tool_try_seconds(try, 0);

    return (last == 0) ? first :
           first + (tool_try_seconds(try, last) - first) * i / last;
}

static int tool_try_is_forecast(const tool_try_t *try)
{
    return try->run_count < 2;
}

/* By how much two runs of the same differ, half of it */
static double tool_try_noise(const tool_try_t *try)
{
    double first, last;

    if (tool_try_is_forecast(try)) {
        return 0;
    }
    first = tool_try_seconds(try, 0);
    last  = tool_try_seconds(try, try->run_count - 1);
    return fabs(first - last) / (first + last);
}

static double tool_try_ready(double on_time, double uses, double cold)
{
    return (uses > cold) ? on_time / (uses - cold) : -1;
}

static void tool_try_measured(const tool_try_t *try, size_t i,
                              tool_try_row_t *row)
{
    const json_t *total = try->runs[i].merge.total;
    double ranks        = json_array_size(try->runs[i].merge.ranks);

    row->policy        = try->runs[i].policy;
    row->seconds       = tool_try_seconds(try, i);
    row->ratio         = row->seconds / tool_try_expected(try, i);
    row->peak          = tool_report_number(total, "pinned_peak_bytes") / ranks;
    row->average       = tool_report_number(total, "pinned_byte_seconds") /
                         row->seconds / ranks;
    row->registrations = tool_report_number(total, "registrations") / ranks;
    row->ready         = tool_try_ready(tool_report_number(total, "on_time"),
                                        tool_report_number(total, "uses"),
                                        tool_report_number(total, "cold"));
    row->price         = tool_report_number(total, "price_j") -
                         tool_report_number(total, "lost_first_seconds") /
                                 try->runs[i].merge.rank_seconds;
}

static void tool_try_foretold(const tool_try_t *try,
                              const tool_try_forecast_t *forecast,
                              ucs_regcache_policy_t policy,
                              tool_try_row_t *row)
{
    const ucs_regcache_stats_t *stats = tool_try_stats(forecast, policy);

    row->policy        = policy;
    row->seconds       = 0;
    row->ratio         = 0;
    row->peak          = (double)stats->pinned_peak_bytes / forecast->replayed;
    row->average       = stats->pinned_byte_ns / forecast->sum.elapsed_ns /
                         forecast->replayed;
    row->registrations = (double)stats->registrations / forecast->replayed;
    row->ready         = tool_try_ready(stats->on_time, stats->uses,
                                        stats->cold);
    row->price         = tool_try_price(try, forecast, policy);
}

/* --- Table ---------------------------------------------------------------- */

/* @param after  Of a forecast: of a run of what length, or nothing */
static void tool_try_print_row(const tool_try_t *try, const tool_try_row_t *row,
                               const char *after)
{
    char buf[4][TOOL_UNITS_MAX];
    char seconds[TOOL_UNITS_MAX] = "forecast", ratio[TOOL_UNITS_MAX];

    snprintf(ratio, sizeof(ratio), "%s", after);
    if (row->seconds > 0) {
        tool_units_print_seconds(row->seconds, seconds);
        if (row->policy != UCS_REGCACHE_POLICY_LEAVE_PINNED) {
            snprintf(ratio, sizeof(ratio), "x %.3f", row->ratio);
        } else if (try->run_count > 1) {
            snprintf(ratio, sizeof(ratio), "+-%.1f %%",
                     100 * tool_try_noise(try));
        }
    }
    printf("%-13s %9s %9s %11s %11s %13.0f %8s %9s\n",
           ucs_regcache_policy_names[row->policy], seconds, ratio,
           tool_units_print_bytes(row->peak, buf[0]),
           tool_units_print_bytes(row->average, buf[1]), row->registrations,
           tool_units_print_share(row->ready, row->ready >= 0, buf[2]),
           tool_units_print_fine_share(row->price, 1, buf[3]));
}

/* The first run of leave pinned, with the mean run time of both; foretold if it was cut */
static void tool_try_leave(const tool_try_t *try, tool_try_row_t *row)
{
    if (try->run_count == 0) {
        tool_try_foretold(try, &try->forecast, UCS_REGCACHE_POLICY_LEAVE_PINNED,
                          row);
        return;
    }
    tool_try_measured(try, 0, row);
    row->seconds = (row->seconds +
                    tool_try_seconds(try, try->run_count - 1)) / 2;
}

static void tool_try_print_forecast(const tool_try_t *try,
                                    const tool_try_forecast_t *forecast,
                                    const char *after)
{
    tool_try_row_t row;
    ucs_regcache_policy_t policy;

    for (policy = 0; policy < UCS_REGCACHE_POLICY_LAST; ++policy) {
        tool_try_foretold(try, forecast, policy, &row);
        tool_try_print_row(try, &row, after);
    }
}

static void tool_try_print_table(const tool_try_t *try)
{
    char after[TOOL_UNITS_MAX];
    tool_try_row_t row;
    size_t i;

    printf("%-13s %9s %9s %11s %11s %13s %8s %9s\n", "policy", "run time", "",
           "peak", "over time", "registrations", "ready", "price");
    if (try->run_count > 0) {
        tool_try_leave(try, &row);
        tool_try_print_row(try, &row, "");
    }
    for (i = 1; i + 1 < try->run_count; ++i) {
        tool_try_measured(try, i, &row);
        tool_try_print_row(try, &row, "");
    }
    tool_try_print_forecast(try, &try->forecast, "");
    if (try->longer.replayed > 0) {
        tool_try_print_forecast(
                try, &try->longer,
                tool_units_print_seconds(try->longer.sum.elapsed_ns * 1e-9,
                                         after));
    }
    printf("of a rank; price: time lost but for first uses, and memory, of which all "
           "is worth %.3g %% of the run\nforecast: from %zu of %zu recordings, at "
           "MODELLED costs %s, a core free for the helper\n",
           100 * try->options.params.max_slowdown, try->forecast.replayed,
           try->recordings,
           try->is_measured ? "as measured here" : "that were not measured");
}

/* --- Advice --------------------------------------------------------------- */

/* How long a buffer rests between two uses: a first use makes it another one */
static double tool_try_interval(const tool_try_t *try)
{
    const tool_try_forecast_t *forecast = &try->forecast;
    const ucs_regcache_stats_t *stats   =
            tool_try_stats(forecast, UCS_REGCACHE_POLICY_LEAVE_PINNED);

    return (stats->uses > 0) ?
                   forecast->sum.total_ns * 1e-9 / forecast->replayed *
                           stats->cold / stats->uses : 0;
}

/* By the forecast */
static char *tool_try_no_gain(const tool_try_t *try, double leave)
{
    char bytes[TOOL_UNITS_MAX], interval[TOOL_UNITS_MAX];

    if (tool_try_stats(&try->forecast, 0)->uses == 0) {
        return tool_format("nothing to gain here: no buffer has %s or more, "
                           "from which on the helper looks after it",
                           tool_units_print_bytes(try->options.min_size, bytes));
    }
    tool_units_print_bytes(leave, bytes);
    if (leave < TOOL_TRY_OWN_BYTES) {
        return tool_format("nothing to gain here: a rank holds %s over time, "
                           "about what the helper itself takes", bytes);
    }
    if (tool_try_interval(try) >
        try->forecast.sum.elapsed_ns * 1e-9 / TOOL_TRY_RECURS) {
        return tool_format("nothing to gain here: few buffers are used again, at "
                           "the same address and length, and registering each "
                           "anew would cost more than the %s a rank that they "
                           "hold", bytes);
    }
    return tool_format("nothing to gain here: buffers are used every %s, and "
                       "registering them again would cost more than the %s a "
                       "rank that they hold",
                       tool_units_print_seconds(tool_try_interval(try),
                                                interval), bytes);
}

/* Where it is foretold how the run goes on, that counts. What it costs beyond its
 * forecast it costs then, too. */
static double tool_try_price_expected(const tool_try_t *try,
                                      const tool_try_row_t *row)
{
    if (try->longer.replayed == 0) {
        return row->price;
    }
    return tool_try_price(try, &try->longer, row->policy) +
           ucs_max(row->price - tool_try_price(try, &try->forecast, row->policy),
                   0);
}

/* By the runs, of which the second is of the default or was foretold to be best */
static char *tool_try_not_gained(const tool_try_t *try,
                                 const tool_try_row_t *leave)
{
    char held[TOOL_UNITS_MAX], holds[TOOL_UNITS_MAX];
    tool_try_row_t row;

    tool_try_measured(try, 1, &row);
    row.price = tool_try_price_expected(try, &row);
    return tool_format("little to gain here: %s holds %s of %s a rank over "
                       "time, but with the time that it loses that costs %.3g "
                       "%% of the run, where leaving all pinned costs %.3g %%",
                       ucs_regcache_policy_names[row.policy],
                       tool_units_print_bytes(row.average, holds),
                       tool_units_print_bytes(leave->average, held),
                       100 * row.price, 100 * leave->price);
}

/* Another one than leave pinned is worth it; than the default, if it gains clearly more */
static int tool_try_is_better(const tool_try_row_t *one, const tool_try_row_t *best,
                              const tool_try_row_t *leave)
{
    return (one->price < TOOL_TRY_GAIN * leave->price) &&
           (leave->price - best->price <
            TOOL_TRY_GAIN * (leave->price - one->price));
}

/* What it holds in a run that goes on, of what leave pinned holds then */
static char *tool_try_longer(const tool_try_t *try, ucs_regcache_policy_t policy)
{
    char held[TOOL_UNITS_MAX], holds[TOOL_UNITS_MAX], seconds[TOOL_UNITS_MAX];
    tool_try_row_t leave, row;

    if (try->longer.replayed == 0) {
        return tool_strdup("");
    }
    tool_try_foretold(try, &try->longer, UCS_REGCACHE_POLICY_LEAVE_PINNED, &leave);
    tool_try_foretold(try, &try->longer, policy, &row);
    return tool_format(" (in %s it would hold %s of %s)",
                       tool_units_print_seconds(
                               try->longer.sum.elapsed_ns * 1e-9, seconds),
                       tool_units_print_bytes(row.average, holds),
                       tool_units_print_bytes(leave.average, held));
}

/* @param row  Set to what is advised */
static char *tool_try_advise(const tool_try_t *try, tool_try_row_t *row)
{
    int is_forecast = tool_try_is_forecast(try);
    double noise    = ucs_max(tool_try_noise(try), TOOL_TRY_NOISE);
    char held[TOOL_UNITS_MAX], holds[TOOL_UNITS_MAX], how[64 + TOOL_UNITS_MAX];
    char limit[TOOL_UNITS_MAX];
    tool_try_row_t leave, one;
    char *longer, *advice;
    int is_default;
    size_t i;

    tool_try_leave(try, &leave);
    if (is_forecast) {
        leave.price = tool_try_price(try, &try->forecast, leave.policy);
    }
    leave.price = tool_try_price_expected(try, &leave);
    *row        = leave;
    for (i = 0; i < try->best_count; ++i) {
        if (is_forecast) {
            tool_try_foretold(try, &try->forecast, try->best[i], &one);
        } else {
            tool_try_measured(try, 1 + i, &one);
        }
        one.price = tool_try_price_expected(try, &one);
        if (tool_try_is_better(&one, row, &leave)) {
            *row = one;
        }
    }
    if (row->policy == UCS_REGCACHE_POLICY_LEAVE_PINNED) {
        return (try->best_count == 0) ? tool_try_no_gain(try, leave.average) :
                                        tool_try_not_gained(try, &leave);
    }
    strcpy(how, is_forecast ? ", by the forecast" : " at the same speed");
    if (try->is_cut) {
        snprintf(how, sizeof(how), ", by the forecast from its first %s",
                 tool_units_print_seconds(try->limit, limit));
    } else if (noise > TOOL_TRY_NOISE_MAX) {
        snprintf(how, sizeof(how), " (other programs run: the times say nothing)");
    } else if (row->ratio > 1 + noise) {
        snprintf(how, sizeof(how), " and runs %.1f %% longer",
                 100 * (row->ratio - 1));
    }
    is_default = row->policy == UCS_REGCACHE_POLICY_PREDICT;
    longer     = tool_try_longer(try, row->policy);
    advice     = tool_format(
            "this job holds %s a rank over time; %s holds %s%s%s: use %s%s%s",
            tool_units_print_bytes(leave.average, held),
            ucs_regcache_policy_names[row->policy],
            tool_units_print_bytes(row->average, holds), how, longer,
            is_default ? "the default, ucx-helper run" :
                         "ucx-helper run --policy ",
            is_default ? "" : ucs_regcache_policy_names[row->policy],
            (row->ratio > 1 + noise) ? ", where memory is short" : "");
    free(longer);
    return advice;
}

/* --- JSON ----------------------------------------------------------------- */

static json_t *tool_try_json_runs(const tool_try_t *try)
{
    json_t *runs = json_array();
    json_t *total;
    size_t i;

    for (i = 0; i < try->run_count; ++i) {
        total = json_copy(try->runs[i].merge.total);
        json_object_del(total, "ranks");
        json_object_set_new(total, "policy", json_string(
                ucs_regcache_policy_names[try->runs[i].policy]));
        json_array_append_new(runs, total);
    }
    return runs;
}

static void tool_try_print_json(const tool_try_t *try, const char *advice,
                                const tool_try_row_t *row)
{
    json_t *object = json_pack(
            "{s:i,s:s,s:s,s:o,s:b,s:b,s:I,s:I,s:o,s:o,s:o}", "version", 1,
            "advice", advice,
            "advised_policy", ucs_regcache_policy_names[row->policy],
            "noise", tool_try_is_forecast(try) ?
                             json_null() : json_real(tool_try_noise(try)),
            "cut", try->is_cut,
            "costs_measured", try->is_measured,
            "recordings", (json_int_t)try->recordings,
            "recordings_replayed", (json_int_t)try->forecast.replayed,
            "runs", tool_try_json_runs(try),
            "forecast", replay_json(&try->forecast.sum, 1, &try->options),
            "forecast_longer", (try->longer.replayed > 0) ?
                    replay_json(&try->longer.sum, 1, &try->options) :
                    json_null());

    json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    putchar('\n');
    json_decref(object);
}

int tool_try_print(const tool_try_t *try)
{
    tool_try_row_t row;
    char *advice = tool_try_advise(try, &row);

    if (try->is_json) {
        tool_try_print_json(try, advice, &row);
    } else {
        tool_try_print_table(try);
        printf("\n%s\n", advice);
    }
    free(advice);
    return tool_finish_output();
}
