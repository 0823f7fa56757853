/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
/*
 * How long one use takes at worst where there are many regions: the helper over
 * a domain that costs nothing, so what is seen is the helper and the scheduler.
 */

#include "../bench_options.h"
#include "hit_bench.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Above the size from which the helper manages a region, and apart, so that
 * none is merged with its neighbour */
#define MANY_LENGTH 17000
#define MANY_STRIDE 24576

/* New ones that come when all are there */
#define MANY_BEYOND 1000

#define MANY_BUSY_MAX 64

typedef struct many {
    const char     *policies;
    const char     *counts;
    unsigned       num_busy;
    bench_domain_t *domain;
    const char     *policy;
    size_t         count;
    char           *base;
    double         *times; /* of as many uses as there are regions */
    pid_t          busy[MANY_BUSY_MAX];
} many_t;

static size_t many_bytes(const many_t *many)
{
    return (many->count + MANY_BEYOND) * MANY_STRIDE;
}

static void many_print(const many_t *many, const char *phase, size_t count)
{
    bench_sort(many->times, count);
    printf("%-12s %8zu  %-8s %9.1f %9.1f %9.1f %11.1f\n", many->policy,
           many->count, phase, bench_quantile(many->times, count, 0.5) / 1e3,
           bench_quantile(many->times, count, 0.99) / 1e3,
           bench_quantile(many->times, count, 0.9999) / 1e3,
           many->times[count - 1] / 1e3);
    fflush(stdout);
}

static void many_use(many_t *many, const char *phase, size_t first,
                     size_t count)
{
    uint64_t start;
    size_t i;

    for (i = 0; i < count; ++i) {
        start = bench_now();
        if (bench_domain_use(many->domain,
                             many->base + (first + i) * MANY_STRIDE,
                             MANY_LENGTH) != UCS_OK) {
            fprintf(stderr, "many: a use fails\n");
            exit(1);
        }
        many->times[i] = (double)(bench_now() - start);
    }
    many_print(many, phase, count);
}

/* first: nothing is known; again: of each buffer a use is; beyond: under lru
 * the ceiling is reached, and all that it keeps has been used since it came;
 * unmapped: all of that is to be deregistered */
static void many_phases(many_t *many)
{
    size_t beyond = (many->count < MANY_BEYOND) ? many->count : MANY_BEYOND;

    many_use(many, "first", 0, many->count);
    many_use(many, "again", 0, many->count);
    many_use(many, "beyond", many->count, beyond);
    munmap(many->base, many->count * MANY_STRIDE);
    many_use(many, "unmapped", many->count, beyond);
    munmap(many->base + many->count * MANY_STRIDE, MANY_BEYOND * MANY_STRIDE);
}

static int many_run(many_t *many)
{
    bench_domain_params_t params = {.policy      = many->policy,
                                    .slow_length = SIZE_MAX};
    char ceiling[32];

    snprintf(ceiling, sizeof(ceiling), "%zu", many->count);
    if (strcmp(many->policy, "lru") == 0) {
        setenv("UCX_MD_HELPER_MAX_REGIONS", ceiling, 1);
    } else {
        unsetenv("UCX_MD_HELPER_MAX_REGIONS");
    }
    many->base = bench_map(many_bytes(many), MAP_PRIVATE | MAP_NORESERVE);
    if (bench_domain_open(&params, &many->domain) != UCS_OK) {
        fprintf(stderr, "many: the helper does not attach\n");
        return -1;
    }

    many_phases(many);
    bench_domain_close(many->domain);
    return 0;
}

static int many_run_counts(many_t *many)
{
    const char *text = many->counts;
    char *end;
    int ret;

    do {
        many->count = strtoul(text, &end, 10);
        many->times = calloc(many->count, sizeof(*many->times));
        if ((many->count == 0) || (many->times == NULL) ||
            ((*end != ',') && (*end != '\0'))) {
            fprintf(stderr, "many: bad value '%s' of --regions, allowed are "
                    "numbers from 1 on, with commas\n", many->counts);
            return -1;
        }
        ret = many_run(many);
        free(many->times);
        text = end + 1;
    } while ((ret == 0) && (*end == ','));
    return ret;
}

static int many_run_policies(many_t *many)
{
    char *list = strdup(many->policies);
    int ret    = (list == NULL) ? -1 : 0;
    char *next = list;

    while ((ret == 0) && (next != NULL)) {
        many->policy = strsep(&next, ",");
        ret          = many_run_counts(many);
    }
    free(list);
    return ret;
}

static void many_busy_start(many_t *many)
{
    unsigned i;

    for (i = 0; i < many->num_busy; ++i) {
        many->busy[i] = fork();
        if (many->busy[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;) {
                __asm__ volatile("" ::: "memory");
            }
        }
    }
}

static void many_busy_stop(many_t *many)
{
    unsigned i;

    for (i = 0; i < many->num_busy; ++i) {
        if (many->busy[i] > 0) {
            kill(many->busy[i], SIGKILL);
            waitpid(many->busy[i], NULL, 0);
        }
    }
}

int main(int argc, char **argv)
{
    many_t many = {.policies   = "predict,paper,rent,leave_pinned,lru,"
                                 "on_demand",
                   .counts     = "1000,10000,100000,1000000"};
    const bench_option_t options[] = {
        {"regions", BENCH_TEXT, &many.counts, 0, 0,
         "LIST  numbers of regions [1000,10000,100000,1000000]"},
        {"policies", BENCH_TEXT, &many.policies, 0, 0, "LIST  in turn [all]"},
        {"busy", BENCH_COUNT, &many.num_busy, 0, MANY_BUSY_MAX,
         "N     processes beside it that only run [0]"},
        {0}
    };
    int ret;

    bench_options_or_exit("many [options]", options, argv, NULL);

    printf("one use, microseconds; beside it %u busy processes\n"
           "%-12s %8s  %-8s %9s %9s %9s %11s\n", many.num_busy, "policy",
           "regions", "phase", "median", "p99", "p99.99", "longest");
    many_busy_start(&many);
    ret = many_run_policies(&many);
    many_busy_stop(&many);
    return (ret == 0) ? 0 : 1;
}
