/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "../bench_util.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/*
 * Communications of the kind of the Intel MPI Benchmarks, by size, each in two
 * ways: the same buffers every time, and buffers that were mapped and touched
 * just before, which no cache can know. Mapping is not timed; unmapping is by
 * itself, for what frees the pages differs: that where they are pinned no more,
 * the deregistration where they are. And a loop without pause, of the kind of
 * OSU's latency test. Prints one JSON line.
 */

#define OVERLAP_WARM_UP   5
#define OVERLAP_MAX_ROWS  64
#define OVERLAP_MAX_RANKS 16
#define OVERLAP_AWAY_NS   1000000

typedef struct overlap {
    int  rank;
    int  num_ranks;
    int  iterations;
    char *out, *in;  /* num_ranks messages each */
} overlap_t;

typedef struct overlap_pattern {
    const char *name;
    /* @a size bytes; floats where it reduces */
    void       (*communicate)(const overlap_t *overlap, int size);
} overlap_pattern_t;

typedef struct overlap_row {
    const char *pattern;
    size_t     size;
    int        is_fresh;
    int        is_loop;    /* no barrier between, always the same buffers */
    double     mean_us, median_us;
    double     whole_us;   /* the same with what unmapping the buffers took */
} overlap_row_t;

/* Of a communication, in which the program was elsewhere: that is not timed */
static uint64_t overlap_away_ns;

