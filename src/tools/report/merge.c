/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "report.h"

#include <stdlib.h>
#include <string.h>


void tool_merge_init(tool_merge_t *merge)
{
    memset(merge, 0, sizeof(*merge));
}

static const tool_report_t *
tool_merge_find(const tool_merge_t *merge, const tool_report_t *report)
{
    const tool_report_t *rank;
    size_t i;

    for (i = 0; i < merge->count; ++i) {
        rank = &merge->ranks[i];
        if ((rank->pid == report->pid) && (rank->rank == report->rank) &&
            !strcmp(rank->host, report->host)) {
            return rank;
        }
    }
    return NULL;
}

/* Would the whole numbers' sums still be exact in every JSON reader? */
static int
tool_merge_fits(const tool_merge_t *merge, const tool_report_t *report)
{
    const tool_field_t *field;

    for (field = tool_fields; field->key != NULL; ++field) {
        if ((field->kind == TOOL_FIELD_WHOLE) &&
            (*tool_field_whole(&merge->total, field) >
             (TOOL_REPORT_WHOLE_MAX - *tool_field_whole(report, field)))) {
            tool_message("%s: the ranks' sum of '%s' is too large",
                         report->file, field->key);
            return 0;
        }
    }
    return 1;
}

static void tool_merge_sum(tool_merge_t *merge, const tool_report_t *report)
{
    const tool_field_t *field;
    int64_t *whole;
    double *total, value;

    for (field = tool_fields; field->key != NULL; ++field) {
        whole = tool_field_whole(&merge->total, field);
        total = tool_field_real(&merge->total, field);
        value = *tool_field_real(report, field);
        switch (field->kind) {
        case TOOL_FIELD_WHOLE:
        case TOOL_FIELD_SAMPLES:
            *whole += *tool_field_whole(report, field);
            *whole  = (*whole < TOOL_REPORT_WHOLE_MAX) ?
                              *whole : TOOL_REPORT_WHOLE_MAX;
            break;
        case TOOL_FIELD_REAL:
            *total += value;
            break;
        case TOOL_FIELD_LONGEST:
        case TOOL_FIELD_ADDED:
        case TOOL_FIELD_WORST:
            *total = ((merge->count == 0) || (value > *total)) ? value : *total;
            break;
        default: /* when all are there */
            break;
        }
    }
}

int tool_merge_add(tool_merge_t *merge, tool_report_t *report)
{
    const tool_report_t *same = tool_merge_find(merge, report);

    if (same != NULL) {
        tool_message("%s: the same process (host %s, pid %jd) as in %s",
                     report->file, report->host, (intmax_t)report->pid,
                     same->file);
        goto err;
    } else if (!tool_merge_fits(merge, report)) {
        goto err;
    }

    tool_merge_sum(merge, report);
    merge->rank_seconds += report->elapsed_seconds;
    merge->ranks         = tool_realloc(merge->ranks, (merge->count + 1) *
                                                      sizeof(*merge->ranks));
    merge->ranks[merge->count++] = *report;
    return 0;

err:
    tool_report_cleanup(report);
    return -1;
}

static int tool_merge_compare(const void *a, const void *b)
{
    const tool_report_t *x = a;
    const tool_report_t *y = b;
    int ret;

    if (x->rank != y->rank) {
        return (x->rank < y->rank) ? -1 : 1;
    }

    ret = strcmp(x->host, y->host);
    return (ret != 0) ? ret : (x->pid > y->pid) - (x->pid < y->pid);
}

/* Add the parts between commas */
static void tool_merge_add_parts(tool_list_t *values, const char *text)
{
    char *copy = tool_strdup(text);
    char *rest = copy;
    char *part;

    while ((part = strsep(&rest, ",")) != NULL) {
        tool_list_add_unique(values, part);
    }
    free(copy);
}

/* Ranks usually agree; where they do not, all that they say is listed */
static void tool_merge_text(tool_merge_t *merge, const tool_field_t *field)
{
    tool_list_t values = TOOL_LIST_INITIALIZER;
    const char *value;
    size_t i;

    for (i = 0; i < merge->count; ++i) {
        value = *tool_field_text(&merge->ranks[i], field);
        if (field->kind == TOOL_FIELD_PARTS) {
            tool_merge_add_parts(&values, value);
        } else {
            tool_list_add_unique(&values, value);
        }
    }
    *tool_field_text(&merge->total, field) = tool_list_join(&values, ",");
    if (field->offset == offsetof(tool_report_t, host)) {
        merge->host_count = values.count;
    }
    tool_list_cleanup(&values);
}

/* A rank's median counts by its uses: the more hits, the more it tells; the
 * terms of a cost by their samples */
