/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "nas.h"
#include "../bench_options.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAS_RANDOM_MASK ((UINT64_C(1) << 46) - 1)

/* Of the sampler of VmPin: rare enough to cost nothing */
#define NAS_SAMPLE_NS UINT64_C(5000000)

void nas_fatal(const nas_t *nas, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "%s: rank %d: ", nas->kernel, nas->rank);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

int nas_init(nas_t *nas, const char *kernel, const char *classes, int *argc,
             char ***argv)
{
    const bench_option_t options[] = {
        {"iterations", BENCH_COUNT, &nas->iterations, 1, 1e6,
         "N  [the class's own]"},
        {"columns", BENCH_COUNT, &nas->columns, 1, 1e6,
         "N  of ft: ranks along the first dimension [1]"},
        {0}
    };
    const char *letter, *found = NULL;

    MPI_Init(argc, argv);
    memset(nas, 0, sizeof(*nas));
    nas->kernel  = kernel;
    nas->columns = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &nas->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nas->size);
    if ((bench_options_parse("mpirun -n RANKS KERNEL CLASS [options]\n"
                             "Prints one JSON line.", options, *argv,
                             nas->rank != 0, &letter) == 0) &&
        (letter != NULL) && (strlen(letter) == 1)) {
        found = strchr(classes, *letter);
    }
    if (found == NULL) {
        nas_fatal(nas, "CLASS is one of %s", classes);
    }
    nas->class_id = *found;
    /* Before the first long message, untimed ones included */
    if (vmpin_start(&nas->pin, NAS_SAMPLE_NS, 0) != 0) {
        nas_fatal(nas, "no VmPin in /proc/self/status");
    }
    return found - classes;
}

void *nas_alloc(size_t bytes)
{
    void *address = bench_map(bytes, MAP_PRIVATE);

    /* The kernel accounts a pinned huge page whole */
    madvise(address, bytes, MADV_NOHUGEPAGE);
    return address;
}

void nas_start(nas_t *nas)
{
    MPI_Barrier(MPI_COMM_WORLD);
    nas->cpu_start = (double)bench_cpu_now();
    nas->start     = MPI_Wtime();
}

/* One line, and nothing else on stdout: the drivers read it with jq */
static void nas_print(const nas_t *nas, int iterations, double seconds,
                      int is_good, const vmpin_rank_t *ranks)
{
    int i;

    printf("{\"bench\":\"nas\",\"kernel\":\"%s\",\"class\":\"%c\","
           "\"columns\":%u,\"iterations\":%d,\"seconds\":%.6f,"
           "\"verified\":%s,\"rank\":[", nas->kernel, nas->class_id,
           nas->columns, iterations, seconds, is_good ? "true" : "false");
    for (i = 0; i < nas->size; ++i) {
        printf((i == 0) ? "{" : ",{");
        vmpin_print(&ranks[i]);
        printf("}");
    }
    printf("]}\n");
    fflush(stdout);
}

int nas_finish(nas_t *nas, int iterations, int is_good)
{
    double seconds      = MPI_Wtime() - nas->start;
    double cpu          = ((double)bench_cpu_now() - nas->cpu_start) * 1e-9;
    vmpin_rank_t *ranks = calloc(nas->size, sizeof(*ranks));
    int all_good        = 0;
    vmpin_rank_t own;

    if (ranks == NULL) {
        nas_fatal(nas, "no memory for figures");
    }
    vmpin_stop(&nas->pin);
    own = vmpin_tell(&nas->pin, cpu / seconds);
    MPI_Gather(&own, sizeof(own) / sizeof(double), MPI_DOUBLE, ranks,
               sizeof(own) / sizeof(double), MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Allreduce(&is_good, &all_good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (nas->rank == 0) {
        nas_print(nas, iterations, seconds, all_good, ranks);
    }
    free(ranks);
    MPI_Finalize();
    return all_good ? 0 : 1;
}

uint64_t nas_random_next(uint64_t x, uint64_t a)
{
    return (uint64_t)((unsigned __int128)x * a) & NAS_RANDOM_MASK;
}

uint64_t nas_random_power(uint64_t a, uint64_t n)
{
    uint64_t power = 1;

    for (; n > 0; n >>= 1) {
        if (n & 1) {
            power = nas_random_next(power, a);
        }
        a = nas_random_next(a, a);
    }
    return power;
}

double nas_random(uint64_t *x, uint64_t a)
{
    *x = nas_random_next(*x, a);
    return ldexp((double)*x, -46);
}

int nas_is_close(double value, double expected, double epsilon)
{
    return fabs((value - expected) / expected) <= epsilon;
}

double nas_sum(double value)
{
    double sum;

    MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}
