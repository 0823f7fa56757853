/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "nodes.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * With UCX_FIREHOSE_FLAG_STRICT memory is revoked inside the call that unmaps
 * it: looked at from the initiator, and by foreign memory in the same place.
 */

enum { STRICT_ROUNDS = 60, RACE_ROUNDS = 150 };

static const size_t unmapped_length = 64 << 10;

static void unmapped_done(void *arg, ucs_status_t status)
{
    *(volatile ucs_status_t*)arg = status;
}

static uint64_t unmapped_hits(nodes_t *nodes)
{
    ucx_firehose_attr_t attr;

    ucx_firehose_query(nodes->firehose, &attr);
    return attr.hits;
}

/* Unmap by turns in the ways that there are, without a word to the library, and
 * map other memory there */
static void unmapped_replace(nodes_t *nodes, char *memory, unsigned way)
{
    void *other;

    switch (way % 3) {
    case 0:
        munmap(memory, unmapped_length);
        break;
    case 1: /* moved elsewhere: what was there goes with it */
        other = mremap(memory, unmapped_length, unmapped_length * 2,
                       MREMAP_MAYMOVE);
        if (other == memory) { /* it grew in place */
            munmap(memory, unmapped_length * 2);
        } else {
            munmap(other, unmapped_length * 2);
        }
        break;
    default: /* the mapping below replaces it */
        break;
    }
    NODES_CHECK(mmap(memory, unmapped_length, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                     0) == memory,
                "mmap");
}

static void unmapped_await(nodes_t *nodes, unsigned node, uint64_t number,
                           int with_progress)
{
    volatile uint64_t *told = &nodes->shared->number[node];

    while (*told < number) {
        if (!with_progress || (ucx_firehose_progress(nodes->firehose) == 0)) {
            sched_yield();
        }
        if (atomic_load(&nodes->shared->failed) > 0) {
            _exit(1);
        }
    }
    __sync_synchronize();
}

static void unmapped_tell(nodes_t *nodes, uint64_t number)
{
    __sync_synchronize();
    *(volatile uint64_t*)&nodes->shared->number[nodes->self] = number;
}

/* The peer has unmapped, and has made no progress since: no access may be a hit
 * on what was there */
static void unmapped_reach(nodes_t *nodes, unsigned peer, uint64_t number)
{
    volatile ucs_status_t ended = UCS_INPROGRESS;
    ucs_status_t status;
    uint64_t hits;

    unmapped_await(nodes, peer, number, 1);
    hits   = unmapped_hits(nodes);
    status = ucx_firehose_put_nb(nodes->firehose, peer, nodes->memory,
                                 nodes->shared->memory[peer], unmapped_length,
                                 unmapped_done, (void*)&ended);
    NODES_CHECK(status == UCS_INPROGRESS, "put: %s", ucs_status_string(status));
    NODES_CHECK(unmapped_hits(nodes) == hits, "%lu hits on what was unmapped",
                unmapped_hits(nodes) - hits);
    unmapped_tell(nodes, number);
    while (ended == UCS_INPROGRESS) {
        nodes_progress(nodes);
    }
    NODES_CHECK(ended == UCS_OK, "put: %s", ucs_status_string(ended));
    nodes_flush(nodes);
}

/* Pairs of neighbours, by turns the one that unmaps and the one that reaches */
int nodes_strict(nodes_t *nodes)
{
    const unsigned peer = nodes->self ^ 1;
    ucx_firehose_attr_t attr;
    char *memory;
    unsigned round;
    size_t i;

    NODES_CHECK(nodes->count % 2 == 0, "nodes without a neighbour");
    memory = nodes->memory + nodes->length / 2;
    nodes->shared->memory[nodes->self] = (uintptr_t)memory;
    for (round = 0; round < STRICT_ROUNDS; ++round) {
        memset(nodes->memory, round + nodes->self + 1, unmapped_length);
        nodes_barrier(nodes, nodes->count);
        nodes_put(nodes, peer, nodes->memory, 0, unmapped_length);
        nodes_flush(nodes);
        nodes_barrier(nodes, nodes->count);
        if (round % 2 == nodes->self % 2) {
            unmapped_replace(nodes, memory, round / 2);
            unmapped_tell(nodes, round + 1);
            unmapped_await(nodes, peer, round + 1, 0);
        } else {
            unmapped_reach(nodes, peer, round + 1);
        }
        nodes_barrier(nodes, nodes->count);
        for (i = 0; i < unmapped_length; ++i) {
            NODES_CHECK(memory[i] == (char)(round + peer + 1),
                        "round %u: byte %zu is %d", round, i, memory[i]);
        }
    }
    ucx_firehose_query(nodes->firehose, &attr);
    NODES_CHECK(attr.unmaps > 0, "no unmapping was noticed");
    NODES_CHECK(attr.unmaps_late == 0, "%lu of %lu unmappings did not wait",
                attr.unmaps_late, attr.unmaps);
    return 0;
}

