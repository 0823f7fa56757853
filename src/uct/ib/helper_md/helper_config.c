/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "helper_config.h"
#include <ucs/sys/log.h>
#include <ucs/sys/nearest.h>
#include "values.h"

#include <ucs/config/parser.h>
#include <ucs/sys/preprocessor.h>

#include <stdio.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>
#include <unistd.h>

#define UCT_HELPER_ERROR_MAX      512

static const char *const uct_helper_mds_names[] = {"ib", "pin", NULL};

static const char *const uct_helper_report_words[] = {"stderr", "json:", NULL};

static const char *const uct_helper_cpu_words[] = {"auto", NULL};

static const char *const uct_helper_verify_words[] = {"sample", NULL};

static const char *const uct_helper_log_names[] = {"error", "warn", "info",
                                                   "debug", NULL};

static const ucs_log_level_t uct_helper_log_levels[] = {UCS_LOG_LEVEL_ERROR,
                                                        UCS_LOG_LEVEL_WARN,
                                                        UCS_LOG_LEVEL_INFO,
                                                        UCS_LOG_LEVEL_DEBUG};

static ucs_config_field_t uct_helper_config_table[] = {
    {"HELPER", "n",
     "Keep registered only the memory that is about to be communicated: a\n"
     "helper thread predicts when each buffer is needed next, registers it\n"
     "just before, and deregisters it in between. y or n.",
     offsetof(uct_helper_options_t, helper), UCS_CONFIG_TYPE_STRING},

    {"HELPER_POLICY", "predict",
     "What becomes of a registration after its use:\n"
     "  predict      - deregister, register again before the use that the\n"
     "                 order of communications predicts\n"
     "  paper        - likewise, before the shortest period has passed\n"
     "  leave_pinned - keep until the memory is unmapped\n"
     "  on_demand    - deregister at once\n"
     "  lru          - keep, evict the least recently used at a ceiling",
     offsetof(uct_helper_options_t, policy), UCS_CONFIG_TYPE_STRING},

    {"HELPER_MISS_TARGET", "1%",
     "Under predict: share of uses that may find their buffer unregistered;\n"
     "a smaller one costs memory, where the uses are irregular.",
     offsetof(uct_helper_options_t, miss_target), UCS_CONFIG_TYPE_STRING},

    {"HELPER_CPU_TARGET", "1%",
     "Under predict: share of a core that a helper may take, for the first\n"
     "megabyte that would be left pinned and for each more; a larger one saves\n"
     "memory, where iterations are short.",
     offsetof(uct_helper_options_t, cpu_target), UCS_CONFIG_TYPE_STRING},

    {"HELPER_MIN_SIZE", "16k",
     "Shorter buffers are registered once and kept.",
     offsetof(uct_helper_options_t, min_size), UCS_CONFIG_TYPE_STRING},

    {"HELPER_MAX_PINNED", "inf",
     "Ceiling of registered memory per domain, kept before a registration by\n"
     "deregistering what is idle; passed only if all else is in use.",
     offsetof(uct_helper_options_t, max_pinned), UCS_CONFIG_TYPE_STRING},

    {"HELPER_MAX_REGIONS", "inf",
     "Ceiling of the number of registrations per domain, kept likewise.",
     offsetof(uct_helper_options_t, max_regions), UCS_CONFIG_TYPE_STRING},

    {"HELPER_NODE_MAX_PINNED", "inf",
     "Budget of registered memory for all ranks of the user on a node, shared\n"
     "by need: each may have its part, and what others do not need.",
     offsetof(uct_helper_options_t, node_max_pinned), UCS_CONFIG_TYPE_STRING},

    {"HELPER_MDS", "ib,pin",
     "Memory domains that get a helper: a list of ib (RDMA devices) and pin\n"
     "(the software NIC of UCX_MD_PIN).",
     offsetof(uct_helper_options_t, mds), UCS_CONFIG_TYPE_STRING},

    {"HELPER_MONITOR", "auto",
     "What tells of memory that goes away:\n"
     "  auto - UCX's hooks of mmap(), munmap(), madvise() and the like, and the\n"
     "         kernel (userfaultfd) where it can, which sees raw system calls, too\n"
     "  ucm  - the hooks alone",
     offsetof(uct_helper_options_t, monitor), UCS_CONFIG_TYPE_STRING},

    {"HELPER_REPORT", "",
     "Where to write what was pinned and saved when the process ends: empty\n"
     "(nowhere), stderr, FILE, or json:FILE. In FILE, %h stands for the host,\n"
     "%p for the process id, %r for the rank.",
     offsetof(uct_helper_options_t, report), UCS_CONFIG_TYPE_STRING},

    {"HELPER_TRACE", "",
     "Where to record what is registered, given back and unmapped, for\n"
     "'ucx-helper replay': empty (nowhere) or FILE, in which %h, %p and %r\n"
     "stand for the same.",
     offsetof(uct_helper_options_t, trace), UCS_CONFIG_TYPE_STRING},

    {"HELPER_CPU", "auto",
     "Processors of the helper thread: auto (near the device, not on the one\n"
     "that the main thread alone is bound to), a list such as 0-3,8, or empty\n"
     "(as the thread that starts it).",
     offsetof(uct_helper_options_t, cpu), UCS_CONFIG_TYPE_STRING},

    {"HELPER_CPU_POLICY", "auto",
     "Which ranks of a node have a helper:\n"
     "  conservative - one for each idle core, those that need most memory\n"
     "  aggressive   - all\n"
     "  auto         - as conservative, and all whose helper hardly runs",
     offsetof(uct_helper_options_t, cpu_policy), UCS_CONFIG_TYPE_STRING},

    {"HELPER_LOG", "warn",
     "Log level of the helper: error, warn, info or debug.",
     offsetof(uct_helper_options_t, log), UCS_CONFIG_TYPE_STRING},

    {"PIN", "n",
     "Software NIC: UCX's cma domain registers (pins) memory for real, by\n"
     "io_uring, so that a job on one machine without RDMA hardware pays a\n"
     "real registration cost. y or n.",
     offsetof(uct_helper_options_t, pin), UCS_CONFIG_TYPE_STRING},

    {"PIN_COST", "",
     "MODELLED cost added to each registration of the software NIC, as\n"
     "BASE,PER_PAGE, for example 5us,100ns; empty: none.",
     offsetof(uct_helper_options_t, pin_cost), UCS_CONFIG_TYPE_STRING},

    {"PIN_VERIFY", "n",
     "Testing aid of the software NIC: compare, at the end of each use, what\n"
     "is seen through the registration with what the virtual address shows;\n"
     "abort with one line at a difference. y, n, or sample (some pages).",
     offsetof(uct_helper_options_t, pin_verify), UCS_CONFIG_TYPE_STRING},

    {NULL}
};

