/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "report.h"

#include <tools/units.h>

#include <ucs/sys/compiler_def.h>

#include <stdlib.h>
#include <string.h>

/* Cells are ASCII except for texts of reports, which come first in a row */
#define TOOL_TABLE_COLUMNS 10


typedef struct tool_table {
    tool_list_t cells; /* row by row; the first row is the heading */
    size_t      left;  /* so many columns are aligned to the left */
} tool_table_t;


static void tool_table_add(tool_table_t *table, const char *const *cells)
{
    size_t i;

    for (i = 0; i < TOOL_TABLE_COLUMNS; ++i) {
        tool_list_add(&table->cells, cells[i]);
    }
}

/* Print the table and free it */
static void tool_table_finish(tool_table_t *table, FILE *stream)
{
    size_t widths[TOOL_TABLE_COLUMNS] = {};
    size_t i, column, length;
    int width;

    for (i = 0; i < table->cells.count; ++i) {
        column = i % TOOL_TABLE_COLUMNS;
        length = strlen(table->cells.items[i]);
        if (length > widths[column]) {
            widths[column] = length;
        }
    }

    for (i = 0; i < table->cells.count; ++i) {
        column = i % TOOL_TABLE_COLUMNS;
        width  = widths[column];
        fprintf(stream, "%s%*s", (column > 0) ? "  " : "",
                (column < table->left) ? -width : width,
                table->cells.items[i]);
        if (column == (TOOL_TABLE_COLUMNS - 1)) {
            fputc('\n', stream);
        }
    }
    tool_list_cleanup(&table->cells);
}

static double tool_table_average(double byte_seconds, double elapsed)
{
    return (elapsed > 0) ? byte_seconds / elapsed : 0;
}

/* A row of one report; @a seconds of all its ranks together */
typedef void (*tool_table_row_t)(tool_table_t *table, const char *name,
                                 const tool_report_t *report, double seconds);

static void tool_table_add_memory(tool_table_t *table, const char *name,
                                  const tool_report_t *report,
                                  double seconds UCS_V_UNUSED)
{
    double elapsed = report->elapsed_seconds;
    double average = tool_table_average(report->pinned_byte_seconds, elapsed);
    double leave   = tool_table_average(report->leave_pinned_byte_seconds,
                                        elapsed);
    double limit   = tool_table_average(report->held[UCS_REGCACHE_HELD_IN_USE], elapsed);
    char *where    = (report->file == NULL) ? /* all */
                             tool_strdup("") :
                             tool_format("%s:%jd", report->host,
                                         (intmax_t)report->pid);
    char buf[8][TOOL_UNITS_MAX];

    tool_table_add(table, (const char*[]){
        name, where,
        tool_units_print_bytes(report->pinned_peak_bytes, buf[0]),
        tool_units_print_bytes(report->leave_pinned_peak_bytes, buf[1]),
        tool_units_print_change(report->pinned_peak_bytes,
                                report->leave_pinned_peak_bytes, buf[2]),
        tool_units_print_bytes(report->in_use_peak_bytes, buf[3]),
        tool_units_print_bytes(average, buf[4]),
        tool_units_print_bytes(leave, buf[5]),
        tool_units_print_change(average, leave, buf[6]),
        tool_units_print_bytes(limit, buf[7])
    });
    free(where);
}

static const char *tool_table_print_count(int64_t count, char *buf)
{
    snprintf(buf, TOOL_UNITS_MAX, "%jd", (intmax_t)count);
    return buf;
}

/* Uses of a range that was used before: only those could be foreseen */
static int64_t tool_table_warm(const tool_report_t *report)
{
    return report->uses - report->cold;
}

static void tool_table_add_uses(tool_table_t *table, const char *name,
                                const tool_report_t *report, double seconds)
{
    char buf[9][TOOL_UNITS_MAX];

    tool_table_add(table, (const char*[]){
        name, tool_table_print_count(report->uses, buf[0]),
        tool_table_print_count(report->cold, buf[1]),
        tool_units_print_share(report->on_time, tool_table_warm(report),
                               buf[2]),
        tool_table_print_count(report->late, buf[3]),
        tool_table_print_count(report->missed, buf[4]),
        tool_table_print_count(report->wasted, buf[5]),
        tool_table_print_count(report->evicted, buf[6]),
        tool_table_print_count(report->invalidated, buf[7]),
        tool_units_print_share(report->helper_cpu_seconds, seconds, buf[8])
    });
}

/* Leave pinned's most, all of the time */
static double tool_table_most(const tool_report_t *report)
{
    return report->leave_pinned_peak_bytes * report->elapsed_seconds;
}

