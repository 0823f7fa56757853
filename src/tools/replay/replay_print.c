/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "replay.h"

#include <tools/report/report.h>
#include <ucs/sys/math.h>

#include <inttypes.h>
#include <string.h>

#define REPLAY_SECONDS 1e-9

void replay_outcome_sum(const replay_outcome_t *outcomes, size_t count,
                        replay_outcome_t *sum)
{
    const replay_outcome_t *one;
    size_t i;

    memset(sum, 0, sizeof(*sum));
    sum->name      = "all";
    sum->row_count = outcomes[0].row_count;
    for (one = outcomes; one < outcomes + count; ++one) {
        sum->elapsed_ns     = ucs_max(sum->elapsed_ns, one->elapsed_ns);
        sum->then_ns        = ucs_max(sum->then_ns, one->then_ns);
        sum->total_ns      += one->total_ns;
        sum->total_then_ns += one->total_then_ns;
        sum->small         += one->small;
        sum->unmatched     += one->unmatched;
        sum->open          += one->open;
        sum->lost          += one->lost;
        sum->ceiling        = (one->ceiling == UINT64_MAX) ?
                                      UINT64_MAX :
                                      sum->ceiling + one->ceiling;
        for (i = 0; i < sum->row_count; ++i) {
            sum->rows[i].name = one->rows[i].name;
            ucs_regcache_stats_add(&sum->rows[i].once, &one->rows[i].once);
            ucs_regcache_stats_add(&sum->rows[i].all, &one->rows[i].all);
        }
    }
}

/* All that leave pinned holds at most, for @a ns */
static double replay_most(const ucs_regcache_stats_t *stats,
                          const replay_options_t *options, uint64_t ns)
{
    return replay_held(stats->leave_pinned_peak_bytes,
                       stats->leave_pinned_regions_peak,
                       &options->params) * ns;
}

double replay_price(const replay_outcome_t *outcome,
                    const ucs_regcache_stats_t *stats,
                    const replay_options_t *options)
{
    return ucs_regcache_j(stats->lost_ns, outcome->total_ns,
                          replay_held(stats->pinned_byte_ns, stats->region_ns,
                                      &options->params),
                          replay_most(stats, options, outcome->elapsed_ns),
                          options->params.max_slowdown);
}

/* The same from when all that recurs was there once, without first uses */
static double replay_price_then(const replay_outcome_t *outcome,
                                const replay_row_t *row,
                                const replay_options_t *options)
{
    double held = replay_held(row->all.pinned_byte_ns -
                                      row->once.pinned_byte_ns,
                              row->all.region_ns - row->once.region_ns,
                              &options->params);

    return ucs_regcache_j(replay_lost(&row->all) - replay_lost(&row->once),
                          outcome->total_then_ns, held,
                          replay_most(&row->all, options, outcome->then_ns),
                          options->params.max_slowdown);
}

static int replay_is_repeated(const replay_options_t *options)
{
    return (options->repeat.times > 0) || (options->repeat.ns > 0);
}

/* --- Table ---------------------------------------------------------------- */

static void replay_print_notes(const replay_outcome_t *outcome, FILE *stream)
{
    if (outcome->repeated.times > 0) {
        fprintf(stream, "note: uses %zu to %zu are played %" PRIu64 " times; "
                "the %zu uses before either end are the same\n",
                outcome->repeated.from + 1, outcome->repeated.until,
                outcome->repeated.times, outcome->repeated.matched);
    }
    if (outcome->small > 0) {
        fprintf(stream, "note: %" PRIu64 " shorter uses left out: the helper "
                "registers them once and keeps them\n", outcome->small);
    }
    if (outcome->lost > 0) {
        fprintf(stream, "note: the recorder lost %" PRIu64 " events\n",
                outcome->lost);
    }
    if (outcome->unmatched > 0) {
        fprintf(stream, "note: %" PRIu64 " releases have no use, left out\n",
                outcome->unmatched);
    }
    if (outcome->open > 0) {
        fprintf(stream, "note: %" PRIu64 " uses were never given back\n",
                outcome->open);
    }
}