UCS_CONFIG_REGISTER_TABLE(uct_helper_config_table, "Helper memory domain",
                          UCT_HELPER_TABLE_PREFIX, uct_helper_options_t,
                          &ucs_config_global_list)

static int uct_helper_config_parse_bool(const char *text, void *value_p)
{
    return uct_helper_value_bool(text, value_p);
}

static int uct_helper_config_parse_size(const char *text, void *value_p)
{
    return uct_helper_value_size(text, value_p);
}

static int uct_helper_config_parse_count(const char *text, void *value_p)
{
    unsigned long count;

    if (!uct_helper_value_count(text, &count) || (count == 0)) {
        return 0;
    }

    *(unsigned long*)value_p = count;
    return 1;
}

static int uct_helper_config_parse_share(const char *text, void *value_p)
{
    return uct_helper_value_share(text, value_p);
}

static int uct_helper_config_parse_mds(const char *text, void *value_p)
{
    return uct_helper_value_mask(text, uct_helper_mds_names, value_p);
}

static int uct_helper_config_parse_report(const char *text, void *value_p)
{
    return uct_helper_value_report(text, value_p);
}

static int uct_helper_config_parse_trace(const char *text, void *value_p)
{
    if (strlen(text) >= PATH_MAX) {
        return 0;
    }

    strcpy(value_p, text);
    return 1;
}

static int uct_helper_config_parse_log(const char *text, void *value_p)
{
    unsigned index;

    if (!uct_helper_value_enum(text, uct_helper_log_names, &index)) {
        return 0;
    }

    *(ucs_log_level_t*)value_p = uct_helper_log_levels[index];
    return 1;
}

