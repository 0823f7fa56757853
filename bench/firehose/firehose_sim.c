/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * Firehose's own code with up to 1,024 nodes, over the virtual network: hit rates
 * are counted, times are MODELLED (by the costs below). All nodes have the same
 * small file mapped again and again as the memory that others reach, for what is in
 * it does not matter. They go in rounds with a barrier, as the paper's programs do.
 * Prints one JSON line.
 */
#include "../bench_util.h"
#include "../wire/wire_sim.h"

#include <ucp/firehose/firehose_core.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SIM_PAGE = 4096, SIM_CHUNK = 4 << 20, SIM_MOST = 1024,
       SIM_SLICES = 8, SIM_TURNS = 64 /* of computing, and looks in each */ };

typedef struct sim_options {
    const char *pattern;
    unsigned   nodes;
    size_t     lent;        /* M of each node */
    size_t     victims;     /* MAXVICTIM */
    size_t     working_set; /* of each node, that others reach */
    size_t     put;         /* bytes */
    unsigned   rounds;
    unsigned   puts;        /* of a node and round, where nothing else says */
    unsigned   partners;    /* of a node, for random words */
    unsigned   flags;
    unsigned   step;        /* puts until a node waits for what they cause */
    uint64_t   idle_ns;     /* that a node computes in a round: MODELLED */
} sim_options_t;

typedef struct sim_world {
    const sim_options_t *options;
    ucp_wire_sim_t      *sim;
    ucx_firehose_h      nodes[SIM_MOST];
    unsigned            node; /* whose wire is made */
    char                *shared, *own;
    uint64_t            puts;
    double              held; /* bytes pinned over time, of all nodes */
} sim_world_t;

static void sim_die(const char *what)
{
    fprintf(stderr, "firehose_sim: %s\n", what);
    exit(2);
}

static uint64_t sim_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
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
        .field_mask = UCX_FIREHOSE_PARAM_FIELD_FLAGS |
                      UCX_FIREHOSE_PARAM_FIELD_VICTIMS,
        .num_nodes  = options->nodes,
        .memory     = options->lent,
        .victims    = options->victims,
        .flags      = options->flags
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

