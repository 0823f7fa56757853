/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "nas.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/*
 * IS: ranks of integer keys by bucket sort. In each iteration the keys go
 * through MPI_Alltoallv to the rank that has their buckets, and are counted
 * there. RNR-94-007, section 2.2.4.
 */

typedef struct is_class {
    int log_keys;
    int log_max_key;
} is_class_t;

static const is_class_t is_classes[] = {
    {16, 11}, {20, 16}, {23, 19}, {25, 21}, {27, 23}
};

#define IS_ITERATIONS  10
#define IS_LOG_BUCKETS 10
#define IS_BUCKETS     (1 << IS_LOG_BUCKETS)

typedef struct is {
    nas_t nas;
    int   log_max_key;
    int   num_keys;        /* Of this rank at first */
    int   max_received;
    int   *keys;
    int   *sorted;         /* By bucket: what is sent */
    int   *received;
    int   *counts;         /* Of each key from first_key on */
    int   num_received;
    int   first_key, last_key; /* Of this rank's buckets, last excluded */
    int   *send_counts, *send_starts, *receive_counts, *receive_starts;
} is_t;

static void is_make_keys(is_t *is)
{
    double scale  = (double)(1 << is->log_max_key) / 4;
    uint64_t seed = nas_random_next(
            NAS_RANDOM_SEED,
            nas_random_power(NAS_RANDOM_A,
                             UINT64_C(4) * is->num_keys * is->nas.rank));
    double sum;
    int i, j;

    for (i = 0; i < is->num_keys; ++i) {
        for (sum = 0, j = 0; j < 4; ++j) {
            sum += nas_random(&seed, NAS_RANDOM_A);
        }
        is->keys[i] = (int)(scale * sum);
    }
}

static int is_bucket(const is_t *is, int key)
{
    return key >> (is->log_max_key - IS_LOG_BUCKETS);
}

/* Sort by bucket; @a sizes: of each bucket on this rank */
static void is_sort_local(is_t *is, int *sizes)
{
    int starts[IS_BUCKETS];
    int i, b;

    memset(sizes, 0, IS_BUCKETS * sizeof(*sizes));
    for (i = 0; i < is->num_keys; ++i) {
        ++sizes[is_bucket(is, is->keys[i])];
    }
    for (starts[0] = 0, b = 1; b < IS_BUCKETS; ++b) {
        starts[b] = starts[b - 1] + sizes[b - 1];
    }
    for (i = 0; i < is->num_keys; ++i) {
        is->sorted[starts[is_bucket(is, is->keys[i])]++] = is->keys[i];
    }
}