/* These two fill more than one field, so they get the configuration */
static int uct_helper_config_parse_cpu(const char *text, void *config_p)
{
    uct_helper_config_t *config = config_p;

    if (*text == '\0') {
        config->cpu_mode = UCT_HELPER_CPU_INHERIT;
        return 1;
    }

    if (!strcasecmp(text, "auto")) {
        config->cpu_mode = UCT_HELPER_CPU_AUTO;
        return 1;
    }

    if (!uct_helper_value_cpus(text, &config->cpus)) {
        return 0;
    }

    config->cpu_mode = UCT_HELPER_CPU_LIST;
    return 1;
}

static int uct_helper_config_parse_cost(const char *text, void *config_p)
{
    uct_helper_config_t *config = config_p;

    return uct_helper_value_cost(text, &config->pin_base_ns,
                                 &config->pin_per_page_ns);
}

static int uct_helper_config_parse_verify(const char *text, void *value_p)
{
    int is_on;

    if (!strcasecmp(text, "sample")) {
        *(uct_helper_pin_verify_t*)value_p = UCT_HELPER_PIN_VERIFY_SAMPLE;
        return 1;
    }

    if (!uct_helper_value_bool(text, &is_on)) {
        return 0;
    }

    *(uct_helper_pin_verify_t*)value_p = is_on ? UCT_HELPER_PIN_VERIFY_ALL :
                                                 UCT_HELPER_PIN_VERIFY_NO;
    return 1;
}

/* How one option is checked, and what is switched off if it is bad */
typedef struct uct_helper_option_rule {
    const char        *name;
    size_t            option_offset;
    size_t            value_offset;
    size_t            switch_offset;
    int               (*parse)(const char *text, void *value_p);
    const char *const *words; /* without a parser: one of these; else what it
                                 knows, to be named to who mistypes it */
    const char        *allowed;
} uct_helper_option_rule_t;

#define UCT_HELPER_VALUE(_field) offsetof(uct_helper_config_t, _field)

#define UCT_HELPER_HINT_RULE(_name, _option, _value_offset, _switch, _parse, \
                             _words, _allowed) \
    { \
        _name, offsetof(uct_helper_options_t, _option), _value_offset, \
                offsetof(uct_helper_config_t, _switch), _parse, _words, \
                _allowed \
    }

#define UCT_HELPER_RULE(_name, _option, _value_offset, _switch, _parse, \
                        _allowed) \
    UCT_HELPER_HINT_RULE(_name, _option, _value_offset, _switch, _parse, NULL, \
                         _allowed)

/* An enumeration, by its names */
#define UCT_HELPER_WORD_RULE(_name, _field, _words, _allowed) \
    { \
        _name, offsetof(uct_helper_options_t, _field), \
                UCT_HELPER_VALUE(_field), UCT_HELPER_VALUE(helper), NULL, \
                _words, _allowed \
    }

#define UCT_HELPER_SIZES "bytes with an optional k, m, g or t, or inf"
#define UCT_HELPER_SHARES "a share above 0 and below 1, such as 0.01 or 1%"
#define UCT_HELPER_BOOLS "y or n"

