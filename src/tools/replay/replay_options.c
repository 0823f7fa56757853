/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "replay.h"
#include <tools/tool.h>
#include <tools/units.h>

#include <ucs/predict/periodicity.h>
#include <ucs/sys/nearest.h>

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REPLAY_MIN_SIZE (16u << 10)

/* What io_uring was seen to need for a pin, and a third of it for an unpin;
 * modelled all the same, as the replay does not run on that machine */
#define REPLAY_REG_NS         500.0
#define REPLAY_REG_PAGE_NS    50.0
#define REPLAY_DEREG_NS       170.0
#define REPLAY_DEREG_PAGE_NS  17.0

#define REPLAY_LATENESS_NS    30000.0
#define REPLAY_SEED           1

#define REPLAY_NSEC           1e9

/* Samples of the periodicity detector: several inner iterations of the codes
 * of the paper fit into it */
#define REPLAY_WINDOW         64

typedef int (*replay_parse_func_t)(replay_options_t *options,
                                   const char *value);

typedef struct replay_option {
    int                 opt;
    const char          *name;
    replay_parse_func_t parse;
    const char          *allowed;
    const char          *help;
} replay_option_t;


static int replay_parse_policy(replay_options_t *options, const char *name,
                               size_t length)
{
    size_t i, j;

    for (i = 0; i < UCS_REGCACHE_POLICY_LAST; ++i) {
        if ((strlen(ucs_regcache_policy_names[i]) != length) ||
            strncmp(ucs_regcache_policy_names[i], name, length)) {
            continue;
        }
        for (j = 0; j < options->policy_count; ++j) {
            if (options->policies[j] == i) {
                return 0;
            }
        }
        options->policies[options->policy_count++] = i;
        return 0;
    }
    return -1;
}

static int replay_parse_policies(replay_options_t *options, const char *value)
{
    size_t length;

    options->policy_count = 0;
    for (;;) {
        length = strcspn(value, ",");
        if (replay_parse_policy(options, value, length) != 0) {
            return -1;
        }
        if (value[length] == '\0') {
            return 0;
        }
        value += length + 1;
    }
}

static int replay_parse_min_size(replay_options_t *options, const char *value)
{
    return tool_units_parse_size(value, &options->min_size);
}

/* @return N% as a share, 0 if it is none or above @a max percent */
static double replay_parse_share(const char *value, double max)
{
    double share;
    char *end;

    if (!isdigit((unsigned char)value[0])) {
        return 0;
    }
    share = strtod(value, &end);
    return (strcmp(end, "%") || !(share > 0) || (share > max)) ? 0 :
                                                                 share / 100;
}

static int replay_parse_ceiling(replay_options_t *options, const char *value)
{
    if (strchr(value, '%') == NULL) {
        options->ceiling.share = 0;
        return tool_units_parse_size(value, &options->ceiling.bytes);
    }
    options->ceiling.share = replay_parse_share(value, 1000);
    return (options->ceiling.share > 0) ? 0 : -1;
}

static int replay_parse_cost(const char *value, replay_cost_t *cost)
{
    double base, page;

    if (tool_units_parse_cost(value, &base, &page) != 0) {
        return -1;
    }
    cost->base_ns = base * REPLAY_NSEC;
    cost->page_ns = page * REPLAY_NSEC;
    return 0;
}

static int replay_parse_register(replay_options_t *options, const char *value)
{
    return replay_parse_cost(value, &options->params.register_cost);
}

static int replay_parse_deregister(replay_options_t *options,
                                   const char *value)
{
    return replay_parse_cost(value, &options->params.deregister_cost);
}

static int replay_parse_lateness(replay_options_t *options, const char *value)
{
    double seconds;

    if (tool_units_parse_time(value, &seconds) != 0) {
        return -1;
    }
    options->params.lateness_ns = seconds * REPLAY_NSEC;
    return 0;
}