static void overlap_pingpong(const overlap_t *overlap, int size)
{
    if (overlap->rank == 0) {
        MPI_Send(overlap->out, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(overlap->in, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    } else if (overlap->rank == 1) {
        MPI_Recv(overlap->in, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        MPI_Send(overlap->out, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
}

static int overlap_neighbour(const overlap_t *overlap, int distance)
{
    return (overlap->rank + overlap->num_ranks + distance) % overlap->num_ranks;
}

static void overlap_sendrecv(const overlap_t *overlap, int size)
{
    MPI_Sendrecv(overlap->out, size, MPI_BYTE, overlap_neighbour(overlap, 1), 0,
                 overlap->in, size, MPI_BYTE, overlap_neighbour(overlap, -1), 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void overlap_exchange(const overlap_t *overlap, int size)
{
    MPI_Status statuses[4]; /* compilers warn of what MPICH has for none */
    MPI_Request requests[4];
    int i;

    for (i = 0; i < 2; ++i) {
        MPI_Irecv(overlap->in + (size_t)i * size, size, MPI_BYTE,
                  overlap_neighbour(overlap, 1 - 2 * i), i, MPI_COMM_WORLD,
                  &requests[i]);
    }
    for (i = 0; i < 2; ++i) {
        MPI_Isend(overlap->out, size, MPI_BYTE,
                  overlap_neighbour(overlap, 2 * i - 1), i, MPI_COMM_WORLD,
                  &requests[2 + i]);
    }
    MPI_Waitall(4, requests, statuses);
}

static void overlap_allgatherv(const overlap_t *overlap, int size)
{
    int counts[OVERLAP_MAX_RANKS], places[OVERLAP_MAX_RANKS];
    int i;

    for (i = 0; i < overlap->num_ranks; ++i) {
        counts[i] = size;
        places[i] = i * size;
    }
    MPI_Allgatherv(overlap->out, size, MPI_BYTE, overlap->in, counts, places,
                   MPI_BYTE, MPI_COMM_WORLD);
}

static void overlap_bcast(const overlap_t *overlap, int size)
{
    MPI_Bcast(overlap->out, size, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void overlap_reduce(const overlap_t *overlap, int size)
{
    MPI_Reduce(overlap->out, overlap->in, size / (int)sizeof(float), MPI_FLOAT,
               MPI_SUM, 0, MPI_COMM_WORLD);
}

static void overlap_allreduce(const overlap_t *overlap, int size)
{
    MPI_Allreduce(overlap->out, overlap->in, size / (int)sizeof(float),
                  MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

/* Receives are posted, and the program is elsewhere before it waits: it sleeps,
 * as if another device computed */
static void overlap_posted(const overlap_t *overlap, int size)
{
    const struct timespec away = {.tv_nsec = OVERLAP_AWAY_NS};
    MPI_Request request;
    uint64_t start;

    MPI_Irecv(overlap->in, size, MPI_BYTE, overlap_neighbour(overlap, -1), 0,
              MPI_COMM_WORLD, &request);
    start = bench_now();
    nanosleep(&away, NULL);
    overlap_away_ns = bench_now() - start;
    MPI_Send(overlap->out, size, MPI_BYTE, overlap_neighbour(overlap, 1), 0,
             MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void overlap_reduce_scatter(const overlap_t *overlap, int size)
{
    int counts[OVERLAP_MAX_RANKS];
    int i;

    for (i = 0; i < overlap->num_ranks; ++i) {
        counts[i] = size / (int)sizeof(float) / overlap->num_ranks;
    }
    MPI_Reduce_scatter(overlap->out, overlap->in, counts, MPI_FLOAT, MPI_SUM,
                       MPI_COMM_WORLD);
}

static const overlap_pattern_t overlap_patterns[] = {
    {"pingpong", overlap_pingpong},
    {"sendrecv", overlap_sendrecv},
    {"exchange", overlap_exchange},
    {"allgatherv", overlap_allgatherv},
    {"bcast", overlap_bcast},
    {"reduce", overlap_reduce},
    {"allreduce", overlap_allreduce},
    {"reduce_scatter", overlap_reduce_scatter},
    {"posted", overlap_posted},
    {"loop", overlap_pingpong} /* the last, by its name alone */
};

#define OVERLAP_NUM_PATTERNS \
    (sizeof(overlap_patterns) / sizeof(overlap_patterns[0]))

static char *overlap_map(size_t length)
{
    return bench_map(length, MAP_PRIVATE | MAP_POPULATE);
}

static void overlap_measure(overlap_t *overlap,
                            const overlap_pattern_t *pattern,
                            overlap_row_t *row)
{
    size_t length = row->size * (size_t)overlap->num_ranks;
    double *times = calloc(2 * overlap->iterations, sizeof(*times));
    double *whole = times + overlap->iterations;
    uint64_t start, unmapped;
    int i;

    if (times == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    overlap->out = overlap_map(length);
    overlap->in  = overlap_map(length);
    for (i = -OVERLAP_WARM_UP; i < overlap->iterations; ++i) {
        start = bench_now();
        if (row->is_fresh) {
            munmap(overlap->out, length);
            munmap(overlap->in, length);
        }
        unmapped = bench_now() - start;
        if (row->is_fresh) {
            overlap->out = overlap_map(length);
            overlap->in  = overlap_map(length);
        }
        if (!row->is_loop || (i == -OVERLAP_WARM_UP)) {
            MPI_Barrier(MPI_COMM_WORLD);
        }
        overlap_away_ns = 0;
        start           = bench_now();
        pattern->communicate(overlap, (int)row->size);
        if (i >= 0) {
            times[i] = (double)(bench_now() - start - overlap_away_ns) * 1e-3;
            whole[i] = times[i] + (double)unmapped * 1e-3;
            row->mean_us += times[i] / overlap->iterations;
        }
    }
    bench_sort(times, overlap->iterations);
    bench_sort(whole, overlap->iterations);
    row->pattern   = pattern->name;
    row->median_us = bench_quantile(times, overlap->iterations, 0.5);
    row->whole_us  = bench_quantile(whole, overlap->iterations, 0.5);
    free(times);
    munmap(overlap->out, length);
    munmap(overlap->in, length);
}

static void overlap_print(const overlap_t *overlap, const overlap_row_t *rows,
                          unsigned count, const double *ranks)
{
    unsigned i;

    printf("{\"bench\":\"overlap\",\"iterations\":%d,\"rows\":[",
           overlap->iterations);
    for (i = 0; i < count; ++i) {
        printf("%s{\"pattern\":\"%s\",\"size\":%zu,\"fresh\":%s,"
               "\"mean_us\":%.3f,\"median_us\":%.3f,\"whole_us\":%.3f}",
               (i > 0) ? "," : "", rows[i].pattern, rows[i].size,
               rows[i].is_fresh ? "true" : "false", rows[i].mean_us,
               rows[i].median_us, rows[i].whole_us);
    }
    printf("],\"rank\":[");
    for (i = 0; i < (unsigned)overlap->num_ranks; ++i) {
        printf("%s{\"pid\":%.0f,\"cpu_share\":%.4f}", (i > 0) ? "," : "",
               ranks[2 * i], ranks[2 * i + 1]);
    }
    printf("]}\n");
}

/* overlap ITERATIONS PATTERN[,...]|all SIZE... */
static int overlap_run(overlap_t *overlap, const char *patterns, char **sizes,
                       int num_sizes)
{
    overlap_row_t rows[OVERLAP_MAX_ROWS] = {0};
    double ranks[2 * OVERLAP_MAX_RANKS];
    uint64_t cpu_start = bench_cpu_now();
    uint64_t start     = bench_now();
    double own[2]      = {getpid()};
    unsigned count     = 0;
    unsigned i;
    int s, is_fresh, is_loop;

    for (i = 0; i < OVERLAP_NUM_PATTERNS; ++i) {
        is_loop = (i == OVERLAP_NUM_PATTERNS - 1);
        if (strcmp(patterns, overlap_patterns[i].name) &&
            (strcmp(patterns, "all") || is_loop)) {
            continue;
        }
        for (s = 0; s < num_sizes; ++s) {
            for (is_fresh = 0; is_fresh < 2 - is_loop; ++is_fresh) {
                if ((count == OVERLAP_MAX_ROWS) ||
                    (bench_parse_size(sizes[s], &rows[count].size) != 0) ||
                    (rows[count].size > (64ul << 20))) {
                    return 2;
                }
                rows[count].is_fresh = is_fresh;
                rows[count].is_loop  = is_loop;
                overlap_measure(overlap, &overlap_patterns[i], &rows[count]);
                ++count;
            }
        }
    }
    own[1] = (double)(bench_cpu_now() - cpu_start) / (bench_now() - start);
    MPI_Gather(own, 2, MPI_DOUBLE, ranks, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (overlap->rank == 0) {
        overlap_print(overlap, rows, count, ranks);
    }
    return (count > 0) ? 0 : 2;
}

int main(int argc, char **argv)
{
    overlap_t overlap = {.iterations = (argc > 1) ? atoi(argv[1]) : 0};
    int status        = 2;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &overlap.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &overlap.num_ranks);
    if ((argc > 3) && (overlap.iterations > 0) && (overlap.num_ranks > 1) &&
        (overlap.num_ranks <= OVERLAP_MAX_RANKS)) {
        status = overlap_run(&overlap, argv[2], argv + 3, argc - 3);
    }
    if ((status != 0) && (overlap.rank == 0)) {
        fprintf(stderr, "overlap ITERATIONS all|PATTERN SIZE...: needs 2 to %d "
                "ranks; at most %d rows\n",
                OVERLAP_MAX_RANKS, OVERLAP_MAX_ROWS);
    }
    MPI_Finalize();
    return status;
}
