/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "helper_config.h"
#include "helper_options.h"
#include "values.h"
#include <ucs/sys/io/log.h>

#include <ucs/sys/preprocessor.h>

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define UCT_HELPER_ERROR_MAX 512

#define UCT_HELPER_SIZES     "bytes with an optional k, m, g or t, or inf"
#define UCT_HELPER_REGION_SIZES \
    "bytes with an optional k, m or g, at most 1g"
#define UCT_HELPER_SHARES \
    "a share from 0.001% to 100%, such as 0.5% or 0.005"

/* The index of an option, from its offset in uct_helper_options_t */
#define UCT_HELPER_INDEX(_offset) ((_offset) / sizeof(char*))

/* The configuration that holds a field. UCX's ucs_container_of() dereferences
 * NULL, which a sanitizer reports. */
#define UCT_HELPER_CONFIG_OF(_value_p, _field) \
    ((uct_helper_config_t*)((char*)(_value_p) - \
                            offsetof(uct_helper_config_t, _field)))

#define UCT_HELPER_RULE(_option, _read, _words, _value, _allowed) \
    [UCT_HELPER_INDEX(offsetof(uct_helper_options_t, _option))] = { \
        _read, _words, offsetof(uct_helper_config_t, _value), _allowed \
    }

/* How one option is checked. A reader is UCX's or has the same form: it returns
 * zero for invalid text and leaves the value. */
typedef struct uct_helper_rule {
    int               (*read)(const char *text, void *value_p,
                              const void *words);
    const char *const *words;   /* known ones; NULL: none */
    size_t            offset;   /* of the value in uct_helper_config_t */
    const char        *allowed; /* for a user */
} uct_helper_rule_t;

static const char *const uct_helper_monitor_words[] = {
    [UCT_HELPER_MONITOR_AUTO] = "auto",
    [UCT_HELPER_MONITOR_UCM]  = "ucm",
    NULL
};

static const char *const uct_helper_auto_words[] = {"auto", NULL};

static const char *const uct_helper_cpu_policy_words[] = {
    [UCT_HELPER_CPU_POLICY_IDLE]         = "idle",
    [UCT_HELPER_CPU_POLICY_CONSERVATIVE] = "conservative",
    [UCT_HELPER_CPU_POLICY_AGGRESSIVE]   = "aggressive",
    NULL
};

static const char *const uct_helper_coalesce_words[] = {
    [UCS_REGCACHE_COVER_OFF]    = "off",
    [UCS_REGCACHE_COVER_LOCAL]  = "local",
    [UCS_REGCACHE_COVER_REMOTE] = "remote",
    NULL
};

static const char *const uct_helper_log_words[] = {"error", "warn", "info",
                                                   "debug", NULL};

static const char *const uct_helper_syslog_words[] = {"error", "warn", "info",
                                                      "debug", "none", NULL};

static const ucs_log_level_t uct_helper_log_levels[] = {UCS_LOG_LEVEL_ERROR,
                                                        UCS_LOG_LEVEL_WARN,
                                                        UCS_LOG_LEVEL_INFO,
                                                        UCS_LOG_LEVEL_DEBUG,
                                                        UCS_LOG_LEVEL_FATAL};

/* UCX's readers of sizes, numbers and times accept a sign and ignore trailing
 * text: -1 or 1x would be no ceiling. So these are read here. */
#define UCT_HELPER_READER(_name) \
    static int uct_helper_read_##_name(const char *text, void *value_p, \
                                       const void *words) \
    { \
        return uct_helper_value_##_name(text, value_p); \
    }

UCT_HELPER_READER(size)
UCT_HELPER_READER(share)
UCT_HELPER_READER(report)
UCT_HELPER_READER(told)

static int
uct_helper_read_count(const char *text, void *value_p, const void *words)
{
    unsigned long count;
    unsigned is_auto;

    if (ucs_config_sscanf_enum(text, &is_auto, words)) {
        count = UCT_HELPER_REGIONS_AUTO;
    } else if (!uct_helper_value_count(text, &count) || (count == 0)) {
        return 0;
    }

    *(unsigned long*)value_p = count;
    return 1;
}

static int
uct_helper_read_pin_regions(const char *text, void *value_p, const void *words)
{
    unsigned long count;

    if (!uct_helper_value_count(text, &count) || (count == 0)) {
        return 0;
    }

    *(unsigned long*)value_p = (count == ULONG_MAX) ? 0 : count;
    return 1;
}

