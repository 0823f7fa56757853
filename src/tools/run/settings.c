/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "settings.h"

#include <tools/tool.h>
#include <tools/units.h>

#include <ucs/sys/nearest.h>
#include <uct/ib/helper_md/config/values.h>

#include <stdlib.h>
#include <string.h>


/* Here and not the helper's own, whose objects need UCX */
static const char *const tool_monitor_words[] = {"ucm", "auto", NULL};
static const char *const tool_report_words[]  = {"stderr", "none", "json:",
                                                 NULL};
static const char *const tool_cpu_words[]     = {"auto", NULL};
static const char *const tool_log_words[]     = {"error", "warn", "info",
                                                 "debug", NULL};


static int tool_check_share(const char *value)
{
    double share;

    return uct_helper_value_share(value, &share) ? 0 : -1;
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
    uct_helper_report_dest_t dest;

    return ((*value != '\0') && (!strcasecmp(value, TOOL_REPORT_NONE) ||
                                 uct_helper_value_report(value, &dest))) ?
                   0 :
                   -1;
}

static int tool_check_cpu(const char *value)
{
    ucs_cpu_set_t cpus;

    /* Nothing: as the thread that starts it */
    return ((*value == '\0') || !strcasecmp(value, "auto") ||
            uct_helper_value_cpus(value, &cpus)) ? 0 : -1;
}

static int tool_check_pin_cost(const char *value)
{
    double base, page;

    return ((tool_units_parse_cost(value, &base, &page) == 0) &&
            uct_helper_value_cost(value, &base, &page)) ? 0 : -1;
}

const tool_setting_t tool_settings[TOOL_SETTING_COUNT + 1] = {
    {"policy", "UCX_MD_HELPER_POLICY", "POLICY", "when to register",
     "predict, paper, rent, leave_pinned, on_demand, lru "
     "or overlap", NULL,
     ucs_regcache_policy_names},
    {"max-slowdown", "UCX_MD_HELPER_MAX_SLOWDOWN", "PERCENT",
     "of the run time that all memory left pinned would be worth",
     "a share from 0.001% to 100%, such as 0.5% or 0.005", tool_check_share,
     NULL},
    {"max-pinned", "UCX_MD_HELPER_MAX_PINNED", "SIZE",
     "ceiling of registered memory per domain",
     "a whole number with an optional K, M, G or T, or inf", tool_check_size,
     NULL},
    {"max-regions", "UCX_MD_HELPER_MAX_REGIONS", "COUNT",
     "ceiling of registrations per domain",
     "a whole number from 1 to 4294967295, or inf", tool_check_count, NULL},
    {"node-max-pinned", "UCX_MD_HELPER_NODE_MAX_PINNED", "SIZE",
     "budget of registered memory for all ranks of a node",
     "a whole number with an optional K, M, G or T, or inf", tool_check_size,
     NULL},
    {"min-size", "UCX_MD_HELPER_MIN_SIZE", "SIZE",
     "register smaller buffers once and keep them",
     "a whole number with an optional K, M, G or T, or inf", tool_check_size,
     NULL},
    {"report", TOOL_ENV_REPORT, "REPORT",
     "stderr, FILE, json:FILE or none (%h host, %p pid, %r rank)",
     "stderr, FILE, json:FILE or none, where a FILE that begins with a word "
     "and ':' is written ./FILE", tool_check_report, tool_report_words},
    {"monitor", "UCX_MD_HELPER_MONITOR", "MONITOR",
     "what tells of memory that goes away", "auto or ucm",
     NULL, tool_monitor_words},
    {"cpu", "UCX_MD_HELPER_CPU", "LIST",
     "processors that the helper thread may run on",
     "auto, a list of processors below 1024 such as 0-3,8, or nothing",
     tool_check_cpu, tool_cpu_words},
    {"cpu-policy", "UCX_MD_HELPER_CPU_POLICY", "POLICY",
     "which ranks of a node have a helper",
     "idle, conservative or aggressive", NULL, ucs_place_policy_names},
    {"log", "UCX_MD_HELPER_LOG", "LEVEL", "how much the helper says",
     "error, warn, info or debug", NULL, tool_log_words},
    {"pin-cost", TOOL_ENV_PIN_COST, "BASE,PERPAGE",
     "modelled cost of a registration, added to the real one",
     "two times, such as 5us,100ns (ns, us, ms or s; at most 1s and 1ms)",
     tool_check_pin_cost, NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL}
};

const tool_setting_t *tool_setting_of(const char *variable)
{
    const tool_setting_t *setting = tool_settings;

    while (strcmp(setting->variable, variable)) {
        ++setting;
    }
    return setting;
}

static int tool_setting_has_word(const tool_setting_t *setting,
                                 const char *value)
{
    const char *const *word;

    for (word = setting->words; *word != NULL; ++word) {
        if (!strcasecmp(value, *word)) {
            return 1;
        }
    }
    return 0;
}

int tool_setting_check(const tool_setting_t *setting, const char *value)
{
    const char *word = NULL;
    char hint[UCS_NEAREST_HINT_MAX];
    size_t length;

    if ((setting->check != NULL) ?
                (setting->check(value) == 0) :
                tool_setting_has_word(setting, value)) {
        return 0;
    }

    length = strcspn(value, ":"); /* with it, a form */
    length += (value[length] == ':');
    if (setting->words != NULL) {
        word = ucs_nearest_of(value, length, setting->words);
    }
    tool_message("option --%s: '%s' is not allowed; allowed: %s%s",
                 setting->name, value, setting->allowed,
                 ucs_nearest_hint(word, "", hint));
    return -1;
}

const char *tool_report_option_file(const char *value)
{
    uct_helper_report_dest_t dest;

    if (!strcasecmp(value, TOOL_REPORT_NONE) ||
        !uct_helper_value_report(value, &dest) || (dest.stream > 0) ||
        (dest.kind == UCT_HELPER_REPORT_NONE)) {
        return NULL;
    }
    return value + strlen(value) - strlen(dest.path);
}
