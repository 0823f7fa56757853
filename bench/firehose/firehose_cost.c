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
#include <ucp/wire/wire.h>
#include <ucs/datastruct/list.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { COST_PAGE = 4096, COST_CHUNK = 16 << 20, COST_LOCALS = 16,
       COST_BATCH = 20000, COST_BATCHES = 41 };

typedef struct cost_message {
    ucs_list_link_t list;
    size_t          header_length, length;
    char            bytes[];
} cost_message_t;

/* A wire that does nothing but carry messages to the other node */
typedef struct cost_wire {
    ucp_wire_t      super;
    ucs_list_link_t inbox;
} cost_wire_t;

typedef struct cost_world {
    cost_wire_t    wires[2];
    ucx_firehose_h nodes[2];
    unsigned       node; /* whose wire is made */
    char           *target, *local;
    size_t         count; /* buckets */
    uint64_t       random;
} cost_world_t;

static cost_wire_t *cost_wires;

/* What all registrations and all keys are: nothing is behind them */
static uint64_t cost_nothing;

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

static ucs_status_t
cost_am_send(ucp_wire_t *wire, unsigned peer, const void *header,
             size_t header_length, const void *payload, size_t length,
             ucp_wire_done_func_t done, void *arg)
{
    cost_message_t *message = malloc(sizeof(*message) + header_length + length);

    (void)wire, (void)done, (void)arg;
    if (message == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    message->header_length = header_length;
    message->length        = length;
    memcpy(message->bytes, header, header_length);
    memcpy(message->bytes + header_length, payload, length);
    ucs_list_add_tail(&cost_wires[peer].inbox, &message->list);
    return UCS_OK;
}

static unsigned cost_progress(ucp_wire_t *wire)
{
    cost_wire_t *self = (cost_wire_t*)wire;
    cost_message_t *message;

    if (ucs_list_is_empty(&self->inbox)) {
        return 0;
    }
    message = ucs_list_extract_head(&self->inbox, cost_message_t, list);
    wire->handlers.am(wire->handlers.arg, !wire->self, message->bytes,
                      message->header_length,
                      message->bytes + message->header_length, message->length);
    free(message);
    return 1;
}

static ucs_status_t cost_mem_reg(ucp_wire_t *wire, void *address, size_t length,
                                 ucp_wire_mem_t **mem_p)
{
    (void)wire, (void)address, (void)length;
    *mem_p = (ucp_wire_mem_t*)&cost_nothing;
    return UCS_OK;
}

static void cost_mem_dereg(ucp_wire_t *wire, ucp_wire_mem_t *mem)
{
    (void)wire, (void)mem;
}

static ucs_status_t cost_mem_pack(ucp_wire_t *wire, ucp_wire_mem_t *mem,
                                  const void **packed_p, size_t *length_p)
{
    (void)wire, (void)mem;
    *packed_p = &cost_nothing;
    *length_p = sizeof(cost_nothing);
    return UCS_OK;
}

static ucs_status_t
cost_key_unpack(ucp_wire_t *wire, unsigned peer, const void *packed,
                size_t length, ucp_wire_key_t **key_p)
{
    (void)wire, (void)peer, (void)packed, (void)length;
    *key_p = (ucp_wire_key_t*)&cost_nothing;
    return UCS_OK;
}

static void cost_key_release(ucp_wire_t *wire, ucp_wire_key_t *key)
{
    (void)wire, (void)key;
}

static ucs_status_t cost_wire_put(ucp_wire_t *wire, unsigned peer,
                                  ucp_wire_mem_t *mem, const void *buffer,
                                  size_t length, uint64_t remote,
                                  ucp_wire_key_t *key,
                                  ucp_wire_done_func_t done, void *arg)
{
    (void)wire, (void)peer, (void)mem, (void)buffer, (void)length;
    (void)remote, (void)key, (void)done, (void)arg;
    return UCS_OK;
}

static ucs_status_t cost_flush(ucp_wire_t *wire, unsigned peer,
                               ucp_wire_done_func_t done, void *arg)
{
    (void)wire, (void)peer, (void)done, (void)arg;
    return UCS_OK;
}

static void cost_destroy(ucp_wire_t *wire)
{
    cost_wire_t *self = (cost_wire_t*)wire;

    while (!ucs_list_is_empty(&self->inbox)) {
        free(ucs_list_extract_head(&self->inbox, cost_message_t, list));
    }
}

static ucs_status_t cost_wire(void *arg, const ucp_wire_handlers_t *handlers,
                              ucp_wire_t **wire_p)
{
    static const ucp_wire_ops_t ops = {
        .am_send     = cost_am_send,
        .mem_reg     = cost_mem_reg,
        .mem_dereg   = cost_mem_dereg,
        .mem_pack    = cost_mem_pack,
        .key_unpack  = cost_key_unpack,
        .key_release = cost_key_release,
        .put         = cost_wire_put,
        .flush       = cost_flush,
        .progress    = cost_progress,
        .destroy     = cost_destroy
    };
    cost_world_t *world = arg;
    cost_wire_t *self   = &world->wires[world->node];

    cost_wires              = world->wires;
    self->super.ops         = &ops;
    self->super.handlers    = *handlers;
    self->super.self        = world->node;
    self->super.num_peers   = 2;
    self->super.max_header  = UCP_WIRE_MAX_HEADER;
    self->super.max_payload = 65536;
    ucs_list_head_init(&self->inbox);
    *wire_p = &self->super;
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