static const uct_helper_option_rule_t uct_helper_option_rules[] = {
        UCT_HELPER_RULE("HELPER", helper, UCT_HELPER_VALUE(helper), helper,
                        uct_helper_config_parse_bool, UCT_HELPER_BOOLS),
        UCT_HELPER_WORD_RULE("HELPER_POLICY", policy, ucs_regcache_policy_names,
                             "predict, paper, leave_pinned, on_demand or lru"),
        UCT_HELPER_RULE("HELPER_MISS_TARGET", miss_target,
                        UCT_HELPER_VALUE(miss_target), helper,
                        uct_helper_config_parse_share, UCT_HELPER_SHARES),
        UCT_HELPER_RULE("HELPER_CPU_TARGET", cpu_target,
                        UCT_HELPER_VALUE(cpu_target), helper,
                        uct_helper_config_parse_share, UCT_HELPER_SHARES),
        UCT_HELPER_RULE("HELPER_MIN_SIZE", min_size, UCT_HELPER_VALUE(min_size),
                        helper, uct_helper_config_parse_size, UCT_HELPER_SIZES),
        UCT_HELPER_RULE("HELPER_MAX_PINNED", max_pinned,
                        UCT_HELPER_VALUE(max_pinned), helper,
                        uct_helper_config_parse_size, UCT_HELPER_SIZES),
        UCT_HELPER_RULE("HELPER_MAX_REGIONS", max_regions,
                        UCT_HELPER_VALUE(max_regions), helper,
                        uct_helper_config_parse_count,
                        "a number above 0, or inf"),
        UCT_HELPER_RULE("HELPER_NODE_MAX_PINNED", node_max_pinned,
                        UCT_HELPER_VALUE(node_max_pinned), helper,
                        uct_helper_config_parse_size, UCT_HELPER_SIZES),
        UCT_HELPER_HINT_RULE("HELPER_MDS", mds, UCT_HELPER_VALUE(mds), helper,
                             uct_helper_config_parse_mds, uct_helper_mds_names,
                             "a list of ib and pin"),
        UCT_HELPER_WORD_RULE("HELPER_MONITOR", monitor,
                             uct_helper_monitor_names, "auto or ucm"),
        UCT_HELPER_HINT_RULE(
                "HELPER_REPORT", report, UCT_HELPER_VALUE(report), helper,
                uct_helper_config_parse_report, uct_helper_report_words,
                "stderr, FILE or json:FILE, where a FILE that begins "
                "with a word and ':' is written ./FILE"),
        UCT_HELPER_RULE("HELPER_TRACE", trace, UCT_HELPER_VALUE(trace), helper,
                        uct_helper_config_parse_trace,
                        "FILE of less than 4096 bytes, or nothing"),
        UCT_HELPER_HINT_RULE("HELPER_CPU", cpu, 0, helper,
                             uct_helper_config_parse_cpu, uct_helper_cpu_words,
                             "auto, a list such as 0-3,8, or nothing"),
        UCT_HELPER_WORD_RULE("HELPER_CPU_POLICY", cpu_policy,
                             ucs_place_policy_names,
                             "conservative, aggressive or auto"),
        UCT_HELPER_HINT_RULE("HELPER_LOG", log, UCT_HELPER_VALUE(log_level),
                             helper, uct_helper_config_parse_log,
                             uct_helper_log_names,
                             "error, warn, info or debug"),
        UCT_HELPER_RULE("PIN", pin, UCT_HELPER_VALUE(pin), pin,
                        uct_helper_config_parse_bool, UCT_HELPER_BOOLS),
        UCT_HELPER_RULE("PIN_COST", pin_cost, 0, pin,
                        uct_helper_config_parse_cost,
                        "two times such as 5us,100ns, at most 1s and 1ms, or "
                        "nothing"),
        UCT_HELPER_HINT_RULE("PIN_VERIFY", pin_verify,
                             UCT_HELPER_VALUE(pin_verify), pin,
                             uct_helper_config_parse_verify,
                             uct_helper_verify_words, "y, n or sample")};

/* @return Zero, with the configuration as it was, if the text is not valid */
static int uct_helper_config_set(uct_helper_config_t *config,
                                 const uct_helper_option_rule_t *rule,
                                 const char *text)
{
    void *value_p = UCS_PTR_BYTE_OFFSET(config, rule->value_offset);
    unsigned index;

    if (rule->parse != NULL) {
        return rule->parse(text, value_p);
    }

    if (!uct_helper_value_enum(text, rule->words, &index)) {
        return 0;
    }

    *(unsigned*)value_p = index; /* an enumeration, none of them negative */
    return 1;
}

/* Of a text with a colon the form before it was mistyped */
static const char *
uct_helper_config_nearest(const uct_helper_option_rule_t *rule,
                          const char *text)
{
    size_t length = strcspn(text, ":");

    if (rule->words == NULL) {
        return NULL;
    }
    return ucs_nearest_of(text, length + (text[length] == ':'), rule->words);
}

static void uct_helper_config_complain(const uct_helper_option_rule_t *rule,
                                       const char *text, const char *off,
                                       char *error, size_t max)
{
    char hint[UCS_NEAREST_HINT_MAX];

    ucs_nearest_hint(uct_helper_config_nearest(rule, text), "", hint);
    snprintf(error, max,
             UCT_HELPER_ENV_PREFIX UCT_HELPER_TABLE_PREFIX
             "%s: '%s' is not valid, allowed: %s%s; %s stays off",
             rule->name, text, rule->allowed, hint, off);
}

static const char *
uct_helper_config_default(const uct_helper_option_rule_t *rule)
{
    const ucs_config_field_t *field = uct_helper_config_table;

    while (strcmp(field->name, rule->name)) {
        ++field;
    }
    return field->dfl_value;
}

