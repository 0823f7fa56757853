/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "report.h"

#include <ucs/regcache/stats.h>
#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

void tool_merge_init(tool_merge_t *merge)
{
    *merge = (tool_merge_t){.ranks = json_array()};
}

static int tool_merge_compare(const json_t *a, const json_t *b)
{
    double x = tool_report_number(a, "rank");
    double y = tool_report_number(b, "rank");
    int ret;

    if (x != y) {
        return (x < y) ? -1 : 1;
    }
    ret = strcmp(tool_report_text(a, "host"), tool_report_text(b, "host"));
    if (ret != 0) {
        return ret;
    }
    x = tool_report_number(a, "pid");
    y = tool_report_number(b, "pid");
    return (x > y) - (x < y);
}

int tool_merge_add(tool_merge_t *merge, json_t *report)
{
    size_t at = json_array_size(merge->ranks);
    json_t *rank;
    int order;

    /* Files mostly come in the ranks' order */
    for (; at > 0; --at) {
        rank  = json_array_get(merge->ranks, at - 1);
        order = tool_merge_compare(report, rank);
        if (order == 0) {
            tool_message("%s: the same process (host %s, pid %.0f) as in %s",
                         tool_report_text(report, "file"),
                         tool_report_text(report, "host"),
                         tool_report_number(report, "pid"),
                         tool_report_text(rank, "file"));
            json_decref(report);
            return -1;
        }
        if (order > 0) {
            break;
        }
    }
    json_array_insert_new(merge->ranks, at, report);
    merge->rank_seconds += tool_report_number(report, "elapsed_seconds");
    return 0;
}

/* Ranks usually agree; where they do not, all that they say is listed */
static json_t *tool_merge_text(tool_merge_t *merge, const tool_field_t *field)
{
    const char *separator = (field->kind == TOOL_FIELD_PARTS) ? "," : "";
    tool_list_t values    = TOOL_LIST_INITIALIZER;
    char *copy, *rest, *part;
    json_t *rank, *text;
    size_t i;

    json_array_foreach(merge->ranks, i, rank) {
        copy = rest = tool_strdup(tool_report_text(rank, field->key));
        while ((part = strsep(&rest, separator)) != NULL) {
            tool_list_add_unique(&values, part);
        }
        free(copy);
    }
    copy = tool_list_join(&values, ",");
    text = json_string(copy);
    if (!strcmp(field->key, "host")) {
        merge->host_count = values.count;
    }
    free(copy);
    tool_list_cleanup(&values);
    return text;
}

/* Far beyond what a JSON reader keeps exactly, and still a number */
static json_t *tool_merge_whole(double sum)
{
    return json_integer((json_int_t)ucs_min(sum, 0x1p62));
}

/* Of numbers */
static json_t *tool_merge_sum(const tool_merge_t *merge,
                              const tool_field_t *field)
{
    double sum  = 0;
    double most = 0;
    double value;
    json_t *rank;
    size_t i;

    json_array_foreach(merge->ranks, i, rank) {
        value = tool_report_number(rank, field->key);
        sum  += value;
        most  = ucs_max(most, value);
    }
    switch (field->kind) {
    case TOOL_FIELD_WHOLE:
        return tool_merge_whole(sum);
    case TOOL_FIELD_REAL:
        return json_real(sum);
    default:
        return json_real(most);
    }
}

static json_t *tool_merge_model(const tool_merge_t *merge, const char *key)
{
    double a = 0, b = 0, samples = 0;
    double rank_a, rank_b, rank_samples;
    json_t *rank;
    size_t i;

    json_array_foreach(merge->ranks, i, rank) {
        json_unpack(rank, "{s:{s:F,s:F,s:F}}", key, "a_seconds_per_page",
                    &rank_a, "b_seconds", &rank_b, "samples", &rank_samples);
        a       += rank_a * rank_samples;
        b       += rank_b * rank_samples;
        samples += rank_samples;
    }
    return json_pack("{s:f,s:f,s:o}",
                     "a_seconds_per_page", (samples > 0) ? a / samples : 0,
                     "b_seconds", (samples > 0) ? b / samples : 0,
                     "samples", tool_merge_whole(samples));
}

