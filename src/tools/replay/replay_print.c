/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "replay.h"

#include <tools/tool.h>
#include <tools/units.h>

#include <inttypes.h>
#include <jansson.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define REPLAY_SECONDS 1e-9

#define REPLAY_JSON_NS(_ns) json_real((_ns) * REPLAY_SECONDS)


static void replay_figures_sum(replay_figures_t *sum,
                               const replay_figures_t *figures)
{
    sum->uses              += figures->uses;
    sum->on_time           += figures->on_time;
    sum->late              += figures->late;
    sum->missed            += figures->missed;
    sum->heard             += figures->heard;
    sum->announced         += figures->announced;
    sum->announced_on_time += figures->announced_on_time;
    sum->announced_late    += figures->announced_late;
    sum->announced_first   += figures->announced_first;
    sum->idle_steps        += figures->idle_steps;
    sum->cold              += figures->cold;
    sum->wasted            += figures->wasted;
    sum->evicted           += figures->evicted;
    sum->invalidated       += figures->invalidated;
    sum->repinned          += figures->repinned;
    sum->over_ceiling      += figures->over_ceiling;
    sum->pinned_peak_bytes += figures->pinned_peak_bytes;
    sum->pinned_byte_ns    += figures->pinned_byte_ns;
    ucs_regcache_why_add(&sum->why, &figures->why);
}

static void replay_row_sum(replay_row_t *sum, const replay_row_t *row)
{
    sum->name = row->name;
    sum->kind = row->kind;
    replay_figures_sum(&sum->stats, &row->stats);
    replay_figures_sum(&sum->lru, &row->lru);
    replay_figures_sum(&sum->opt, &row->opt);
    replay_figures_sum(&sum->equal, &row->equal);
    sum->speed.events  += row->speed.events;
    sum->speed.seconds += row->speed.seconds;
    sum->lost_ns       += row->lost_ns;
    sum->first_ns      += row->first_ns;
    sum->once.lost_ns           += row->once.lost_ns;
    sum->once.first_ns          += row->once.first_ns;
    sum->once.pinned_byte_ns    += row->once.pinned_byte_ns;
    sum->once.pinned_peak_bytes += row->once.pinned_peak_bytes;
}

void replay_outcome_sum(const replay_outcome_t *outcomes, size_t count,
                        replay_outcome_t *sum)
{
    size_t i, j;

    memset(sum, 0, sizeof(*sum));
    sum->name      = "all";
    sum->row_count = outcomes[0].row_count;
    for (i = 0; i < count; ++i) {
        if (outcomes[i].elapsed_ns > sum->elapsed_ns) {
            sum->elapsed_ns = outcomes[i].elapsed_ns;
        }
        if (outcomes[i].then_ns > sum->then_ns) {
            sum->then_ns = outcomes[i].then_ns;
        }
        sum->total_ns      += outcomes[i].total_ns;
        sum->total_then_ns += outcomes[i].total_then_ns;
        sum->ranges    += outcomes[i].ranges;
        sum->small     += outcomes[i].small;
        sum->first_receives += outcomes[i].first_receives;
        sum->unmatched += outcomes[i].unmatched;
        sum->open      += outcomes[i].open;
        sum->lost      += outcomes[i].lost;
        sum->lead_byte_ns += outcomes[i].lead_byte_ns;
        sum->ceiling    = (outcomes[i].ceiling == UINT64_MAX) ?
                                  UINT64_MAX :
                                  sum->ceiling + outcomes[i].ceiling;
        for (j = 0; j < sum->row_count; ++j) {
            replay_row_sum(&sum->rows[j], &outcomes[i].rows[j]);
        }
    }
}

static const replay_row_t *replay_row_of(const replay_outcome_t *outcome,
                                         replay_row_kind_t kind)
{
    size_t i;

    for (i = 0; outcome->rows[i].kind != kind; ++i) {
    }
    return &outcome->rows[i];
}

/* What a predictor may spend: twice the limit, and one lead */
static double replay_bound(const replay_outcome_t *outcome)
{
    return 2 * replay_row_of(outcome, REPLAY_ROW_LIMIT)->stats.pinned_byte_ns +
           outcome->lead_byte_ns;
}

