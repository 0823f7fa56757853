/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "../bench_util.h"
#include "../hit/hit_domain.h"

#include <uct/ib/helper_md/report/trace_record.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * What UCX_MD_HELPER_TRACE costs the thread that communicates: hits with and
 * without it, in turn, A B A B. Each round is shorter than the ring, so nothing
 * is lost; the writer catches up in between.
 */

#define TRACE_ROUNDS  41
#define TRACE_USES    (UCT_HELPER_TRACE_RING / 8)
#define TRACE_REGIONS 16
#define TRACE_LENGTH  (64u << 10)
#define TRACE_GOAL_NS 50.0 /* an event; a use has two */


static char trace_memory[TRACE_REGIONS][TRACE_LENGTH];

/* @return Nanoseconds a use */
static double trace_round(bench_domain_t *domain)
{
    uint64_t start = bench_cpu_now();
    unsigned i;

    for (i = 0; i < TRACE_USES; ++i) {
        if (bench_domain_use(domain, trace_memory[i % TRACE_REGIONS],
                             TRACE_LENGTH) != UCS_OK) {
            fprintf(stderr, "trace_cost: a registration failed\n");
            exit(1);
        }
    }
    return (double)(bench_cpu_now() - start) / TRACE_USES;
}

static bench_domain_t *trace_open(void)
{
    const bench_domain_params_t params = {.policy = "leave_pinned"};
    bench_domain_t *domain;

    if (bench_domain_open(&params, &domain) != UCS_OK) {
        fprintf(stderr, "trace_cost: the helper does not attach\n");
        exit(1);
    }
    return domain;
}

int main(int argc, char **argv)
{
    int is_strict = (argc > 1) && !strcmp(argv[1], "--strict");
    char path[]   = "/tmp/trace_cost.XXXXXX";
    double plain[TRACE_ROUNDS], traced[TRACE_ROUNDS], event;
    bench_domain_t *without, *with;
    int fd, i;

    fd = mkstemp(path);
    if (fd < 0) {
        perror("trace_cost");
        return 1;
    }
    close(fd);

    without = trace_open();
    if (uct_helper_trace_start(path) != UCS_OK) {
        return 1;
    }
    with = trace_open();
    for (i = 0; i < TRACE_ROUNDS; ++i) {
        plain[i]  = trace_round(without);
        traced[i] = trace_round(with);
        uct_helper_trace_sync();
    }
    bench_domain_close(with);
    bench_domain_close(without);
    uct_helper_trace_stop();
    unlink(path);

    bench_sort(plain, TRACE_ROUNDS);
    bench_sort(traced, TRACE_ROUNDS);
    event = (bench_quantile(traced, TRACE_ROUNDS, 0.5) -
             bench_quantile(plain, TRACE_ROUNDS, 0.5)) / 2;
    printf("a use without trace %.1f ns, with %.1f ns (medians of %d rounds, "
           "ratio %.2f)\nrecording costs %.1f ns an event; goal: below "
           "%.0f ns\n",
           bench_quantile(plain, TRACE_ROUNDS, 0.5),
           bench_quantile(traced, TRACE_ROUNDS, 0.5), TRACE_ROUNDS,
           bench_quantile(traced, TRACE_ROUNDS, 0.5) /
                   bench_quantile(plain, TRACE_ROUNDS, 0.5),
           event, TRACE_GOAL_NS);
    return is_strict && (event >= TRACE_GOAL_NS);
}
