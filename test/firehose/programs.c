/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "nodes.h"

#include <stdlib.h>
#include <unistd.h>

/*
 * The paper's two programs. Cannon, L. E.: "A cellular computer to implement
 * the Kalman filter algorithm", 1969: of a grid of processes each has a block
 * of both factors, which go round, one by rows and one by columns. Batcher,
 * K. E.: "Sorting networks and their applications", AFIPS 1968: sorted lists
 * are merged and split between pairs of processes.
 */

enum { CANNON_BLOCK = 96, CANNON_ROUNDS = 3 };
enum { BITONIC_KEYS = 16384, BITONIC_PUT = 1000 };

/* Small whole numbers, so that sums are exact */
static double cannon_a(unsigned row, unsigned column)
{
    return (row * 7 + column * 3) % 11;
}

static double cannon_b(unsigned row, unsigned column)
{
    return (row * 5 + column * 13) % 17;
}

typedef double cannon_block_t[CANNON_BLOCK][CANNON_BLOCK];

/* In the memory that others reach: two places for each factor, by turns */
typedef struct cannon {
    cannon_block_t a[2], b[2];
    cannon_block_t c; /* this process's own */
} cannon_t;

static void cannon_multiply(cannon_t *cannon, unsigned turn)
{
    unsigned i, j, k;

    for (i = 0; i < CANNON_BLOCK; ++i) {
        for (k = 0; k < CANNON_BLOCK; ++k) {
            for (j = 0; j < CANNON_BLOCK; ++j) {
                cannon->c[i][j] += cannon->a[turn][i][k] *
                                   cannon->b[turn][k][j];
            }
        }
    }
}

/* A row at a time, as a program with distributed arrays would */
static void cannon_send(nodes_t *nodes, unsigned node, cannon_block_t *from,
                        cannon_block_t *to)
{
    unsigned i;

    for (i = 0; i < CANNON_BLOCK; ++i) {
        nodes_put(nodes, node, (*from)[i], (char*)(*to)[i] - nodes->memory,
                  sizeof((*from)[i]));
    }
}

static void cannon_check(nodes_t *nodes, const cannon_t *cannon, unsigned grid)
{
    unsigned row = nodes->self / grid * CANNON_BLOCK;
    unsigned column = nodes->self % grid * CANNON_BLOCK, i, j, k;
    double sum;

    for (i = 0; i < CANNON_BLOCK; ++i) {
        for (j = 0; j < CANNON_BLOCK; ++j) {
            sum = 0;
            for (k = 0; k < grid * CANNON_BLOCK; ++k) {
                sum += cannon_a(row + i, k) * cannon_b(k, column + j);
            }
            sum *= CANNON_ROUNDS;
            NODES_CHECK(cannon->c[i][j] == sum, "(%u, %u) is %g, not %g",
                        row + i, column + j, cannon->c[i][j], sum);
        }
    }
}

int nodes_cannon(nodes_t *nodes)
{
    cannon_t *cannon = (cannon_t*)nodes->memory;
    unsigned grid = 1, row, column, shift, step, turn, i, j;

    while (grid * grid < nodes->count) {
        ++grid;
    }
    NODES_CHECK(grid * grid == nodes->count, "a grid is not of %u nodes",
                nodes->count);
    row    = nodes->self / grid;
    column = nodes->self % grid;
    shift  = (row + column) % grid; /* the skew that it begins with */
    for (i = 0; i < CANNON_BLOCK; ++i) {
        for (j = 0; j < CANNON_BLOCK; ++j) {
            cannon->a[0][i][j] = cannon_a(row * CANNON_BLOCK + i,
                                          shift * CANNON_BLOCK + j);
            cannon->b[0][i][j] = cannon_b(shift * CANNON_BLOCK + i,
                                          column * CANNON_BLOCK + j);
        }
    }
    /* After so many steps each block is where it began */
    for (step = 0; step < CANNON_ROUNDS * grid; ++step) {
        turn = step % 2;
        nodes_barrier(nodes, nodes->count);
        cannon_send(nodes, row * grid + (column + grid - 1) % grid,
                    &cannon->a[turn], &cannon->a[!turn]);
        cannon_send(nodes, (row + grid - 1) % grid * grid + column,
                    &cannon->b[turn], &cannon->b[!turn]);
        cannon_multiply(cannon, turn);
        nodes_flush(nodes);
        nodes_barrier(nodes, nodes->count);
    }
    cannon_check(nodes, cannon, grid);
    return 0;
}