/* Null, or the largest that was added */
static json_t *tool_merge_modelled(const tool_merge_t *merge, const char *key)
{
    double base = -1, page = -1;
    json_t *rank, *cost;
    size_t i;

    json_array_foreach(merge->ranks, i, rank) {
        cost = json_object_get(rank, key);
        base = ucs_max(base, tool_report_number(cost, "base_seconds"));
        page = ucs_max(page, tool_report_number(cost, "per_page_seconds"));
    }
    return (base < 0) ? json_null() :
                        json_pack("{s:f,s:f}", "base_seconds", base,
                                  "per_page_seconds", page);
}

/* Averages of memory divide by the longest time, as in the table. Ranks may
 * have had other prices: then the largest counts, and the sum is too high. */
static json_t *tool_merge_price(const tool_merge_t *merge)
{
    const json_t *total = merge->total;
    double each         = tool_report_number(total, "region_bytes");
    double held, most;

    held = tool_report_number(total, "pinned_byte_seconds") +
           each * tool_report_number(total, "region_seconds");
    most = (tool_report_number(total, "leave_pinned_peak_bytes") +
            each * tool_report_number(total, "leave_pinned_regions_peak")) *
           tool_report_number(total, "elapsed_seconds");
    return json_real(ucs_regcache_j(
            tool_report_number(total, "lost_seconds"), merge->rank_seconds,
            held, most, tool_report_number(total, "max_slowdown")));
}

/* With the ranks that made it */
static json_t *tool_merge_note(const char *note, const json_t *made,
                               size_t ranks)
{
    size_t count        = json_array_size(made);
    const json_t *first = json_array_get(made, 0);
    const char *key;

    if (count > 1) {
        return json_sprintf("%s%zu ranks: %s", (count == ranks) ? "all " : "",
                            count, note);
    }
    key = (tool_report_number(first, "rank") >= 0) ? "rank" : "pid";
    return json_sprintf("%s %.0f: %s", key, tool_report_number(first, key),
                        note);
}

/* Each is said once, in the order in which they come */
static json_t *tool_merge_notes(const tool_merge_t *merge)
{
    json_t *notes   = json_array();
    json_t *made    = json_object(); /* by note, the ranks that made it */
    double before   = -1;
    int is_repeated = 0;
    double number;
    json_t *rank, *note, *ranks;
    const char *text;
    size_t i, j;

    json_array_foreach(merge->ranks, i, rank) {
        number       = tool_report_number(rank, "rank");
        is_repeated |= (number >= 0) && (number == before);
        before       = number;
        json_array_foreach(json_object_get(rank, "notes"), j, note) {
            text = json_string_value(note);
            if (json_object_get(made, text) == NULL) {
                json_object_set_new(made, text, json_array());
            }
            json_array_append(json_object_get(made, text), rank);
        }
    }
    json_object_foreach(made, text, ranks) {
        json_array_append_new(notes, tool_merge_note(text, ranks,
                              json_array_size(merge->ranks)));
    }
    json_decref(made);
    if (is_repeated) {
        json_array_append_new(notes, json_string(
                "ranks appear more than once: these may be reports of several "
                "jobs"));
    }
    return notes;
}

static json_t *tool_merge_field(tool_merge_t *merge, const tool_field_t *field)
{
    switch (field->kind) {
    case TOOL_FIELD_TEXT:
    case TOOL_FIELD_PARTS:
        return tool_merge_text(merge, field);
    case TOOL_FIELD_MODELLED:
        return tool_merge_modelled(merge, field->key);
    case TOOL_FIELD_MODEL:
        return tool_merge_model(merge, field->key);
    case TOOL_FIELD_PRICE:
        return tool_merge_price(merge);
    case TOOL_FIELD_NOTES:
        return tool_merge_notes(merge);
    default:
        return tool_merge_sum(merge, field);
    }
}

void tool_merge_finish(tool_merge_t *merge)
{
    const tool_field_t *field;

    merge->total = json_pack("{s:i,s:I,s:i}", "version", TOOL_REPORT_VERSION,
                             "rank_count",
                             (json_int_t)json_array_size(merge->ranks),
                             "host_count", 0);
    for (field = tool_fields; field->key != NULL; ++field) {
        if (field->kind != TOOL_FIELD_ID) {
            json_object_set_new(merge->total, field->key,
                                tool_merge_field(merge, field));
        }
    }
    json_object_set_new(merge->total, "host_count",
                        json_integer(merge->host_count));
    json_object_set(merge->total, "ranks", merge->ranks);
}

void tool_merge_cleanup(tool_merge_t *merge)
{
    json_decref(merge->total);
    json_decref(merge->ranks);
}