static void tool_table_add_why(tool_table_t *table, const char *name,
                               const tool_report_t *report, double seconds)
{
    const char *cells[TOOL_TABLE_COLUMNS] = {name};
    char buf[TOOL_TABLE_COLUMNS][TOOL_UNITS_MAX];
    int i;

    cells[1] = tool_units_print_share(report->pinned_byte_seconds,
                                      tool_table_most(report), buf[1]);
    for (i = 0; i < UCS_REGCACHE_HELD_LAST; ++i) {
        cells[2 + i] = tool_units_print_share(report->held[i],
                                              report->pinned_byte_seconds,
                                              buf[2 + i]);
    }
    cells[8] = tool_units_print_fine_share(report->lost_seconds, seconds,
                                           buf[8]);
    cells[9] = tool_units_print_fine_share(report->price_j, 1, buf[9]);
    tool_table_add(table, cells);
}

/* The sum of all ranks, then each */
static void tool_table_print_ranks(const tool_merge_t *merge,
                                   tool_table_t table, tool_table_row_t add,
                                   FILE *stream)
{
    const tool_report_t *rank;
    char name[TOOL_UNITS_MAX];

    add(&table, "all", &merge->total, merge->rank_seconds);
    for (rank = merge->ranks; rank < merge->ranks + merge->count; ++rank) {
        tool_table_print_count(rank->rank, name);
        add(&table, (rank->rank < 0) ? "-" : name, rank,
            rank->elapsed_seconds);
    }
    fputc('\n', stream);
    tool_table_finish(&table, stream);
}

static void tool_table_print_head(const tool_merge_t *merge, FILE *stream)
{
    const tool_report_t *total = &merge->total;
    char buf[TOOL_UNITS_MAX];

    fprintf(stream,
            "%s: %zu rank%s on %zu host%s, %s; policy %s, UCX %s, domain %s\n",
            TOOL_NAME, merge->count, (merge->count == 1) ? "" : "s",
            merge->host_count, (merge->host_count == 1) ? "" : "s",
            tool_units_print_seconds(total->elapsed_seconds, buf),
            total->policy, total->ucx_version, total->lower_domain);
    fprintf(stream, "command: %s\n", total->command);
}

static void tool_table_print_saved(const tool_merge_t *merge, FILE *stream)
{
    const tool_report_t *total = &merge->total;
    double average = tool_table_average(total->pinned_byte_seconds,
                                        total->elapsed_seconds);
    double leave   = tool_table_average(total->leave_pinned_byte_seconds,
                                        total->elapsed_seconds);
    char buf[6][TOOL_UNITS_MAX];

    if (total->uses == 0) {
        fprintf(stream, "no message was large enough for the helper\n");
        return;
    }

    fprintf(stream,
            "pinned at most %s instead of %s (%s), on average over time %s "
            "instead of %s (%s)\n",
            tool_units_print_bytes(total->pinned_peak_bytes, buf[0]),
            tool_units_print_bytes(total->leave_pinned_peak_bytes, buf[1]),
            tool_units_print_change(total->pinned_peak_bytes,
                                    total->leave_pinned_peak_bytes, buf[2]),
            tool_units_print_bytes(average, buf[3]),
            tool_units_print_bytes(leave, buf[4]),
            tool_units_print_change(average, leave, buf[5]));
}

static void tool_table_print_missed(const tool_merge_t *merge, FILE *stream)
{
    const tool_report_t *total = &merge->total;
    int64_t warm               = tool_table_warm(total);
    char buf[4][TOOL_UNITS_MAX];

    if (warm > 0) {
        fprintf(stream,
                "%s of warm uses found their buffer registered (%s waited for "
                "the helper, %s registered it themselves)\n",
                tool_units_print_share(total->on_time, warm, buf[0]),
                tool_units_print_share(total->late, warm, buf[1]),
                tool_units_print_share(total->missed, warm, buf[2]));
    } else if (total->uses > 0) {
        fprintf(stream, "no buffer was used twice\n");
    }

    fprintf(stream, "helper %s of a core%s",
            tool_units_print_share(total->helper_cpu_seconds,
                                   merge->rank_seconds, buf[0]),
            (merge->count > 1) ? " a rank" : "");
    if (total->hit_ns_p50 >= 0) {
        fprintf(stream, "; a hit took %s (median)",
                tool_units_print_seconds(total->hit_ns_p50 * 1e-9, buf[1]));
    }
    if (total->hit_ns_p99 >= 0) {
        fprintf(stream, ", %s (99th percentile%s)",
                tool_units_print_seconds(total->hit_ns_p99 * 1e-9, buf[2]),
                (merge->count > 1) ? ", worst rank" : "");
    }
    fputc('\n', stream);
}

/* Nothing where no helper thread ran, which hears */
static void tool_table_print_heard(const tool_report_t *total, FILE *stream)
{
    if (total->heard > 0) {
        fprintf(stream,
                "heard: %jd operations of the program (%jd lost), %jd receives "
                "announced, %jd of\nthose registered in time; %jd steps of "
                "the helper were taken by ranks that waited\n",
                (intmax_t)total->heard, (intmax_t)total->heard_lost,
                (intmax_t)total->announced,
                (intmax_t)total->announced_on_time,
                (intmax_t)total->idle_steps);
    } else if (total->helper_cpu_seconds > 0) {
        fprintf(stream,
                "nothing was heard at UCP's entry points: they could not be "
                "interposed, or the\nprogram does not call them; the helper "
                "went by registrations alone\n");
    }
}

