/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "report.h"

#include <math.h>
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
    double *total, value;

    for (field = tool_fields; field->key != NULL; ++field) {
        if (field->kind == TOOL_FIELD_WHOLE) {
            *tool_field_whole(&merge->total, field) +=
                    *tool_field_whole(report, field);
            continue;
        }

        total = tool_field_real(&merge->total, field);
        value = *tool_field_real(report, field);
        if (field->kind == TOOL_FIELD_REAL) {
            *total += value;
        } else if (field->kind != TOOL_FIELD_MEAN) {
            *total = ((merge->count == 0) || (value > *total)) ? value : *total;
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
static void tool_merge_texts(tool_merge_t *merge)
{
    const tool_text_field_t *text;
    tool_list_t values;
    const char *value;
    size_t i;

    for (text = tool_text_fields; text->key != NULL; ++text) {
        values = (tool_list_t)TOOL_LIST_INITIALIZER;
        for (i = 0; i < merge->count; ++i) {
            value = *tool_field_text(&merge->ranks[i], text);
            if (text->offset == offsetof(tool_report_t, lower_domain)) {
                tool_merge_add_parts(&values, value);
            } else {
                tool_list_add_unique(&values, value);
            }
        }
        *tool_field_text(&merge->total, text) = tool_list_join(&values, ",");
        if (text->offset == offsetof(tool_report_t, host)) {
            merge->host_count = values.count;
        }
        tool_list_cleanup(&values);
    }
}

/* A rank's median counts by its uses: the more hits, the more it tells */
static void tool_merge_means(tool_merge_t *merge)
{
    const tool_field_t *field;
    double sum, weight, value;
    size_t i;

    for (field = tool_fields; field->key != NULL; ++field) {
        if (field->kind != TOOL_FIELD_MEAN) {
            continue;
        }

        sum = weight = 0;
        for (i = 0; i < merge->count; ++i) {
            value = *tool_field_real(&merge->ranks[i], field);
            if (value >= 0) {
                sum    += value * merge->ranks[i].uses;
                weight += merge->ranks[i].uses;
            }
        }
        *tool_field_real(&merge->total, field) = (weight > 0) ? sum / weight :
                                                                -1;
    }
}

static void tool_merge_model(const tool_merge_t *merge, size_t offset)
{
    tool_report_model_t *total = (void*)((char*)&merge->total + offset);
    const tool_report_model_t *model;
    double a = 0, b = 0, samples = 0;
    size_t i;

    for (i = 0; i < merge->count; ++i) {
        model    = (const void*)((const char*)&merge->ranks[i] + offset);
        a       += model->a_seconds_per_page * model->samples;
        b       += model->b_seconds * model->samples;
        samples += model->samples;
    }

    total->samples            = fmin(samples, TOOL_REPORT_WHOLE_MAX);
    total->a_seconds_per_page = (samples > 0) ? a / samples : 0;
    total->b_seconds          = (samples > 0) ? b / samples : 0;
}

static void tool_merge_modelled(tool_merge_t *merge)
{
    tool_report_t *total = &merge->total;
    const tool_report_t *rank;
    size_t modelled = 0;
    int differ      = 0;
    size_t i;

    for (i = 0; i < merge->count; ++i) {
        rank      = &merge->ranks[i];
        modelled += rank->is_modelled;
        differ   |= (rank->modelled_base_seconds !=
                     merge->ranks[0].modelled_base_seconds) ||
                    (rank->modelled_per_page_seconds !=
                     merge->ranks[0].modelled_per_page_seconds);

        total->modelled_base_seconds =
                fmax(total->modelled_base_seconds,
                     rank->modelled_base_seconds);
        total->modelled_per_page_seconds =
                fmax(total->modelled_per_page_seconds,
                     rank->modelled_per_page_seconds);
    }

    total->is_modelled = (modelled > 0);
    if (differ || ((modelled > 0) && (modelled < merge->count))) {
        tool_list_add(&total->notes, "the ranks' modelled costs differ; the "
                                     "largest is shown");
    }
}

/* Say a note once, with whom it is of */
static void tool_merge_note(tool_merge_t *merge, const char *note)
{
    const tool_report_t *first = merge->ranks;
    size_t count               = 0;
    char *line;
    size_t i;

    for (i = 0; i < merge->count; ++i) {
        if (tool_list_has(&merge->ranks[i].notes, note)) {
            first = (count++ == 0) ? &merge->ranks[i] : first;
        }
    }

    if (count > 1) {
        line = tool_format("%s%zu ranks: %s",
                           (count == merge->count) ? "all " : "", count, note);
    } else if (first->rank >= 0) {
        line = tool_format("rank %jd: %s", (intmax_t)first->rank, note);
    } else {
        line = tool_format("pid %jd: %s", (intmax_t)first->pid, note);
    }
    tool_list_add(&merge->total.notes, line);
    free(line);
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
    if (merge->count > 1) {
        qsort(merge->ranks, merge->count, sizeof(*merge->ranks),
              tool_merge_compare);
    }

    tool_merge_texts(merge);
    tool_merge_means(merge);
    tool_merge_model(merge, offsetof(tool_report_t, register_model));
    tool_merge_model(merge, offsetof(tool_report_t, deregister_model));
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
