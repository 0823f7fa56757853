/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "report.h"

#include <ucs/predict/saturate.h>
#include <ucs/regcache/region/why.h>
#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

/* Of byte-seconds over the time of the report */
static double tool_table_average(const json_t *report, const char *key)
{
    double elapsed = tool_report_number(report, "elapsed_seconds");

    return (elapsed > 0) ? tool_report_number(report, key) / elapsed : 0;
}

static const char *tool_table_bytes(const json_t *report, const char *key,
                                    char *buf)
{
    return tool_units_print_bytes(tool_report_number(report, key), buf);
}

static const char *tool_table_share(const json_t *report, const char *key,
                                    double whole, char *buf)
{
    return tool_units_print_share(tool_report_number(report, key), whole, buf);
}

/* Uses of a range that was used before: only those could be foreseen */
static double tool_table_warm(const json_t *report)
{
    return tool_report_number(report, "uses") -
           tool_report_number(report, "cold");
}

/* --- Tables of ranks ------------------------------------------------------ */

typedef enum tool_column_kind {
    TOOL_COLUMN_WHERE,    /* host and process */
    TOOL_COLUMN_COUNT,
    TOOL_COLUMN_BYTES,
    TOOL_COLUMN_AVERAGE,  /* bytes over the time of the report */
    TOOL_COLUMN_CHANGE,   /* of the key before it to this one's */
    TOOL_COLUMN_OF_WARM,  /* a share of warm uses */
    TOOL_COLUMN_OF_CPU,   /* of the seconds of all ranks */
    TOOL_COLUMN_OF_TIME,  /* likewise, with three decimals */
    TOOL_COLUMN_OF_ONE    /* likewise, and is one already */
} tool_column_kind_t;

typedef struct tool_column {
    const char         *heading;
    tool_column_kind_t kind;
    const char         *key;
    const char         *before;
} tool_column_t;

#define TOOL_COLUMNS 9

static const tool_column_t tool_columns[][TOOL_COLUMNS] = {
    {{"host:pid", TOOL_COLUMN_WHERE, NULL, NULL},
     {"peak", TOOL_COLUMN_BYTES, "pinned_peak_bytes", NULL},
     {"left pinned", TOOL_COLUMN_BYTES, "leave_pinned_peak_bytes", NULL},
     {"change", TOOL_COLUMN_CHANGE, "pinned_peak_bytes",
      "leave_pinned_peak_bytes"},
     {"in use", TOOL_COLUMN_BYTES, "in_use_peak_bytes", NULL},
     {"average", TOOL_COLUMN_AVERAGE, "pinned_byte_seconds", NULL},
     {"left pinned", TOOL_COLUMN_AVERAGE, "leave_pinned_byte_seconds", NULL},
     {"change", TOOL_COLUMN_CHANGE, "pinned_byte_seconds",
      "leave_pinned_byte_seconds"},
     {"in use", TOOL_COLUMN_AVERAGE, "in_use_byte_seconds", NULL}},
    {{"uses", TOOL_COLUMN_COUNT, "uses", NULL},
     {"cold", TOOL_COLUMN_COUNT, "cold", NULL},
     {"on time", TOOL_COLUMN_OF_WARM, "on_time", NULL},
     {"late", TOOL_COLUMN_COUNT, "late", NULL},
     {"missed", TOOL_COLUMN_COUNT, "missed", NULL},
     {"wasted", TOOL_COLUMN_COUNT, "wasted", NULL},
     {"helper", TOOL_COLUMN_OF_CPU, "helper_cpu_seconds", NULL},
     {"time lost", TOOL_COLUMN_OF_TIME, "lost_seconds", NULL},
     {"together", TOOL_COLUMN_OF_ONE, "price_j", NULL}}
};
#define TOOL_TABLES (sizeof(tool_columns) / sizeof(tool_columns[0]))

