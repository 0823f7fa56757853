/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "report.h"


/* A percentile that no rank has sampled is null */
static json_t *tool_json_field(const tool_report_t *report,
                               const tool_field_t *field)
{
    double real = *tool_field_real(report, field);

    switch (field->kind) {
    case TOOL_FIELD_TEXT:
    case TOOL_FIELD_PARTS:
        return json_string(*tool_field_text(report, field));
    case TOOL_FIELD_WHOLE:
    case TOOL_FIELD_SAMPLES:
        return json_integer(*tool_field_whole(report, field));
    case TOOL_FIELD_MEAN:
    case TOOL_FIELD_WORST:
        return (real < 0) ? json_null() : json_real(real);
    default:
        return json_real(real);
    }
}

/* What the field goes into, made when its first one comes */
static json_t *tool_json_object(json_t *object, const tool_report_t *report,
                                const tool_field_t *field)
{
    json_t *inner;

    if (field->object == NULL) {
        return object;
    }

    inner = json_object_get(object, field->object);
    if (inner == NULL) {
        inner = ((field->kind == TOOL_FIELD_ADDED) && !report->is_modelled) ?
                        json_null() : json_object();
        json_object_set_new(object, field->object, inner);
    }
    return inner; /* null takes nothing */
}

/* What a rank's report and the merged one have in common */
static void tool_json_add_report(json_t *object, const tool_report_t *report)
{
    json_t *notes = json_array();
    const tool_field_t *field;
    size_t i;

    for (field = tool_fields; field->key != NULL; ++field) {
        if (field->kind != TOOL_FIELD_ID) {
            json_object_set_new(tool_json_object(object, report, field),
                                field->key, tool_json_field(report, field));
        }
    }
    for (i = 0; i < report->notes.count; ++i) {
        json_array_append_new(notes, json_string(report->notes.items[i]));
    }
    json_object_set_new(object, "notes", notes);
}

static json_t *tool_json_rank(const tool_report_t *rank)
{
    json_t *object = json_pack("{s:i,s:I,s:I}", "version", TOOL_REPORT_VERSION,
                               "rank", (json_int_t)rank->rank, "pid",
                               (json_int_t)rank->pid);

    tool_json_add_report(object, rank);
    json_object_update(object, rank->node);
    return object;
}

json_t *tool_merge_to_json(const tool_merge_t *merge)
{
    json_t *object = json_pack("{s:i,s:I,s:I}", "version", TOOL_REPORT_VERSION,
                               "rank_count", (json_int_t)merge->count,
                               "host_count", (json_int_t)merge->host_count);
    json_t *ranks  = json_array();
    size_t i;

    tool_json_add_report(object, &merge->total);
    for (i = 0; i < merge->count; ++i) {
        json_array_append_new(ranks, tool_json_rank(&merge->ranks[i]));
    }
    json_object_set_new(object, "ranks", ranks);
    return object;
}
