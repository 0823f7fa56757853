/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * Firehose's own code with up to 1,024 nodes, over the virtual network: hit rates
 * are counted, times are MODELLED (by the costs below). All nodes have the same
 * small file mapped again and again as the memory that others reach, for what is in
 * it does not matter. They go in rounds with a barrier, as the paper's programs do.
 * Prints one JSON line.
 */
#include "../bench_options.h"
#include "../wire/wire_sim.h"

#include <ucp/firehose/firehose_core.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SIM_CHUNK = 4 << 20, SIM_MOST = 1024, SIM_PARTNERS = 16,
       SIM_STEP = 16 /* puts until a node waits for what they cause */ };

typedef struct sim_options {
    const char *pattern;
    unsigned   nodes;
    size_t     lent;        /* M of each node */
    size_t     victims;     /* MAXVICTIM */
    size_t     working_set; /* of each node, that others reach */
    size_t     put;         /* bytes */
    unsigned   rounds;
    unsigned   puts;        /* of a node and round, where nothing else says */
} sim_options_t;

typedef struct sim_world {
    const sim_options_t *options;
    ucp_wire_sim_t      *sim;
    ucx_firehose_h      nodes[SIM_MOST];
    unsigned            node; /* whose wire is made */
    char                *shared, *own;
    uint64_t            puts;
} sim_world_t;

static void sim_die(const char *what)
{
    fprintf(stderr, "firehose_sim: %s\n", what);
    exit(2);
}

static ucs_status_t sim_wire(void *arg, const ucp_wire_handlers_t *handlers,
                             ucp_wire_t **wire_p)
{
    sim_world_t *world = arg;

    return ucp_wire_sim_open(world->sim, world->node, handlers, wire_p);
}

