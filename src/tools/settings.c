/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE
#endif
#include "settings.h"
#include "tool.h"
#include "units.h"

#include <stdlib.h>
#include <string.h>

#define TOOL_JSON_PREFIX "json:"
#define TOOL_CPU_MAX     1023


static int tool_check_word(const char *value, const char *const *words)
{
    for (; *words != NULL; ++words) {
        if (!strcasecmp(value, *words)) {
            return 0;
        }
    }
    return -1;
}

static int tool_check_policy(const char *value)
{
    static const char *const words[] = {"predict", "paper", "leave_pinned",
                                        "on_demand", "lru", NULL};

    return tool_check_word(value, words);
}

static int tool_check_monitor(const char *value)
{
    static const char *const words[] = {"ucm", "userfaultfd", "both", "auto",
                                        NULL};

    return tool_check_word(value, words);
}

static int tool_check_cpu_policy(const char *value)
{
    static const char *const words[] = {"conservative", "aggressive", "auto",
                                        NULL};

    return tool_check_word(value, words);
}

static int tool_check_share(const char *value)
{
    double share;
    char *end;

    if ((*value < '0') || (*value > '9')) {
        return -1;
    }
    share = strtod(value, &end);
    if (*end == '%') {
        share /= 100;
        ++end;
    }
    return ((*end == '\0') && (share > 0) && (share < 1)) ? 0 : -1;
}

static int tool_check_log(const char *value)
{
    static const char *const words[] = {"error", "warn", "info", "debug",
                                        NULL};

    return tool_check_word(value, words);
}

static int tool_check_size(const char *value)
{
    uint64_t bytes;

    return tool_units_parse_size(value, &bytes);
}

static int tool_check_count(const char *value)
{
    uint64_t count;

    return ((tool_units_parse_count(value, &count) == 0) && (count > 0)) ? 0 :
                                                                           -1;
}

static int tool_check_report(const char *value)
{
    const char *file = tool_report_option_file(value);

    return (*value == '\0') || ((file != NULL) && (*file == '\0')) ? -1 : 0;
}

/* Call check for each part between commas */
static int tool_check_each(const char *value, int (*check)(const char*))
{
    char *copy = tool_strdup(value);
    char *rest = copy;
    int ret    = 0;
    char *part;

    while ((ret == 0) && ((part = strsep(&rest, ",")) != NULL)) {
        ret = check(part);
    }
    free(copy);
    return ret;
}

static int tool_check_md(const char *value)
{
    static const char *const words[] = {"ib", "pin", NULL};

    return tool_check_word(value, words);
}

static int tool_check_mds(const char *value)
{
    return tool_check_each(value, tool_check_md);
}

static int tool_check_cpu_range(const char *value)
{
    char *copy = tool_strdup(value);
    char *last = copy;
    char *first;
    uint64_t from, to;
    int ret = -1;

    first = strsep(&last, "-");
    if (tool_units_parse_count(first, &from) != 0) {
        goto out;
    }

    to = from;
    if ((last != NULL) && (tool_units_parse_count(last, &to) != 0)) {
        goto out;
    }

    /* This refuses inf, too */
    ret = ((from <= to) && (to <= TOOL_CPU_MAX)) ? 0 : -1;
out:
    free(copy);
    return ret;
}

static int tool_check_cpu(const char *value)
{
    /* Nothing: as the thread that starts it */
    return ((*value == '\0') || !strcasecmp(value, "auto")) ?
                   0 :
                   tool_check_each(value, tool_check_cpu_range);
}

static int tool_check_time(const char *value)
{
    double seconds;

    return tool_units_parse_time(value, &seconds);
}

static int tool_check_pin_cost(const char *value)
{
    const char *comma = strchr(value, ',');

    if ((comma == NULL) || (strchr(comma + 1, ',') != NULL)) {
        return -1;
    }
    return tool_check_each(value, tool_check_time);
}

const tool_setting_t tool_settings[TOOL_SETTING_COUNT + 1] = {
    {"policy", "UCX_MD_HELPER_POLICY", "POLICY", "when to register",
     "predict, paper, leave_pinned, on_demand or lru", tool_check_policy},
    {"miss-target", "UCX_MD_HELPER_MISS_TARGET", "SHARE",
     "uses that may find their buffer unregistered, under predict",
     "a share above 0 and below 1, such as 0.01 or 1%", tool_check_share},
    {"max-pinned", "UCX_MD_HELPER_MAX_PINNED", "SIZE",
     "ceiling of registered memory per domain",
     "a whole number with an optional K, M, G or T, or inf", tool_check_size},
    {"max-regions", "UCX_MD_HELPER_MAX_REGIONS", "COUNT",
     "ceiling of registrations per domain",
     "a whole number from 1 to 4294967295, or inf", tool_check_count},
    {"node-max-pinned", "UCX_MD_HELPER_NODE_MAX_PINNED", "SIZE",
     "budget of registered memory for all ranks of a node",
     "a whole number with an optional K, M, G or T, or inf", tool_check_size},
    {"min-size", "UCX_MD_HELPER_MIN_SIZE", "SIZE",
     "register smaller buffers once and keep them",
     "a whole number with an optional K, M, G or T, or inf", tool_check_size},
    {"report", TOOL_ENV_REPORT, "REPORT",
     "stderr, FILE, json:FILE or none (%h host, %p pid, %r rank)",
     "stderr, FILE, json:FILE or none", tool_check_report},
    {"mds", "UCX_MD_HELPER_MDS", "LIST", "memory domains to wrap",
     "ib, pin or both, separated by a comma", tool_check_mds},
    {"monitor", "UCX_MD_HELPER_MONITOR", "MONITOR",
     "what tells of memory that goes away", "ucm, userfaultfd, both or auto",
     tool_check_monitor},
    {"cpu", "UCX_MD_HELPER_CPU", "LIST",
     "processors that the helper thread may run on",
     "auto, a list of processors below 1024 such as 0-3,8, or nothing",
     tool_check_cpu},
    {"cpu-policy", "UCX_MD_HELPER_CPU_POLICY", "POLICY",
     "which ranks of a node have a helper", "conservative, aggressive or auto",
     tool_check_cpu_policy},
    {"log", "UCX_MD_HELPER_LOG", "LEVEL", "how much the helper says",
     "error, warn, info or debug", tool_check_log},
    {"pin-cost", TOOL_ENV_PIN_COST, "BASE,PERPAGE",
     "modelled cost of a registration, added to the real one",
     "two times, such as 5us,100ns (ns, us, ms, s or m; at most an hour)",
     tool_check_pin_cost},
    {NULL, NULL, NULL, NULL, NULL, NULL}
};

const tool_setting_t *tool_setting_of(const char *variable)
{
    const tool_setting_t *setting = tool_settings;

    while (strcmp(setting->variable, variable)) {
        ++setting;
    }
    return setting;
}

int tool_setting_check(const tool_setting_t *setting, const char *value)
{
    if (setting->check(value) == 0) {
        return 0;
    }

    tool_message("option --%s: '%s' is not allowed; allowed: %s",
                 setting->name, value, setting->allowed);
    return -1;
}

const char *tool_report_option_file(const char *value)
{
    if (!strncmp(value, TOOL_JSON_PREFIX, strlen(TOOL_JSON_PREFIX))) {
        return value + strlen(TOOL_JSON_PREFIX);
    }
    return strcmp(value, "stderr") && strcmp(value, TOOL_REPORT_NONE) ? value :
                                                                        NULL;
}
