/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A report has about 2 KB; what is far larger is none */
#define TOOL_REPORT_FILE_MAX (1 << 20)

/* Largest number that is read, in its own unit */
#define TOOL_REPORT_MAX 1e18

const tool_field_t tool_fields[] = {
    {"rank", TOOL_FIELD_ID},
    {"pid", TOOL_FIELD_ID},
    {"host", TOOL_FIELD_TEXT},
    {"command", TOOL_FIELD_TEXT},
    {"policy", TOOL_FIELD_TEXT},
    {"ucx_version", TOOL_FIELD_TEXT},
    {"lower_domain", TOOL_FIELD_PARTS},
    {"modelled_cost", TOOL_FIELD_MODELLED},
    {"elapsed_seconds", TOOL_FIELD_LONGEST},
    {"helper_cpu_seconds", TOOL_FIELD_REAL},
    {"max_slowdown", TOOL_FIELD_LONGEST},
    {"region_bytes", TOOL_FIELD_LONGEST},
    {"heard_lost", TOOL_FIELD_WHOLE},
#define UCS_FIGURE(_type, _name, _key, _unit) \
    {_key, ((_unit) == 1) ? TOOL_FIELD_WHOLE : TOOL_FIELD_REAL},
#include <ucs/regcache/stats_table.h>
#undef UCS_FIGURE
    {"price_j", TOOL_FIELD_PRICE},
    {"in_use_byte_seconds", TOOL_FIELD_REAL},
    {"soon_byte_seconds", TOOL_FIELD_REAL},
    {"ahead_byte_seconds", TOOL_FIELD_REAL},
    {"unknown_byte_seconds", TOOL_FIELD_REAL},
    {"late_byte_seconds", TOOL_FIELD_REAL},
    {"other_byte_seconds", TOOL_FIELD_REAL},
    {"registered_ahead", TOOL_FIELD_WHOLE},
    {"ahead_seconds", TOOL_FIELD_REAL},
    {"lost_first_seconds", TOOL_FIELD_REAL},
    {"lost_unforetold_seconds", TOOL_FIELD_REAL},
    {"lost_late_seconds", TOOL_FIELD_REAL},
    {"lost_room_seconds", TOOL_FIELD_REAL},
    {"lost_waited_seconds", TOOL_FIELD_REAL},
    {"lost_released_seconds", TOOL_FIELD_REAL},
    {"register_model", TOOL_FIELD_MODEL},
    {"deregister_model", TOOL_FIELD_MODEL},
    {"notes", TOOL_FIELD_NOTES},
    {NULL, TOOL_FIELD_WHOLE}
};

/* @return -1 after a message */
#define tool_report_fail(_file, _fmt, ...) \
    (tool_message("%s: " _fmt, _file, ##__VA_ARGS__), -1)

double tool_report_number(const json_t *report, const char *key)
{
    const json_t *value = json_object_get(report, key);

    return json_is_number(value) ? json_number_value(value) : -1;
}

const char *tool_report_text(const json_t *report, const char *key)
{
    return json_string_value(json_object_get(report, key));
}

json_t *tool_report_string(const char *text)
{
    json_t *string = json_string(text);
    char *copy, *p;

    if (string == NULL) {
        copy = tool_strdup(text);
        for (p = copy; *p != '\0'; ++p) {
            *p = ((unsigned char)*p < 0x80) ? *p : '?';
        }
        string = json_string(copy);
        free(copy);
    }
    return string;
}

/* -1: a rank that is not known */
static int tool_report_is_number(const char *key, const json_t *value)
{
    double real = json_number_value(value);

    return json_is_number(value) && (real >= (strcmp(key, "rank") ? 0 : -1)) &&
           (real <= TOOL_REPORT_MAX);
}

/* A cost has terms a page and alone, which a regression may well find to be
 * negative, and perhaps samples */
static int tool_report_is_cost(json_t *value, const char *format,
                               const char *page, const char *base)
{
    double samples = 0;
    double a, b;

    return (json_unpack(value, format, page, &a, base, &b, "samples",
                        &samples) == 0) &&
           (fabs(a) <= TOOL_REPORT_MAX) && (fabs(b) <= TOOL_REPORT_MAX) &&
           (samples >= 0) && (samples <= TOOL_REPORT_MAX);
}

static int tool_report_check_field(const char *file, const json_t *report,
                                   const tool_field_t *field)
{
    json_t *value    = json_object_get(report, field->key);
    const char *what = "a cost";
    int is_valid;
    json_t *note;
    size_t i;

    switch (field->kind) {
    case TOOL_FIELD_TEXT:
    case TOOL_FIELD_PARTS:
        what     = "a string";
        is_valid = json_is_string(value);
        break;
    case TOOL_FIELD_MODELLED:
        is_valid = json_is_null(value) ||
                   tool_report_is_cost(value, "{s:F,s:F}", "per_page_seconds",
                                       "base_seconds");
        break;
    case TOOL_FIELD_MODEL:
        is_valid = tool_report_is_cost(value, "{s:F,s:F,s:F}",
                                       "a_seconds_per_page", "b_seconds");
        break;
    case TOOL_FIELD_NOTES:
        what     = "an array of strings";
        is_valid = json_is_array(value);
        json_array_foreach(value, i, note) {
            is_valid &= json_is_string(note);
        }
        break;
    default:
        what     = "a number from 0 to 1e18";
        is_valid = tool_report_is_number(field->key, value);
        break;
    }
    return is_valid ? 0 :
           tool_report_fail(file, "'%s' is %s%s", field->key,
                            (value == NULL) ? "missing; allowed: " : "not ",
                            what);
}

/* Is it a report at all, and one that we know? */
static int tool_report_check_kind(const char *file, const json_t *report)
{
    json_t *version = json_object_get(report, "version");

    if (!json_is_object(report) || (version == NULL)) {
        return tool_report_fail(file, "not a report of the helper: %s",
                                json_is_object(report) ?
                                        "key 'version' is missing" :
                                        "not a JSON object");
    } else if (json_object_get(report, "ranks") != NULL) {
        return tool_report_fail(file, "merged already; give the ranks' own "
                                      "reports");
    } else if (!json_is_integer(version) ||
               (json_integer_value(version) != TOOL_REPORT_VERSION)) {
        return tool_report_fail(file, "unknown 'version'; this program reads "
                                      "version %d",
                                TOOL_REPORT_VERSION);
    }
    return 0;
}

static int tool_report_check(const char *file, const json_t *report)
{
    const tool_field_t *field;

    if (tool_report_check_kind(file, report) != 0) {
        return -1;
    }
    for (field = tool_fields; field->key != NULL; ++field) {
        if (tool_report_check_field(file, report, field) != 0) {
            return -1;
        }
    }
    return 0;
}

json_t *tool_report_read(const char *file)
{
    json_t *report = NULL;
    json_error_t error;
    size_t size;
    char *text;

    text = tool_input_read(file, TOOL_REPORT_FILE_MAX, &size);
    if (text == NULL) {
        return NULL;
    }

    report = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    free(text);
    if (report == NULL) {
        tool_message("%s: line %d, column %d: %s", file, error.line,
                     error.column, error.text);
    } else if (tool_report_check(file, report) != 0) {
        json_decref(report);
        report = NULL;
    } else {
        json_object_set_new(report, "file", tool_report_string(file));
    }
    return report;
}
