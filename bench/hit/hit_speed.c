/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "hit_bench.h"
#include "../bench_util.h"

#include <pthread.h>
#include <string.h>

/* The helper drops what is idle, and every region is while the other subject
 * has its turn: passes that it gets to bring the working set back */
#define HIT_WARM_UP_PASSES 1000

#define HIT_PURITY_USES 200000

typedef struct hit_worker {
    hit_bench_t       *bench;
    pthread_barrier_t *barrier;
    unsigned          index;
    pthread_t         thread;
    double            *times[HIT_LAST]; /* Nanoseconds a use, by block */
    uint64_t          *regs;            /* Lower registrations, by block */
} hit_worker_t;

void hit_warm_up(hit_bench_t *bench, hit_subject_t subject, unsigned thread)
{
    unsigned count = bench->opts.num_regions;
    void **regions = &bench->regions[thread * count];
    unsigned pass, i;
    uint64_t regs;

    for (pass = 0; pass < HIT_WARM_UP_PASSES; ++pass) {
        regs = hit_lower_regs(bench);
        for (i = 0; i < count; ++i) {
            hit_use(bench, subject, regions[i], bench->opts.length);
        }
        if ((pass > 1) && (regs == hit_lower_regs(bench))) {
            return;
        }
    }
}

/* A loop of its own for each subject, so that no branch is timed with it */
static inline __attribute__((always_inline)) double
hit_block(hit_bench_t *bench, hit_subject_t subject, void **regions)
{
    const unsigned num_uses = bench->opts.num_uses;
    const unsigned count    = bench->opts.num_regions;
    const size_t length     = bench->opts.length;
    unsigned region         = 0;
    uint64_t start;
    unsigned i;

    start = bench_now();
    for (i = 0; i < num_uses; ++i) {
        hit_use(bench, subject, regions[region], length);
        region = (region + 1 == count) ? 0 : (region + 1);
    }
    return (double)(bench_now() - start) / num_uses;
}

static void hit_worker_block(hit_worker_t *worker, unsigned block,
                             hit_subject_t subject)
{
    hit_bench_t *bench = worker->bench;
    void **regions     = &bench->regions[worker->index *
                                         bench->opts.num_regions];
    uint64_t regs;

    hit_warm_up(bench, subject, worker->index);
    pthread_barrier_wait(worker->barrier);
    if (subject == HIT_DOMAIN) {
        regs                             = hit_lower_regs(bench);
        worker->times[HIT_DOMAIN][block] = hit_block(bench, HIT_DOMAIN,
                                                     regions);
        worker->regs[block]              = hit_lower_regs(bench) - regs;
    } else {
        worker->times[HIT_RCACHE][block] = hit_block(bench, HIT_RCACHE,
                                                     regions);
    }
    pthread_barrier_wait(worker->barrier);
}

static void *hit_worker_run(void *arg)
{
    hit_worker_t *worker = arg;
    unsigned block;

    for (block = 0; block < worker->bench->opts.num_blocks; ++block) {
        hit_worker_block(worker, block, HIT_DOMAIN);
        hit_worker_block(worker, block, HIT_RCACHE);
    }
    return NULL;
}

/* The first worker's blocks stand for all: with several threads each of them
 * does the same at the same time */
static void hit_speed_reduce(hit_worker_t *worker, hit_speed_t *speed)
{
    unsigned num_blocks = worker->bench->opts.num_blocks;
    double *times       = worker->times[HIT_DOMAIN];
    unsigned count[HIT_LAST];
    unsigned i;

    count[HIT_RCACHE] = num_blocks;
    count[HIT_DOMAIN] = 0;
    for (i = 0; i < num_blocks; ++i) {
        if (worker->regs[i] == 0) {
            times[count[HIT_DOMAIN]++] = times[i];
        }
    }

    speed->num_discarded = num_blocks - count[HIT_DOMAIN];
    for (i = 0; i < HIT_LAST; ++i) {
        bench_sort(worker->times[i], count[i]);
        speed->median[i] = bench_quantile(worker->times[i], count[i], 0.5);
        speed->p10[i]    = bench_quantile(worker->times[i], count[i], 0.1);
        speed->p90[i]    = bench_quantile(worker->times[i], count[i], 0.9);
    }
    speed->ratio = speed->median[HIT_DOMAIN] / speed->median[HIT_RCACHE];
}

