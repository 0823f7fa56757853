/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "pipeline_model.h"

#include <ucs/sys/hash.h>

#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PIPE_PAGE 4096ul

/* Messages with other buffers before those that count */
#define PIPE_WARM_UP 2

/* Segments that are kept lie at multiples of their size: memory begins at one of
 * the longest, so that every run has the same ones */
#define PIPE_ALIGNMENT (4ul << 20)

/* Buffers are told apart by a hash of their address: these are the same in
 * every run, where nothing else is */
#define PIPE_FIRST_ADDRESS (1ul << 44)

static char *pipe_map(size_t length)
{
    static uintptr_t next = PIPE_FIRST_ADDRESS;
    size_t pages = (length + PIPE_PAGE - 1) & ~(PIPE_PAGE - 1), before;
    char *memory = mmap((void*)next, pages + PIPE_ALIGNMENT,
                        PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                        -1, 0);

    if (memory == MAP_FAILED) {
        pipe_die("no memory for buffers of %zu bytes", length);
    }
    next  += (pages + 2 * PIPE_ALIGNMENT) & ~(PIPE_ALIGNMENT - 1);
    before = -(uintptr_t)memory & (PIPE_ALIGNMENT - 1);
    if (before > 0) {
        munmap(memory, before);
    }
    munmap(memory + before + pages, PIPE_ALIGNMENT - before);
    return memory + before;
}

/* Buffers lie apart, each at the start of a page */
static size_t pipe_stride(size_t size)
{
    return (size + 2 * PIPE_PAGE - 1) & ~(PIPE_PAGE - 1);
}

/*
 * Ping-pong
 */

typedef struct pipe_pingpong {
    size_t   size;
    unsigned messages; /* a way */
    char     *out[2], *in[2];
    unsigned begun[2]; /* operations */
    uint64_t *ends;    /* may be NULL */
    int      is_new;   /* each message from and to memory of its own */
} pipe_pingpong_t;

/* The memory of an operation: what was used is given back first, of which the
 * pipeline hears */
static char *pipe_pingpong_memory(pipe_pingpong_t *loop, char **memory)
{
    if (loop->is_new) {
        munmap(*memory, loop->size);
        *memory = pipe_map(loop->size);
    }
    return *memory;
}

static int pipe_pingpong_script(void *arg, pipe_world_t *world, unsigned node)
{
    pipe_pingpong_t *loop = arg;
    unsigned begun        = loop->begun[node]++;

    if ((node == 0) && (begun > 0) && (begun % 2 == 0) &&
        (loop->ends != NULL)) {
        loop->ends[begun / 2 - 1] = pipe_world_time(world, 0);
    }
    if (begun == 2 * loop->messages) {
        return 0;
    }
    if (begun % 2 == node) {
        pipe_send(world, node, 1 - node,
                  pipe_pingpong_memory(loop, &loop->out[node]), loop->size);
    } else {
        pipe_recv(world, node, 1 - node,
                  pipe_pingpong_memory(loop, &loop->in[node]), loop->size);
    }
    return 1;
}

double pipe_new(pipe_system_t system, const pipe_costs_t *costs,
                size_t size, unsigned messages)
{
    pipe_world_t *world  = pipe_world_open(system, costs, 2);
    pipe_pingpong_t loop = {.size = size, .messages = messages, .is_new = 1};
    uint64_t time;
    unsigned node;

    for (node = 0; node < 2; ++node) {
        loop.out[node] = pipe_map(size);
        loop.in[node]  = pipe_map(size);
    }
    time = pipe_world_run(world, pipe_pingpong_script, &loop);
    pipe_world_close(world);
    for (node = 0; node < 2; ++node) {
        munmap(loop.out[node], size);
        munmap(loop.in[node], size);
    }
    return 2e3 * size * messages / time;
}

size_t pipe_pingpong(pipe_system_t system, const pipe_costs_t *costs,
                     size_t size, unsigned uses, uint64_t *ends)
{
    pipe_world_t *world = pipe_world_open(system, costs, 2);
    size_t stride = pipe_stride(size), length = 8 * stride, peak;
    pipe_pingpong_t loop = {.size = size};
    char *memory         = pipe_map(length);
    uint64_t start;
    unsigned set, node, i;

    for (set = 0; set < 2; ++set) {
        for (node = 0; node < 2; ++node) {
            loop.out[node]   = memory + (4 * set + 2 * node) * stride;
            loop.in[node]    = loop.out[node] + stride;
            loop.begun[node] = 0;
        }
        loop.messages = (set == 0) ? PIPE_WARM_UP : uses;
        loop.ends     = (set == 0) ? NULL : ends;
        /* the run begins where both are; what the last message still has to
         * tell afterwards is not in its time */
        start = pipe_world_time(world, 0);
        if (pipe_world_time(world, 1) > start) {
            start = pipe_world_time(world, 1);
        }
        pipe_world_run(world, pipe_pingpong_script, &loop);
    }
    for (i = 0; i < uses; ++i) {
        ends[i] -= start;
    }
    peak = pipe_world_peak(world);
    pipe_world_close(world);
    munmap(memory, length);
    return peak;
}

/*
 * b_eff
 */

#define PIPE_SIZES       21
#define PIPE_SMALL_SIZES 13 /* 1 byte to 4 KiB, doubled */
#define PIPE_METHODS     3
#define PIPE_RING_KINDS  3
#define PIPE_RANDOMS     3
#define PIPE_MAX_NODES   64

