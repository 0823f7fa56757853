/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#define _GNU_SOURCE
#include "../bench_util.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * A message there and one back, of the kind of OSU's latency test: two ranks,
 * one buffer for sending and one for receiving, each size in turn, nothing
 * computed between. Prints one JSON line.
 */

#define LATENCY_MIN     (4ul << 10)
#define LATENCY_MAX     (4ul << 20)
#define LATENCY_WARM_UP 10 /* as OSU's, for large messages */
#define LATENCY_ALIGN   (4ul << 10)

/* What rank 0 measured of one size, microseconds one way */
typedef struct latency_result {
    size_t size;
    double mean_us;
    double median_us;
} latency_result_t;

typedef struct latency {
    int    rank;
    int    iterations;
    char   *out, *in;
    double *times; /* Of rank 0, microseconds one way */
} latency_t;


static void latency_exchange(const latency_t *latency, size_t size)
{
    if (latency->rank == 0) {
        MPI_Send(latency->out, (int)size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(latency->in, (int)size, MPI_BYTE, 1, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(latency->in, (int)size, MPI_BYTE, 0, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        MPI_Send(latency->out, (int)size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
}


static latency_result_t latency_of(latency_t *latency, size_t size)
{
    latency_result_t result = {.size = size};
    uint64_t start;
    int i;

    MPI_Barrier(MPI_COMM_WORLD);
    for (i = 0; i < LATENCY_WARM_UP; ++i) {
        latency_exchange(latency, size);
    }

    for (i = 0; i < latency->iterations; ++i) {
        start = bench_now();
        latency_exchange(latency, size);
        latency->times[i] = (double)(bench_now() - start) * 1e-3 / 2;
        result.mean_us   += latency->times[i] / latency->iterations;
    }

    bench_sort(latency->times, latency->iterations);
    result.median_us = bench_quantile(latency->times, latency->iterations, 0.5);
    return result;
}


static char *latency_alloc(void)
{
    void *address = NULL;

    if (posix_memalign(&address, LATENCY_ALIGN, LATENCY_MAX) != 0) {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    memset(address, 1, LATENCY_MAX);
    return address;
}


static void latency_print(int iterations, const latency_result_t *results,
                          unsigned count, const double *ranks)
{
    unsigned i;

    printf("{\"bench\":\"latency\",\"iterations\":%d,\"sizes\":[", iterations);
    for (i = 0; i < count; ++i) {
        printf("%s{\"size\":%zu,\"mean_us\":%.3f,\"median_us\":%.3f}",
               (i > 0) ? "," : "", results[i].size, results[i].mean_us,
               results[i].median_us);
    }
    printf("],\"rank\":[");
    for (i = 0; i < 2; ++i) {
        printf("%s{\"pid\":%.0f,\"cpu_share\":%.4f}", (i > 0) ? "," : "",
               ranks[2 * i], ranks[2 * i + 1]);
    }
    printf("]}\n");
}


int main(int argc, char **argv)
{
    latency_result_t results[16];
    latency_t latency = {.iterations = (argc > 1) ? atoi(argv[1]) : 500};
    double own[2], ranks[4];
    unsigned count = 0;
    uint64_t start, cpu_start;
    int num_ranks;
    size_t size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &latency.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
    if ((num_ranks != 2) || (latency.iterations <= 0)) {
        fprintf(stderr, "latency [ITERATIONS]: needs 2 ranks\n");
        MPI_Finalize();
        return 2;
    }

    latency.out   = latency_alloc();
    latency.in    = latency_alloc();
    latency.times = calloc(latency.iterations, sizeof(*latency.times));
    if (latency.times == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }

    cpu_start = bench_cpu_now();
    start     = bench_now();
    for (size = LATENCY_MIN; size <= LATENCY_MAX; size *= 2) {
        results[count++] = latency_of(&latency, size);
    }

    own[0] = (double)getpid();
    own[1] = (double)(bench_cpu_now() - cpu_start) /
             (double)(bench_now() - start);
    MPI_Gather(own, 2, MPI_DOUBLE, ranks, 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (latency.rank == 0) {
        latency_print(latency.iterations, results, count, ranks);
    }

    free(latency.times);
    free(latency.in);
    free(latency.out);
    MPI_Finalize();
    return 0;
}
