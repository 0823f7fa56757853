/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * What the programs of this folder have in common: some processes of one
 * machine, each with its end of a firehose, memory that the others reach, a
 * barrier, and a place to tell each other addresses.
 */
#ifndef TEST_FIREHOSE_NODES_H_
#define TEST_FIREHOSE_NODES_H_

#include <ucp/firehose/ucx_firehose.h>
#include <ucs/sys/hash.h>

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define NODES_MAX     8
#define NODES_ADDRESS 4096

/* Between the processes */
typedef struct nodes_shared {
    _Atomic unsigned arrived[2]; /* at barriers, by turns */
    _Atomic unsigned failed;     /* processes that found something wrong */
    _Atomic unsigned doomed;     /* node 2 is to die */
    pid_t            pids[NODES_MAX];
    uint8_t          address[NODES_MAX][NODES_ADDRESS];
    uint64_t         memory[NODES_MAX]; /* what others reach of each */
    uint64_t         number[NODES_MAX]; /* as a program likes */
} nodes_shared_t;

typedef struct nodes {
    nodes_shared_t *shared;
    ucx_firehose_h firehose;
    unsigned       self;
    unsigned       count;
    unsigned       barriers; /* that have been passed */
    char           *memory;  /* private, not pinned, zeroed */
    size_t         length;
    char           *bits; /* shared and zeroed, `length` bytes for each node */
    size_t         lent;  /* M in bytes */
    unsigned       flags;
} nodes_t;

/* A program: one of the rows of the table in nodes.c. Returns 0 if all is
 * right; what is wrong it has told. */
typedef int (*nodes_func_t)(nodes_t *nodes);

int nodes_random(nodes_t *nodes);
void nodes_killed_before(nodes_t *nodes);
int nodes_killed(nodes_t *nodes);
int nodes_killed_anywhere(nodes_t *nodes);
int nodes_unmap(nodes_t *nodes);
int nodes_strict(nodes_t *nodes);
int nodes_race(nodes_t *nodes);
void nodes_nothing_before(nodes_t *nodes);
int nodes_nothing(nodes_t *nodes);
void nodes_memlock_before(nodes_t *nodes);
int nodes_memlock(nodes_t *nodes);
int nodes_forked(nodes_t *nodes);

/* Ends the process with a line that says what did not hold */
#define NODES_CHECK(_is_true, _format, ...) \
    do { \
        if (!(_is_true)) { \
            fprintf(stderr, "%s:%d: node %u: " _format "\n", __FILE__, \
                    __LINE__, nodes->self, ##__VA_ARGS__); \
            _exit(1); \
        } \
    } while (0)

/* Who finds nothing to be done lets others run, for there are more nodes than
 * processors */
void nodes_progress(nodes_t *nodes);

/* All of the first `count` nodes arrive, with progress meanwhile */
void nodes_barrier(nodes_t *nodes, unsigned count);

/* Put and get without waiting, which must not fail */
void nodes_put(nodes_t *nodes, unsigned node, const void *local, size_t offset,
               size_t length);
void nodes_get(nodes_t *nodes, unsigned node, void *local, size_t offset,
               size_t length);
void nodes_flush(nodes_t *nodes);

/* Put or get, and wait. @return How it ended */
ucs_status_t nodes_move(nodes_t *nodes, int is_put, unsigned node, void *local,
                        uint64_t remote, size_t length);

#endif