/* Reaches for the peer's memory without regard to what happens to it */
static void race_reach(nodes_t *nodes)
{
    const unsigned peer = nodes->self ^ 1;
    ucs_status_t status;
    uint64_t state = 1, puts = 0, refused = 0;

    while (*(volatile uint64_t*)&nodes->shared->number[peer] < RACE_ROUNDS) {
        state  = ucs_hash_mix(state + ++puts);
        status = nodes_move(
                nodes, 1, peer, nodes->memory,
                nodes->shared->memory[peer] + state % (unmapped_length - 256),
                256);
        refused += (status == UCS_ERR_INVALID_ADDR);
        NODES_CHECK((status == UCS_OK) || (status == UCS_ERR_INVALID_ADDR),
                    "put: %s", ucs_status_string(status));
    }
    ucx_firehose_flush(nodes->firehose);
    printf("# node %u: %lu puts, %lu refused\n", nodes->self, puts, refused);
    NODES_CHECK(refused > 0, "no put came too late");
}

/* Foreign memory that may be read only, in the place of what was unmapped: a
 * byte that a peer writes there shows, or ends this process */
static void race_unmap(nodes_t *nodes, char *memory, int file, char *view)
{
    const uint64_t no_byte = 0x5a;
    unsigned round;
    size_t i;

    for (round = 1; round <= RACE_ROUNDS; ++round) {
        NODES_CHECK(mmap(memory, unmapped_length, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                         0) == memory,
                    "mmap");
        for (i = 0; (i < 10) || (memory[i * 4096 % unmapped_length] == 0 &&
                                 i < 1000);
             ++i) {
            usleep(50);
        }
        if (round % 2) {
            munmap(memory, unmapped_length);
        }
        NODES_CHECK(mmap(memory, unmapped_length, PROT_READ,
                         MAP_SHARED | MAP_FIXED, file, 0) == memory,
                    "mmap");
        usleep(300);
        for (i = 0; i < unmapped_length; ++i) {
            NODES_CHECK(view[i] == (char)no_byte,
                        "round %u: a peer wrote foreign byte %zu", round, i);
        }
        unmapped_tell(nodes, round);
    }
}

int nodes_race(nodes_t *nodes)
{
    ucx_firehose_attr_t attr;
    char *memory, *view;
    int file;

    NODES_CHECK(nodes->count == 2, "two nodes");
    memory = nodes->memory + nodes->length / 2;
    memset(nodes->memory, 1, unmapped_length);
    nodes->shared->memory[nodes->self] = (uintptr_t)memory;
    nodes_barrier(nodes, nodes->count);
    if (nodes->self == 0) {
        race_reach(nodes);
    } else {
        file = memfd_create("foreign", 0);
        NODES_CHECK((file >= 0) && (ftruncate(file, unmapped_length) == 0),
                    "memfd");
        view = mmap(NULL, unmapped_length, PROT_READ | PROT_WRITE, MAP_SHARED,
                    file, 0);
        NODES_CHECK(view != MAP_FAILED, "mmap");
        memset(view, 0x5a, unmapped_length);
        race_unmap(nodes, memory, file, view);
        ucx_firehose_query(nodes->firehose, &attr);
        printf("# node %u: %lu unmappings of memory in use, %lu late\n",
               nodes->self, attr.unmaps, attr.unmaps_late);
        NODES_CHECK((attr.unmaps > 0) && (attr.unmaps_late == 0),
                    "%lu of %lu unmappings did not wait", attr.unmaps_late,
                    attr.unmaps);
    }
    nodes_barrier(nodes, nodes->count);
    return 0;
}
