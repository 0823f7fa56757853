/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * Two ranks exchange verified messages and change the memory of their buffers
 * between one and the next, in every way that a program may (disturb_ways.c),
 * one way after the other.
 */

#include "disturb.h"
#include "ring.h"
#include "../../bench/bench_options.h"

#include <malloc.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE     4096ul
#define SIZE     (74 * PAGE)
/* Registered by then, and kept, if anything is */
#define CALM     5
#define SHORTEST 20000

static struct {
    unsigned   rounds;
    const char *only;
    int        raw;
    unsigned   corrupt;
} opts = {
    .rounds = 100
};

static unsigned num_messages;

/* No two messages of a rank share content */
static void exchange(const char *way, unsigned char *send, unsigned char *recv,
                     size_t size, unsigned round)
{
    int peer = rank ^ 1;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    size_t offset;

    ++num_messages;
    content_fill(send, size, num_messages * 2 + rank);
    memset(recv, 0xee, size);
    MPI_Irecv(recv, size, MPI_BYTE, peer, 7, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(send, size, MPI_BYTE, peer, 7, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    if (num_messages == opts.corrupt) {
        recv[0] ^= 1;
    }
    offset = content_check(recv, size, num_messages * 2 + peer);
    if (offset < size) {
        fail("%s, round %u: wrong data at %zu of %zu bytes", way, round, offset,
             size);
    }
}

/* Parts of the buffers, each of another length */
static void exchange_part(const disturb_t *d, const char *way)
{
    size_t size = SHORTEST + content_word(d->round, 0) % (d->size - SHORTEST);

    exchange(way, d->send, d->recv, size, d->round);
}

/* From the heap, and back to the system */
static void exchange_heap(const disturb_t *d, const char *way)
{
    size_t size         = d->size + d->round * 100;
    unsigned char *send = malloc(size);
    unsigned char *recv = malloc(size);

    if ((send == NULL) || (recv == NULL)) {
        fail("no memory");
    }
    exchange(way, send, recv, d->size, d->round);
    free(send);
    free(recv);
    malloc_trim(0);
}

/* What the break makes room for. An MPI whose own threads or allocations move
 * it meanwhile keeps what is above. */
static void exchange_break(const disturb_t *d, const char *way)
{
    unsigned char *start = sbrk(3 * d->size);

    if (start == (void*)-1) {
        return;
    }
    exchange(way, start, start + d->size, d->size, d->round);
    if (sbrk(0) == start + 3 * d->size) {
        (void)sbrk(-3 * (intptr_t)d->size);
    }
}

static void run_round(disturb_t *d, const disturb_way_t *way)
{
    if ((d->round < CALM) || (way->run != NULL)) {
        if (d->round >= CALM) {
            way->run(d);
        }
        exchange(way->name, d->send, d->recv, d->size, d->round);
    } else if (strcmp(way->name, "lengths") == 0) {
        exchange_part(d, way->name);
    } else if (strcmp(way->name, "heap") == 0) {
        exchange_heap(d, way->name);
    } else {
        exchange_break(d, way->name);
    }
}

static void run_way(const disturb_way_t *way)
{
    disturb_t d = {.size = SIZE, .raw = opts.raw, .fd = -1};

    d.send = disturb_map(&d, NULL, d.size, 0);
    d.recv = disturb_map(&d, NULL, d.size, 0);
    for (d.round = 0; d.round < opts.rounds; ++d.round) {
        run_round(&d, way);
    }
    disturb_unmap(&d, d.send, d.size);
    disturb_unmap(&d, d.recv, d.size * (1 + d.is_reserved));
    if (d.fd >= 0) {
        close(d.fd);
    }
    while (waitpid(-1, NULL, 0) > 0) {
    }
}

/* By raw system calls guard pages are put unseen by anybody, as said in
 * docs/coherence.md */
static int is_wanted(const char *name)
{
    if (opts.only != NULL) {
        return strcmp(name, opts.only) == 0;
    }
    return !opts.raw || (strcmp(name, "guard") != 0);
}

static void parse_options(char **argv)
{
    const bench_option_t table[] = {
        {"rounds", BENCH_COUNT, &opts.rounds, CALM + 1, 1e9,
         "messages for each way [100]"},
        {"only", BENCH_TEXT, &opts.only, 0, 0, "this way alone"},
        {"raw", BENCH_FLAG, &opts.raw, 1, 1,
         "by system calls, behind the C library; without guard unless that is "
         "asked for"},
        {"corrupt", BENCH_COUNT, &opts.corrupt, 1, 1e9,
         "change what this message brought: it must fail"},
        {NULL}
    };

    bench_options_or_exit("disturb [options]", table, argv, NULL);
}

int main(int argc __attribute__((unused)), char **argv)
{
    const disturb_way_t *way;

    parse_options(argv);
    ring_begin("disturb", MPI_THREAD_SINGLE);
    if (num_ranks != 2) {
        fail("needs two ranks");
    }

    for (way = disturb_ways; way->name != NULL; ++way) {
        if (is_wanted(way->name)) {
            run_way(way);
        }
    }

    if (num_messages == 0) {
        fail("no such way");
    }
    if (rank == 0) {
        printf("disturb: %u messages, OK\n", num_messages);
    }
    MPI_Finalize();
    return 0;
}
