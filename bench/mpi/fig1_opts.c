/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#define _GNU_SOURCE
#include "fig1_opts.h"
#include "../bench_util.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>

static const char fig1_usage[] =
"Usage: mpirun -n 2 fig1 [options]\n"
"  --iterations N    of the outer loop (default 10)\n"
"  --buffers N       messages an iteration, a buffer each (default 3)\n"
"  --size BYTES      of a message, suffix k or m (default 4m)\n"
"  --compute-ms MS   computation after each message (default 20)\n"
"  --asleep          it leaves the processor to others, as on an accelerator\n"
"  --jitter SHARE    vary the computation by up to +-SHARE (default 0)\n"
"  --reuse           same buffers in every iteration (default)\n"
"  --no-reuse        fresh buffers in every iteration, the old stay mapped\n"
"  --sample MS       period of the VmPin sampler, 0 for none (default 5)\n"
"  --trace PREFIX    write the samples to PREFIX.0 and PREFIX.1\n"
"  --sync            barrier before each message, not timed\n"
"  --thp             allow transparent huge pages in the buffers\n"
"Prints one JSON line. Exit code 1: data arrived wrong; 2: could not run.\n";

static const struct option fig1_options[] = {
    {"iterations", required_argument, NULL, 'i'},
    {"buffers", required_argument, NULL, 'b'},
    {"size", required_argument, NULL, 's'},
    {"compute-ms", required_argument, NULL, 'c'},
    {"asleep", no_argument, NULL, 'a'},
    {"jitter", required_argument, NULL, 'j'},
    {"reuse", no_argument, NULL, 'r'},
    {"no-reuse", no_argument, NULL, 'n'},
    {"sample", required_argument, NULL, 'p'},
    {"trace", required_argument, NULL, 't'},
    {"sync", no_argument, NULL, 'y'},
    {"thp", no_argument, NULL, 'H'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0}
};


static int fig1_parse_count(const char *text, unsigned *count_p)
{
    size_t value;

    if ((bench_parse_size(text, &value) != 0) || (value == 0) ||
        (value > 1000000)) {
        return -1;
    }

    *count_p = (unsigned)value;
    return 0;
}


static int fig1_parse_real(const char *text, double max, double *value_p)
{
    char *end;
    double value = strtod(text, &end);

    /* Written so that NaN fails, too */
    if ((end == text) || (*end != '\0') || !(value >= 0) || !(value <= max)) {
        return -1;
    }

    *value_p = value;
    return 0;
}


static int fig1_opts_set(fig1_opts_t *opts, int c)
{
    switch (c) {
    case 'i':
        return fig1_parse_count(optarg, &opts->iterations);
    case 'b':
        return fig1_parse_count(optarg, &opts->num_buffers);
    case 's':
        if (bench_parse_size(optarg, &opts->size) != 0) {
            return -1;
        }
        return ((opts->size > 0) && (opts->size <= INT_MAX)) ? 0 : -1;
    case 'c':
        return fig1_parse_real(optarg, 60000, &opts->compute_ms);
    case 'a':
        opts->is_asleep = 1;
        return 0;
    case 'j':
        return fig1_parse_real(optarg, 1, &opts->jitter);
    case 'p':
        return fig1_parse_real(optarg, 60000, &opts->sample_ms);
    case 'r':
    case 'n':
        opts->is_reused = (c == 'r');
        return 0;
    case 't':
        opts->trace = optarg;
        return 0;
    case 'y':
        opts->is_synchronised = 1;
        return 0;
    default:
        opts->is_thp = 1;
        return 0;
    }
}


int fig1_opts_parse(fig1_opts_t *opts, int argc, char **argv, int is_talking)
{
    int index = 0;
    int c;

    *opts = (fig1_opts_t){
        .iterations = 10, .num_buffers = 3, .size = 4 << 20, .compute_ms = 20,
        .sample_ms  = 5,  .is_reused   = 1
    };

    opterr = is_talking;
    while ((c = getopt_long(argc, argv, "h", fig1_options, &index)) != -1) {
        if (c == 'h') {
            fputs(is_talking ? fig1_usage : "", stdout);
            return FIG1_OPTS_HELP;
        } else if (c == '?') {
            return -1;
        } else if (fig1_opts_set(opts, c) != 0) {
            if (is_talking) {
                fprintf(stderr, "fig1: bad value '%s' of --%s\n", optarg,
                        fig1_options[index].name);
            }
            return -1;
        }
    }

    if ((optind != argc) && is_talking) {
        fprintf(stderr, "fig1: unexpected argument '%s'\n", argv[optind]);
    }
    return (optind == argc) ? 0 : -1;
}