static void uct_helper_config_set_defaults(uct_helper_config_t *config)
{
    const uct_helper_option_rule_t *rule;
    unsigned i;

    memset(config, 0, sizeof(*config));
    for (i = 0; i < ucs_static_array_size(uct_helper_option_rules); ++i) {
        rule = &uct_helper_option_rules[i];
        (void)uct_helper_config_set(config, rule,
                                    uct_helper_config_default(rule));
    }
}

ucs_status_t uct_helper_config_parse(const uct_helper_options_t *options,
                                     uct_helper_config_t *config, char *error,
                                     size_t max)
{
    int bad_helper      = 0;
    int bad_pin         = 0;
    ucs_status_t status = UCS_OK;
    const uct_helper_option_rule_t *rule;
    const char *text;
    unsigned i;

    error[0] = '\0';
    uct_helper_config_set_defaults(config);
    for (i = 0; i < ucs_static_array_size(uct_helper_option_rules); ++i) {
        rule = &uct_helper_option_rules[i];
        text = *(char**)UCS_PTR_BYTE_OFFSET(options, rule->option_offset);
        if (uct_helper_config_set(config, rule, text)) {
            continue;
        }

        if (rule->switch_offset == UCT_HELPER_VALUE(pin)) {
            bad_pin = 1;
        } else {
            bad_helper = 1;
        }

        if (status == UCS_OK) {
            uct_helper_config_complain(rule, text,
                                       bad_pin ? "the software NIC" :
                                                 "the helper",
                                       error, max);
            status = UCS_ERR_INVALID_PARAM;
        }
    }

    if (bad_helper) {
        config->helper = 0;
    }
    if (bad_pin) {
        config->pin = 0;
    }
    return status;
}

static int uct_helper_config_is_known(const char *name, size_t length)
{
    const ucs_config_field_t *field;

    for (field = uct_helper_config_table; field->name != NULL; ++field) {
        if ((strlen(field->name) == length) &&
            !strncmp(field->name, name, length)) {
            return 1;
        }
    }
    return 0;
}

/* UCX says which variables it does not know, but not what they may have been
 * meant to be; and a switch that is mistyped is a helper that stays off */
static void uct_helper_config_check_name(const char *variable)
{
    static const char prefix[] = UCT_HELPER_ENV_PREFIX UCT_HELPER_TABLE_PREFIX;
    const char *name           = variable + strlen(prefix);
    const ucs_config_field_t *field;
    ucs_nearest_t nearest;
    size_t length;

    if (strncmp(variable, prefix, strlen(prefix))) {
        return;
    }
    length = strcspn(name, "=");
    if (uct_helper_config_is_known(name, length)) {
        return;
    }

    ucs_nearest_begin(&nearest, name, length);
    for (field = uct_helper_config_table; field->name != NULL; ++field) {
        ucs_nearest_try(&nearest, field->name);
    }
    if (nearest.word != NULL) {
        ucs_helper_warn("%.*s: there is no such option; did you mean '%s%s'?",
                        (int)strcspn(variable, "="), variable, prefix,
                        nearest.word);
    }
}

ucs_status_t uct_helper_config_read(uct_helper_config_t *config)
{
    char error[UCT_HELPER_ERROR_MAX];
    uct_helper_options_t options;
    ucs_status_t status;
    char **variable;

    /* Its user may set any variable; paths among them would be written, and
     * pages pinned, with rights that this user does not have */
    if (getauxval(AT_SECURE)) {
        uct_helper_config_set_defaults(config);
        ucs_helper_warn("this program has more rights than its user (setuid or "
                        "file capabilities): UCX_MD_HELPER and UCX_MD_PIN stay "
                        "off");
        return UCS_OK;
    }

    status = ucs_config_parser_fill_opts(&options, uct_helper_config_table,
                                         UCT_HELPER_ENV_PREFIX,
                                         UCT_HELPER_TABLE_PREFIX, 0);
    if (status != UCS_OK) {
        uct_helper_config_set_defaults(config);
        ucs_helper_error("options cannot be read: %s; the helper stays off",
                         ucs_status_string(status));
        return status;
    }

    status = uct_helper_config_parse(&options, config, error, sizeof(error));
    ucs_helper_log_set_level(config->log_level);
    if (status != UCS_OK) {
        ucs_helper_warn("%s", error);
    }
    for (variable = environ; *variable != NULL; ++variable) {
        uct_helper_config_check_name(*variable);
    }

    ucs_config_parser_release_opts(&options, uct_helper_config_table);
    return status;
}
