/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "report.h"

#include <tools/input.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A report has about 2 KB; what is far larger is none */
#define TOOL_REPORT_FILE_MAX (1 << 20)

/* Of the rank on its node: nothing that could be merged */
static const char *const tool_report_node_keys[] = {
    "node_ranks",   "node_pinned_peak_bytes", "node_budget_bytes",
    "node_forced",  "node_given_bytes",       "cpu_policy",
    "helper_rests", "helper_cpu",             "idle_cores",
    "helper_state", "helper_since_seconds",   "helper_why",
    "helper_rest_seconds", NULL
};


/* @return -1 after a message */
#define tool_report_fail(_file, _fmt, ...) \
    (tool_message("%s: " _fmt, _file, ##__VA_ARGS__), -1)

static json_t *
tool_report_get(const char *file, const json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);

    if (value == NULL) {
        tool_message("%s: key '%s' is missing", file, key);
    }
    return value;
}

/* A finite number from @a min on */
static int
tool_report_get_real(const char *file, const json_t *object, const char *key,
                     double min, double *real_p)
{
    json_t *value = tool_report_get(file, object, key);
    double real;

    if (value == NULL) {
        return -1;
    } else if (!json_is_number(value)) {
        return tool_report_fail(file, "'%s' is not a number", key);
    }

    real = json_number_value(value);
    if (real < min) {
        return tool_report_fail(file, "'%s' is negative (%g)", key, real);
    } else if (!(real <= TOOL_REPORT_REAL_MAX)) {
        return tool_report_fail(file, "'%s' is too large (%g)", key, real);
    }

    *real_p = real;
    return 0;
}

/* A whole number up to TOOL_REPORT_WHOLE_MAX, also as 1.0 or 1e3 */
static int
tool_report_get_whole(const char *file, const json_t *object, const char *key,
                      int64_t min, int64_t *whole_p)
{
    double real;

    if (tool_report_get_real(file, object, key, min, &real) != 0) {
        return -1;
    } else if (real > TOOL_REPORT_WHOLE_MAX) {
        return tool_report_fail(file, "'%s' is too large (%g)", key, real);
    } else if (real != floor(real)) {
        return tool_report_fail(file, "'%s' is not a whole number (%g)", key,
                                real);
    }

    *whole_p = (int64_t)real;
    return 0;
}

static int tool_report_get_text(const char *file, const json_t *object,
                                const char *key, char **text_p)
{
    json_t *value = tool_report_get(file, object, key);

    if (value == NULL) {
        return -1;
    } else if (!json_is_string(value)) {
        return tool_report_fail(file, "'%s' is not a string", key);
    }

    *text_p = tool_strdup(json_string_value(value));
    tool_string_sanitize(*text_p);
    return 0;
}

/* @return Where the field is, which may be null for the kind that allows it;
 *         NULL after a message */
static const json_t *
tool_report_get_object(const char *file, const json_t *object,
                       const tool_field_t *field)
{
    int may_be_null = (field->kind == TOOL_FIELD_ADDED);

    if (field->object == NULL) {
        return object;
    }

    object = tool_report_get(file, object, field->object);
    if ((object == NULL) || json_is_object(object) ||
        (may_be_null && json_is_null(object))) {
        return object;
    }
    tool_message("%s: '%s' is %s an object", file, field->object,
                 may_be_null ? "neither null nor" : "not");
    return NULL;
}

static int
tool_report_get_field(const char *file, const json_t *object,
                      const tool_field_t *field, tool_report_t *report)
{
    double *real    = tool_field_real(report, field);
    const char *key = field->key;

    object = tool_report_get_object(file, object, field);
    if (object == NULL) {
        return -1;
    }

    switch (field->kind) {
    case TOOL_FIELD_TEXT:
    case TOOL_FIELD_PARTS:
        return tool_report_get_text(file, object, key,
                                    tool_field_text(report, field));
    case TOOL_FIELD_ID:
    case TOOL_FIELD_WHOLE:
    case TOOL_FIELD_SAMPLES: /* -1: the rank is not known */
        return tool_report_get_whole(file, object, key,
                                     !strcmp(key, "rank") ? -1 : 0,
                                     tool_field_whole(report, field));
    case TOOL_FIELD_ADDED:
        report->is_modelled = !json_is_null(object);
        return report->is_modelled ?
                       tool_report_get_real(file, object, key, 0, real) : 0;
    case TOOL_FIELD_TERM: /* a regression may well give a negative one */
        return tool_report_get_real(file, object, key, -TOOL_REPORT_REAL_MAX,
                                    real);
    case TOOL_FIELD_MEAN:
    case TOOL_FIELD_WORST:
        if (json_is_null(json_object_get(object, key))) {
            *real = -1;
            return 0;
        }
        /* fall through */
    default:
        return tool_report_get_real(file, object, key, 0, real);
    }
}

static int tool_report_get_notes(const char *file, const json_t *object,
                                 tool_report_t *report)
{
    json_t *notes = tool_report_get(file, object, "notes");
    json_t *note;
    size_t i;

    if (notes == NULL) {
        return -1;
    } else if (!json_is_array(notes)) {
        return tool_report_fail(file, "'notes' is not an array");
    }

    json_array_foreach(notes, i, note) {
        if (!json_is_string(note)) {
            return tool_report_fail(file, "'notes' has an entry that is not a "
                                          "string");
        }
        tool_list_add(&report->notes, json_string_value(note));
        tool_string_sanitize(report->notes.items[i]);
    }
    return 0;
}

static int tool_report_get_node(const char *file, const json_t *object,
                                tool_report_t *report)
{
    const char *const *key;
    json_t *value;

    report->node = json_object();
    for (key = tool_report_node_keys; *key != NULL; ++key) {
        value = tool_report_get(file, object, *key);
        if (value == NULL) {
            return -1;
        } else if (!json_is_null(value) && !json_is_string(value) &&
                   !json_is_number(value)) {
            return tool_report_fail(file, "'%s' is neither null nor a string "
                                          "nor a number", *key);
        }
        json_object_set(report->node, *key, value);
    }
    return 0;
}

/* Is it a report at all, and one that we know? */
static int tool_report_check_kind(const char *file, const json_t *object)
{
    json_t *version = json_object_get(object, "version");

    if (!json_is_object(object) || (version == NULL)) {
        return tool_report_fail(file, "not a report of the helper: %s",
                                json_is_object(object) ?
                                        "key 'version' is missing" :
                                        "not a JSON object");
    } else if (json_object_get(object, "ranks") != NULL) {
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

static int tool_report_get_all(const char *file, const json_t *object,
                               tool_report_t *report)
{
    const tool_field_t *field;

    if (tool_report_check_kind(file, object) != 0) {
        return -1;
    }
    for (field = tool_fields; field->key != NULL; ++field) {
        if (tool_report_get_field(file, object, field, report) != 0) {
            return -1;
        }
    }
    if (tool_report_get_node(file, object, report) != 0) {
        return -1;
    }
    return tool_report_get_notes(file, object, report);
}

/* Each is written with twelve digits */
static int tool_report_check_sum(const char *file, const char *key, double whole,
                                 const double *parts, size_t count)
{
    double sum = 0;
    size_t i;

    for (i = 0; i < count; ++i) {
        sum += parts[i];
    }
    return (fabs(sum - whole) <= 1e-6 * whole) ? 0 :
           tool_report_fail(file, "'%s' (%g) is not the sum of its parts (%g)",
                            key, whole, sum);
}

static int tool_report_check(const char *file, const tool_report_t *report)
{
    int64_t sum = report->on_time + report->late + report->missed +
                  report->cold;

    if (report->uses != sum) {
        return tool_report_fail(file, "'uses' (%jd) is not on_time + late + "
                                      "missed + cold (%jd)",
                                (intmax_t)report->uses, (intmax_t)sum);
    }
    if ((tool_report_check_sum(file, "pinned_byte_seconds",
                               report->pinned_byte_seconds, report->held,
                               UCS_REGCACHE_HELD_LAST) != 0) ||
        (tool_report_check_sum(file, "lost_seconds", report->lost_seconds,
                               report->lost, UCS_REGCACHE_LOST_LAST) != 0)) {
        return -1;
    }
    return 0;
}

/* @return Bytes, at most one more than a report may have; -1 after a message */
static ssize_t tool_report_load_text(const char *file, char *text)
{
    int fd       = tool_input_open(file);
    ssize_t size = 0;
    ssize_t ret  = 0;

    if (fd < 0) {
        return -1;
    }

    while ((size <= TOOL_REPORT_FILE_MAX) &&
           ((ret = read(fd, text + size, TOOL_REPORT_FILE_MAX + 1 - size)) >
            0)) {
        size += ret;
    }
    if (ret < 0) {
        size = tool_report_fail(file, "cannot be read: %s", strerror(errno));
    } else if (size == 0) {
        size = tool_report_fail(file, "the file is empty");
    } else if (size > TOOL_REPORT_FILE_MAX) {
        size = tool_report_fail(file, "too large for a report (more than %d "
                                      "bytes)", TOOL_REPORT_FILE_MAX);
    }
    close(fd);
    return size;
}

static json_t *tool_report_load(const char *file)
{
    char *text     = tool_realloc(NULL, TOOL_REPORT_FILE_MAX + 1);
    ssize_t size   = tool_report_load_text(file, text);
    json_t *object = NULL;
    json_error_t error;

    if (size > 0) {
        object = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
        if (object == NULL) {
            tool_message("%s: line %d, column %d: %s", file, error.line,
                         error.column, error.text);
        }
    }
    free(text);
    return object;
}

int tool_report_read(const char *file, tool_report_t *report)
{
    tool_report_t read = {};
    json_t *object;
    int ret;

    object = tool_report_load(file);
    if (object == NULL) {
        return -1;
    }

    read.file = tool_strdup(file);
    ret       = tool_report_get_all(file, object, &read);
    if (ret == 0) {
        ret = tool_report_check(file, &read);
    }
    json_decref(object);

    if (ret != 0) {
        tool_report_cleanup(&read);
        return ret;
    }

    *report = read;
    return 0;
}

void tool_report_cleanup(tool_report_t *report)
{
    const tool_field_t *field;

    for (field = tool_fields; field->key != NULL; ++field) {
        if ((field->kind == TOOL_FIELD_TEXT) ||
            (field->kind == TOOL_FIELD_PARTS)) {
            free(*tool_field_text(report, field));
            *tool_field_text(report, field) = NULL;
        }
    }
    free(report->file);
    report->file = NULL;
    tool_list_cleanup(&report->notes);
    json_decref(report->node);
    report->node = NULL;
}