/* As ucx-helper report merges ranks: averages divide by the longest time */
double replay_price(const replay_outcome_t *outcome, const replay_row_t *row,
                    const replay_options_t *options)
{
    const replay_row_t *leave = replay_row_of(outcome, REPLAY_ROW_LEAVE);
    double most  = (double)leave->stats.pinned_peak_bytes * outcome->elapsed_ns;
    double price = 0;

    if (outcome->total_ns > 0) {
        price += row->lost_ns / outcome->total_ns;
    }
    if (most > 0) {
        price += options->params.max_slowdown * row->stats.pinned_byte_ns /
                 most;
    }
    return price;
}

/* The same from when all that recurs was there once, without first uses */
static double replay_price_then(const replay_outcome_t *outcome,
                                const replay_row_t *row,
                                const replay_options_t *options)
{
    const replay_row_t *leave = replay_row_of(outcome, REPLAY_ROW_LEAVE);
    double most  = (double)leave->stats.pinned_peak_bytes * outcome->then_ns;
    double lost  = (row->lost_ns - row->first_ns) -
                   (row->once.lost_ns - row->once.first_ns);

    return (most > 0) ? lost / outcome->total_then_ns +
                        options->params.max_slowdown *
                        (row->stats.pinned_byte_ns - row->once.pinned_byte_ns) /
                        most : 0;
}

static int replay_is_repeated(const replay_options_t *options)
{
    return (options->repeat.times > 0) || (options->repeat.ns > 0);
}

static uint64_t replay_warm(const ucs_regcache_stats_t *stats)
{
    return stats->uses - stats->cold;
}

/*
 * Table
 */

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

static const char *replay_print_times(double value, double unit,
                                      char buf[TOOL_UNITS_MAX])
{
    if (unit > 0) {
        snprintf(buf, TOOL_UNITS_MAX, "%.2f", value / unit);
    } else {
        snprintf(buf, TOOL_UNITS_MAX, "-");
    }
    return buf;
}

/* Average over the trace of an integral */
static const char *replay_print_average(const replay_outcome_t *outcome,
                                        double byte_ns,
                                        char buf[TOOL_UNITS_MAX])
{
    return tool_units_print_bytes((outcome->elapsed_ns > 0) ?
                                  byte_ns / outcome->elapsed_ns : 0, buf);
}

static void replay_print_equal(const replay_row_t *row, FILE *stream)
{
    char buf[TOOL_UNITS_MAX];

    fprintf(stream, " %12s",
            tool_units_print_share(row->equal.on_time,
                                   row->equal.uses - row->equal.cold, buf));
}

/* What caches of the same byte-seconds did, or what was lost first */
static void replay_print_beside(const replay_outcome_t *outcome,
                                const replay_row_t *row,
                                const replay_options_t *options, FILE *stream)
{
    uint64_t warm = replay_warm(&row->stats);
    char buf[2][TOOL_UNITS_MAX];

    if (!replay_is_repeated(options)) {
        fprintf(stream, " %8s %8s",
                tool_units_print_share(row->lru.on_time, warm, buf[0]),
                tool_units_print_share(row->opt.on_time, warm, buf[1]));
    } else if ((row->kind != REPLAY_ROW_POLICY) || (outcome->then_ns == 0)) {
        fprintf(stream, " %8s %8s", "-", "-");
    } else {
        fprintf(stream, " %8.3f %8s",
                (row->once.lost_ns - row->once.first_ns) * 1e-6,
                tool_units_print_fine_share(replay_price_then(outcome, row,
                                                              options),
                                            1, buf[0]));
    }
}

static void replay_print_row(const replay_outcome_t *outcome,
                             const replay_row_t *row,
                             const replay_options_t *options, FILE *stream)
{
    const replay_row_t *limit = replay_row_of(outcome, REPLAY_ROW_LIMIT);
    const replay_row_t *leave = replay_row_of(outcome, REPLAY_ROW_LEAVE);
    const ucs_regcache_stats_t *stats = &row->stats;
    uint64_t warm                     = replay_warm(stats);
    double bound                      = replay_bound(outcome);
    char buf[8][TOOL_UNITS_MAX];

    fprintf(stream,
            "%-14s %8s %6" PRIu64 " %6" PRIu64 " %6" PRIu64 " %6" PRIu64
            " %10s %8s %10s %8s %8s %7s",
            row->name, tool_units_print_share(stats->on_time, warm, buf[0]),
            stats->late, stats->missed, stats->cold, stats->wasted,
            tool_units_print_bytes(stats->pinned_peak_bytes, buf[1]),
            tool_units_print_share(stats->pinned_peak_bytes,
                                   leave->stats.pinned_peak_bytes, buf[2]),
            replay_print_average(outcome, stats->pinned_byte_ns, buf[3]),
            replay_print_times(stats->pinned_byte_ns,
                               limit->stats.pinned_byte_ns, buf[6]),
            replay_print_times(stats->pinned_byte_ns, bound, buf[7]),
            (stats->pinned_byte_ns <= bound) ? "met" : "not met");
    replay_print_beside(outcome, row, options, stream);
    fprintf(stream, " %9s %9s",
            tool_units_print_fine_share(row->lost_ns, outcome->total_ns,
                                        buf[4]),
            tool_units_print_fine_share(replay_price(outcome, row, options), 1,
                                        buf[5]));
    if (options->is_equal) {
        replay_print_equal(row, stream);
    }
    fputc('\n', stream);
}

