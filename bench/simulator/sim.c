/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "sim.h"

#include <tools/replay/replay.h>
#include <tools/tool.h>

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>
#include <string.h>

/*
 * What a run of each kernel would take on a machine that is not here, and what
 * it would pin, by policy; docs/sim.md.
 */

/* An InfiniBand DDR network of about 2010, see docs/sim.md */
#define SIM_LATENCY_NS  1500
#define SIM_OVERHEAD_NS 500
#define SIM_GAP_NS      200
#define SIM_BYTE_NS     0.7
#define SIM_EAGER_BYTES (16u << 10)

/* Registration at a NIC, on the dear side: what the engine begins with */
#define SIM_REG_NS        20000.0
#define SIM_REG_PAGE_NS   250.0
#define SIM_DEREG_NS      10000.0
#define SIM_DEREG_PAGE_NS 100.0

/* Li et al., table 4: 32 nodes take 1056 s for 25 iterations of FT.D */
#define SIM_FLOPS 0.278e9

#define SIM_NOISE      0.01
#define SIM_ITERATIONS 10
#define SIM_BASE       32  /* ranks that have the class's size, weak scaling */
#define SIM_LRU_SHARE  0.5 /* of leave pinned's peak */
#define SIM_MEMORY     (UINT64_C(4) << 30)
#define SIM_SMALL      1024 /* ranks from which engines have tables that fit */

/*
 * Values
 */

static int sim_parse_uint(const char *value, uint64_t max, uint64_t *number_p)
{
    return ((tool_option_count(number_p, value) != 0) ||
            (*number_p > max)) ? -1 : 0;
}

static int sim_parse_ns(void *field, const char *value)
{
    double seconds;

    if ((tool_option_time(&seconds, value) != 0) || (seconds > 1)) {
        return -1;
    }
    *(uint64_t*)field = seconds * 1e9 + 0.5;
    return 0;
}

/* @return A number above 0, or 0 */
static double sim_parse_number(const char *value, const char *suffix)
{
    char *end;
    double number = strtod(value, &end);

    return ((end == value) || strcmp(end, suffix) || !(number > 0) ||
            (number > 1e18)) ? 0 : number;
}

static int sim_parse_patterns(void *field, const char *value)
{
    sim_options_t *options = field;
    size_t length;

    for (options->pattern_count = 0;; value += length + 1) {
        length = strcspn(value, ",");
        if (options->pattern_count == SIM_LIST_MAX) {
            return -1;
        }
        options->patterns[options->pattern_count] = sim_pattern_find(value,
                                                                     length);
        if (options->patterns[options->pattern_count++] == NULL) {
            return -1;
        }
        if (value[length] == '\0') {
            return 0;
        }
    }
}

static int sim_parse_ranks(void *field, const char *value)
{
    sim_options_t *options = field;
    unsigned long ranks;
    char *end;

    for (options->ranks_count = 0;; value = end + 1) {
        ranks = strtoul(value, &end, 10);
        if ((options->ranks_count == SIM_LIST_MAX) || (end == value) ||
            (value[0] == '-') || (ranks < 1) || (ranks > (1u << 20))) {
            return -1;
        }
        options->ranks[options->ranks_count++] = ranks;
        if (*end != ',') {
            return (*end == '\0') ? 0 : -1;
        }
    }
}

static int sim_parse_class(void *field, const char *value)
{
    sim_options_t *options = field;

    options->letter = value[0];
    return ((strlen(value) == 1) && strchr("ABCDE", value[0])) ? 0 : -1;
}

static int sim_parse_scaling(void *field, const char *value)
{
    static const char *const words[] = {"strong", "weak"};
    sim_options_t *options           = field;

    options->is_weak = tool_word_find(value, words, 2);
    return (options->is_weak < 2) ? 0 : -1;
}

static int sim_parse_iterations(void *field, const char *value)
{
    sim_options_t *options = field;
    uint64_t iterations;
    int ret = sim_parse_uint(value, 1000000, &iterations);

    options->params.iterations = iterations;
    return (iterations > 0) ? ret : -1;
}

