/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "pipeline_patterns.h"

#include "../bench_util.h"

#include <stdio.h>
#include <string.h>

/*
 * The figures of Woodall et al. at modelled costs: one line of JSON a point.
 * docs/paper_b.md says where the costs come from.
 */

static const pipe_costs_t pipe_costs[] = {
    /* All but the two bases follow from figures that the paper prints: the wire
     * is its best ping-pong, a copy its rings by copy in/out, registration what
     * its figures 5 and 6 say together */
    {"2006", 1e3 / 743, 1.28, 3000, 500, {7000, 1980}, {1000, 570}},
    /* 100 Gb/s; a NIC's registration as in docs/prediction.md */
    {"today", 0.08, 0.1, 1000, 150, {20000, 250}, {10000, 100}}
};

#define PIPE_NUM_COSTS (sizeof(pipe_costs) / sizeof(pipe_costs[0]))

#define PIPE_REUSE_SIZE (8u << 20)
#define PIPE_LMAX       (8u << 20)
#define PIPE_RANKS      8
#define PIPE_MAX_USES   101

typedef struct pipe_options {
    const pipe_costs_t     *costs;
    const char             *what;
    unsigned               system; /* PIPE_NUM_SYSTEMS: all */
    size_t                 size;
    size_t                 uses;
    ucx_pipeline_options_t pipeline;
} pipe_options_t;

static void pipe_begin(const pipe_options_t *options, const char *what,
                       unsigned system)
{
    printf("{\"bench\":\"pipeline_model\",\"modelled\":true,\"costs\":\"%s\","
           "\"what\":\"%s\",\"system\":\"%s\"", options->costs->name, what,
           pipe_system_names[system]);
}

static const unsigned pipe_reuses[] = {0,  1,  2,  3,  5,  10, 20, 30,
                                       40, 45, 50, 60, 80, 100};

static void pipe_reuse(const pipe_options_t *options, unsigned system)
{
    uint64_t ends[PIPE_MAX_USES];
    unsigned i, reuses;
    size_t peak;

    peak = pipe_pingpong(system, options->costs, &options->pipeline,
                         options->size, options->uses, ends);
    for (i = 0; i < sizeof(pipe_reuses) / sizeof(pipe_reuses[0]); ++i) {
        reuses = pipe_reuses[i];
        if (reuses >= options->uses) {
            break;
        }
        pipe_begin(options, "reuse", system);
        printf(",\"size\":%zu,\"reuses\":%u,\"mbps\":%.2f,\"peak\":%zu}\n",
               options->size, reuses,
               2e3 * options->size * (reuses + 1) / ends[reuses], peak);
    }
}

static void pipe_sizes(const pipe_options_t *options, unsigned system)
{
    uint64_t ends[9];
    size_t size;

    for (size = 1; size <= (16u << 20); size *= 2) {
        if ((size > 1) && (size < 1024)) {
            continue;
        }
        pipe_pingpong(system, options->costs, &options->pipeline, size, 9,
                      ends);
        pipe_begin(options, "size", system);
        printf(",\"size\":%zu,\"fresh_us\":%.3f,\"fresh_mbps\":%.2f,"
               "\"reused_us\":%.3f,\"reused_mbps\":%.2f}\n", size,
               ends[0] / 2e3, 2e3 * size / ends[0], (ends[8] - ends[7]) / 2e3,
               2e3 * size / (ends[8] - ends[7]));
    }
}

static void pipe_rings(const pipe_options_t *options, unsigned system)
{
    pipe_beff_t beff;

    pipe_beff(system, options->costs, &options->pipeline, PIPE_RANKS, PIPE_LMAX,
              &beff);
    pipe_begin(options, "beff", system);
    printf(",\"ranks\":%u,\"lmax\":%u,\"beff\":%.1f,\"lmax_all\":%.1f,"
           "\"lmax_rings\":%.1f,\"lmax_random\":%.1f,\"peak\":%zu}\n",
           PIPE_RANKS, PIPE_LMAX, beff.beff, beff.at_lmax, beff.rings,
           beff.random, beff.peak);
}

/* Of the pipelines alone: the modelled caches hear of no unmapped memory */
static void pipe_fresh(const pipe_options_t *options, unsigned system)
{
    double mbps, bytes;

    if ((system != PIPE_PIPELINE) && (system != PIPE_CACHING)) {
        return;
    }
    mbps = pipe_new(system, options->costs, &options->pipeline, options->size,
                    options->uses, &bytes);
    pipe_begin(options, "new", system);
    printf(",\"size\":%zu,\"messages\":%zu,\"mbps\":%.2f,\"bytes\":%.0f}\n",
           options->size, options->uses, mbps, bytes);
}