static void tool_table_print_why(const tool_merge_t *merge, FILE *stream)
{
    const tool_report_t *total = &merge->total;
    ucs_regcache_why_t why     = {};
    char buf[3][TOOL_UNITS_MAX];
    int i;

    if (total->uses == 0) {
        return; /* nothing to price */
    }
    fprintf(stream,
            "time lost: %s of the run; time and memory together cost %s of the "
            "run, where\nleaving all pinned costs %s\n",
            tool_units_print_fine_share(total->lost_seconds,
                                        merge->rank_seconds, buf[0]),
            tool_units_print_fine_share(total->price_j, 1, buf[1]),
            tool_units_print_fine_share(total->max_slowdown, 1, buf[2]));
    for (i = 0; i < UCS_REGCACHE_HELD_LAST; ++i) {
        why.held_byte_ns[i] = total->held[i] * 1e9;
    }
    for (i = 0; i < UCS_REGCACHE_LOST_LAST; ++i) {
        why.lost_ns[i] = (uint64_t)(total->lost[i] * 1e9);
    }
    why.ahead    = total->registered_ahead;
    why.ahead_ns = (uint64_t)(total->ahead_seconds * 1e9);
    ucs_regcache_why_print(&why, total->leave_pinned_byte_seconds * 1e9,
                           merge->rank_seconds * 1e9, "", stream);
}

static void tool_table_print_covers(const tool_report_t *total, FILE *stream)
{
    char buf[2][TOOL_UNITS_MAX];

    if (total->covers == 0) {
        return;
    }
    fprintf(stream,
            "neighbours: %jd uses asked, %jd registrations made, %jd of them "
            "for neighbours, which spared\n%jd first uses one: %s waited, %s "
            "it would have been\n",
            (intmax_t)total->uses, (intmax_t)total->registrations,
            (intmax_t)total->covers, (intmax_t)total->spared,
            tool_units_print_seconds(total->lost_seconds, buf[0]),
            tool_units_print_seconds(total->lost_seconds +
                                             total->spared_seconds, buf[1]));
}

static void tool_table_print_model(const char *what,
                                   const tool_report_model_t *model,
                                   const char *mark, FILE *stream)
{
    char buf[2][TOOL_UNITS_MAX];

    if (model->samples > 0) {
        fprintf(stream, "%s: %s + %s a page%s (%jd samples)\n", what,
                tool_units_print_seconds(model->b_seconds, buf[0]),
                tool_units_print_seconds(model->a_seconds_per_page, buf[1]),
                mark, (intmax_t)model->samples);
    }
}

static void tool_table_print_costs(const tool_report_t *total, FILE *stream)
{
    const char *mark = total->is_modelled ? ", MODELLED cost included" : "";
    char buf[2][TOOL_UNITS_MAX];

    if (total->is_modelled) {
        fprintf(stream,
                "MODELLED: %s + %s a page were added to each registration; "
                "times are not\nthose of a real device\n",
                tool_units_print_seconds(total->modelled_base_seconds, buf[0]),
                tool_units_print_seconds(total->modelled_per_page_seconds,
                                         buf[1]));
    }
    tool_table_print_model("registering took", &total->register_model, mark,
                           stream);
    tool_table_print_model("deregistering took", &total->deregister_model,
                           mark, stream);
}

void tool_table_print(const tool_merge_t *merge, FILE *stream)
{
    tool_table_t memory = {.left = 2};
    tool_table_t uses   = {.left = 1};
    tool_table_t why    = {.left = 1};
    size_t i;

    tool_table_print_head(merge, stream);
    tool_table_print_saved(merge, stream);
    tool_table_print_missed(merge, stream);
    tool_table_print_heard(&merge->total, stream);
    tool_table_print_why(merge, stream);
    tool_table_print_covers(&merge->total, stream);
    tool_table_print_costs(&merge->total, stream);
    for (i = 0; i < merge->total.notes.count; ++i) {
        fprintf(stream, "note: %s\n", merge->total.notes.items[i]);
    }
    tool_table_add(&memory, (const char*[]){
        "rank", "host:pid", "peak", "left pinned", "change", "in use",
        "average", "left pinned", "change", "in use"
    });
    tool_table_print_ranks(merge, memory, tool_table_add_memory, stream);
    tool_table_add(&uses, (const char*[]){
        "rank", "uses", "cold", "on time", "late", "missed", "wasted",
        "evicted", "invalidated", "helper"
    });
    tool_table_print_ranks(merge, uses, tool_table_add_uses, stream);
    tool_table_add(&why, (const char*[]){
        "rank", "held", "in use", "kept", "ahead", "unknown", "late", "other",
        "time lost", "together"
    });
    tool_table_print_ranks(merge, why, tool_table_add_why, stream);
}
