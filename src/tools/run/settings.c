/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "run.h"

#include <ucs/regcache/regcache.h>
#include <uct/ib/helper_md/config/values.h>

#include <string.h>

static int tool_check_policy(const char *value)
{
    size_t i;

    for (i = 0; i < UCS_REGCACHE_POLICY_LAST; ++i) {
        if (!strcasecmp(value, ucs_regcache_policy_names[i])) {
            return 0;
        }
    }
    return -1;
}

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

static int tool_check_report(const char *value)
{
    uct_helper_report_dest_t dest;

    return ((*value != '\0') && (!strcasecmp(value, TOOL_REPORT_NONE) ||
                                 uct_helper_value_report(value, &dest))) ?
                   0 :
                   -1;
}

static int tool_check_pin_cost(const char *value)
{
    double base, page;

    return ((*value != '\0') && uct_helper_value_cost(value, &base, &page)) ?
                   0 : -1;
}

const tool_setting_t tool_settings[TOOL_SETTING_COUNT + 1] = {
    {"policy", "UCX_MD_HELPER_POLICY", "POLICY           when to register",
     "predict, paper, rent, leave_pinned, on_demand, lru or overlap",
     tool_check_policy},
    {"max-slowdown", "UCX_MD_HELPER_MAX_SLOWDOWN",
     "PERCENT    of the run time that all memory left pinned would be worth",
     "a share from 0.001% to 100%, such as 0.5% or 0.005", tool_check_share},
    {"max-pinned", "UCX_MD_HELPER_MAX_PINNED",
     "SIZE         ceiling of registered memory per domain",
     "a whole number with an optional K, M, G or T, or inf", tool_check_size},
    {"node-max-pinned", "UCX_MD_HELPER_NODE_MAX_PINNED",
     "SIZE    budget of registered memory for all ranks of a node",
     "a whole number with an optional K, M, G or T, or inf", tool_check_size},
    {"report", TOOL_ENV_REPORT,
     "REPORT           stderr, FILE, json:FILE or none (%h host, %p pid, "
     "%r rank)",
     "stderr, FILE, json:FILE or none, where a FILE that begins with a word "
     "and ':' is written ./FILE", tool_check_report},
    {"pin-cost", TOOL_ENV_PIN_COST,
     "BASE,PERPAGE   modelled cost of a registration, added to the real one",
     "two times, such as 5us,100ns (ns, us, ms or s; at most 1s and 1ms)",
     tool_check_pin_cost},
    {NULL, NULL, NULL, NULL, NULL}
};

int tool_setting_check(const tool_setting_t *setting, const char *value)
{
    return (setting->check(value) == 0) ?
                   0 :
                   tool_options_refuse(setting->name, value, setting->allowed);
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