/* Average over the trace of an integral */
static const char *replay_print_average(const replay_outcome_t *outcome,
                                        double byte_ns,
                                        char buf[TOOL_UNITS_MAX])
{
    return tool_units_print_bytes((outcome->elapsed_ns > 0) ?
                                  byte_ns / outcome->elapsed_ns : 0, buf);
}

/* What was lost until all that recurs was there once, and J from there on */
static void replay_print_once(const replay_outcome_t *outcome,
                              const replay_row_t *row,
                              const replay_options_t *options, FILE *stream)
{
    char buf[TOOL_UNITS_MAX];

    if (outcome->then_ns == 0) {
        fprintf(stream, " %8s %8s", "-", "-");
    } else {
        fprintf(stream, " %8.3f %8s", replay_lost(&row->once) * 1e-6,
                tool_units_print_fine_share(replay_price_then(outcome, row,
                                                              options),
                                            1, buf));
    }
}

static void replay_print_row(const replay_outcome_t *outcome,
                             const replay_row_t *row,
                             const replay_options_t *options, FILE *stream)
{
    const ucs_regcache_stats_t *stats = &row->all;
    char buf[7][TOOL_UNITS_MAX];

    fprintf(stream,
            "%-12s %8s %6" PRIu64 " %6" PRIu64 " %6" PRIu64 " %6" PRIu64
            " %10s %8s %10s %8s %9s %9s",
            row->name,
            tool_units_print_share(stats->on_time, stats->uses - stats->cold,
                                   buf[0]),
            stats->late, stats->missed, stats->cold, stats->wasted,
            tool_units_print_bytes(stats->pinned_peak_bytes, buf[1]),
            tool_units_print_share(stats->pinned_peak_bytes,
                                   stats->leave_pinned_peak_bytes, buf[2]),
            replay_print_average(outcome, stats->pinned_byte_ns, buf[3]),
            tool_units_print_share(stats->pinned_byte_ns,
                                   stats->leave_pinned_byte_ns, buf[4]),
            tool_units_print_fine_share(stats->lost_ns, outcome->total_ns,
                                        buf[5]),
            tool_units_print_fine_share(replay_price(outcome, stats, options),
                                        1, buf[6]));
    if (replay_is_repeated(options)) {
        replay_print_once(outcome, row, options, stream);
    }
    fputc('\n', stream);
}

static void replay_print_table(const replay_outcome_t *outcome,
                               const replay_options_t *options, FILE *stream)
{
    const ucs_regcache_stats_t *any = &outcome->rows[0].all;
    char buf[4][TOOL_UNITS_MAX];
    const replay_row_t *row;

    fprintf(stream, "%s: %" PRIu64 " uses in %s; left pinned: peak %s, "
            "average %s",
            outcome->name, any->uses,
            tool_units_print_seconds(outcome->elapsed_ns * REPLAY_SECONDS,
                                     buf[0]),
            tool_units_print_bytes(any->leave_pinned_peak_bytes, buf[1]),
            replay_print_average(outcome, any->leave_pinned_byte_ns, buf[2]));
    if (outcome->ceiling != UINT64_MAX) {
        fprintf(stream, "; ceiling %s",
                tool_units_print_bytes(outcome->ceiling, buf[3]));
    }
    fputc('\n', stream);
    replay_print_notes(outcome, stream);
    fprintf(stream,
            "%-12s %8s %6s %6s %6s %6s %10s %8s %10s %8s %9s %9s%s\n",
            "policy", "on time", "late", "missed", "cold", "wasted", "peak",
            "of leave", "average", "of leave", "lost %", "J %",
            replay_is_repeated(options) ? "  once ms J then %" : "");
    for (row = outcome->rows; row < outcome->rows + outcome->row_count; ++row) {
        replay_print_row(outcome, row, options, stream);
    }
    /* In the lines of the report, so that they can be compared */
    for (row = outcome->rows; row < outcome->rows + outcome->row_count; ++row) {
        fprintf(stream, "%s:\n", row->name);
        ucs_regcache_why_print(&row->all.why, row->all.leave_pinned_byte_ns,
                               outcome->total_ns, "", stream);
    }
    fputc('\n', stream);
}