static int replay_parse_miss_target(replay_options_t *options,
                                    const char *value)
{
    options->params.miss_target = replay_parse_share(value, 99);
    return (options->params.miss_target > 0) ? 0 : -1;
}

static int replay_parse_number(const char *value, uint64_t *number_p)
{
    char *end;

    if (!isdigit((unsigned char)value[0])) {
        return -1;
    }
    errno     = 0;
    *number_p = strtoull(value, &end, 10);
    return ((errno != 0) || (*end != '\0')) ? -1 : 0;
}

static int replay_parse_seed(replay_options_t *options, const char *value)
{
    return replay_parse_number(value, &options->params.seed);
}

static int replay_parse_warp(replay_options_t *options, const char *value)
{
    options->warp.is_scaled = 1;
    return replay_parse_number(value, &options->warp.seed);
}

static int replay_parse_window(replay_options_t *options, const char *value)
{
    uint64_t window;

    if ((tool_units_parse_count(value, &window) != 0) || (window == 0) ||
        (window > UCS_PREDICT_PERIODICITY_MAX)) {
        return -1;
    }
    options->window = window;
    return 0;
}

static int replay_parse_noise(replay_options_t *options, const char *value)
{
    options->warp.noise = replay_parse_share(value, 100);
    return (options->warp.noise > 0) ? 0 : -1;
}

static int replay_parse_drop(replay_options_t *options,
                             const char *value UCS_V_UNUSED)
{
    options->warp.drop = 1;
    return 0;
}

static int replay_parse_insert(replay_options_t *options,
                               const char *value UCS_V_UNUSED)
{
    options->warp.insert = 1;
    return 0;
}

static const replay_option_t replay_options[] = {
    {REPLAY_OPT_POLICY, "policy", replay_parse_policies, NULL,
     "P[,P...]  policies of UCX_MD_HELPER_POLICY [all]"},
    {REPLAY_OPT_MIN_SIZE, "min-size", replay_parse_min_size,
     "bytes with an optional K, M, G or T, or inf",
     "SIZE      leave out shorter uses [16K]"},
    {REPLAY_OPT_MAX_PINNED, "max-pinned", replay_parse_ceiling,
     "bytes with an optional K, M, G or T, inf, or N% above 0",
     "SIZE|N%   ceiling; N% of what leave-pinned holds at most [inf]"},
    {REPLAY_OPT_REGISTER_COST, "register-cost", replay_parse_register,
     "two times such as 500ns,50ns",
     "BASE,PAGE  modelled cost of a registration [500ns,50ns]"},
    {REPLAY_OPT_DEREGISTER_COST, "deregister-cost", replay_parse_deregister,
     "two times such as 170ns,17ns",
     "BASE,PAGE  modelled cost of a deregistration [170ns,17ns]"},
    {REPLAY_OPT_LATENESS, "lateness", replay_parse_lateness,
     "a time such as 30us",
     "TIME      modelled median lateness of the helper's wake-up [30us]"},
    {REPLAY_OPT_MISS_TARGET, "miss-target", replay_parse_miss_target,
     "N% above 0, up to 99%",
     "N%  of predict, UCX_MD_HELPER_MISS_TARGET [1%]"},
    {REPLAY_OPT_SEED, "seed", replay_parse_seed, "a whole number",
     "N         of all that is random but --warp [1]"},
    {REPLAY_OPT_WARP, "warp", replay_parse_warp, "a whole number",
     "SEED      scale each gap between events by a random 0.5 to 2"},
    {REPLAY_OPT_NOISE, "noise", replay_parse_noise, "N% above 0, up to 100%",
     "N%        add noise of this deviation to each gap"},
    {REPLAY_OPT_DROP, "drop-iteration", replay_parse_drop, NULL,
     "          leave out one iteration in the middle"},
    {REPLAY_OPT_WINDOW, "window", replay_parse_window,
     "a whole number from 1 to 4096", NULL},
    {REPLAY_OPT_INSERT, "insert-phase", replay_parse_insert, NULL,
     "          insert a phase with buffers of its own in the middle"},
    {0, NULL, NULL, NULL, NULL}
};

