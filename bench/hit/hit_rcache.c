/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "hit_bench.h"

#include <ucm/api/ucm.h>

#include <limits.h>
#include <time.h>
#include <unistd.h>

static ucs_status_t
bench_rcache_mem_reg(void *context, ucs_rcache_t *cache, void *arg,
                     ucs_rcache_region_t *region, uint16_t flags)
{
    bench_rcache_t *rcache = context;
    struct timespec nap    = {
        .tv_sec  = (time_t)(rcache->slow_ns / 1000000000ul),
        .tv_nsec = (long)(rcache->slow_ns % 1000000000ul)
    };

    if (region->super.end - region->super.start >= rcache->slow_length) {
        /* relaxed: classes a sample, orders nothing */
        ucs_add_relaxed(&rcache->slow_seq, 1);
        nanosleep(&nap, NULL);
        ucs_add_relaxed(&rcache->slow_seq, 1);
    }
    return UCS_OK;
}

static void bench_rcache_mem_dereg(void *context, ucs_rcache_t *cache,
                                   ucs_rcache_region_t *region)
{
}

static void
bench_rcache_dump_region(void *context, ucs_rcache_t *cache,
                         ucs_rcache_region_t *region, char *buf, size_t max)
{
    if (max > 0) {
        buf[0] = '\0';
    }
}

ucs_status_t bench_rcache_open(bench_rcache_t *rcache, size_t slow_length,
                               uint64_t slow_ns)
{
    static const ucs_rcache_ops_t ops = {
        .mem_reg     = bench_rcache_mem_reg,
        .mem_dereg   = bench_rcache_mem_dereg,
        .dump_region = bench_rcache_dump_region
    };
    ucs_rcache_params_t params        = {
        .region_struct_size = sizeof(ucs_rcache_region_t),
#ifdef HAVE_UCS_RCACHE_PARAMS_T_ALIGNMENT
        .alignment          = UCS_RCACHE_MIN_ALIGNMENT,
        .max_alignment      = (size_t)sysconf(_SC_PAGESIZE),
#endif
        .ucm_events         = UCM_EVENT_VM_UNMAPPED,
        .ucm_event_priority = 1000,
        .ops                = &ops,
        .context            = rcache,
        .flags              = UCS_RCACHE_FLAG_PURGE_ON_FORK,
        .max_regions        = ULONG_MAX,
        .max_size           = SIZE_MAX,
        .max_unreleased     = SIZE_MAX
    };

    rcache->slow_length = slow_length;
    rcache->slow_ns     = slow_ns;
    ucs_store_relaxed(&rcache->slow_seq, 0);
    return ucs_rcache_create(&params, "bench", NULL, &rcache->cache);
}

void bench_rcache_close(bench_rcache_t *rcache)
{
    ucs_rcache_destroy(rcache->cache);
}