static void replay_print_head(const replay_options_t *options, FILE *stream)
{
    const replay_params_t *params = &options->params;
    char buf[6][TOOL_UNITS_MAX];

    fprintf(stream,
            "MODELLED: a registration takes %s + %s a page, a deregistration "
            "%s + %s a page;\nthe helper wakes up late by %s (median), seed "
            "%" PRIu64 ". Uses begin when they were recorded.\n"
            "on time: of warm uses. of leave: of what is held left pinned. "
            "lost %%: of the run, the main\nthread's time in registrations and "
            "waiting; J %%: that and memory, of which all left pinned\nat most "
            "is worth %s of the run.\n%s\n",
            tool_units_print_seconds(params->register_cost.base_ns *
                                     REPLAY_SECONDS, buf[0]),
            tool_units_print_seconds(params->register_cost.page_ns *
                                     REPLAY_SECONDS, buf[1]),
            tool_units_print_seconds(params->deregister_cost.base_ns *
                                     REPLAY_SECONDS, buf[2]),
            tool_units_print_seconds(params->deregister_cost.page_ns *
                                     REPLAY_SECONDS, buf[3]),
            tool_units_print_seconds(params->lateness_ns * REPLAY_SECONDS,
                                     buf[4]),
            params->seed,
            tool_units_print_fine_share(params->max_slowdown, 1, buf[5]),
            replay_is_repeated(options) ?
            "once: lost until the steady part begins for the second time; J "
            "then: from there on;\nboth without first uses.\n" : "");
}

void replay_print_tables(const replay_outcome_t *outcomes, size_t count,
                         const replay_options_t *options, FILE *stream)
{
    replay_outcome_t sum;
    size_t i;

    replay_print_head(options, stream);
    for (i = 0; i < count; ++i) {
        replay_print_table(&outcomes[i], options, stream);
    }
    if (count > 1) {
        replay_outcome_sum(outcomes, count, &sum);
        replay_print_table(&sum, options, stream);
    }
}

/* --- JSON ----------------------------------------------------------------- */

static json_t *replay_json_cost(const replay_cost_t *cost)
{
    return json_pack("{s:f,s:f}", "base_seconds",
                     cost->base_ns * REPLAY_SECONDS, "per_page_seconds",
                     cost->page_ns * REPLAY_SECONDS);
}

/* Until a steady part is repeated, and where that begins */
static void replay_json_once(json_t *object, const replay_outcome_t *outcome,
                             const replay_row_t *row)
{
    if (outcome->then_ns > 0) {
        json_object_set_new(object, "once", json_pack(
                "{s:f,s:f,s:f,s:f}",
                "elapsed_seconds", (outcome->elapsed_ns - outcome->then_ns) *
                                           REPLAY_SECONDS,
                "lost_seconds", row->once.lost_ns * REPLAY_SECONDS,
                "lost_first_seconds",
                row->once.why.lost_ns[UCS_REGCACHE_LOST_FIRST] * REPLAY_SECONDS,
                "pinned_byte_seconds", row->once.pinned_byte_ns *
                                               REPLAY_SECONDS));
    }
    if (outcome->repeated.times > 0) {
        json_object_set_new(object, "repeated", json_pack(
                "{s:I,s:I,s:I,s:I}",
                "times", (json_int_t)outcome->repeated.times,
                "first_use", (json_int_t)outcome->repeated.from,
                "uses", (json_int_t)(outcome->repeated.until -
                                     outcome->repeated.from),
                "matched_uses", (json_int_t)outcome->repeated.matched));
    }
}