static const char *tool_column_print(const tool_column_t *column,
                                     const json_t *report, double seconds,
                                     char *buf)
{
    double value = (column->key != NULL) ?
                           tool_report_number(report, column->key) : 0;

    switch (column->kind) {
    case TOOL_COLUMN_BYTES:
        return tool_units_print_bytes(value, buf);
    case TOOL_COLUMN_AVERAGE:
        return tool_units_print_bytes(tool_table_average(report, column->key),
                                      buf);
    case TOOL_COLUMN_CHANGE:
        return tool_units_print_change(
                value, tool_report_number(report, column->before), buf);
    case TOOL_COLUMN_OF_WARM:
        return tool_units_print_share(value, tool_table_warm(report), buf);
    case TOOL_COLUMN_OF_CPU:
        return tool_units_print_share(value, seconds, buf);
    case TOOL_COLUMN_OF_TIME:
        return tool_units_print_fine_share(value, seconds, buf);
    case TOOL_COLUMN_OF_ONE:
        return tool_units_print_fine_share(value, 1, buf);
    default:
        snprintf(buf, TOOL_UNITS_MAX, "%.0f", value);
        return buf;
    }
}

/* A row of one report; @a seconds of all its ranks together */
static void tool_table_add(tool_list_t *cells, const tool_column_t *columns,
                           const char *name, const json_t *report,
                           double seconds)
{
    char buf[TOOL_UNITS_MAX];
    size_t i;

    tool_list_add(cells, name);
    for (i = 0; i < TOOL_COLUMNS; ++i) {
        if (columns[i].kind != TOOL_COLUMN_WHERE) {
            tool_list_add(cells, tool_column_print(&columns[i], report,
                                                   seconds, buf));
        } else if (json_object_get(report, "pid") == NULL) { /* all */
            tool_list_add(cells, "");
        } else {
            tool_list_addf(cells, "%s:%.0f", tool_report_text(report, "host"),
                           tool_report_number(report, "pid"));
        }
    }
}

/* Names are aligned to the left. Cells are ASCII but for hosts', which come
 * first. */
static void tool_table_finish(const tool_list_t *cells, size_t left,
                              FILE *stream)
{
    int widths[TOOL_COLUMNS + 1] = {};
    size_t i, column;

    for (i = 0; i < cells->count; ++i) {
        column         = i % (TOOL_COLUMNS + 1);
        widths[column] = ucs_max(widths[column], (int)strlen(cells->items[i]));
    }
    for (i = 0; i < cells->count; ++i) {
        column = i % (TOOL_COLUMNS + 1);
        fprintf(stream, "%s%*s%s", (column > 0) ? "  " : "",
                (column < left) ? -widths[column] : widths[column],
                cells->items[i], (column == TOOL_COLUMNS) ? "\n" : "");
    }
}

/* The sum of all ranks, then each */
static void tool_table_print_ranks(const tool_merge_t *merge,
                                   const tool_column_t *columns, FILE *stream)
{
    tool_list_t cells = TOOL_LIST_INITIALIZER;
    char name[TOOL_UNITS_MAX];
    json_t *rank;
    size_t i;

    tool_list_add(&cells, "rank");
    for (i = 0; i < TOOL_COLUMNS; ++i) {
        tool_list_add(&cells, columns[i].heading);
    }
    tool_table_add(&cells, columns, "all", merge->total, merge->rank_seconds);
    json_array_foreach(merge->ranks, i, rank) {
        snprintf(name, sizeof(name), "%.0f", tool_report_number(rank, "rank"));
        tool_table_add(&cells, columns, (name[0] == '-') ? "-" : name, rank,
                       tool_report_number(rank, "elapsed_seconds"));
    }
    fputc('\n', stream);
    tool_table_finish(&cells,
                      (columns[0].kind == TOOL_COLUMN_WHERE) ? 2 : 1, stream);
    tool_list_cleanup(&cells);
}

/* --- Words ---------------------------------------------------------------- */

static void tool_table_print_head(const tool_merge_t *merge, FILE *stream)
{
    size_t ranks = json_array_size(merge->ranks);
    char buf[TOOL_UNITS_MAX];

    fprintf(stream,
            "%s: %zu rank%s on %zu host%s, %s; policy %s, UCX %s, domain %s\n"
            "command: %s\n",
            TOOL_NAME, ranks, (ranks == 1) ? "" : "s", merge->host_count,
            (merge->host_count == 1) ? "" : "s",
            tool_units_print_seconds(
                    tool_report_number(merge->total, "elapsed_seconds"), buf),
            tool_report_text(merge->total, "policy"),
            tool_report_text(merge->total, "ucx_version"),
            tool_report_text(merge->total, "lower_domain"),
            tool_report_text(merge->total, "command"));
}