/* All nodes compute, and look now and then as a program does that makes progress */
static void sim_compute(sim_world_t *world)
{
    uint64_t slice = world->options->idle_ns / SIM_SLICES;
    ucx_firehose_attr_t attr;
    unsigned count, turn, i;

    for (count = 0; (slice > 0) && (count < SIM_SLICES); ++count) {
        for (i = 0; i < world->options->nodes; ++i) {
            ucp_wire_sim_work(world->sim, i, slice);
            for (turn = 0; turn < SIM_TURNS; ++turn) {
                ucx_firehose_progress(world->nodes[i]);
            }
            ucx_firehose_query(world->nodes[i], &attr);
            world->held += (double)attr.pinned * slice;
        }
        sim_barrier(world);
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
    uint64_t random = sim_mix((((uint64_t)round << 20 | node) << 20) + i + 1);
    unsigned to;

    to = (node + 1 + random % options->partners * 37) % options->nodes;
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

/* Four rounds anywhere in the working set, four that go on through new pages: what
 * is pinned no longer is worth much, and nothing, by turns */
static sim_place_t
sim_phases(const sim_options_t *options, unsigned node, unsigned round, size_t i)
{
    const uint64_t pages = options->working_set / SIM_PAGE;
    uint64_t random = sim_mix((((uint64_t)round << 20 | node) << 20) + i + 1);

    return (sim_place_t){(node + 1) % options->nodes,
                         ((round % 8 < 4) ? random % (pages / 8) :
                                            (round * options->puts + i) % pages) *
                                 SIM_PAGE};
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
                    {"bitonic", sim_bitonic, SIM_ALL},
                    {"phases", sim_phases, SIM_OPTION}};

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
    for (start = 0; start < count; start += options->step) {
        for (node = 0; node < options->nodes; ++node) {
            for (i = start; (i < start + options->step) && (i < count); ++i) {
                place = sim_patterns[pattern].place(options, node, round, i);
                sim_put(world, node, place.node, place.offset);
            }
        }
        sim_run(world);
    }
}

static void sim_print(sim_world_t *world, double host)
{
    const sim_options_t *options = world->options;
    ucx_firehose_attr_t all = {0}, one;
    const double time       = ucp_wire_sim_time(world->sim, 0);
    double held_limit;
    unsigned i;

    for (i = 0; i < options->nodes; ++i) {
        ucx_firehose_query(world->nodes[i], &one);
        all.hits            += one.hits;
        all.misses          += one.misses;
        all.joined          += one.joined;
        all.moves           += one.moves;
        all.pins            += one.pins;
        all.unpins          += one.unpins;
        all.victims_revived += one.victims_revived;
        all.pinned          += one.pinned;
        all.pinned_peak     += one.pinned_peak;
        if (one.pinned_peak > one.pinned_max) {
            sim_die("more was pinned than may be");
        }
    }
    held_limit = (double)(options->lent + options->victims);
    printf("{\"bench\":\"firehose_sim\",\"pattern\":\"%s\",\"nodes\":%u,"
           "\"lent\":%zu,\"victims\":%zu,\"working_set\":%zu,\"flags\":%u,"
           "\"puts\":%lu,\"hits\":%lu,\"misses\":%lu,\"joined\":%lu,"
           "\"moves\":%lu,\"pins\":%lu,\"unpins\":%lu,\"revived\":%lu,"
           "\"peak_share\":%.4f,\"pinned_share\":%.4f,"
           "\"held_share\":%.4f,\"pin_share\":%.6f,"
           "\"modelled_ms\":%.3f,\"host_seconds\":%.2f}\n",
           options->pattern, options->nodes, options->lent, options->victims,
           options->working_set, options->flags, world->puts, all.hits,
           all.misses, all.joined, all.moves, all.pins, all.unpins,
           all.victims_revived,
           all.pinned_peak / held_limit / options->nodes,
           all.pinned / held_limit / options->nodes,
           world->held / held_limit / options->nodes / time,
           (all.pins * (sim_costs.reg_base + sim_costs.reg_per_page) +
            all.unpins * (sim_costs.dereg_base + sim_costs.dereg_per_page)) /
                   options->nodes / time,
           time * 1e-6, host);
}

static void sim_go(const sim_options_t *options)
{
    sim_world_t *world = calloc(1, sizeof(*world));
    uint64_t start     = bench_cpu_now();
    unsigned pattern = 0, round;

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
        sim_compute(world);
    }
    if (ucp_wire_sim_errors(world->sim) > 0) {
        sim_die(ucp_wire_sim_error(world->sim));
    }
    sim_print(world, (bench_cpu_now() - start) * 1e-9);
    fflush(stdout);
    _exit(0); /* what is left is the network's own */
}

int main(int argc, char **argv)
{
    sim_options_t options = {.nodes = 16, .lent = 4 << 20, .victims = 512 << 10,
                             .working_set = 1 << 20, .put = 8, .rounds = 16,
                             .puts = 256, .partners = 16, .step = 16};
    int option;

    while ((option = getopt(argc, argv, "n:m:v:W:b:r:k:p:f:i:s:")) != -1) {
        switch (option) {
        case 'n': options.nodes = atoi(optarg); break;
        case 'm': bench_parse_size(optarg, &options.lent); break;
        case 'v': bench_parse_size(optarg, &options.victims); break;
        case 'W': bench_parse_size(optarg, &options.working_set); break;
        case 'b': bench_parse_size(optarg, &options.put); break;
        case 'r': options.rounds = atoi(optarg); break;
        case 'k': options.puts = atoi(optarg); break;
        case 'p': options.partners = atoi(optarg); break;
        case 'f': options.flags = atoi(optarg); break;
        case 's': options.step = atoi(optarg); break;
        case 'i': options.idle_ns = atoll(optarg); break;
        default: optind = argc;
        }
    }
    if ((optind + 1 != argc) || (options.nodes < 2) ||
        (options.nodes > SIM_MOST) || (options.partners == 0) ||
        (options.put == 0) || (options.step == 0)) {
        fprintf(stderr,
                "usage: firehose_sim [-n NODES, 2 to 1024] [-m M] [-v "
                "MAXVICTIM] [-W WORKING-SET] [-b PUT] [-r ROUNDS] [-k PUTS] "
                "[-p PARTNERS] [-f FLAGS] [-s PUTS at once] [-i NS of computing a round] "
                "random|cannon|bitonic|phases\n");
        return 2;
    }
    options.pattern = argv[optind];
    sim_go(&options);
    return 0;
}
