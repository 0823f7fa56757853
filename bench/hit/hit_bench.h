/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef BENCH_HIT_BENCH_H_
#define BENCH_HIT_BENCH_H_

#include "hit_domain.h"
#include "hit_rcache.h"

#include <stddef.h>

/** @file hit_bench.h  What the three measurements of hit_path share. */

typedef enum hit_subject {
    HIT_DOMAIN, /* reg + dereg through the decorated domain's table */
    HIT_RCACHE, /* ucs_rcache_get() + put() */
    HIT_LAST
} hit_subject_t;

typedef struct hit_opts {
    unsigned   num_regions; /* Of each thread */
    unsigned   num_threads;
    size_t     length;      /* Of a region, bytes */
    unsigned   num_blocks;  /* Of each subject */
    unsigned   num_uses;    /* In a block */
    double     slow_ms;     /* Modelled registration of the big region */
    size_t     slow_length; /* Of the big region, bytes */
    unsigned   num_rounds;  /* Uses of the big region */
    const char *policy;
} hit_opts_t;

typedef struct hit_bench {
    hit_opts_t     opts;
    bench_domain_t *domain;
    bench_rcache_t rcache;
    void           **regions; /* num_threads * num_regions, shuffled */
} hit_bench_t;

/** Time of one use, nanoseconds. */
typedef struct hit_speed {
    double   median[HIT_LAST];
    double   p10[HIT_LAST];
    double   p90[HIT_LAST];
    double   ratio;         /* Of the medians, domain to rcache */
    unsigned num_discarded; /* Blocks of the domain that were not all hits */
} hit_speed_t;

/** What the uses of a window asked of libc and the kernel. */
typedef struct hit_purity {
    uint64_t num_uses;
    uint64_t allocs[HIT_LAST];
    uint64_t syscalls[HIT_LAST];
    int      last_syscall[HIT_LAST];
    int      is_counted; /* System calls can be counted here */
} hit_purity_t;

/** Latency of a hit, nanoseconds, the clock's two reads included. */
typedef struct hit_latency {
    size_t num_samples;
    double p50;
    double p99;
    double max;
} hit_latency_t;

/** Hits on A while B is being registered (behind) and while not (free). */
typedef struct hit_delay {
    hit_latency_t free[HIT_LAST];
    hit_latency_t behind[HIT_LAST];
} hit_delay_t;

/** One use of @a address; inlined into the measuring loops. */
static inline ucs_status_t hit_use(hit_bench_t *bench, hit_subject_t subject,
                                   void *address, size_t length)
{
    return (subject == HIT_DOMAIN) ?
           bench_domain_use(bench->domain, address, length) :
           bench_rcache_use(&bench->rcache, address, length);
}

/** Registrations that have reached the lower domain. */
static inline uint64_t hit_lower_regs(hit_bench_t *bench)
{
    return ucs_load_relaxed(&bench->domain->num_regs);
}

/** Use all regions of a thread until a whole pass is hits. */
void hit_warm_up(hit_bench_t *bench, hit_subject_t subject, unsigned thread);

/** A B A B: @return 0, or -1 if threads or memory are not to be had. */
int hit_measure_speed(hit_bench_t *bench, hit_speed_t *speed);

void hit_measure_purity(hit_bench_t *bench, hit_purity_t *purity);

/** @return 0, or -1 if memory or a thread is not to be had. */
int hit_measure_delay(hit_bench_t *bench, hit_delay_t *delay);

#endif