static int sim_parse_alltoall(void *field, const char *value)
{
    static const char *const words[] = {
        [SIM_ALLTOALL_AUTO]     = "auto",
        [SIM_ALLTOALL_LINEAR]   = "linear",
        [SIM_ALLTOALL_PAIRWISE] = "pairwise",
        [SIM_ALLTOALL_BRUCK]    = "bruck"
    };
    sim_options_t *options = field;

    options->alltoall = tool_word_find(value, words, SIM_ALLTOALL_BRUCK + 1);
    return (options->alltoall <= SIM_ALLTOALL_BRUCK) ? 0 : -1;
}

static int sim_parse_bandwidth(void *field, const char *value)
{
    sim_options_t *options = field;
    uint64_t bytes;

    if ((tool_option_size(&bytes, value) != 0) || (bytes == 0)) {
        return -1;
    }
    options->params.network.byte_ns = (bytes == UINT64_MAX) ? 0 : 1e9 / bytes;
    return 0;
}

static int sim_parse_flops(void *field, const char *value)
{
    sim_options_t *options = field;

    options->params.flops = sim_parse_number(value, "");
    return (options->params.flops > 0) ? 0 : -1;
}

static int sim_parse_share(void *field, const char *value)
{
    double share = sim_parse_number(value, "%") / 100;

    *(double*)field = share;
    return ((share > 0) || !strcmp(value, "0%")) ? 0 : -1;
}

static int sim_parse_helper(void *field, const char *value)
{
    sim_options_t *options = field;

    options->params.helper = tool_word_find(value, sim_helper_names,
                                            SIM_HELPER_IDLE + 1);
    return (options->params.helper <= SIM_HELPER_IDLE) ? 0 : -1;
}

#define SIM_OFFSET(_field) offsetof(sim_options_t, _field)

static const tool_option_t sim_options[] = {
    {"pattern", sim_parse_patterns, 0,
     "a list of ft, ft2d, cg, mg, is, lu, bt, sp, amg",
     "P[,P...] kernels [all]", NULL},
    {"ranks", sim_parse_ranks, 0, "a list of 1 to 1048576",
     "N[,N...] numbers of ranks [16,64]", NULL},
    {"class", sim_parse_class, 0, "A, B, C, D, E",
     "C size, as of the NAS benchmarks [C]", NULL},
    {"scaling", sim_parse_scaling, 0, "strong, weak",
     "S strong: the size is the job's; weak: that of 32 ranks", NULL},
    {"iterations", sim_parse_iterations, 0, "1 to 1000000",
     "N         [10]", NULL},
    {"alltoall", sim_parse_alltoall, 0, "auto, linear, pairwise, bruck",
     "A algorithm; auto: linear up to 64 members [auto]", NULL},
    {"latency", sim_parse_ns, SIM_OFFSET(params.network.latency_ns),
     "a time up to 1s",
     "TIME      L, of the network [1.5us]", NULL},
    {"overhead", sim_parse_ns, SIM_OFFSET(params.network.overhead_ns),
     "a time up to 1s",
     "TIME o, of the processor for a packet [500ns]", NULL},
    {"gap", sim_parse_ns, SIM_OFFSET(params.network.gap_ns),
     "a time up to 1s",
     "TIME g, of the NIC after a message [200ns]", NULL},
    {"bandwidth", sim_parse_bandwidth, 0,
     "bytes with an optional K, M, G or T, or inf",
     "SIZE bytes a second, 1/G [1429M, decimal]", NULL},
    {"eager", tool_option_size,
     SIM_OFFSET(params.network.eager_bytes),
     "bytes with an optional K, M, G or T, or inf",
     "SIZE shorter messages are not registered [16K]", NULL},
    {"flops", sim_parse_flops, 0, "a number above 0",
     "N operations a second and rank [0.278e9]", NULL},
    {"noise", sim_parse_share, SIM_OFFSET(params.noise), "N%, from 0%",
     "N% each phase of computation takes longer by |normal| [1%]", NULL},
    {"straggler", sim_parse_share, SIM_OFFSET(params.straggler), "N%, from 0%",
     "N% one rank computes for longer by that [0%]", NULL},
    {"late", sim_parse_share, SIM_OFFSET(params.late), "N%, from 0%",
     "N% of the uses, by chance, wait for a registration besides [0%]", NULL},
    {"helper", sim_parse_helper, 0, "thread, idle",
     "H who does its work: a thread, or the rank while it waits, which "
     "hears operations as well [thread]", NULL},
    {"memory", tool_option_size, SIM_OFFSET(memory),
     "bytes with an optional K, M, G or T, or inf",
     "SIZE for engines, about [4G]", NULL},
    {"json", NULL, SIM_OFFSET(is_json), NULL, " one object a row", NULL},
    {}
};