static void replay_json_why(json_t *object, const ucs_regcache_why_t *why)
{
    int i;

    for (i = 0; i < UCS_REGCACHE_HELD_LAST; ++i) {
        json_object_set_new(object, ucs_regcache_held_names[i].key,
                            json_real(why->held_byte_ns[i] * REPLAY_SECONDS));
    }
    for (i = 0; i < UCS_REGCACHE_LOST_LAST; ++i) {
        json_object_set_new(object, ucs_regcache_lost_names[i].key,
                            json_real(why->lost_ns[i] * REPLAY_SECONDS));
    }
    json_object_set_new(object, "registered_ahead", json_integer(why->ahead));
    json_object_set_new(object, "ahead_seconds",
                        json_real(why->ahead_ns * REPLAY_SECONDS));
}

/* The report's keys, see docs/report.md, and the replay's own */
static json_t *replay_json_figures(const replay_outcome_t *outcome,
                                   size_t index,
                                   const replay_options_t *options)
{
    const replay_row_t *row           = &outcome->rows[index];
    const ucs_regcache_stats_t *stats = &row->all;
    json_t *object                    = json_object();
    json_t *computed;

#define UCS_FIGURE(_type, _name, _key, _unit) \
    json_object_set_new(object, _key, ((_unit) == 1) ? \
                        json_integer(stats->_name) : \
                        json_real(stats->_name * (_unit)));
#include <ucs/regcache/stats_table.h>
#undef UCS_FIGURE
    computed = json_pack(
            "{s:f,s:I,s:I,s:I,s:f,s:f,s:o,s:I,s:I}",
            "elapsed_seconds", outcome->elapsed_ns * REPLAY_SECONDS,
            "over_ceiling", (json_int_t)stats->over_ceiling,
            "announced_first", (json_int_t)stats->announced_first,
            "region_bytes", (json_int_t)options->params.region_bytes,
            "max_slowdown", options->params.max_slowdown,
            "price_j", replay_price(outcome, stats, options),
            "max_pinned", (outcome->ceiling == UINT64_MAX) ?
                                  json_null() : json_integer(outcome->ceiling),
            "shorter", (json_int_t)outcome->small,
            "lost_events", (json_int_t)outcome->lost);
    json_object_update(object, computed);
    json_decref(computed);
    replay_json_once(object, outcome, row);
    replay_json_why(object, &stats->why);
    return object;
}

static json_t *replay_json_row(const replay_outcome_t *outcomes, size_t count,
                               const replay_outcome_t *sum, size_t index,
                               const replay_options_t *options)
{
    const replay_params_t *params = &options->params;
    json_t *object                = json_pack(
            "{s:s,s:o,s:o,s:f,s:I}",
            "policy", sum->rows[index].name,
            "modelled_cost", replay_json_cost(&params->register_cost),
            "modelled_deregister_cost",
            replay_json_cost(&params->deregister_cost),
            "modelled_lateness_seconds", params->lateness_ns * REPLAY_SECONDS,
            "seed", (json_int_t)params->seed);
    json_t *figures = replay_json_figures(sum, index, options);
    json_t *traces  = json_array();
    json_t *trace;
    size_t i;

    json_object_update(object, figures);
    json_decref(figures);
    for (i = 0; i < count; ++i) {
        trace = replay_json_figures(&outcomes[i], index, options);
        json_object_set_new(trace, "trace",
                            tool_report_string(outcomes[i].name));
        json_array_append_new(traces, trace);
    }
    json_object_set_new(object, "traces", traces);
    return object;
}

json_t *replay_json(const replay_outcome_t *outcomes, size_t count,
                    const replay_options_t *options)
{
    json_t *rows = json_array();
    replay_outcome_t sum;
    size_t i;

    replay_outcome_sum(outcomes, count, &sum);
    for (i = 0; i < sum.row_count; ++i) {
        json_array_append_new(rows, replay_json_row(outcomes, count, &sum, i,
                                                    options));
    }
    return rows;
}