/* Neighbouring buckets to one rank, until it has its share of all keys */
static void is_share(is_t *is, const int *sizes)
{
    int totals[IS_BUCKETS];
    long total = 0, goal = (long)is->num_keys * is->nas.size;
    int shift  = is->log_max_key - IS_LOG_BUCKETS;
    int rank = 0, b;

    MPI_Allreduce(sizes, totals, IS_BUCKETS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    memset(is->send_counts, 0, is->nas.size * sizeof(*is->send_counts));
    is->first_key = INT_MAX;
    is->last_key  = 0;
    for (b = 0; b < IS_BUCKETS; ++b) {
        is->send_counts[rank] += sizes[b];
        if (rank == is->nas.rank) {
            is->first_key = (is->first_key == INT_MAX) ? b << shift :
                                                         is->first_key;
            is->last_key  = (b + 1) << shift;
        }
        total += totals[b];
        if ((total * is->nas.size >= goal * (rank + 1)) &&
            (rank < is->nas.size - 1)) {
            ++rank;
        }
    }
}

static void is_starts(const is_t *is, const int *counts, int *starts)
{
    int rank;

    for (starts[0] = 0, rank = 1; rank < is->nas.size; ++rank) {
        starts[rank] = starts[rank - 1] + counts[rank - 1];
    }
}

static void is_exchange(is_t *is)
{
    int last = is->nas.size - 1;

    MPI_Alltoall(is->send_counts, 1, MPI_INT, is->receive_counts, 1, MPI_INT,
                 MPI_COMM_WORLD);
    is_starts(is, is->send_counts, is->send_starts);
    is_starts(is, is->receive_counts, is->receive_starts);
    is->num_received = is->receive_starts[last] + is->receive_counts[last];
    if (is->num_received > is->max_received) {
        nas_fatal(&is->nas, "%d keys for this rank, room for %d",
                  is->num_received, is->max_received);
    }
    MPI_Alltoallv(is->sorted, is->send_counts, is->send_starts, MPI_INT,
                  is->received, is->receive_counts, is->receive_starts,
                  MPI_INT, MPI_COMM_WORLD);
}

static void is_count(is_t *is)
{
    int i;

    memset(is->counts, 0, (1ul << is->log_max_key) * sizeof(*is->counts));
    for (i = 0; i < is->num_received; ++i) {
        ++is->counts[is->received[i] - is->first_key];
    }
}

static void is_iterate(is_t *is, int iteration)
{
    int sizes[IS_BUCKETS];

    if (is->nas.rank == 0) {
        is->keys[iteration % is->num_keys] = iteration % IS_ITERATIONS;
        is->keys[(iteration + IS_ITERATIONS) % is->num_keys] =
                (1 << is->log_max_key) - 1 - iteration % IS_ITERATIONS;
    }
    is_sort_local(is, sizes);
    is_share(is, sizes);
    is_exchange(is);
    is_count(is);
}

/* A sum that tells one multiset of keys from another */
static double is_fingerprint(const int *keys, int count)
{
    uint64_t sum = 0;
    int i;

    for (i = 0; i < count; ++i) {
        sum += nas_random_next(keys[i] + 1, NAS_RANDOM_A) & 0xffff;
    }
    return sum; /* Exact below 2^53 */
}

/* Every key came, to the rank of its bucket, and buckets rise with the ranks:
 * then the counts are the keys in order */
static int is_verify(const is_t *is)
{
    double before = nas_sum(is_fingerprint(is->keys, is->num_keys));
    double after  = nas_sum(is_fingerprint(is->received, is->num_received));
    double keys   = nas_sum(is->num_received);
    int bounds[2] = {is->first_key, is->last_key};
    int low = 0, i, key, at = 0, is_good;
    int *all;

    is_good = (before == after) &&
              (keys == (double)is->num_keys * is->nas.size);
    for (i = 0; i < is->num_received; ++i) {
        is_good = is_good && (is->received[i] >= is->first_key) &&
                  (is->received[i] < is->last_key);
    }
    for (key = is->first_key; key < is->last_key; ++key) {
        at += is->counts[key - is->first_key];
    }
    is_good = is_good && (at == is->num_received);

    all = malloc(2 * is->nas.size * sizeof(*all));
    MPI_Allgather(bounds, 2, MPI_INT, all, 2, MPI_INT, MPI_COMM_WORLD);
    for (i = 0; i < is->nas.size; ++i) {
        if (all[2 * i] == INT_MAX) {
            continue; /* No bucket */
        }
        is_good = is_good && (all[2 * i] >= low);
        low     = all[2 * i + 1];
    }
    free(all);
    return is_good;
}

static void is_setup(is_t *is, const is_class_t *c)
{
    size_t ranks = is->nas.size * sizeof(int);

    if ((1 << c->log_keys) % is->nas.size) {
        nas_fatal(&is->nas, "%d ranks: a power of two is wanted",
                  is->nas.size);
    }
    is->log_max_key    = c->log_max_key;
    is->num_keys       = (1 << c->log_keys) / is->nas.size;
    is->max_received   = 2 * is->num_keys + IS_BUCKETS;
    is->keys           = nas_alloc(is->num_keys * sizeof(int));
    is->sorted         = nas_alloc(is->num_keys * sizeof(int));
    is->received       = nas_alloc(is->max_received * sizeof(int));
    is->counts         = nas_alloc(sizeof(int) << c->log_max_key);
    is->send_counts    = nas_alloc(ranks);
    is->send_starts    = nas_alloc(ranks);
    is->receive_counts = nas_alloc(ranks);
    is->receive_starts = nas_alloc(ranks);
}

int main(int argc, char **argv)
{
    int iterations, iteration;
    int is_good = 1;
    is_t is     = {};

    is_setup(&is, &is_classes[nas_init(&is.nas, "is", "SWABC", &argc, &argv)]);
    iterations = nas_iterations(&is.nas, IS_ITERATIONS);
    is_make_keys(&is);

    nas_start(&is.nas);
    for (iteration = 1; iteration <= iterations; ++iteration) {
        is_iterate(&is, iteration);
        is_good = is_good && is_verify(&is);
    }
    return nas_finish(&is.nas, iterations, is_good);
}