void replay_options_init(replay_options_t *options)
{
    size_t i;

    memset(options, 0, sizeof(*options));
    options->params.register_cost.base_ns   = REPLAY_REG_NS;
    options->params.register_cost.page_ns   = REPLAY_REG_PAGE_NS;
    options->params.deregister_cost.base_ns = REPLAY_DEREG_NS;
    options->params.deregister_cost.page_ns = REPLAY_DEREG_PAGE_NS;
    options->params.lateness_ns             = REPLAY_LATENESS_NS;
    options->params.seed                    = REPLAY_SEED;
    options->ceiling.bytes                  = UINT64_MAX;
    options->min_size                       = REPLAY_MIN_SIZE;
    options->window                         = REPLAY_WINDOW;
    for (i = 0; i < UCS_REGCACHE_POLICY_LAST; ++i) {
        options->policies[options->policy_count++] = i;
    }
}

void replay_options_help(FILE *stream)
{
    const replay_option_t *option;

    for (option = replay_options; option->name != NULL; ++option) {
        if (option->help != NULL) {
            fprintf(stream, "  --%s %s\n", option->name, option->help);
        }
    }
}

static char *replay_policies_allowed(void)
{
    tool_list_t names = TOOL_LIST_INITIALIZER;
    char *joined, *text;
    size_t i;

    for (i = 0; i < UCS_REGCACHE_POLICY_LAST; ++i) {
        tool_list_add(&names, ucs_regcache_policy_names[i]);
    }
    joined = tool_list_join(&names, ", ");
    text   = tool_format("a list of %s", joined);
    free(joined);
    tool_list_cleanup(&names);
    return text;
}

/* What the first policy that is none was meant to be */
static const char *replay_policies_hint(const char *value, char *hint)
{
    replay_options_t options = {};
    size_t length            = strcspn(value, ",");
    const char *word;

    while ((replay_parse_policy(&options, value, length) == 0) &&
           (value[length] == ',')) {
        value += length + 1;
        length = strcspn(value, ",");
    }
    word = ucs_nearest_of(value, length, ucs_regcache_policy_names);
    return ucs_nearest_hint(word, "", hint);
}

int replay_options_parse(replay_options_t *options, int opt, const char *value)
{
    char hint[UCS_NEAREST_HINT_MAX] = "";
    const replay_option_t *option;
    char *allowed;

    for (option = replay_options; option->name != NULL; ++option) {
        if (option->opt == opt) {
            break;
        }
    }
    if (option->name == NULL) {
        return 1;
    }
    if (option->parse(options, value) == 0) {
        return 0;
    }

    if (option->allowed == NULL) {
        replay_policies_hint(value, hint);
    }
    allowed = (option->allowed != NULL) ? tool_strdup(option->allowed) :
                                          replay_policies_allowed();
    tool_message("--%s: '%s' is not valid, allowed: %s%s", option->name, value,
                 allowed, hint);
    free(allowed);
    return -1;
}

int replay_options_load(const replay_options_t *options, const char *file,
                        replay_trace_t *trace)
{
    replay_warp_t warp = options->warp;
    ucs_trace_t raw;
    int ret;

    if (!warp.is_scaled) {
        warp.seed = options->params.seed;
    }
    if (replay_trace_read(file, &raw) != 0) {
        return -1;
    }
    ret = replay_warp_apply(&warp, file, &raw);
    if (ret == 0) {
        replay_trace_prepare(&raw, file, options->min_size, trace);
    }
    ucs_trace_cleanup(&raw);
    return ret;
}

uint64_t replay_ceiling_bytes(const replay_options_t *options,
                              const replay_trace_t *trace)
{
    replay_figures_t leave;

    if (options->ceiling.share == 0) {
        return options->ceiling.bytes;
    }
    replay_model_leave(trace, &leave, NULL);
    return options->ceiling.share * leave.pinned_peak_bytes;
}