/* In the memory that others reach: two lists; the partner writes the second */
typedef struct bitonic {
    uint64_t mine[BITONIC_KEYS], theirs[BITONIC_KEYS];
} bitonic_t;

static int bitonic_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t*)a, y = *(const uint64_t*)b;

    return (x > y) - (x < y);
}

/* The lower or the upper half of both lists, sorted */
static void bitonic_split(bitonic_t *lists, int is_low)
{
    static uint64_t out[BITONIC_KEYS];
    size_t i = 0, j = 0, k;

    if (is_low) {
        for (k = 0; k < BITONIC_KEYS; ++k) {
            out[k] = (lists->mine[i] <= lists->theirs[j]) ? lists->mine[i++] :
                                                            lists->theirs[j++];
        }
    } else {
        i = j = BITONIC_KEYS;
        for (k = BITONIC_KEYS; k-- > 0;) {
            out[k] = (lists->mine[i - 1] > lists->theirs[j - 1]) ?
                             lists->mine[--i] :
                             lists->theirs[--j];
        }
    }
    for (k = 0; k < BITONIC_KEYS; ++k) {
        lists->mine[k] = out[k];
    }
}

static void bitonic_exchange(nodes_t *nodes, bitonic_t *lists, unsigned partner)
{
    char *mine = (char*)lists->mine;
    size_t at, length;

    nodes_barrier(nodes, nodes->count); /* the partner has read its second */
    for (at = 0; at < sizeof(lists->mine); at += BITONIC_PUT) {
        length = sizeof(lists->mine) - at;
        length = (length < BITONIC_PUT) ? length : BITONIC_PUT;
        nodes_put(nodes, partner, mine + at,
                  (char*)lists->theirs - nodes->memory + at, length);
    }
    nodes_flush(nodes);
    nodes_barrier(nodes, nodes->count);
}

/* All in order, within and between the nodes, and all keys still there */
static void
bitonic_check(nodes_t *nodes, const bitonic_t *lists, uint64_t before)
{
    uint64_t first = 0, sum = 0, keys = 0;
    unsigned i;

    for (i = 0; i < BITONIC_KEYS; ++i) {
        keys += nodes_mix(lists->mine[i]);
        NODES_CHECK((i == 0) || (lists->mine[i - 1] <= lists->mine[i]),
                    "key %u is less than the one before", i);
    }
    nodes->shared->number[nodes->self] = keys - before;
    nodes_barrier(nodes, nodes->count);
    for (i = 0; i < nodes->count; ++i) {
        sum += nodes->shared->number[i];
    }
    NODES_CHECK(sum == 0, "not the keys that there were");
    if (nodes->self + 1 < nodes->count) {
        nodes_get(nodes, nodes->self + 1, &first, 0, sizeof(first));
        nodes_flush(nodes);
        NODES_CHECK(lists->mine[BITONIC_KEYS - 1] <= first,
                    "the next node has less than this one's last");
    }
}

int nodes_bitonic(nodes_t *nodes)
{
    bitonic_t *lists = (bitonic_t*)nodes->memory;
    uint64_t keys    = 0;
    unsigned size, distance, i;
    int is_up;

    NODES_CHECK((nodes->count & (nodes->count - 1)) == 0,
                "%u is no power of two", nodes->count);
    for (i = 0; i < BITONIC_KEYS; ++i) {
        lists->mine[i] = nodes_mix(nodes->self * BITONIC_KEYS + i);
        keys          += nodes_mix(lists->mine[i]);
    }
    qsort(lists->mine, BITONIC_KEYS, sizeof(lists->mine[0]), bitonic_compare);
    for (size = 2; size <= nodes->count; size *= 2) {
        is_up = !(nodes->self & size);
        for (distance = size / 2; distance > 0; distance /= 2) {
            bitonic_exchange(nodes, lists, nodes->self ^ distance);
            bitonic_split(lists, is_up == !(nodes->self & distance));
        }
    }
    bitonic_check(nodes, lists, keys);
    return 0;
}