static void tool_table_print_saved(const json_t *total, FILE *stream)
{
    double average = tool_table_average(total, "pinned_byte_seconds");
    double leave   = tool_table_average(total, "leave_pinned_byte_seconds");
    char buf[6][TOOL_UNITS_MAX];

    if (tool_report_number(total, "uses") == 0) {
        fprintf(stream, "no message was large enough for the helper\n");
        return;
    }

    fprintf(stream,
            "pinned at most %s instead of %s (%s), on average over time %s "
            "instead of %s (%s)\n",
            tool_table_bytes(total, "pinned_peak_bytes", buf[0]),
            tool_table_bytes(total, "leave_pinned_peak_bytes", buf[1]),
            tool_units_print_change(
                    tool_report_number(total, "pinned_peak_bytes"),
                    tool_report_number(total, "leave_pinned_peak_bytes"),
                    buf[2]),
            tool_units_print_bytes(average, buf[3]),
            tool_units_print_bytes(leave, buf[4]),
            tool_units_print_change(average, leave, buf[5]));
}

/* Of all ranks together; what the NIC holds is an estimate */
static void tool_table_print_regions(const json_t *total, FILE *stream)
{
    double each    = tool_report_number(total, "region_bytes");
    double peak    = tool_report_number(total, "regions_peak");
    double leave   = tool_report_number(total, "leave_pinned_regions_peak");
    char buf[3][TOOL_UNITS_MAX];

    fprintf(stream,
            "at most %.0f registrations at once (%.1f on average) instead of "
            "%.0f; for them the NICs and\ntheir drivers hold some %s instead of "
            "%s, at %s each\n",
            peak, tool_table_average(total, "region_seconds"), leave,
            tool_units_print_bytes(each * peak, buf[0]),
            tool_units_print_bytes(each * leave, buf[1]),
            tool_units_print_bytes(each, buf[2]));
}

static void tool_table_print_missed(const tool_merge_t *merge, FILE *stream)
{
    const json_t *total = merge->total;
    double warm         = tool_table_warm(total);
    int is_many         = json_array_size(merge->ranks) > 1;
    char buf[4][TOOL_UNITS_MAX];

    if (warm > 0) {
        fprintf(stream,
                "%s of warm uses found their buffer registered (%s waited for "
                "the helper, %s registered it themselves)\n",
                tool_table_share(total, "on_time", warm, buf[0]),
                tool_table_share(total, "late", warm, buf[1]),
                tool_table_share(total, "missed", warm, buf[2]));
    } else if (tool_report_number(total, "uses") > 0) {
        fprintf(stream, "no buffer was used twice\n");
    }

    fprintf(stream, "helper %s of a core%s",
            tool_table_share(total, "helper_cpu_seconds", merge->rank_seconds,
                             buf[0]), is_many ? " a rank" : "");
    fputc('\n', stream);
}

/* Not where no helper thread ran, which hears */
static void tool_table_print_heard(const json_t *total, FILE *stream)
{
    if ((tool_report_number(total, "heard") == 0) &&
        (tool_report_number(total, "helper_cpu_seconds") > 0)) {
        fprintf(stream,
                "nothing was heard at UCP's entry points: they could not be "
                "interposed, or the\nprogram does not call them; the helper "
                "went by registrations alone\n");
    }
}

