/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "pipeline_patterns.h"

#include "../bench_options.h"

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

static void pipe_rings(const pipe_options_t *options, unsigned system)
{
    pipe_beff_t beff;

    pipe_beff(system, options->costs, &options->pipeline, PIPE_RANKS, PIPE_LMAX,
              &beff);
    pipe_begin(options, "beff", system);
    printf(",\"ranks\":%u,\"lmax\":%u,\"beff\":%.1f,\"lmax_all\":%.1f}\n",
           PIPE_RANKS, PIPE_LMAX, beff.beff, beff.at_lmax);
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
    } else if (strcmp(options->what, "new") == 0) {
        pipe_fresh(options, system);
    } else if (strcmp(options->what, "beff") == 0) {
        pipe_rings(options, system);
    } else {
        pipe_die("--what %s is none of reuse, new, beff", options->what);
    }
    fflush(stdout);
}

/* @return PIPE_NUM_SYSTEMS, all, without a name */
static unsigned pipe_system(const char *name)
{
    unsigned i;

    for (i = 0; (name != NULL) && strcmp(name, pipe_system_names[i]); ++i) {
        if (i + 1 == PIPE_NUM_SYSTEMS) {
            pipe_die("--system %s is none of leave_pinned, helper, copy, "
                     "pipeline, caching", name);
        }
    }
    return (name == NULL) ? PIPE_NUM_SYSTEMS : i;
}

static const pipe_costs_t *pipe_find_costs(const char *name)
{
    unsigned i;

    for (i = 0; strcmp(name, pipe_costs[i].name) != 0; ++i) {
        if (i + 1 == PIPE_NUM_COSTS) {
            pipe_die("--costs %s is none of 2006, today", name);
        }
    }
    return &pipe_costs[i];
}

int main(int argc, char **argv)
{
    const char *costs = "2006", *name = NULL;
    pipe_options_t options = {.what = "reuse", .size = PIPE_REUSE_SIZE,
                              .uses = PIPE_MAX_USES};
    ucx_pipeline_options_t *pipeline = &options.pipeline;
    const bench_option_t table[] = {
        {"costs", BENCH_TEXT, &costs, 0, 0, "2006|today [2006]"},
        {"what", BENCH_TEXT, &options.what, 0, 0, "reuse|new|beff [reuse]"},
        {"system", BENCH_TEXT, &name, 0, 0,
         "leave_pinned|helper|copy|pipeline|caching [all]"},
        {"size", BENCH_SIZE, &options.size, 1, 1e9, "SIZE  of a message [8m]"},
        {"uses", BENCH_SIZE, &options.uses, 1, PIPE_MAX_USES, "N     [101]"},
        {"eager", BENCH_SIZE, &pipeline->eager, 0, 1e12, "SIZE  of the pipelines"},
        {"offset", BENCH_SIZE, &pipeline->rdma_offset, 0, 1e12, "SIZE"},
        {"fragment", BENCH_SIZE, &pipeline->fragment, 0, 1e12, "SIZE"},
        {"depth", BENCH_COUNT, &pipeline->depth, 0, 1e6, "N"},
        {"cache", BENCH_SIZE, &pipeline->cache_bytes, 0, 1e12, "SIZE"},
        {0}
    };
    unsigned system;
    int ret;

    (void)argc;
    ucx_pipeline_options_init(pipeline);
    ret = bench_options_parse("pipeline_model [options]\nBandwidths in 10^6 bytes a "
                              "second, at MODELLED costs.", table, argv, 0, NULL);
    if (ret != 0) {
        return (ret > 0) ? 0 : 2;
    }
    options.costs  = pipe_find_costs(costs);
    options.system = pipe_system(name);
    for (system = 0; system < PIPE_NUM_SYSTEMS; ++system) {
        if ((options.system == PIPE_NUM_SYSTEMS) ||
            (options.system == system)) {
            pipe_run(&options, system);
        }
    }
    return 0;
}
