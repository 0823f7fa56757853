/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "pipeline_model.h"

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

#define PIPE_LONG     (8u << 20)
#define PIPE_SHORT    (64u << 10)
#define PIPE_RANKS    8
#define PIPE_USES     101
#define PIPE_NEW_USES 50

static void pipe_begin(const pipe_costs_t *costs, const char *what,
                       unsigned system)
{
    printf("{\"bench\":\"pipeline_model\",\"modelled\":true,\"costs\":\"%s\","
           "\"what\":\"%s\",\"system\":\"%s\"", costs->name, what,
           pipe_system_names[system]);
}

static const unsigned pipe_reuses[] = {0,  1,  2,  3,  5,  10, 20, 30,
                                       40, 45, 50, 60, 80, PIPE_USES - 1};

static void pipe_reuse(const pipe_costs_t *costs, const char *what,
                       unsigned system, size_t size)
{
    uint64_t ends[PIPE_USES];
    unsigned i, reuses;
    size_t peak;

    peak = pipe_pingpong(system, costs, size, PIPE_USES, ends);
    for (i = 0; i < sizeof(pipe_reuses) / sizeof(pipe_reuses[0]); ++i) {
        reuses = pipe_reuses[i];
        pipe_begin(costs, what, system);
        printf(",\"size\":%zu,\"reuses\":%u,\"mbps\":%.2f,\"peak\":%zu}\n",
               size, reuses, 2e3 * size * (reuses + 1) / ends[reuses], peak);
    }
}

static void pipe_rings(const pipe_costs_t *costs, const char *what,
                       unsigned system)
{
    pipe_beff_t beff;

    pipe_beff(system, costs, PIPE_RANKS, PIPE_LONG, &beff);
    pipe_begin(costs, what, system);
    printf(",\"ranks\":%u,\"lmax\":%u,\"beff\":%.1f,\"lmax_all\":%.1f}\n",
           PIPE_RANKS, PIPE_LONG, beff.beff, beff.at_lmax);
}

/* Of the pipelines alone: the modelled caches hear of no unmapped memory */
static void pipe_fresh(const pipe_costs_t *costs, const char *what,
                       unsigned system)
{
    if ((system != PIPE_PIPELINE) && (system != PIPE_CACHING)) {
        return;
    }
    pipe_begin(costs, what, system);
    printf(",\"size\":%u,\"messages\":%u,\"mbps\":%.2f}\n", PIPE_LONG,
           PIPE_NEW_USES, pipe_new(system, costs, PIPE_LONG, PIPE_NEW_USES));
}

static const pipe_costs_t *pipe_find_costs(const char *name)
{
    unsigned i;

    for (i = 0; strcmp(name, pipe_costs[i].name) != 0; ++i) {
        if (i + 1 == PIPE_NUM_COSTS) {
            pipe_die("costs %s are none of 2006, today", name);
        }
    }
    return &pipe_costs[i];
}

int main(int argc, char **argv)
{
    const pipe_costs_t *costs;
    const char *what;
    unsigned system;

    if (argc != 3) {
        pipe_die("usage: pipeline_model 2006|today reuse|short|new|beff\n"
                 "Bandwidths in 10^6 bytes a second, at MODELLED costs.");
    }
    costs = pipe_find_costs(argv[1]);
    what  = argv[2];
    for (system = 0; system < PIPE_NUM_SYSTEMS; ++system) {
        if (strcmp(what, "reuse") == 0) {
            pipe_reuse(costs, what, system, PIPE_LONG);
        } else if (strcmp(what, "short") == 0) {
            pipe_reuse(costs, what, system, PIPE_SHORT);
        } else if (strcmp(what, "new") == 0) {
            pipe_fresh(costs, what, system);
        } else if (strcmp(what, "beff") == 0) {
            pipe_rings(costs, what, system);
        } else {
            pipe_die("%s is none of reuse, short, new, beff", what);
        }
        fflush(stdout);
    }
    return 0;
}