static void tool_merge_mean(tool_merge_t *merge, const tool_field_t *field)
{
    int may_be_null = (field->kind == TOOL_FIELD_MEAN);
    double sum = 0, weight = 0, value;
    int64_t one;
    size_t i;

    for (i = 0; i < merge->count; ++i) {
        value = *tool_field_real(&merge->ranks[i], field);
        one   = *(const int64_t*)(const void*)
                 ((const char*)&merge->ranks[i] + field->weight);
        if (!may_be_null || (value >= 0)) {
            sum    += value * one;
            weight += one;
        }
    }
    *tool_field_real(&merge->total, field) =
            (weight > 0) ? sum / weight : (may_be_null ? -1 : 0);
}

/* Averages of memory divide by the longest time, as in the table. Ranks may
 * have had other prices: then the largest counts, and the sum is too high. */
static void tool_merge_price(tool_merge_t *merge)
{
    tool_report_t *total = &merge->total;
    double leave         = total->leave_pinned_peak_bytes *
                           total->elapsed_seconds;

    total->price_j = (leave > 0) ? total->max_slowdown *
                                           total->pinned_byte_seconds / leave :
                                   0;
    if (merge->rank_seconds > 0) {
        total->price_j += total->lost_seconds / merge->rank_seconds;
    }
}

static void tool_merge_modelled(tool_merge_t *merge)
{
    const tool_report_t *first = merge->ranks;
    const tool_report_t *rank;
    size_t modelled = 0;
    int differ      = 0;

    for (rank = first; rank < first + merge->count; ++rank) {
        modelled += rank->is_modelled;
        differ   |= (rank->modelled_base_seconds !=
                     first->modelled_base_seconds) ||
                    (rank->modelled_per_page_seconds !=
                     first->modelled_per_page_seconds);
    }

    merge->total.is_modelled = (modelled > 0);
    if (differ || ((modelled > 0) && (modelled < merge->count))) {
        tool_list_add(&merge->total.notes, "the ranks' modelled costs differ; "
                                           "the largest is shown");
    }
}

/* Say a note once, with the ranks that made it */
static void tool_merge_note(tool_merge_t *merge, const char *note)
{
    const tool_report_t *first = merge->ranks;
    size_t count               = 0;
    size_t i;

    for (i = 0; i < merge->count; ++i) {
        if (tool_list_has(&merge->ranks[i].notes, note)) {
            first = (count++ == 0) ? &merge->ranks[i] : first;
        }
    }

    if (count > 1) {
        tool_list_addf(&merge->total.notes, "%s%zu ranks: %s",
                       (count == merge->count) ? "all " : "", count, note);
    } else {
        tool_list_addf(&merge->total.notes, "%s %jd: %s",
                       (first->rank >= 0) ? "rank" : "pid",
                       (intmax_t)((first->rank >= 0) ? first->rank :
                                                       first->pid), note);
    }
}

static void tool_merge_notes(tool_merge_t *merge)
{
    tool_list_t notes = TOOL_LIST_INITIALIZER;
    size_t repeated   = 0;
    const tool_report_t *rank;
    size_t i, j;

    for (i = 0; i < merge->count; ++i) {
        rank      = &merge->ranks[i];
        repeated += (i > 0) && (rank->rank >= 0) &&
                    (rank->rank == merge->ranks[i - 1].rank);
        for (j = 0; j < rank->notes.count; ++j) {
            tool_list_add_unique(&notes, rank->notes.items[j]);
        }
    }

    for (i = 0; i < notes.count; ++i) {
        tool_merge_note(merge, notes.items[i]);
    }
    tool_list_cleanup(&notes);

    if (repeated > 0) {
        tool_list_add(&merge->total.notes, "ranks appear more than once: these "
                                           "may be reports of several jobs");
    }
}

void tool_merge_finish(tool_merge_t *merge)
{
    const tool_field_t *field;

    if (merge->count > 1) {
        qsort(merge->ranks, merge->count, sizeof(*merge->ranks),
              tool_merge_compare);
    }

    for (field = tool_fields; field->key != NULL; ++field) {
        if ((field->kind == TOOL_FIELD_TEXT) ||
            (field->kind == TOOL_FIELD_PARTS)) {
            tool_merge_text(merge, field);
        } else if ((field->kind == TOOL_FIELD_MEAN) ||
                   (field->kind == TOOL_FIELD_TERM)) {
            tool_merge_mean(merge, field);
        }
    }
    tool_merge_price(merge);
    tool_merge_modelled(merge);
    tool_merge_notes(merge);
}

void tool_merge_cleanup(tool_merge_t *merge)
{
    size_t i;

    for (i = 0; i < merge->count; ++i) {
        tool_report_cleanup(&merge->ranks[i]);
    }
    free(merge->ranks);
    tool_report_cleanup(&merge->total);
    tool_merge_init(merge);
}