/* These are the replay's */
static const char *const sim_replay_options[] = {
    "policy", "max-pinned", "register-cost", "deregister-cost", "lateness",
    "max-slowdown", "region-bytes", "coalesce", "seed"
};
#define SIM_REPLAY_OPTIONS \
    (sizeof(sim_replay_options) / sizeof(sim_replay_options[0]))

static const tool_usage_t sim_usage = {
    NULL,
    "Simulates jobs: the engine in each rank, network and costs as modelled. Options "
    "that ucx-helper replay has, too, are as there; costs [20us,250ns] and "
    "[10us,100ns]."
};

static void sim_defaults(sim_options_t *options, replay_options_t *replay)
{
    const sim_pattern_t *pattern;

    memset(options, 0, sizeof(*options));
    replay_options_init(replay);
    replay->params.register_cost.base_ns   = SIM_REG_NS;
    replay->params.register_cost.page_ns   = SIM_REG_PAGE_NS;
    replay->params.deregister_cost.base_ns = SIM_DEREG_NS;
    replay->params.deregister_cost.page_ns = SIM_DEREG_PAGE_NS;

    options->params.network.latency_ns  = SIM_LATENCY_NS;
    options->params.network.overhead_ns = SIM_OVERHEAD_NS;
    options->params.network.gap_ns      = SIM_GAP_NS;
    options->params.network.byte_ns     = SIM_BYTE_NS;
    options->params.network.eager_bytes = SIM_EAGER_BYTES;
    options->params.iterations          = SIM_ITERATIONS;
    options->params.flops               = SIM_FLOPS;
    options->params.noise               = SIM_NOISE;
    options->ranks[0]                   = 16;
    options->ranks[1]                   = 64;
    options->ranks_count                = 2;
    options->letter                     = 'C';
    options->memory                     = SIM_MEMORY;
    for (pattern = sim_patterns; pattern->name != NULL; ++pattern) {
        options->patterns[options->pattern_count++] = pattern;
    }
}

static void sim_parse(sim_options_t *options, replay_options_t *replay, int argc,
                      char **argv)
{
    tool_option_t shared[SIM_REPLAY_OPTIONS + 1] = {};
    const tool_option_t *option;
    int first;
    size_t i;

    argv[0] = "sim"; /* for messages, without its folder */
    for (i = 0; i < SIM_REPLAY_OPTIONS; ++i) {
        for (option = replay_options;
             strcmp(option->name, sim_replay_options[i]); ++option) {
        }
        shared[i] = *option;
    }
    first = tool_options_parse(argc, argv, 0, (const tool_options_t[]){
            {sim_options, options}, {shared, replay}, {}}, &sim_usage);
    if (first < argc) {
        tool_message("sim: '%s' is not an option", argv[first]);
        exit(TOOL_EXIT_USAGE);
    }
    options->params.process = replay->params;
    memcpy(options->policies, replay->policies, sizeof(replay->policies));
    options->policy_count = replay->policy_count;
}

/*
 * Runs
 */