static int hit_worker_init(hit_worker_t *worker, hit_bench_t *bench,
                           pthread_barrier_t *barrier, unsigned index)
{
    unsigned num_blocks = bench->opts.num_blocks;

    worker->bench             = bench;
    worker->barrier           = barrier;
    worker->index             = index;
    worker->regs              = calloc(num_blocks, sizeof(*worker->regs));
    worker->times[HIT_DOMAIN] = calloc(num_blocks, sizeof(double));
    worker->times[HIT_RCACHE] = calloc(num_blocks, sizeof(double));
    return ((worker->regs != NULL) && (worker->times[HIT_DOMAIN] != NULL) &&
            (worker->times[HIT_RCACHE] != NULL)) ? 0 : -1;
}

static void hit_worker_cleanup(hit_worker_t *worker)
{
    free(worker->times[HIT_RCACHE]);
    free(worker->times[HIT_DOMAIN]);
    free(worker->regs);
}

int hit_measure_speed(hit_bench_t *bench, hit_speed_t *speed)
{
    unsigned num_threads  = bench->opts.num_threads;
    hit_worker_t *workers = calloc(num_threads, sizeof(*workers));
    int ret               = (workers == NULL) ? -1 : 0;
    pthread_barrier_t barrier;
    unsigned i;

    for (i = 0; (ret == 0) && (i < num_threads); ++i) {
        ret = hit_worker_init(&workers[i], bench, &barrier, i);
    }
    if (ret != 0) {
        goto out_free;
    }

    pthread_barrier_init(&barrier, NULL, num_threads);
    for (i = 1; i < num_threads; ++i) {
        /* The others would wait for it for ever: no way back from here */
        if (pthread_create(&workers[i].thread, NULL, hit_worker_run,
                           &workers[i]) != 0) {
            abort();
        }
    }

    hit_worker_run(&workers[0]);
    for (i = 1; i < num_threads; ++i) {
        pthread_join(workers[i].thread, NULL);
    }
    pthread_barrier_destroy(&barrier);
    hit_speed_reduce(&workers[0], speed);

out_free:
    for (i = 0; (workers != NULL) && (i < num_threads); ++i) {
        hit_worker_cleanup(&workers[i]);
    }
    free(workers);
    return ret;
}

static void hit_purity_of(hit_bench_t *bench, hit_subject_t subject,
                          hit_purity_t *purity)
{
    hit_count_t before, after;
    uint64_t regs;
    unsigned i;

    hit_warm_up(bench, subject, 0);
    for (i = 0; i < HIT_PURITY_USES; ++i) {
        regs = hit_lower_regs(bench);
        hit_count_get(&before);
        hit_count_arm();
        hit_use(bench, subject, bench->regions[i % bench->opts.num_regions],
                bench->opts.length);
        hit_count_disarm();
        hit_count_get(&after);
        if (regs != hit_lower_regs(bench)) {
            continue; /* Not a hit: the region had been dropped meanwhile */
        }

        ++purity->num_uses;
        purity->allocs[subject]   += after.allocs - before.allocs;
        purity->syscalls[subject] += after.syscalls - before.syscalls;
        if (after.syscalls != before.syscalls) {
            purity->last_syscall[subject] = after.last_syscall;
        }
    }
}

void hit_measure_purity(hit_bench_t *bench, hit_purity_t *purity)
{
    memset(purity, 0, sizeof(*purity));
    purity->is_counted               = hit_count_init();
    purity->last_syscall[HIT_RCACHE] = -1;
    purity->last_syscall[HIT_DOMAIN] = -1;

    hit_purity_of(bench, HIT_RCACHE, purity);
    purity->num_uses = 0; /* Those of the domain are what is reported */
    hit_purity_of(bench, HIT_DOMAIN, purity);
}