typedef struct pipe_ring {
    size_t   size;
    unsigned left[PIPE_MAX_NODES], right[PIPE_MAX_NODES];
    char     *memory[PIPE_MAX_NODES]; /* out and in, right and left */
    unsigned turns[PIPE_MAX_NODES];
} pipe_ring_t;

static int pipe_ring_script(void *arg, pipe_world_t *world, unsigned node)
{
    pipe_ring_t *ring = arg;
    size_t stride     = pipe_stride(ring->size);
    char *memory      = ring->memory[node];

    if (ring->turns[node]++ == PIPE_METHODS) {
        return 0;
    }
    pipe_recv(world, node, ring->left[node], memory, ring->size);
    pipe_recv(world, node, ring->right[node], memory + stride, ring->size);
    pipe_send(world, node, ring->right[node], memory + 2 * stride, ring->size);
    pipe_send(world, node, ring->left[node], memory + 3 * stride, ring->size);
    return 1;
}

/* Rings of `length` nodes each, along an order */
static void pipe_ring_link(pipe_ring_t *ring, const unsigned *order,
                           unsigned num_nodes, unsigned length)
{
    unsigned first, i;

    for (first = 0; first < num_nodes; first += length) {
        for (i = 0; i < length; ++i) {
            ring->right[order[first + i]] = order[first + (i + 1) % length];
            ring->left[order[first + i]]  = order[first + (i + length - 1) %
                                                          length];
        }
    }
}

static void pipe_shuffle(unsigned *order, unsigned count, uint64_t *state)
{
    unsigned i, k, other;

    for (i = count - 1; i > 0; --i) {
        k        = ucs_hash_random(state) % (i + 1);
        other    = order[k];
        order[k] = order[i];
        order[i] = other;
    }
}

/* @return Bandwidth of all nodes together */
static double pipe_ring_run(pipe_world_t *world, pipe_ring_t *ring,
                            unsigned num_nodes)
{
    size_t stride = pipe_stride(ring->size);
    size_t length = 4 * stride * num_nodes;
    char *memory  = pipe_map(length);
    uint64_t time;
    unsigned i;

    memset(ring->turns, 0, sizeof(ring->turns));
    for (i = 0; i < num_nodes; ++i) {
        ring->memory[i] = memory + 4 * stride * i;
    }
    time = pipe_world_run(world, pipe_ring_script, ring);
    /* the addresses stay taken, and no system is to hear of it: past the hooks
     * that tell what keeps registrations */
    if (syscall(SYS_madvise, memory, length, MADV_DONTNEED) != 0) {
        pipe_die("memory of a ring cannot be given back");
    }
    return 2e3 * ring->size * num_nodes * PIPE_METHODS / time;
}

static size_t pipe_beff_size(unsigned index, size_t lmax)
{
    double share;

    if (index < PIPE_SMALL_SIZES) {
        return (size_t)1 << index;
    }
    share = (index - PIPE_SMALL_SIZES + 1.0) / (PIPE_SIZES - PIPE_SMALL_SIZES);
    return (size_t)(4096 * pow(lmax / 4096.0, share) + 0.5);
}

/* One pattern, over all sizes */
static void pipe_beff_pattern(pipe_world_t *world, pipe_ring_t *ring,
                              unsigned num_nodes, size_t lmax, double *mean_p,
                              double *last_p)
{
    unsigned i;

    *mean_p = 0;
    for (i = 0; i < PIPE_SIZES; ++i) {
        ring->size = pipe_beff_size(i, lmax);
        *last_p    = pipe_ring_run(world, ring, num_nodes);
        *mean_p   += *last_p / PIPE_SIZES;
    }
}

void pipe_beff(pipe_system_t system, const pipe_costs_t *costs,
               unsigned num_nodes, size_t lmax, pipe_beff_t *result)
{
    /* b_eff has rings of 2, 4, 8, then of 16 or more: with few nodes the last
     * four are one ring of all */
    const unsigned lengths[PIPE_RING_KINDS] = {2, 4, num_nodes};
    const double weights[PIPE_RING_KINDS]   = {1.0 / 6, 1.0 / 6, 4.0 / 6};
    double all[2] = {0, 0}, last[2] = {0, 0}, mean, at;
    pipe_world_t *world = pipe_world_open(system, costs, num_nodes);
    unsigned order[PIPE_MAX_NODES], i;
    pipe_ring_t ring;
    uint64_t state = 1;

    for (i = 0; i < num_nodes; ++i) {
        order[i] = i;
    }
    for (i = 0; i < PIPE_RING_KINDS; ++i) {
        pipe_ring_link(&ring, order, num_nodes, lengths[i]);
        pipe_beff_pattern(world, &ring, num_nodes, lmax, &mean, &at);
        all[0]  += weights[i] * log(mean);
        last[0] += weights[i] * log(at);
    }
    for (i = 0; i < PIPE_RANDOMS; ++i) {
        pipe_shuffle(order, num_nodes, &state);
        pipe_ring_link(&ring, order, num_nodes, num_nodes);
        pipe_beff_pattern(world, &ring, num_nodes, lmax, &mean, &at);
        all[1]  += log(mean) / PIPE_RANDOMS;
        last[1] += log(at) / PIPE_RANDOMS;
    }
    result->beff    = exp((all[0] + all[1]) / 2);
    result->at_lmax = exp((last[0] + last[1]) / 2);
    pipe_world_close(world);
}
