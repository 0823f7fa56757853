/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "replay.h"

#include <uct/ib/helper_md/config/values.h>

#include <stdlib.h>
#include <string.h>

#define REPLAY_MIN_SIZE (16u << 10)

/* What io_uring was seen to need for a pin, and a third of it for an unpin;
 * modelled all the same, as the replay does not run on that machine */
#define REPLAY_REG_NS         500.0
#define REPLAY_REG_PAGE_NS    50.0
#define REPLAY_DEREG_NS       170.0
#define REPLAY_DEREG_PAGE_NS  17.0

#define REPLAY_LATENESS_NS     30000.0
#define REPLAY_LATENESS_MAX_NS 3600e9
#define REPLAY_SEED           1

#define REPLAY_NSEC           1e9

/* Seconds that a recording may be made to last */
#define REPLAY_REPEAT_MIN     1e-3
#define REPLAY_REPEAT_MAX     1e6

static int replay_parse_policies(void *field, const char *value)
{
    replay_options_t *options = field;
    char *copy                = tool_strdup(value);
    char *rest                = copy;
    int ret                   = 0;
    ucs_regcache_policy_t policy;
    char *name;
    size_t i;

    options->policy_count = 0;
    while ((ret == 0) && ((name = strsep(&rest, ",")) != NULL)) {
        policy = tool_policy_find(name);
        for (i = 0; (i < options->policy_count) &&
                    (options->policies[i] != policy); ++i) {
        }
        if (policy == UCS_REGCACHE_POLICY_LAST) {
            ret = -1;
        } else if (i == options->policy_count) {
            options->policies[options->policy_count++] = policy;
        }
    }
    free(copy);
    return ret;
}

static int replay_parse_ceiling(void *field, const char *value)
{
    replay_ceiling_t *ceiling = field;

    ceiling->share = 0;
    return ((strchr(value, '%') != NULL) ?
                    uct_helper_value_share(value, &ceiling->share) :
                    uct_helper_value_size(value, &ceiling->bytes)) ? 0 : -1;
}

static int replay_parse_lateness(void *field, const char *value)
{
    return uct_helper_value_time(value, REPLAY_LATENESS_MAX_NS, field) ? 0 : -1;
}

static int replay_parse_region_bytes(void *field, const char *value)
{
    return ((tool_option_size(field, value) == 0) &&
            (*(uint64_t*)field <= UCS_REGCACHE_REGION_BYTES_MAX)) ? 0 : -1;
}

static int replay_parse_coalesce(void *field, const char *value)
{
    static const char *const words[] = {
        [UCS_REGCACHE_COVER_OFF]    = "off",
        [UCS_REGCACHE_COVER_LOCAL]  = "local",
        [UCS_REGCACHE_COVER_REMOTE] = "remote"
    };
    ucs_regcache_cover_kind_t *kind = field;

    *kind = tool_word_find(value, words, UCS_REGCACHE_COVER_REMOTE + 1);
    return (*kind <= UCS_REGCACHE_COVER_REMOTE) ? 0 : -1;
}

/* N, or a time with its unit */
static int replay_parse_repeat(void *field, const char *value)
{
    replay_repeat_t *repeat = field;
    double seconds;

    *repeat = (replay_repeat_t){};
    if (tool_option_count(&repeat->times, value) == 0) {
        return ((repeat->times > 0) && (repeat->times <= UINT32_MAX)) ? 0 :
                                                                        -1;
    }
    if ((tool_option_time(&seconds, value) != 0) ||
        (seconds < REPLAY_REPEAT_MIN) || (seconds > REPLAY_REPEAT_MAX)) {
        return -1;
    }
    repeat->ns = seconds * REPLAY_NSEC;
    return 0;
}

#define REPLAY_OFFSET(_field) offsetof(replay_options_t, _field)

