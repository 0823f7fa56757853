/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "hit_bench.h"
#include "../bench_util.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Hits on a small region A while a big region B is being registered by someone
 * else: by the helper, which has learned B's period, or, for UCX's cache, by a
 * second thread.
 */

#define HIT_DELAY_SAMPLES 400000

/* A hit every few microseconds: denser than any application, and it leaves the
 * helper the time to see B's entry in a queue that may overwrite */
#define HIT_DELAY_PACE_NS 5000

/* Big enough that a period holds B's registration and a stretch without it */
#define HIT_DELAY_PERIODS 3

typedef struct hit_samples {
    double *values;
    size_t count;
} hit_samples_t;

typedef struct hit_delay_run {
    hit_bench_t   *bench;
    hit_subject_t subject;
    void          *big;
    hit_samples_t free;
    hit_samples_t behind;
    _Atomic int   is_stopping;
} hit_delay_run_t;

static uint64_t hit_slow_ns(const hit_bench_t *bench)
{
    return (uint64_t)(bench->opts.slow_ms * 1e6);
}

/* Odd while B is being registered. Never by this thread: its own uses of B are
 * not among the hits. */
static unsigned hit_slow_seq(hit_bench_t *bench, hit_subject_t subject)
{
    /* relaxed: classes a sample, orders nothing */
    return (subject == HIT_DOMAIN) ?
           ucs_load_relaxed(&bench->domain->slow_seq) :
           ucs_load_relaxed(&bench->rcache.slow_seq);
}

static void hit_samples_add(hit_samples_t *samples, double value)
{
    if (samples->count < HIT_DELAY_SAMPLES) {
        samples->values[samples->count++] = value;
    }
}

/* Hits on A until the time is over. A hit counts as behind when B was being
 * registered during any part of it; so one that waited for the end counts. */
static void hit_delay_until(hit_delay_run_t *run, uint64_t end)
{
    hit_bench_t *bench = run->bench;
    uint64_t start, stop;
    unsigned seq;
    int is_behind;

    do {
        seq       = hit_slow_seq(bench, run->subject);
        start     = bench_now();
        hit_use(bench, run->subject, bench->regions[0], bench->opts.length);
        stop      = bench_now();
        is_behind = (seq & 1) || (seq != hit_slow_seq(bench, run->subject));
        hit_samples_add(is_behind ? &run->behind : &run->free,
                        (double)(stop - start));
        while (bench_now() < stop + HIT_DELAY_PACE_NS) {
        }
    } while (bench_now() < end);
}

/* One call site for all uses of B: the helper knows it by its stack */
static __attribute__((noinline)) void hit_delay_use_big(hit_delay_run_t *run)
{
    hit_use(run->bench, run->subject, run->big, run->bench->opts.slow_length);
}

static void hit_delay_domain(hit_delay_run_t *run)
{
    unsigned num_rounds = run->bench->opts.num_rounds;
    uint64_t period     = HIT_DELAY_PERIODS * hit_slow_ns(run->bench);
    uint64_t start      = bench_now();
    unsigned i;

    for (i = 0; i < num_rounds; ++i) {
        start = bench_now();
        hit_delay_use_big(run);
        /* The first use registers B itself: the period counts from its begin */
        hit_delay_until(run, start + period);
    }
}

static void *hit_delay_register_thread(void *arg)
{
    hit_delay_run_t *run = arg;
    size_t page          = (size_t)sysconf(_SC_PAGESIZE);
    unsigned i;

    /* A range that grows by a page is a new one each time */
    for (i = 0; i < run->bench->opts.num_rounds; ++i) {
        usleep((useconds_t)(hit_slow_ns(run->bench) / 1000));
        bench_rcache_use(&run->bench->rcache, run->big,
                         run->bench->opts.slow_length + (i * page));
    }

    ucs_store_relaxed(&run->is_stopping, 1);
    return NULL;
}

static int hit_delay_rcache(hit_delay_run_t *run)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, hit_delay_register_thread, run) != 0) {
        return -1;
    }

    /* relaxed: nothing is read that the thread wrote before */
    while (!ucs_load_relaxed(&run->is_stopping)) {
        hit_delay_until(run, bench_now() + HIT_DELAY_PACE_NS);
    }
    pthread_join(thread, NULL);
    return 0;
}

static void hit_latency_reduce(hit_samples_t *samples, hit_latency_t *latency)
{
    bench_sort(samples->values, samples->count);
    latency->num_samples = samples->count;
    latency->p50         = bench_quantile(samples->values, samples->count, 0.5);
    latency->p99         = bench_quantile(samples->values, samples->count,
                                          0.99);
    latency->max         = bench_quantile(samples->values, samples->count, 1);
}

static int hit_delay_of(hit_delay_run_t *run, hit_delay_t *delay)
{
    int ret = 0;

    run->free.count   = 0;
    run->behind.count = 0;
    hit_warm_up(run->bench, run->subject, 0);
    if (run->subject == HIT_DOMAIN) {
        hit_delay_domain(run);
    } else {
        ret = hit_delay_rcache(run);
    }

    hit_latency_reduce(&run->free, &delay->free[run->subject]);
    hit_latency_reduce(&run->behind, &delay->behind[run->subject]);
    return ret;
}

int hit_measure_delay(hit_bench_t *bench, hit_delay_t *delay)
{
    /* Room for the range that grows, see hit_delay_register_thread() */
    size_t length       = bench->opts.slow_length + (64 << 20);
    hit_delay_run_t run = {.bench = bench};
    int ret             = -1;

    memset(delay, 0, sizeof(*delay));
    run.free.values   = calloc(HIT_DELAY_SAMPLES, sizeof(double));
    run.behind.values = calloc(HIT_DELAY_SAMPLES, sizeof(double));
    run.big           = mmap(NULL, length, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1,
                             0);
    if ((run.free.values == NULL) || (run.behind.values == NULL) ||
        (run.big == MAP_FAILED)) {
        goto out;
    }

    run.subject = HIT_DOMAIN;
    ret         = hit_delay_of(&run, delay);
    if (ret == 0) {
        run.subject = HIT_RCACHE;
        ret         = hit_delay_of(&run, delay);
    }

out:
    if (run.big != MAP_FAILED) {
        munmap(run.big, length);
    }
    free(run.behind.values);
    free(run.free.values);
    return ret;
}