static int sim_run_row(const sim_options_t *options, const sim_shape_t *shape,
                       sim_row_t *row)
{
    sim_params_t params = options->params;
    ucs_status_t status;

    params.process.policy     = row->policy;
    params.process.max_pinned = row->max_pinned;
    status = sim_world_run(shape, &params, &row->result);
    if (status != UCS_OK) {
        tool_message("sim: an engine cannot be created: status %d", status);
        return -1;
    }
    if (row->result.stuck > 0) {
        tool_message("sim: deadlock in %s: %u of %u ranks have not ended, rank "
                     "%u among them", shape->pattern->name, row->result.stuck,
                     shape->ranks, row->result.stuck_rank);
    }
    if (!sim_result_is_sound(&row->result)) {
        tool_message("sim: %s: %lu messages sent, %lu received, %lu unmatched",
                     shape->pattern->name, row->result.sends,
                     row->result.receives, row->result.unmatched);
        return -1;
    }
    return 0;
}

/* What lru may hold, once it is known what leave pinned does */
static uint64_t sim_ceiling(const replay_options_t *replay,
                            ucs_regcache_policy_t policy, uint64_t leave)
{
    if (replay->ceiling.share > 0) {
        return replay->ceiling.share * leave;
    }
    if ((replay->ceiling.bytes == UINT64_MAX) &&
        (policy == UCS_REGCACHE_POLICY_LRU)) {
        return SIM_LRU_SHARE * leave;
    }
    return replay->ceiling.bytes;
}

/* Without registration first; then leave pinned, on whose peak ceilings may
 * depend, even if it is not asked for */
static int sim_run(sim_options_t *options, const replay_options_t *replay,
                   const sim_shape_t *shape)
{
    sim_row_t rows[SIM_ROWS_MAX] = {};
    size_t count                 = 0, i;
    sim_row_t leave = {.policy     = UCS_REGCACHE_POLICY_LEAVE_PINNED,
                       .max_pinned = UINT64_MAX};

    rows[count].policy     = SIM_NO_POLICY;
    rows[count].max_pinned = UINT64_MAX;
    if ((sim_run_row(options, shape, &rows[count++]) != 0) ||
        (sim_run_row(options, shape, &leave) != 0)) {
        return -1;
    }
    for (i = 0; i < options->policy_count; ++i, ++count) {
        rows[count].policy     = options->policies[i];
        rows[count].max_pinned =
                sim_ceiling(replay, options->policies[i],
                            leave.result.leave_peak_max_bytes);
        if ((rows[count].policy == leave.policy) &&
            (rows[count].max_pinned == leave.max_pinned)) {
            rows[count] = leave;
        } else if (sim_run_row(options, shape, &rows[count]) != 0) {
            return -1;
        }
    }
    for (i = 0; i < count; ++i) {
        rows[i].leave_ns = leave.result.time_ns;
    }
    (options->is_json ? sim_print_json : sim_print_table)(options, shape, rows,
                                                          count, stdout);
    fflush(stdout);
    return 0;
}

static int sim_run_shape(sim_options_t *options, const replay_options_t *replay,
                         const sim_pattern_t *pattern, uint32_t ranks)
{
    double scale = options->is_weak ? (double)ranks / SIM_BASE : 1;
    sim_shape_t shape;
    uint64_t fit;

    if (sim_shape_init(pattern, ranks, options->letter, scale,
                       options->alltoall, &shape) != 0) {
        tool_message("sim: %s is left out: not for %u ranks, but %s",
                     pattern->name, ranks, pattern->ranks);
        return 0;
    }
    options->params.is_small = (ranks >= SIM_SMALL);
    fit = options->memory / sim_engine_bytes(&shape, &options->params);
    options->params.engines = (fit >= ranks) ? ranks : fit + (fit == 0);
    return sim_run(options, replay, &shape);
}

int main(int argc, char **argv)
{
    replay_options_t replay;
    sim_options_t options;
    size_t i, j;

    sim_defaults(&options, &replay);
    sim_parse(&options, &replay, argc, argv);
    if (!options.is_json) {
        sim_print_params(&options, stdout);
    }
    for (i = 0; i < options.pattern_count; ++i) {
        for (j = 0; j < options.ranks_count; ++j) {
            if (sim_run_shape(&options, &replay, options.patterns[i],
                              options.ranks[j]) != 0) {
                return TOOL_EXIT_FAILED;
            }
        }
    }
    return TOOL_EXIT_OK;
}