static int
uct_helper_read_region(const char *text, void *value_p, const void *words)
{
    size_t bytes;

    if (!uct_helper_value_size(text, &bytes) ||
        (bytes > UCS_REGCACHE_REGION_BYTES_MAX)) {
        return 0;
    }

    *(size_t*)value_p = bytes;
    return 1;
}

static int
uct_helper_read_trace(const char *text, void *value_p, const void *words)
{
    if (strlen(text) >= PATH_MAX) {
        return 0;
    }

    strcpy(value_p, text);
    return 1;
}

static int
uct_helper_read_log(const char *text, void *value_p, const void *words)
{
    unsigned index;

    if (!ucs_config_sscanf_enum(text, &index, words)) {
        return 0;
    }

    *(ucs_log_level_t*)value_p = uct_helper_log_levels[index];
    return 1;
}

/* This reader and the next fill further fields */
static int
uct_helper_read_cpu(const char *text, void *value_p, const void *words)
{
    uct_helper_config_t *config = UCT_HELPER_CONFIG_OF(value_p, cpu_mode);
    unsigned is_auto;

    if (*text == '\0') {
        config->cpu_mode = UCT_HELPER_CPU_INHERIT;
    } else if (ucs_config_sscanf_enum(text, &is_auto, words)) {
        config->cpu_mode = UCT_HELPER_CPU_AUTO;
    } else if (uct_helper_value_cpus(text, &config->cpus)) {
        config->cpu_mode = UCT_HELPER_CPU_LIST;
    } else {
        return 0;
    }

    return 1;
}

static int
uct_helper_read_cost(const char *text, void *value_p, const void *words)
{
    uct_helper_config_t *config = UCT_HELPER_CONFIG_OF(value_p, pin_base_ns);

    return uct_helper_value_cost(text, &config->pin_base_ns,
                                 &config->pin_per_page_ns);
}

static const uct_helper_rule_t uct_helper_rules[] = {
    UCT_HELPER_RULE(helper, ucs_config_sscanf_on_off, NULL, helper, "y or n"),
    UCT_HELPER_RULE(policy, ucs_config_sscanf_enum, ucs_regcache_policy_names,
                    policy,
                    "predict, paper, rent, leave_pinned, on_demand, lru "
                    "or overlap"),
    UCT_HELPER_RULE(max_slowdown, uct_helper_read_share, NULL, max_slowdown,
                    UCT_HELPER_SHARES),
    UCT_HELPER_RULE(region_bytes, uct_helper_read_region, NULL, region_bytes,
                    UCT_HELPER_REGION_SIZES),
    UCT_HELPER_RULE(min_size, uct_helper_read_size, NULL, min_size,
                    UCT_HELPER_SIZES),
    UCT_HELPER_RULE(max_pinned, uct_helper_read_size, NULL, max_pinned,
                    UCT_HELPER_SIZES),
    UCT_HELPER_RULE(max_regions, uct_helper_read_count, uct_helper_auto_words,
                    max_regions, "a number above 0, auto or inf"),
    UCT_HELPER_RULE(node_max_pinned, uct_helper_read_size, NULL,
                    node_max_pinned, UCT_HELPER_SIZES),
    UCT_HELPER_RULE(monitor, ucs_config_sscanf_enum, uct_helper_monitor_words,
                    monitor, "auto or ucm"),
    UCT_HELPER_RULE(report, uct_helper_read_report, NULL, report,
                    "stderr, FILE or json:FILE, where a FILE that begins with "
                    "a word and ':' is written ./FILE"),
    UCT_HELPER_RULE(trace, uct_helper_read_trace, NULL, trace,
                    "FILE of less than 4096 bytes, or nothing"),
    UCT_HELPER_RULE(cpu, uct_helper_read_cpu, uct_helper_auto_words, cpu_mode,
                    "auto, a list such as 0-3,8, or nothing"),
    UCT_HELPER_RULE(cpu_policy, ucs_config_sscanf_enum,
                    uct_helper_cpu_policy_words, cpu_policy,
                    "idle, conservative or aggressive"),
    UCT_HELPER_RULE(coalesce, ucs_config_sscanf_enum, uct_helper_coalesce_words,
                    coalesce, "off, local or remote"),
    UCT_HELPER_RULE(log, uct_helper_read_log, uct_helper_log_words, log_level,
                    "error, warn, info or debug"),
    UCT_HELPER_RULE(syslog, uct_helper_read_log, uct_helper_syslog_words,
                    syslog_level, "none, error, warn, info or debug"),
    UCT_HELPER_RULE(pin, ucs_config_sscanf_on_off, NULL, pin, "y or n"),
    UCT_HELPER_RULE(pin_cost, uct_helper_read_cost, NULL, pin_base_ns,
                    "two times such as 5us,100ns, at most 1s and 1ms, or "
                    "nothing"),
    UCT_HELPER_RULE(pin_reg_cost, uct_helper_read_told, NULL, pin_told_ns,
                    "a time such as 180ns, above 0 and at most 1s, or "
                    "nothing"),
    UCT_HELPER_RULE(pin_max_regions, uct_helper_read_pin_regions, NULL,
                    pin_max_regions, "a number above 0, or inf"),
    UCT_HELPER_RULE(pin_verify, ucs_config_sscanf_on_off, NULL, pin_verify,
                    "y or n")
};

