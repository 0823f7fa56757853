/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef BENCH_HIT_RCACHE_H_
#define BENCH_HIT_RCACHE_H_

#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <ucs/memory/rcache.h>
#include <ucs/sys/sync/atomic.h>

/**
 * @file hit_rcache.h
 *
 * The yardstick: UCX's own registration cache over registrations that cost
 * nothing, created the way UCX's IB domain creates its own.
 */

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

#endif