const tool_option_t replay_options[] = {
    {"policy", replay_parse_policies, 0,
     "a list of predict, paper, rent, leave_pinned, on_demand, lru, overlap",
     "P[,P...] policies of UCX_MD_HELPER_POLICY [all]", NULL},
    {"min-size", tool_option_size, REPLAY_OFFSET(min_size),
     "bytes with an optional K, M, G or T, or inf",
     "SIZE leave out shorter uses [16K]", NULL},
    {"max-pinned", replay_parse_ceiling, REPLAY_OFFSET(ceiling),
     "bytes with an optional K, M, G or T, inf, or N% to 100%",
     "SIZE|N% ceiling; N% of what leave-pinned holds at most [inf]", NULL},
    {"register-cost", tool_option_cost, REPLAY_OFFSET(params.register_cost),
     "two times such as 500ns,50ns, at most 1s and 1ms",
     "BASE,PAGE modelled cost of a registration [500ns,50ns]", NULL},
    {"deregister-cost", tool_option_cost,
     REPLAY_OFFSET(params.deregister_cost), "two times such as 170ns,17ns, at most 1s and 1ms",
     "BASE,PAGE modelled cost of a deregistration [170ns,17ns]", NULL},
    {"lateness", replay_parse_lateness, REPLAY_OFFSET(params.lateness_ns),
     "a time such as 30us, at most 3600s",
     "TIME modelled median lateness of the helper's wake-up [30us]", NULL},
    {"max-slowdown", tool_option_share, REPLAY_OFFSET(params.max_slowdown),
     "a share from 0.001% to 100%, such as 0.5% or 0.005",
     "N% of the run time that all memory is worth [0.5%]", NULL},
    {"region-bytes", replay_parse_region_bytes,
     REPLAY_OFFSET(params.region_bytes),
     "bytes with an optional K, M or G, at most 1G",
     "SIZE held for a registration beside its pages, as "
     "UCX_MD_HELPER_REGION_BYTES [2K]", NULL},
    {"coalesce", replay_parse_coalesce, REPLAY_OFFSET(params.coalesce),
     "off, local or remote",
     "WHICH uses registered with what lies ahead, as "
     "UCX_MD_HELPER_COALESCE [local]", NULL},
    {"seed", tool_option_count, REPLAY_OFFSET(params.seed),
     "a whole number up to 4294967295",
     "N of the lateness [1]", NULL},
    {"repeat", replay_parse_repeat, REPLAY_OFFSET(repeat),
     "a count from 1, or a time from 1ms to 1000000s",
     "N|TIME play the steady part N times, or until all lasts so long [1]", NULL},
    {}
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
    options->params.max_slowdown            = UCS_REGCACHE_MAX_SLOWDOWN;
    options->params.region_bytes            = UCS_REGCACHE_REGION_BYTES;
    options->params.coalesce                = UCS_REGCACHE_COVER_LOCAL;
    options->params.seed                    = REPLAY_SEED;
    options->ceiling.bytes                  = UINT64_MAX;
    options->min_size                       = REPLAY_MIN_SIZE;
    options->tuning                         = ucs_regcache_tuning_default;
    for (i = 0; i < UCS_REGCACHE_POLICY_LAST; ++i) {
        options->policies[options->policy_count++] = i;
    }
}

#define REPLAY_TUNING_IS_REAL(_type) _Generic((_type)0, double: 1, default: 0)

const replay_tuning_row_t replay_tuning_rows[] = {
#define UCS_TUNING(_type, _name, _value, _unit, _why, _effect) \
    {#_name, offsetof(ucs_regcache_tuning_t, _name), \
     REPLAY_TUNING_IS_REAL(_type), _unit, _why, _effect},
#include <ucs/regcache/tuning_table.h>
#undef UCS_TUNING
#define UCS_TUNING(_type, _name, _value, _unit, _why, _effect) \
    {#_name, offsetof(ucs_regcache_tuning_t, predict._name), \
     REPLAY_TUNING_IS_REAL(_type), _unit, _why, _effect},
#include <ucs/predict/tuning_table.h>
#undef UCS_TUNING
    {NULL, 0, 0, NULL, NULL, NULL}
};

double replay_tuning_get(const ucs_regcache_tuning_t *tuning,
                         const replay_tuning_row_t *row)
{
    const char *member = (const char*)tuning + row->offset;

    return row->is_real ? *(const double*)member :
                          (double)*(const uint64_t*)member;
}

ucs_status_t replay_tuning_set(ucs_regcache_tuning_t *tuning, const char *name,
                               double value)
{
    const replay_tuning_row_t *row = replay_tuning_rows;
    char *member;

    while ((row->name != NULL) && (strcmp(row->name, name) != 0)) {
        ++row;
    }
    if (row->name == NULL) {
        return UCS_ERR_NO_ELEM;
    }
    /* Also refuses a NaN */
    if (!(value > 0) || !(value < 1e18) || (!row->is_real && (value < 1))) {
        return UCS_ERR_INVALID_PARAM;
    }

    member = (char*)tuning + row->offset;
    if (row->is_real) {
        *(double*)member = value;
    } else {
        *(uint64_t*)member = (uint64_t)value;
    }
    return UCS_OK;
}
