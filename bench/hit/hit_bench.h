/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef BENCH_HIT_BENCH_H_
#define BENCH_HIT_BENCH_H_

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <ucs/memory/rcache.h>
#include <ucs/sys/sync/atomic.h>
#include <uct/base/uct_abi.h>

#include <stddef.h>
#include <stdint.h>

/** @file hit_bench.h  What the three measurements of hit_path share. */

/* The domain under test: the helper on top of a memory domain that costs nothing, so
 * that what is measured is the helper and not a NIC. One region length can be made
 * slow, to see who waits for it. */

typedef struct bench_domain_params {
    const char *policy;     /**< UCX_MD_HELPER_POLICY */
    size_t     slow_length; /**< Registrations this long, bytes, take a nap */
    uint64_t   slow_ns;     /**< The nap, nanoseconds (modelled cost) */
} bench_domain_params_t;

typedef struct bench_domain {
    uct_abi_md_t          super;    /* First: this is what uct_md_h points to */
    uct_abi_md_ops_t      ops;      /* Of this domain alone */
    uct_abi_component_t   component;
    char                  reserved[4096]; /* Rest of a real component, zero */
    bench_domain_params_t params;
    _Atomic uint64_t      num_regs; /* Calls that reached the lower domain */
    _Atomic unsigned      slow_seq; /* Naps begun and ended; odd: one is on */
} bench_domain_t;

/**
 * Open the lower domain and attach the helper to it.
 *
 * @param [out] domain_p  Owned by the caller, for bench_domain_close().
 *
 * @return UCS_OK or the error of the attach.
 */
ucs_status_t bench_domain_open(const bench_domain_params_t *params,
                               bench_domain_t **domain_p);

/** Close through the table, as uct_md_close() does. */
void bench_domain_close(bench_domain_t *domain);

static inline uct_md_h bench_domain_md(bench_domain_t *domain)
{
    return (uct_md_h)&domain->super;
}

/** One use of a range; registered and given back through the table. */
static inline ucs_status_t
bench_domain_use(bench_domain_t *domain, void *address, size_t length)
{
    uct_abi_md_mem_dereg_params_t params = {
        .field_mask = UCT_ABI_MD_MEM_DEREG_FIELD_MEMH
    };
    const uct_abi_md_ops_t *ops          = domain->super.ops;
    ucs_status_t status;

    status = !uct_abi_running->has_reg_params ?
             ops->mem_reg(bench_domain_md(domain), address, length,
                          UCT_MD_MEM_ACCESS_RMA, &params.memh) :
             uct_abi_mem_reg_flags(ops, bench_domain_md(domain), address,
                                   length, UCT_MD_MEM_ACCESS_RMA,
                                   &params.memh);
    if (status != UCS_OK) {
        return status;
    }

    return ops->mem_dereg(bench_domain_md(domain), &params);
}

/* The yardstick: UCX's own registration cache over registrations that cost nothing,
 * created the way UCX's IB domain creates its own */

/* 1.17 made it an argument of each look-up */
#ifdef HAVE_UCS_RCACHE_PARAMS_T_ALIGNMENT
#  define BENCH_RCACHE_ALIGNMENT
#else
#  define BENCH_RCACHE_ALIGNMENT UCS_RCACHE_MIN_ALIGNMENT,
#endif

typedef struct bench_rcache {
    ucs_rcache_t     *cache;
    size_t           slow_length; /* Registrations this long (bytes) nap */
    uint64_t         slow_ns;     /* The nap, nanoseconds (modelled cost) */
    _Atomic unsigned slow_seq; /* Naps begun and ended; odd: one is on */
} bench_rcache_t;

ucs_status_t bench_rcache_open(bench_rcache_t *rcache, size_t slow_length,
                               uint64_t slow_ns);

void bench_rcache_close(bench_rcache_t *rcache);

/** One use of a range. */
static inline ucs_status_t
bench_rcache_use(bench_rcache_t *rcache, void *address, size_t length)
{
    ucs_rcache_region_t *region;
    ucs_status_t status;

    status = ucs_rcache_get(rcache->cache, address, length,
                            BENCH_RCACHE_ALIGNMENT PROT_READ | PROT_WRITE,
                            NULL, &region);
    if (status != UCS_OK) {
        return status;
    }

    ucs_rcache_region_put(rcache->cache, region);
    return UCS_OK;
}

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

/* What the calling thread allocates and which system calls it makes between two points,
 * without privileges and without another process: allocations because this program's
 * malloc is in front of libc's, system calls by Linux' syscall user dispatch (5.11,
 * x86-64), which delivers SIGSYS for the first one after each arming. */

typedef struct hit_count {
    uint64_t allocs;       /**< malloc family, free included */
    uint64_t syscalls;     /**< Armed windows with at least one */
    int      last_syscall; /**< Number of the last one seen, -1: none */
} hit_count_t;

/**
 * Install the counters for the calling thread and try them out.
 *
 * @return Nonzero if system calls can be counted here; if not,
 *         @ref hit_count_t::syscalls stays 0 and means nothing.
 */
int hit_count_init(void);

/** Figures of the calling thread so far. */
void hit_count_get(hit_count_t *count);

/** Open and close a window in which a system call counts. */
void hit_count_arm(void);
void hit_count_disarm(void);

#endif