/* In the lines of the report, so that they can be compared */
static void replay_print_why(const replay_outcome_t *outcome,
                             const replay_row_t *row, FILE *stream)
{
    const replay_row_t *leave = replay_row_of(outcome, REPLAY_ROW_LEAVE);

    fprintf(stream, "%s:\n", row->name);
    ucs_regcache_why_print(&row->stats.why, leave->stats.pinned_byte_ns,
                           outcome->total_ns, "", stream);
}

static void replay_print_table(const replay_outcome_t *outcome,
                               const replay_options_t *options, FILE *stream)
{
    const replay_row_t *limit = replay_row_of(outcome, REPLAY_ROW_LIMIT);
    char buf[4][TOOL_UNITS_MAX];
    size_t i;

    fprintf(stream, "%s: %" PRIu64 " uses of %" PRIu64 " ranges in %s",
            outcome->name, limit->stats.uses, outcome->ranges,
            tool_units_print_seconds(outcome->elapsed_ns * REPLAY_SECONDS,
                                     buf[0]));
    if (outcome->ceiling != UINT64_MAX) {
        fprintf(stream, ", ceiling %s",
                tool_units_print_bytes(outcome->ceiling, buf[1]));
    }
    fprintf(stream, ", bound %s = 2 x %s + %s\n",
            replay_print_average(outcome, replay_bound(outcome), buf[1]),
            replay_print_average(outcome, limit->stats.pinned_byte_ns, buf[2]),
            replay_print_average(outcome, outcome->lead_byte_ns, buf[3]));
    replay_print_notes(outcome, stream);
    fprintf(stream, "%-14s %8s %6s %6s %6s %6s %10s %8s %10s %8s %8s %7s %8s "
            "%8s %9s %9s%s\n",
            "policy", "on time", "late", "missed", "cold", "wasted", "peak",
            "of leave", "average", "x limit", "x bound", "bound",
            replay_is_repeated(options) ? "once ms" : "lru same",
            replay_is_repeated(options) ? "J then %" : "opt same",
            "lost %", "J %",
            options->is_equal ? " predict same" : "");
    for (i = 0; i < outcome->row_count; ++i) {
        replay_print_row(outcome, &outcome->rows[i], options, stream);
    }
    for (i = 0; i < outcome->row_count; ++i) {
        if (outcome->rows[i].kind == REPLAY_ROW_POLICY) {
            replay_print_why(outcome, &outcome->rows[i], stream);
        }
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
            "on time: of warm uses. In brackets: computed from the trace "
            "alone. lru same, opt same:\non time of a cache, LRU or Belady's, "
            "of the same byte-seconds. lost %%: of the run, the main\nthread's "
            "time in registrations and waiting; J %%: that and memory, of "
            "which all that leave\npinned holds at most is worth %s of the "
            "run. bound: on average, twice the limit and\nwhat it costs to "
            "have each warm use's pages one lead earlier, which is a\n"
            "registration and a lateness that 98 of 100 do not pass.\n%s\n",
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

/*
 * JSON
 */

static json_t *replay_json_cost(const replay_cost_t *cost)
{
    return json_pack("{s:f,s:f}", "base_seconds",
                     cost->base_ns * REPLAY_SECONDS, "per_page_seconds",
                     cost->page_ns * REPLAY_SECONDS);
}

static json_t *replay_json_whole(uint64_t value)
{
    return (value == UINT64_MAX) ? json_null() : json_integer(value);
}

static void replay_json_same(json_t *object, const replay_row_t *row)
{
    const struct {
        const char *key;
        json_t     *value;
    } fields[] = {
        {"lru_same_on_time", json_integer(row->lru.on_time)},
        {"lru_same_byte_seconds", REPLAY_JSON_NS(row->lru.pinned_byte_ns)},
        {"opt_same_on_time", json_integer(row->opt.on_time)},
        {"opt_same_byte_seconds", REPLAY_JSON_NS(row->opt.pinned_byte_ns)}
    };
    size_t i;

    for (i = 0; i < sizeof(fields) / sizeof(fields[0]); ++i) {
        json_object_set_new(object, fields[i].key, fields[i].value);
    }
}

/* Until a steady part is repeated, and where that begins */
static void replay_json_once(json_t *object, const replay_outcome_t *outcome,
                             const replay_row_t *row)
{
    if (outcome->then_ns > 0) {
        json_object_set_new(object, "once", json_pack(
                "{s:f,s:f,s:f,s:f,s:I}",
                "elapsed_seconds", (outcome->elapsed_ns - outcome->then_ns) *
                                           REPLAY_SECONDS,
                "lost_seconds", row->once.lost_ns * REPLAY_SECONDS,
                "first_seconds", row->once.first_ns * REPLAY_SECONDS,
                "pinned_byte_seconds", row->once.pinned_byte_ns *
                                               REPLAY_SECONDS,
                "pinned_peak_bytes",
                (json_int_t)row->once.pinned_peak_bytes));
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

    /* in_use_byte_seconds is the limit of all rows already */
    for (i = UCS_REGCACHE_HELD_IN_USE + 1; i < UCS_REGCACHE_HELD_LAST; ++i) {
        json_object_set_new(object, ucs_regcache_held_names[i].key,
                            REPLAY_JSON_NS(why->held_byte_ns[i]));
    }
    for (i = 0; i < UCS_REGCACHE_LOST_LAST; ++i) {
        json_object_set_new(object, ucs_regcache_lost_names[i].key,
                            REPLAY_JSON_NS(why->lost_ns[i]));
    }
    json_object_set_new(object, "registered_ahead", json_integer(why->ahead));
    json_object_set_new(object, "ahead_seconds", REPLAY_JSON_NS(why->ahead_ns));
}

/* What is not of every row */
static void replay_json_asked(json_t *object, const replay_outcome_t *outcome,
                              const replay_row_t *row)
{
    if (row->equal.uses > 0) {
        json_object_set_new(object, "predict_same_on_time",
                            json_integer(row->equal.on_time));
        json_object_set_new(object, "predict_same_byte_seconds",
                            json_real(row->equal.pinned_byte_ns *
                                      REPLAY_SECONDS));
    }
    if (row->kind == REPLAY_ROW_POLICY) {
        replay_json_once(object, outcome, row);
        replay_json_why(object, &row->stats.why);
    }
    if (row->speed.seconds > 0) {
        json_object_set_new(object, "events_per_second",
                            json_real(row->speed.events / row->speed.seconds));
    }
    if ((row->kind == REPLAY_ROW_POLICY) ||
        (row->kind == REPLAY_ROW_KEEP_OR_DROP)) {
        json_object_set_new(object, "first_seconds",
                            REPLAY_JSON_NS(row->first_ns));
    }
}

/* Counts that are printed by the name that they have */
static void replay_json_counts(json_t *object, const replay_figures_t *stats)
{
#define REPLAY_COUNT(_name) {#_name, offsetof(replay_figures_t, _name)}
    static const struct {
        const char *key;
        size_t     offset;
    } counts[] = {
        REPLAY_COUNT(uses),
        REPLAY_COUNT(on_time),
        REPLAY_COUNT(late),
        REPLAY_COUNT(missed),
        REPLAY_COUNT(cold),
        REPLAY_COUNT(wasted),
        REPLAY_COUNT(evicted),
        REPLAY_COUNT(invalidated),
        REPLAY_COUNT(repinned),
        REPLAY_COUNT(heard),
        REPLAY_COUNT(announced),
        REPLAY_COUNT(announced_on_time),
        REPLAY_COUNT(announced_late),
        REPLAY_COUNT(announced_first),
        REPLAY_COUNT(idle_steps),
        REPLAY_COUNT(over_ceiling)
    };
#undef REPLAY_COUNT
    const uint64_t *count;
    size_t i;

    for (i = 0; i < sizeof(counts) / sizeof(counts[0]); ++i) {
        count = (const uint64_t*)((const char*)stats + counts[i].offset);
        json_object_set_new(object, counts[i].key, json_integer(*count));
    }
}

/* The report's keys, see docs/report.md, and the replay's own */
static void replay_json_figures(json_t *object,
                                const replay_outcome_t *outcome,
                                const replay_row_t *row,
                                const replay_options_t *options)
{
    const replay_figures_t *stats = &row->stats;
    const replay_figures_t *limit =
            &replay_row_of(outcome, REPLAY_ROW_LIMIT)->stats;
    const replay_figures_t *leave =
            &replay_row_of(outcome, REPLAY_ROW_LEAVE)->stats;
    double bound                  = replay_bound(outcome);
    const struct {
        const char *key;
        json_t     *value;
    } fields[] = {
        {"elapsed_seconds", REPLAY_JSON_NS(outcome->elapsed_ns)},
        {"pinned_peak_bytes", json_integer(stats->pinned_peak_bytes)},
        {"pinned_byte_seconds", REPLAY_JSON_NS(stats->pinned_byte_ns)},
        {"leave_pinned_peak_bytes", json_integer(leave->pinned_peak_bytes)},
        {"leave_pinned_byte_seconds", REPLAY_JSON_NS(leave->pinned_byte_ns)},
        {"in_use_byte_seconds", REPLAY_JSON_NS(limit->pinned_byte_ns)},
        {"in_use_peak_bytes", json_integer(limit->pinned_peak_bytes)},
        {"lead_byte_seconds", REPLAY_JSON_NS(outcome->lead_byte_ns)},
        {"bound_byte_seconds", REPLAY_JSON_NS(bound)},
        {"bound_met", json_boolean(stats->pinned_byte_ns <= bound)},
        {"first_receives", json_integer(outcome->first_receives)},
        {"lost_seconds", REPLAY_JSON_NS(row->lost_ns)},
        {"max_slowdown", json_real(options->params.max_slowdown)},
        {"price_j", json_real(replay_price(outcome, row, options))},
        {"max_pinned", replay_json_whole(outcome->ceiling)},
        {"ranges", json_integer(outcome->ranges)},
        {"shorter", json_integer(outcome->small)},
        {"lost_events", json_integer(outcome->lost)}
    };
    size_t i;

    for (i = 0; i < sizeof(fields) / sizeof(fields[0]); ++i) {
        json_object_set_new(object, fields[i].key, fields[i].value);
    }
    if (!replay_is_repeated(options)) {
        replay_json_same(object, row);
    }
    replay_json_counts(object, stats);
    replay_json_asked(object, outcome, row);
}

static json_t *replay_json_row(const replay_outcome_t *outcomes, size_t count,
                               const replay_outcome_t *sum, size_t index,
                               const replay_options_t *options)
{
    const replay_params_t *params = &options->params;
    json_t *object                = json_object();
    json_t *traces                = json_array();
    json_t *trace;
    size_t i;

    json_object_set_new(object, "policy", json_string(sum->rows[index].name));
    json_object_set_new(object, "yardstick",
                        json_boolean(sum->rows[index].kind !=
                                     REPLAY_ROW_POLICY));
    replay_json_figures(object, sum, &sum->rows[index], options);
    json_object_set_new(object, "modelled_cost",
                        replay_json_cost(&params->register_cost));
    json_object_set_new(object, "modelled_deregister_cost",
                        replay_json_cost(&params->deregister_cost));
    json_object_set_new(object, "modelled_lateness_seconds",
                        json_real(params->lateness_ns * REPLAY_SECONDS));
    json_object_set_new(object, "seed", json_integer(params->seed));
    for (i = 0; i < count; ++i) {
        trace = json_object();
        json_object_set_new(trace, "trace", json_string(outcomes[i].name));
        replay_json_figures(trace, &outcomes[i], &outcomes[i].rows[index],
                            options);
        json_array_append_new(traces, trace);
    }
    json_object_set_new(object, "traces", traces);
    return object;
}

int replay_print_json(const replay_outcome_t *outcomes, size_t count,
                      const replay_options_t *options, FILE *stream)
{
    int ret = 0;
    replay_outcome_t sum;
    json_t *object;
    size_t i;

    replay_outcome_sum(outcomes, count, &sum);
    for (i = 0; (i < sum.row_count) && (ret == 0); ++i) {
        object = replay_json_row(outcomes, count, &sum, i, options);
        ret    = json_dumpf(object, stream, JSON_REAL_PRECISION(15));
        fputc('\n', stream);
        json_decref(object);
    }
    return ret;
}