static void tool_table_print_why(const tool_merge_t *merge, FILE *stream)
{
    const json_t *total    = merge->total;
    ucs_regcache_why_t why = {};
    char buf[3][TOOL_UNITS_MAX];
    int i;

    if (tool_report_number(total, "uses") == 0) {
        return; /* nothing to price */
    }
    fprintf(stream,
            "time lost: %s of the run; time and memory together cost %s of the "
            "run, where\nleaving all pinned costs %s\n",
            tool_units_print_fine_share(
                    tool_report_number(total, "lost_seconds"),
                    merge->rank_seconds, buf[0]),
            tool_units_print_fine_share(tool_report_number(total, "price_j"),
                                        1, buf[1]),
            tool_units_print_fine_share(
                    tool_report_number(total, "max_slowdown"), 1, buf[2]));
    for (i = 0; i < UCS_REGCACHE_HELD_LAST; ++i) {
        why.held_byte_ns[i] = tool_report_number(
                total, ucs_regcache_held_names[i].key) * 1e9;
    }
    for (i = 0; i < UCS_REGCACHE_LOST_LAST; ++i) {
        why.lost_ns[i] = ucs_predict_sat_ceil(tool_report_number(
                total, ucs_regcache_lost_names[i].key) * 1e9);
    }
    why.ahead    = ucs_predict_sat_ceil(
            tool_report_number(total, "registered_ahead"));
    why.ahead_ns = ucs_predict_sat_ceil(
            tool_report_number(total, "ahead_seconds") * 1e9);
    ucs_regcache_why_print(
            &why, tool_report_number(total, "leave_pinned_byte_seconds") * 1e9,
            merge->rank_seconds * 1e9, "", stream);
}

static void tool_table_print_model(const char *what, const json_t *model,
                                   const char *mark, FILE *stream)
{
    char buf[2][TOOL_UNITS_MAX];
    double a, b, samples;

    json_unpack((json_t*)model, "{s:F,s:F,s:F}", "a_seconds_per_page", &a,
                "b_seconds", &b, "samples", &samples);
    if (samples > 0) {
        fprintf(stream, "%s: %s + %s a page%s (%.0f samples)\n", what,
                tool_units_print_seconds(b, buf[0]),
                tool_units_print_seconds(a, buf[1]), mark, samples);
    }
}

static void tool_table_print_costs(const json_t *total, FILE *stream)
{
    const json_t *modelled = json_object_get(total, "modelled_cost");
    const char *mark       = "";
    char buf[2][TOOL_UNITS_MAX];

    if (!json_is_null(modelled)) {
        mark = ", MODELLED cost included";
        fprintf(stream,
                "MODELLED: %s + %s a page were added to each registration; "
                "times are not\nthose of a real device\n",
                tool_units_print_seconds(
                        tool_report_number(modelled, "base_seconds"), buf[0]),
                tool_units_print_seconds(
                        tool_report_number(modelled, "per_page_seconds"),
                        buf[1]));
    }
    tool_table_print_model("registering took",
                           json_object_get(total, "register_model"), mark,
                           stream);
    tool_table_print_model("deregistering took",
                           json_object_get(total, "deregister_model"), mark,
                           stream);
}

static void tool_table_print_all(const tool_merge_t *merge, FILE *stream)
{
    json_t *note;
    size_t i;

    tool_table_print_head(merge, stream);
    tool_table_print_saved(merge->total, stream);
    tool_table_print_regions(merge->total, stream);
    tool_table_print_missed(merge, stream);
    tool_table_print_heard(merge->total, stream);
    tool_table_print_why(merge, stream);
    tool_table_print_costs(merge->total, stream);
    json_array_foreach(json_object_get(merge->total, "notes"), i, note) {
        fprintf(stream, "note: %s\n", json_string_value(note));
    }
    for (i = 0; i < TOOL_TABLES; ++i) {
        tool_table_print_ranks(merge, tool_columns[i], stream);
    }
}

/* A terminal must not obey what a report says */
void tool_table_print(const tool_merge_t *merge, FILE *stream)
{
    char *text = NULL;
    size_t size;
    FILE *memory;
    char *rest, *line;

    memory = open_memstream(&text, &size);
    if (memory == NULL) {
        tool_out_of_memory();
    }
    tool_table_print_all(merge, memory);
    fclose(memory);
    rest = text;
    while ((line = strsep(&rest, "\n")) != NULL) {
        tool_string_sanitize(line);
        fprintf(stream, "%s%s", line, (rest != NULL) ? "\n" : "");
    }
    free(text);
}