static char *sim_map(size_t length)
{
    int fd = memfd_create("firehose_sim", 0);
    size_t at;
    char *all;

    all = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if ((fd < 0) || (ftruncate(fd, SIM_CHUNK) != 0) || (all == MAP_FAILED)) {
        sim_die("no memory");
    }
    for (at = 0; at < length; at += SIM_CHUNK) {
        if (mmap(all + at, SIM_CHUNK, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
            sim_die("no memory");
        }
    }
    close(fd);
    return all;
}

/* The paper's class of network, with this year's numbers: a NIC of 100 Gbit/s, and
 * what pinning a page costs there. Puts of some bytes end at once. */
static const ucp_wire_sim_params_t sim_costs = {
    .seed          = 1,
    .latency       = 1000,
    .ns_per_byte   = 0.08,
    .copy_per_byte = 0.05,
    .send_cost     = 150,
    .reg_base      = 20000,
    .reg_per_page  = 250,
    .dereg_base    = 10000,
    .dereg_per_page = 100,
    .inline_chance = 1000000
};

static void sim_create(sim_world_t *world)
{
    const sim_options_t *options = world->options;
    ucx_firehose_params_t params = {
        .field_mask = UCX_FIREHOSE_PARAM_FIELD_VICTIMS,
        .num_nodes  = options->nodes,
        .memory     = options->lent,
        .victims    = options->victims
    };
    ucp_wire_sim_params_t costs  = sim_costs;

    costs.num_nodes = options->nodes;
    world->sim      = ucp_wire_sim_create(&costs);
    world->shared   = sim_map((options->working_set + SIM_CHUNK - 1) /
                              SIM_CHUNK * SIM_CHUNK);
    world->own      = sim_map(SIM_CHUNK);
    for (world->node = 0; world->node < options->nodes; ++world->node) {
        params.node = world->node;
        if ((world->sim == NULL) ||
            (ucp_firehose_create(&params, sim_wire, world,
                                 &world->nodes[world->node]) != UCS_OK)) {
            sim_die("no memory");
        }
    }
}

/* Until nothing is under way */
static void sim_run(sim_world_t *world)
{
    unsigned count, i;
    int node;

    do {
        while ((node = ucp_wire_sim_next(world->sim)) >= 0) {
            ucx_firehose_progress(world->nodes[node]);
        }
        for (i = 0, count = 0; i < world->options->nodes; ++i) {
            count += ucx_firehose_progress(world->nodes[i]);
        }
    } while (count > 0);
}

/* All nodes' processors stand where the last one stands */
static void sim_barrier(sim_world_t *world)
{
    uint64_t latest = 0, time;
    unsigned i;

    sim_run(world);
    for (i = 0; i < world->options->nodes; ++i) {
        time   = ucp_wire_sim_time(world->sim, i);
        latest = (time > latest) ? time : latest;
    }
    for (i = 0; i < world->options->nodes; ++i) {
        ucp_wire_sim_work(world->sim, i,
                          latest - ucp_wire_sim_time(world->sim, i));
    }
}

static void
sim_put(sim_world_t *world, unsigned from, unsigned to, size_t offset)
{
    size_t length = world->options->put;
    ucs_status_t status;

    status = ucx_firehose_put_nb(world->nodes[from], to,
                                 world->own + offset % (SIM_CHUNK / 64),
                                 (uintptr_t)world->shared + offset, length,
                                 NULL, NULL);
    if (status == UCS_ERR_NOT_CONNECTED) {
        ucp_firehose_greet(world->nodes[from], to);
        ucp_firehose_greet(world->nodes[to], from);
        status = ucx_firehose_put_nb(world->nodes[from], to, world->own,
                                     (uintptr_t)world->shared + offset, length,
                                     NULL, NULL);
    }
    if (UCS_STATUS_IS_ERR(status)) {
        sim_die(ucs_status_string(status));
    }
    ++world->puts;
}

/* Where a put goes: the i-th of a node in a round */
typedef struct sim_place {
    unsigned node;
    size_t   offset;
} sim_place_t;

static sim_place_t
sim_random(const sim_options_t *options, unsigned node, unsigned round, size_t i)
{
    uint64_t random = bench_mix((((uint64_t)round << 20 | node) << 20) + i + 1);
    unsigned to;

    to = (node + 1 + random % SIM_PARTNERS * 37) % options->nodes;
    to = (to == node) ? (node + 1) % options->nodes : to;
    return (sim_place_t){to, (random >> 16) % (options->working_set / 8) * 8};
}

/* To the left and up, into the one of two places whose turn it is */
static sim_place_t
sim_cannon(const sim_options_t *options, unsigned node, unsigned round, size_t i)
{
    const size_t block = options->working_set / 4, at = i / 2 * options->put;
    unsigned grid      = 1, row, column, to;

    while (grid * grid < options->nodes) {
        ++grid;
    }
    row    = node / grid;
    column = node % grid;
    to     = (i % 2) ? (row + grid - 1) % grid * grid + column :
                       row * grid + (column + grid - 1) % grid;
    return (sim_place_t){to, (i % 2 * 2 + (round + 1) % 2) * block + at};
}

static sim_place_t sim_bitonic(const sim_options_t *options, unsigned node,
                               unsigned round, size_t i)
{
    unsigned stages = 0, stage, width;

    for (width = 2; width <= options->nodes; width *= 2) {
        ++stages;
    }
    /* The exchanges of a sort: 1; 2, 1; 4, 2, 1; and so on */
    round %= stages * (stages + 1) / 2;
    for (stage = 1; round >= stage; ++stage) {
        round -= stage;
    }
    return (sim_place_t){node ^ (1u << (stage - 1 - round)), i * options->put};
}

/* What the number of puts of a node and round is counted by */
typedef enum sim_size { SIM_OPTION, SIM_HALF, SIM_ALL } sim_size_t;

static const struct {
    const char  *name;
    sim_place_t (*place)(const sim_options_t *options, unsigned node,
                         unsigned round, size_t i);
    sim_size_t  size;
} sim_patterns[] = {{"random", sim_random, SIM_OPTION},
                    {"cannon", sim_cannon, SIM_HALF},
                    {"bitonic", sim_bitonic, SIM_ALL}};

/* Some puts of each node, then what they cause, and so on */
static void sim_round(sim_world_t *world, unsigned pattern, unsigned round)
{
    const sim_options_t *options = world->options;
    size_t count = options->working_set / options->put, start, i;
    sim_place_t place;
    unsigned node;

    count = (sim_patterns[pattern].size == SIM_OPTION) ? options->puts :
            (sim_patterns[pattern].size == SIM_HALF)   ? count / 2 :
                                                         count;
    for (start = 0; start < count; start += SIM_STEP) {
        for (node = 0; node < options->nodes; ++node) {
            for (i = start; (i < start + SIM_STEP) && (i < count); ++i) {
                place = sim_patterns[pattern].place(options, node, round, i);
                sim_put(world, node, place.node, place.offset);
            }
        }
        sim_run(world);
    }
}

static void sim_print(sim_world_t *world)
{
    const sim_options_t *options = world->options;
    ucx_firehose_attr_t all = {0}, one;
    unsigned i;

    for (i = 0; i < options->nodes; ++i) {
        ucx_firehose_query(world->nodes[i], &one);
        all.hits   += one.hits;
        all.misses += one.misses;
        all.joined += one.joined;
        all.pins   += one.pins;
        if (one.pinned_peak > one.pinned_max) {
            sim_die("more was pinned than may be");
        }
    }
    printf("{\"bench\":\"firehose_sim\",\"pattern\":\"%s\",\"nodes\":%u,"
           "\"lent\":%zu,\"victims\":%zu,\"working_set\":%zu,\"puts\":%lu,"
           "\"hits\":%lu,\"misses\":%lu,\"joined\":%lu,\"pins\":%lu,"
           "\"modelled_ms\":%.3f}\n",
           options->pattern, options->nodes, options->lent, options->victims,
           options->working_set, world->puts, all.hits, all.misses, all.joined,
           all.pins, ucp_wire_sim_time(world->sim, 0) * 1e-6);
}

static void sim_go(const sim_options_t *options)
{
    sim_world_t *world = calloc(1, sizeof(*world));
    unsigned pattern   = 0, round;

    while (strcmp(sim_patterns[pattern].name, options->pattern) != 0) {
        if (++pattern == sizeof(sim_patterns) / sizeof(sim_patterns[0])) {
            sim_die("no such pattern");
        }
    }
    world->options = options;
    sim_create(world);
    for (round = 0; round < options->rounds; ++round) {
        sim_round(world, pattern, round);
        sim_barrier(world);
    }
    if (ucp_wire_sim_errors(world->sim) > 0) {
        sim_die(ucp_wire_sim_error(world->sim));
    }
    sim_print(world);
    fflush(stdout);
    _exit(0); /* what is left is the network's own */
}

int main(int argc, char **argv)
{
    sim_options_t options = {.nodes = 16, .lent = 64 << 20, .victims = 8 << 20,
                             .working_set = 1 << 20, .put = 8, .rounds = 16,
                             .puts = 256};
    const bench_option_t table[] = {
        {"nodes", BENCH_COUNT, &options.nodes, 2, SIM_MOST, "N     [16]"},
        {"lent", BENCH_SIZE, &options.lent, 1, 1e12, "SIZE  M of each [64m]"},
        {"victims", BENCH_SIZE, &options.victims, 0, 1e12, "SIZE  MAXVICTIM [8m]"},
        {"set", BENCH_SIZE, &options.working_set, 1, 1e12,
         "SIZE  of each node, that others reach [1m]"},
        {"put", BENCH_SIZE, &options.put, 1, 1e6, "SIZE  [8]"},
        {"rounds", BENCH_COUNT, &options.rounds, 1, 1e6, "N     [16]"},
        {"puts", BENCH_COUNT, &options.puts, 1, 1e6,
         "N     of a node and round, for random [256]"},
        {0}
    };
    int ret;

    (void)argc;
    ret = bench_options_parse("firehose_sim [options] random|cannon|bitonic",
                              table, argv, 0, &options.pattern);
    if ((ret != 0) || (options.pattern == NULL)) {
        return (ret > 0) ? 0 : 2;
    }
    sim_go(&options);
    return 0;
}
