/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#define _GNU_SOURCE
#include "nas.h"
#include "../bench_util.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NAS_RANDOM_MASK ((UINT64_C(1) << 46) - 1)

/* Of the sampler of VmPin: rare enough to cost nothing, or for a trace, which
 * is not timed, often enough to see single messages */
#define NAS_SAMPLE_NS       UINT64_C(5000000)
#define NAS_SAMPLE_TRACE_NS UINT64_C(500000)

/* What a rank tells of itself; plain doubles, for MPI_Gather */
typedef struct nas_figures {
    double pid;
    double vmpin_baseline;
    double vmpin_peak;
    double vmpin_average;
    double cpu_share; /* Below 1: others took the processor */
} nas_figures_t;

#define NAS_FIGURES (sizeof(nas_figures_t) / sizeof(double))


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

static int nas_number(const nas_t *nas, const char *option, const char *text)
{
    char *end   = NULL;
    long number = (text == NULL) ? 0 : strtol(text, &end, 10);

    if ((text == NULL) || (*end != '\0') || (number < 1) ||
        (number > 1000000)) {
        nas_fatal(nas, "bad value '%s' of %s: a number from 1 to 1000000",
                  (text == NULL) ? "" : text, option);
    }
    return number;
}

int nas_init(nas_t *nas, const char *kernel, const char *classes, int *argc,
             char ***argv)
{
    const char *found = NULL;
    uint64_t period;
    char **arg;

    MPI_Init(argc, argv);
    memset(nas, 0, sizeof(*nas));
    nas->kernel  = kernel;
    nas->columns = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &nas->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nas->size);

    for (arg = *argv + 1; *arg != NULL; ++arg) {
        if (!strcmp(*arg, "--iterations")) {
            nas->iterations = nas_number(nas, *arg, arg[1]);
            ++arg;
        } else if (!strcmp(*arg, "--columns")) {
            nas->columns = nas_number(nas, *arg, arg[1]);
            ++arg;
        } else if (!strcmp(*arg, "--json")) {
            nas->is_json = 1;
        } else if (!strcmp(*arg, "--trace") && (arg[1] != NULL)) {
            nas->is_json = 1;
            nas->trace   = *++arg;
        } else if ((strlen(*arg) == 1) && (found == NULL)) {
            found = strchr(classes, **arg);
        } else {
            nas_fatal(nas, "unknown argument '%s'", *arg);
        }
    }
    if (found == NULL) {
        nas_fatal(nas, "usage: %s CLASS [--iterations N] [--columns N] "
                  "[--json] [--trace PREFIX]; CLASS is one of %s",
                  kernel, classes);
    }
    nas->class_id = *found;
    /* Before the first long message, untimed ones included */
    period = (nas->trace == NULL) ? NAS_SAMPLE_NS : NAS_SAMPLE_TRACE_NS;
    if (nas->is_json &&
        (vmpin_start(&nas->pin, period, nas->trace != NULL) != 0)) {
        nas_fatal(nas, "no VmPin in /proc/self/status");
    }
    return found - classes;
}

void *nas_alloc(const nas_t *nas, size_t bytes)
{
    void *address = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (address == MAP_FAILED) {
        nas_fatal(nas, "no memory for %zu bytes", bytes);
    }
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

static void nas_print(const nas_t *nas, int iterations, double seconds,
                      int is_good, const char *what)
{
    printf("%s class %c ranks %d iterations %d seconds %.3f verified %s (%s)\n",
           nas->kernel, nas->class_id, nas->size, iterations, seconds,
           is_good ? "yes" : "NO", what);
}

/* One line, and nothing else on stdout: the drivers read it with jq */
static void nas_print_json(const nas_t *nas, int iterations, double seconds,
                           int is_good, const nas_figures_t *figures)
{
    int i;

    printf("{\"bench\":\"nas\",\"kernel\":\"%s\",\"class\":\"%c\","
           "\"columns\":%d,\"iterations\":%d,\"seconds\":%.6f,"
           "\"verified\":%s,\"rank\":[", nas->kernel, nas->class_id,
           nas->columns, iterations, seconds, is_good ? "true" : "false");
    for (i = 0; i < nas->size; ++i) {
        printf("%s{\"pid\":%.0f,\"vmpin_baseline_bytes\":%.0f,"
               "\"vmpin_peak_bytes\":%.0f,\"vmpin_average_bytes\":%.0f,"
               "\"cpu_share\":%.4f}", (i == 0) ? "" : ",", figures[i].pid,
               figures[i].vmpin_baseline, figures[i].vmpin_peak,
               figures[i].vmpin_average, figures[i].cpu_share);
    }
    printf("]}\n");
}

static void nas_write_trace(const nas_t *nas)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s.%d", nas->trace, nas->rank);
    if (vmpin_write_trace(&nas->pin, path) != 0) {
        nas_fatal(nas, "cannot write %s", path);
    }
}

/* The rank's own figures, to rank 0 */
static nas_figures_t *nas_gather(nas_t *nas, double seconds)
{
    nas_figures_t *all = calloc(nas->size, sizeof(*all));
    nas_figures_t own;

    if (all == NULL) {
        nas_fatal(nas, "no memory for figures");
    }
    vmpin_stop(&nas->pin);
    if (nas->trace != NULL) {
        nas_write_trace(nas);
    }
    own.pid            = getpid();
    own.vmpin_baseline = (double)nas->pin.baseline;
    own.vmpin_peak     = (double)nas->pin.peak;
    own.vmpin_average  = vmpin_average(&nas->pin);
    own.cpu_share      = ((double)bench_cpu_now() - nas->cpu_start) * 1e-9 /
                         seconds;
    MPI_Gather(&own, NAS_FIGURES, MPI_DOUBLE, all, NAS_FIGURES, MPI_DOUBLE, 0,
               MPI_COMM_WORLD);
    return all;
}

int nas_finish(nas_t *nas, int iterations, int is_good, const char *what)
{
    double seconds         = MPI_Wtime() - nas->start;
    nas_figures_t *figures = nas->is_json ? nas_gather(nas, seconds) : NULL;
    int all_good           = 0;

    MPI_Allreduce(&is_good, &all_good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (nas->rank == 0) {
        if (nas->is_json) {
            nas_print_json(nas, iterations, seconds, all_good, figures);
        } else {
            nas_print(nas, iterations, seconds, all_good, what);
        }
        fflush(stdout);
    }
    free(figures);
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