static void pipe_run(const pipe_options_t *options, unsigned system)
{
    if (strcmp(options->what, "reuse") == 0) {
        pipe_reuse(options, system);
    } else if (strcmp(options->what, "size") == 0) {
        pipe_sizes(options, system);
    } else if (strcmp(options->what, "new") == 0) {
        pipe_fresh(options, system);
    } else {
        pipe_rings(options, system);
    }
    fflush(stdout);
}

static void pipe_usage(void)
{
    printf("usage: pipeline_model [--costs 2006|today] "
           "[--what reuse|size|new|beff]\n"
           "    [--system NAME] [--size BYTES] [--uses N] and of the pipelines "
           "[--eager BYTES]\n"
           "    [--offset BYTES] [--fragment BYTES] [--depth N] "
           "[--cache BYTES]\n"
           "Bandwidths in 10^6 bytes a second, at MODELLED costs.\n");
}

static unsigned pipe_system(const char *name)
{
    unsigned i;

    for (i = 0; i < PIPE_NUM_SYSTEMS; ++i) {
        if (strcmp(name, pipe_system_names[i]) == 0) {
            return i;
        }
    }
    pipe_die("--system %s is none of leave_pinned, leave_pinned_put, "
             "on_demand, helper, copy, pipeline, caching", name);
}

static const pipe_costs_t *pipe_find_costs(const char *name)
{
    unsigned i;

    for (i = 0; i < PIPE_NUM_COSTS; ++i) {
        if (strcmp(name, pipe_costs[i].name) == 0) {
            return &pipe_costs[i];
        }
    }
    pipe_die("--costs %s is none of 2006, today", name);
}

static void pipe_option(pipe_options_t *options, const char *name,
                        const char *value)
{
    size_t number = 0;

    if (strcmp(name, "--costs") == 0) {
        options->costs = pipe_find_costs(value);
        return;
    } else if (strcmp(name, "--system") == 0) {
        options->system = pipe_system(value);
        return;
    } else if (strcmp(name, "--what") == 0) {
        if ((strcmp(value, "reuse") != 0) && (strcmp(value, "size") != 0) &&
            (strcmp(value, "new") != 0) && (strcmp(value, "beff") != 0)) {
            pipe_die("--what %s is none of reuse, size, new, beff", value);
        }
        options->what = value;
        return;
    }
    if (bench_parse_size(value, &number) != 0) {
        pipe_die("%s %s is not a size in bytes", name, value);
    }
    if (strcmp(name, "--size") == 0) {
        options->size = number;
    } else if (strcmp(name, "--uses") == 0) {
        if ((number < 1) || (number > PIPE_MAX_USES)) {
            pipe_die("--uses %s is not 1 to %u", value, PIPE_MAX_USES);
        }
        options->uses = number;
    } else if (strcmp(name, "--eager") == 0) {
        options->pipeline.eager = number;
    } else if (strcmp(name, "--offset") == 0) {
        options->pipeline.rdma_offset = number;
    } else if (strcmp(name, "--fragment") == 0) {
        options->pipeline.fragment = number;
    } else if (strcmp(name, "--depth") == 0) {
        options->pipeline.depth = number;
    } else if (strcmp(name, "--cache") == 0) {
        options->pipeline.cache_bytes = number;
    } else {
        pipe_die("unknown option %s, see --help", name);
    }
}

int main(int argc, char **argv)
{
    pipe_options_t options = {.costs = &pipe_costs[0], .what = "reuse",
                              .system = PIPE_NUM_SYSTEMS,
                              .size = PIPE_REUSE_SIZE, .uses = PIPE_MAX_USES};
    unsigned system;
    int i;

    ucx_pipeline_options_init(&options.pipeline);
    for (i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--help") == 0) {
            pipe_usage();
            return 0;
        }
        if (i + 1 == argc) {
            pipe_die("%s needs a value, see --help", argv[i]);
        }
        pipe_option(&options, argv[i], argv[i + 1]);
    }
    for (system = 0; system < PIPE_NUM_SYSTEMS; ++system) {
        if ((options.system == PIPE_NUM_SYSTEMS) ||
            (options.system == system)) {
            pipe_run(&options, system);
        }
    }
    return 0;
}
