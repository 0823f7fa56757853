/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "report.h"


/* A percentile that no rank has sampled is null */
static json_t *tool_json_field(const tool_report_t *report,
                               const tool_field_t *field)
{
    double real;

    if (field->kind == TOOL_FIELD_WHOLE) {
        return json_integer(*tool_field_whole(report, field));
    }

    real = *tool_field_real(report, field);
    if ((real < 0) && ((field->kind == TOOL_FIELD_MEAN) ||
                       (field->kind == TOOL_FIELD_WORST))) {
        return json_null();
    }
    return json_real(real);
}

static json_t *tool_json_model(const tool_report_model_t *model)
{
    json_t *object = json_object();

    json_object_set_new(object, "a_seconds_per_page",
                        json_real(model->a_seconds_per_page));
    json_object_set_new(object, "b_seconds", json_real(model->b_seconds));
    json_object_set_new(object, "samples", json_integer(model->samples));
    return object;
}

static json_t *tool_json_modelled(const tool_report_t *report)
{
    json_t *object;

    if (!report->is_modelled) {
        return json_null();
    }

    object = json_object();
    json_object_set_new(object, "base_seconds",
                        json_real(report->modelled_base_seconds));
    json_object_set_new(object, "per_page_seconds",
                        json_real(report->modelled_per_page_seconds));
    return object;
}

/* What a rank's report and the merged one have in common */
static void tool_json_add_report(json_t *object, const tool_report_t *report)
{
    json_t *notes = json_array();
    const tool_text_field_t *text;
    const tool_field_t *field;
    size_t i;

    for (text = tool_text_fields; text->key != NULL; ++text) {
        json_object_set_new(object, text->key,
                            json_string(*tool_field_text(report, text)));
    }

    json_object_set_new(object, "modelled_cost", tool_json_modelled(report));
    for (field = tool_fields; field->key != NULL; ++field) {
        json_object_set_new(object, field->key, tool_json_field(report, field));
    }

    json_object_set_new(object, "register_model",
                        tool_json_model(&report->register_model));
    json_object_set_new(object, "deregister_model",
                        tool_json_model(&report->deregister_model));
    for (i = 0; i < report->notes.count; ++i) {
        json_array_append_new(notes, json_string(report->notes.items[i]));
    }
    json_object_set_new(object, "notes", notes);
}

static json_t *tool_json_rank(const tool_report_t *rank)
{
    json_t *object = json_object();

    json_object_set_new(object, "version", json_integer(TOOL_REPORT_VERSION));
    json_object_set_new(object, "rank", json_integer(rank->rank));
    json_object_set_new(object, "pid", json_integer(rank->pid));
    tool_json_add_report(object, rank);
    json_object_update(object, rank->node);
    return object;
}

json_t *tool_merge_to_json(const tool_merge_t *merge)
{
    json_t *object = json_object();
    json_t *ranks  = json_array();
    size_t i;

    json_object_set_new(object, "version", json_integer(TOOL_REPORT_VERSION));
    json_object_set_new(object, "rank_count", json_integer(merge->count));
    json_object_set_new(object, "host_count", json_integer(merge->host_count));
    tool_json_add_report(object, &merge->total);
    for (i = 0; i < merge->count; ++i) {
        json_array_append_new(ranks, tool_json_rank(&merge->ranks[i]));
    }
    json_object_set_new(object, "ranks", ranks);
    return object;
}
