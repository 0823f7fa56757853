/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * What firehose's own tables cost, by the number of buckets that are pinned: puts
 * that hit, over a wire that does nothing, so that nothing else is measured. What
 * the target gives is one small file mapped again and again: many buckets, little
 * memory. Prints one JSON line.
 */
#include "../bench_util.h"

#include <ucp/firehose/firehose_core.h>
#include <ucp/wire/wire_null.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { COST_PAGE = 4096, COST_CHUNK = 16 << 20, COST_LOCALS = 16,
       COST_BATCH = 20000, COST_BATCHES = 41 };

typedef struct cost_world {
    ucp_wire_null_t *null;
    ucx_firehose_h  nodes[2];
    unsigned        node; /* whose wire is made */
    char            *target, *local;
    size_t          count; /* buckets */
    uint64_t        random;
} cost_world_t;

static void cost_die(const char *what)
{
    fprintf(stderr, "firehose_cost: %s\n", what);
    exit(2);
}

static uint64_t cost_random(cost_world_t *world)
{
    uint64_t x = world->random += 0x9e3779b97f4a7c15ull;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    return x ^ (x >> 31);
}

static ucs_status_t cost_wire(void *arg, const ucp_wire_handlers_t *handlers,
                              ucp_wire_t **wire_p)
{
    cost_world_t *world = arg;

    ucp_wire_null_open(world->null, world->node, handlers, wire_p);
    return UCS_OK;
}

static char *cost_map(size_t length)
{
    int fd = memfd_create("firehose_cost", 0);
    size_t at;
    char *all;

    all = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if ((fd < 0) || (ftruncate(fd, COST_CHUNK) != 0) || (all == MAP_FAILED)) {
        cost_die("no memory");
    }
    for (at = 0; at < length; at += COST_CHUNK) {
        if (mmap(all + at, COST_CHUNK, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
            cost_die("no memory");
        }
    }
    close(fd);
    return all;
}

static void cost_open(cost_world_t *world)
{
    size_t length = (world->count * COST_PAGE + COST_CHUNK - 1) / COST_CHUNK *
                    COST_CHUNK;
    ucx_firehose_params_t params = {.num_nodes = 2,
                                    .memory    = world->count * COST_PAGE};

    world->target = cost_map(length);
    world->local  = cost_map(COST_CHUNK);
    world->null   = ucp_wire_null_create(2);
    for (world->node = 0; world->node < 2; ++world->node) {
        params.node = world->node;
        if (ucp_firehose_create(&params, cost_wire, world,
                                &world->nodes[world->node]) != UCS_OK) {
            cost_die("no instance");
        }
    }
    ucp_firehose_greet(world->nodes[0], 1);
    ucp_firehose_greet(world->nodes[1], 0);
}

static void cost_settle(cost_world_t *world)
{
    while (ucx_firehose_progress(world->nodes[0]) +
           ucx_firehose_progress(world->nodes[1]) > 0) {
    }
}

static void cost_put(cost_world_t *world, size_t bucket)
{
    ucs_status_t status;

    status = ucx_firehose_put_nb(world->nodes[0], 1,
                                 world->local +
                                         bucket % COST_LOCALS * COST_PAGE,
                                 (uintptr_t)world->target + bucket * COST_PAGE,
                                 8, NULL, NULL);
    if (UCS_STATUS_IS_ERR(status)) {
        cost_die(ucs_status_string(status));
    }
}

/* @return Nanoseconds of one put, the median of the batches */
static double cost_measure(cost_world_t *world, int is_random)
{
    double times[COST_BATCHES];
    size_t order[1024];
    uint64_t start;
    unsigned batch, i;

    for (batch = 0; batch < COST_BATCHES; ++batch) {
        for (i = 0; i < 1024; ++i) {
            order[i] = is_random ? cost_random(world) % world->count : i % 64;
        }
        start = bench_cpu_now();
        for (i = 0; i < COST_BATCH; ++i) {
            /* Another bucket each time: the list is shifted by each round */
            cost_put(world, is_random ? (order[i % 1024] + i / 1024 * 7919) %
                                                world->count :
                                        order[i % 1024]);
        }
        times[batch] = (double)(bench_cpu_now() - start) / COST_BATCH;
    }
    bench_sort(times, COST_BATCHES);
    return bench_quantile(times, COST_BATCHES, 0.5);
}

static void cost_run(size_t count, const char *separator)
{
    cost_world_t world = {.count = count};
    ucx_firehose_attr_t before, after;
    double few, all;
    size_t bucket;
    uint64_t start;

    cost_open(&world);
    start = bench_cpu_now();
    for (bucket = 0; bucket < count; ++bucket) {
        cost_put(&world, bucket);
        cost_settle(&world);
    }
    start = bench_cpu_now() - start;
    ucx_firehose_query(world.nodes[0], &before);
    few = cost_measure(&world, 0);
    all = cost_measure(&world, 1);
    ucx_firehose_query(world.nodes[0], &after);
    if (after.misses != before.misses) {
        cost_die("not all were hits");
    }
    printf("%s{\"buckets\":%zu,\"miss_ns\":%.1f,\"hit_few_ns\":%.1f,"
           "\"hit_all_ns\":%.1f}",
           separator, count, (double)start / count, few, all);
    ucp_firehose_stop(world.nodes[0]);
    ucp_firehose_stop(world.nodes[1]);
    cost_settle(&world);
    ucp_firehose_destroy(world.nodes[0]);
    ucp_firehose_destroy(world.nodes[1]);
    ucp_wire_null_destroy(world.null);
    munmap(world.target, (count * COST_PAGE + COST_CHUNK - 1) / COST_CHUNK *
                                 COST_CHUNK);
    munmap(world.local, COST_CHUNK);
}

int main(int argc, char **argv)
{
    size_t most = (argc > 1) ? strtoul(argv[1], NULL, 10) : 1000000, count;

    printf("{\"bench\":\"firehose_cost\",\"rows\":[");
    for (count = 1000; count <= most; count *= 10) {
        cost_run(count, (count == 1000) ? "" : ",");
        fflush(stdout);
    }
    printf("]}\n");
    return 0;
}
