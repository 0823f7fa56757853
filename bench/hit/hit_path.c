/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#define _GNU_SOURCE
#include "hit_bench.h"
#include "hit_print.h"
#include "../bench_util.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static const char hit_usage[] =
"Usage: hit_path [options]\n"
"A use of a live region through the helper's domain beside UCX's own\n"
"registration cache, in one process and in turn.\n"
"  --policy P      of the helper (default paper)\n"
"  --regions N     working set of a thread (default 3)\n"
"  --threads N     (default 1)\n"
"  --length BYTES  of a region, suffix k, m, g (default 1m)\n"
"  --blocks N      of each, A B A B (default 300)\n"
"  --uses N        in a block (default 5000)\n"
"  --big BYTES     length of region B (default 1g)\n"
"  --slow-ms MS    modelled time to register B (default 200)\n"
"  --rounds N      uses of B, 0 leaves that part out (default 8)\n"
"  --json          one JSON line instead of text\n"
"  --strict        exit code 1 when a goal is missed\n";

static const struct option hit_options[] = {
    {"policy", required_argument, NULL, 'p'},
    {"regions", required_argument, NULL, 'r'},
    {"threads", required_argument, NULL, 't'},
    {"length", required_argument, NULL, 'l'},
    {"blocks", required_argument, NULL, 'b'},
    {"uses", required_argument, NULL, 'u'},
    {"big", required_argument, NULL, 'B'},
    {"slow-ms", required_argument, NULL, 's'},
    {"rounds", required_argument, NULL, 'R'},
    {"json", no_argument, NULL, 'j'},
    {"strict", no_argument, NULL, 'S'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0}
};


static int hit_parse_count(const char *text, unsigned min, unsigned *count_p)
{
    size_t value;

    if ((bench_parse_size(text, &value) != 0) || (value < min) ||
        (value > 10000000)) {
        return -1;
    }

    *count_p = (unsigned)value;
    return 0;
}


static int hit_opts_set(hit_opts_t *opts, int c)
{
    char *end;

    switch (c) {
    case 'p':
        opts->policy = optarg;
        return 0;
    case 'r':
        return hit_parse_count(optarg, 1, &opts->num_regions);
    case 't':
        return hit_parse_count(optarg, 1, &opts->num_threads);
    case 'l':
        return bench_parse_size(optarg, &opts->length);
    case 'b':
        return hit_parse_count(optarg, 1, &opts->num_blocks);
    case 'u':
        return hit_parse_count(optarg, 1, &opts->num_uses);
    case 'B':
        return bench_parse_size(optarg, &opts->slow_length);
    case 'R':
        return hit_parse_count(optarg, 0, &opts->num_rounds);
    case 's':
        opts->slow_ms = strtod(optarg, &end);
        return ((*end == '\0') && (opts->slow_ms >= 1) &&
                (opts->slow_ms <= 10000)) ? 0 : -1;
    case 'j':
        opts->is_json = 1;
        return 0;
    default:
        opts->is_strict = 1;
        return 0;
    }
}


static int hit_opts_parse(hit_opts_t *opts, int argc, char **argv)
{
    int index = 0;
    int c;

    *opts = (hit_opts_t){
        .num_regions = 3, .num_threads = 1, .length = 1 << 20,
        .num_blocks = 300, .num_uses = 5000, .slow_ms = 200,
        .slow_length = 1ul << 30, .num_rounds = 8, .policy = "paper"
    };

    while ((c = getopt_long(argc, argv, "h", hit_options, &index)) != -1) {
        if ((c == 'h') || (c == '?')) {
            fputs(hit_usage, (c == 'h') ? stdout : stderr);
            return (c == 'h') ? 1 : -1;
        } else if (hit_opts_set(opts, c) != 0) {
            fprintf(stderr, "hit_path: bad value '%s' of --%s\n", optarg,
                    hit_options[index].name);
            return -1;
        }
    }

    if ((opts->length == 0) || (opts->length >= opts->slow_length)) {
        fprintf(stderr, "hit_path: --length must be below --big\n");
        return -1;
    }
    return 0;
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


static int hit_bench_run(hit_bench_t *bench)
{
    hit_speed_t speed;
    hit_delay_t delay;
    hit_purity_t purity;
    int num_missed;

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

    num_missed = bench->opts.is_json ?
                 hit_print_json(&bench->opts, &speed, &purity, &delay) :
                 hit_print_text(&bench->opts, &speed, &purity, &delay);
    return bench->opts.is_strict ? (num_missed != 0) : 0;
}


int main(int argc, char **argv)
{
    static hit_bench_t bench;
    ucs_status_t status;
    int ret;

    ret = hit_opts_parse(&bench.opts, argc, argv);
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
