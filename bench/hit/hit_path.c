/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "hit_bench.h"
#include "../bench_options.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static int hit_opts_parse(hit_opts_t *opts, char **argv)
{
    const bench_option_t options[] = {
        {"policy", BENCH_TEXT, &opts->policy, 0, 0, "P      of the helper [paper]"},
        {"regions", BENCH_COUNT, &opts->num_regions, 1, 1e7,
         "N      working set of a thread [3]"},
        {"threads", BENCH_COUNT, &opts->num_threads, 1, 1e7, "N      [1]"},
        {"length", BENCH_SIZE, &opts->length, 1, 1e15,
         "BYTES  of a region, suffix k, m, g [1m]"},
        {"blocks", BENCH_COUNT, &opts->num_blocks, 1, 1e7,
         "N      of each, A B A B [300]"},
        {"uses", BENCH_COUNT, &opts->num_uses, 1, 1e7, "N      in a block [5000]"},
        {"big", BENCH_SIZE, &opts->slow_length, 1, 1e15,
         "BYTES  length of region B, above a region's [1g]"},
        {"slow-ms", BENCH_REAL, &opts->slow_ms, 1, 10000,
         "MS     modelled time to register B [200]"},
        {"rounds", BENCH_COUNT, &opts->num_rounds, 0, 1e7,
         "N      uses of B, 0 leaves that part out [8]"},
        {0}
    };
    int ret;

    *opts = (hit_opts_t){
        .num_regions = 3, .num_threads = 1, .length = 1 << 20,
        .num_blocks = 300, .num_uses = 5000, .slow_ms = 200,
        .slow_length = 1ul << 30, .num_rounds = 8, .policy = "paper"
    };
    ret = bench_options_parse(
            "hit_path [options]\n"
            "A use of a live region through the helper's domain beside UCX's own\n"
            "registration cache, in one process and in turn. Prints one JSON line.",
            options, argv, 0, NULL);
    return ((ret == 0) && (opts->length >= opts->slow_length)) ? -1 : ret;
}

/* A hole between the regions keeps UCX's cache from merging them; the order is
 * shuffled, for neither side may profit from walking upwards */
static int hit_regions_init(hit_bench_t *bench)
{
    size_t count  = (size_t)bench->opts.num_threads * bench->opts.num_regions;
    size_t stride = (bench->opts.length + 0x1ffff) & ~0xfffful;
    unsigned seed = 1;
    size_t i, other;
    char *base;
    void *swap;

    bench->regions = calloc(count, sizeof(*bench->regions));
    base           = mmap(NULL, count * stride, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if ((bench->regions == NULL) || (base == MAP_FAILED)) {
        return -1;
    }

    for (i = 0; i < count; ++i) {
        bench->regions[i] = base + (i * stride);
    }
    for (i = count - 1; i > 0; --i) {
        other                 = (size_t)rand_r(&seed) % (i + 1);
        swap                  = bench->regions[i];
        bench->regions[i]     = bench->regions[other];
        bench->regions[other] = swap;
    }
    return 0;
}

static ucs_status_t hit_bench_open(hit_bench_t *bench)
{
    uint64_t slow_ns             = (uint64_t)(bench->opts.slow_ms * 1e6);
    bench_domain_params_t params = {
        .policy      = bench->opts.policy,
        .slow_length = bench->opts.slow_length,
        .slow_ns     = slow_ns
    };
    ucs_status_t status;

    if (hit_regions_init(bench) != 0) {
        return UCS_ERR_NO_MEMORY;
    }

    status = bench_rcache_open(&bench->rcache, bench->opts.slow_length,
                               slow_ns);
    if (status != UCS_OK) {
        return status;
    }

    status = bench_domain_open(&params, &bench->domain);
    if (status != UCS_OK) {
        bench_rcache_close(&bench->rcache);
    }
    return status;
}

static void hit_print_latency(const char *name, const hit_latency_t *l)
{
    printf(",\"%s\":{\"samples\":%zu,\"p50_ns\":%.1f,\"p99_ns\":%.1f,"
           "\"max_ns\":%.1f}", name, l->num_samples, l->p50, l->p99, l->max);
}

static void hit_print(const hit_opts_t *opts, const hit_speed_t *speed,
                      const hit_purity_t *purity, const hit_delay_t *delay)
{
    static const char *const names[HIT_LAST] = {"helper", "rcache"};
    unsigned i;

    printf("{\"bench\":\"hit_path\",\"policy\":\"%s\",\"regions\":%u,"
           "\"threads\":%u,\"ratio\":%.4f,\"blocks\":%u,\"discarded\":%u,"
           "\"hits\":%lu,\"syscalls_counted\":%s,\"modelled_slow_ms\":%g",
           opts->policy, opts->num_regions, opts->num_threads, speed->ratio,
           opts->num_blocks, speed->num_discarded, purity->num_uses,
           purity->is_counted ? "true" : "false", opts->slow_ms);
    for (i = 0; i < HIT_LAST; ++i) {
        printf(",\"%s\":{\"median_ns\":%.2f,\"p10_ns\":%.2f,\"p90_ns\":%.2f,"
               "\"allocations\":%lu,\"syscalls\":%lu,\"last_syscall\":%d",
               names[i], speed->median[i], speed->p10[i], speed->p90[i],
               purity->allocs[i], purity->syscalls[i],
               purity->last_syscall[i]);
        if (opts->num_rounds > 0) {
            hit_print_latency("without", &delay->free[i]);
            hit_print_latency("during", &delay->behind[i]);
        }
        printf("}");
    }
    printf("}\n");
}

static int hit_bench_run(hit_bench_t *bench)
{
    hit_speed_t speed;
    hit_delay_t delay;
    hit_purity_t purity;

    memset(&speed, 0, sizeof(speed));
    memset(&delay, 0, sizeof(delay));
    hit_measure_purity(bench, &purity);
    if (hit_measure_speed(bench, &speed) != 0) {
        return -1;
    }

    if ((bench->opts.num_rounds > 0) &&
        (hit_measure_delay(bench, &delay) != 0)) {
        return -1;
    }

    hit_print(&bench->opts, &speed, &purity, &delay);
    return 0;
}

int main(int argc, char **argv)
{
    static hit_bench_t bench;
    ucs_status_t status;
    int ret;

    ret = hit_opts_parse(&bench.opts, argv);
    if (ret != 0) {
        return (ret > 0) ? 0 : 2;
    }

    status = hit_bench_open(&bench);
    if (status != UCS_OK) {
        fprintf(stderr, "hit_path: cannot open: %s\n",
                ucs_status_string(status));
        return 2;
    }

    ret = hit_bench_run(&bench);
    bench_domain_close(bench.domain);
    bench_rcache_close(&bench.rcache);
    if (ret < 0) {
        fprintf(stderr, "hit_path: out of memory or threads\n");
        return 2;
    }
    return ret;
}
