/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#define _GNU_SOURCE
#include "nas.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define NAS_RANDOM_MASK ((UINT64_C(1) << 46) - 1)


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
        } else if ((strlen(*arg) == 1) && (found == NULL)) {
            found = strchr(classes, **arg);
        } else {
            nas_fatal(nas, "unknown argument '%s'", *arg);
        }
    }
    if (found == NULL) {
        nas_fatal(nas, "usage: %s CLASS [--iterations N] [--columns N]; CLASS "
                  "is one of %s", kernel, classes);
    }
    nas->class_id = *found;
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
    nas->start = MPI_Wtime();
}

int nas_finish(nas_t *nas, int iterations, int is_good, const char *what)
{
    double seconds = MPI_Wtime() - nas->start;
    int all_good   = 0;

    MPI_Allreduce(&is_good, &all_good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (nas->rank == 0) {
        printf("%s class %c ranks %d iterations %d seconds %.3f verified %s "
               "(%s)\n", nas->kernel, nas->class_id, nas->size, iterations,
               seconds, all_good ? "yes" : "NO", what);
        fflush(stdout);
    }
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