static const uct_helper_rule_t *
uct_helper_config_rule(const ucs_config_field_t *field)
{
    return &uct_helper_rules[UCT_HELPER_INDEX(field->offset)];
}

/* @return Zero for invalid text; the configuration is unchanged then */
static int uct_helper_config_set(uct_helper_config_t *config,
                                 const ucs_config_field_t *field,
                                 const char *text)
{
    const uct_helper_rule_t *rule = uct_helper_config_rule(field);

    return rule->read(text, UCS_PTR_BYTE_OFFSET(config, rule->offset),
                      rule->words);
}

static void uct_helper_config_set_defaults(uct_helper_config_t *config)
{
    const ucs_config_field_t *field;

    memset(config, 0, sizeof(*config));
    for (field = uct_helper_options_table; field->name != NULL; ++field) {
        (void)uct_helper_config_set(config, field, field->dfl_value);
    }
}

static int uct_helper_config_is_pin(const ucs_config_field_t *field)
{
    return field->offset >= offsetof(uct_helper_options_t, pin);
}

static void uct_helper_config_complain(const ucs_config_field_t *field,
                                       const char *text, char *error,
                                       size_t max)
{
    const uct_helper_rule_t *rule = uct_helper_config_rule(field);

    snprintf(error, max,
             UCT_HELPER_ENV_PREFIX UCT_HELPER_TABLE_PREFIX
             "%s: '%s' is not valid, allowed: %s; %s stays off",
             field->name, text, rule->allowed,
             uct_helper_config_is_pin(field) ? "the software NIC" :
                                               "the helper");
}

ucs_status_t uct_helper_config_parse(const uct_helper_options_t *options,
                                     uct_helper_config_t *config, char *error,
                                     size_t max)
{
    ucs_status_t status = UCS_OK;
    const ucs_config_field_t *field;
    const char *text;

    error[0] = '\0';
    uct_helper_config_set_defaults(config);
    for (field = uct_helper_options_table; field->name != NULL; ++field) {
        text = *(char**)UCS_PTR_BYTE_OFFSET(options, field->offset);
        if (uct_helper_config_set(config, field, text)) {
            continue;
        }

        /* Each switch comes before its options, so nothing turns it on again */
        if (uct_helper_config_is_pin(field)) {
            config->pin = 0;
        } else {
            config->helper = 0;
        }
        if (status == UCS_OK) {
            uct_helper_config_complain(field, text, error, max);
            status = UCS_ERR_INVALID_PARAM;
        }
    }

    return status;
}

ucs_status_t uct_helper_config_read(uct_helper_config_t *config)
{
    char error[UCT_HELPER_ERROR_MAX];
    uct_helper_options_t options;
    ucs_status_t status;

    /* The user may set any variable of such a program: it would write files and
     * pin pages with rights that the user does not have. */
    if (getauxval(AT_SECURE)) {
        uct_helper_config_set_defaults(config);
        ucs_helper_warn("this program has more rights than its user (setuid or "
                        "file capabilities): UCX_MD_HELPER and UCX_MD_PIN stay "
                        "off");
        return UCS_OK;
    }

    status = uct_abi_config_fill(&uct_helper_options, UCT_HELPER_ENV_PREFIX,
                                 &options);
    if (status != UCS_OK) {
        uct_helper_config_set_defaults(config);
        ucs_helper_error("options cannot be read: %s; the helper stays off",
                         ucs_status_string(status));
        return status;
    }

    status = uct_helper_config_parse(&options, config, error, sizeof(error));
    ucs_helper_log_set_levels(config->log_level, config->syslog_level);
    if (status != UCS_OK) {
        ucs_helper_warn("%s", error);
    }

    uct_abi_config_release(&options);
    return status;
}
