/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#define _GNU_SOURCE
#include "paced_run.h"
#include "../bench_util.h"
#include "../mpi/vmpin.h"

#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * The codes of the helper-thread paper (Li et al., CF'11) and others at the
 * pace of production: buffers of the size that a rank has there, and as long
 * between two communications, in which the rank sleeps or computes. Prints one
 * JSON line.
 */

/* Of the sampler of VmPin: rare enough not to matter where ranks sleep */
#define PACED_SAMPLE_NS UINT64_C(10000000)

static const char paced_usage[] =
"Usage: mpirun -n RANKS paced CODE [options]\n"
"  --class C|D        sizes of a rank (default C)\n"
"  --seconds S        iterations whose computation takes about so long\n"
"                     (default 15), at least four\n"
"  --iterations N     so many instead\n"
"  --compute HOW      asleep, busy or mixed (default asleep)\n"
"  --pace FACTOR      of all computation (default 1)\n"
"Prints one JSON line. Exit code 1: data arrived wrong; 2: could not run.\n"
"CODE is one of";

static const struct option paced_options[] = {
    {"class", required_argument, NULL, 'c'},
    {"seconds", required_argument, NULL, 's'},
    {"iterations", required_argument, NULL, 'i'},
    {"compute", required_argument, NULL, 'w'},
    {"pace", required_argument, NULL, 'p'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0}
};

typedef struct paced_opts {
    const paced_code_t *code;
    char               letter;
    double             seconds;
    unsigned           iterations;
    paced_work_t       work;
    double             pace;
} paced_opts_t;

/* What a rank tells; plain doubles, for MPI_Gather */
typedef struct paced_figures {
    double pid;
    double message_seconds;
    double compute_seconds;
    double blocks;
    double wrong;
    double late_us;
    double late_98_us;
    double vmpin_baseline;
    double vmpin_peak;
    double vmpin_average;
    double cpu_share;
} paced_figures_t;

#define PACED_FIGURES ((int)(sizeof(paced_figures_t) / sizeof(double)))


void paced_fatal(const paced_t *paced, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "paced: rank %d: ", paced->rank);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

static int paced_parse_real(const char *text, double max, double *value_p)
{
    char *end;
    double value = strtod(text, &end);

    /* Written so that NaN fails, too */
    if ((end == text) || (*end != '\0') || !(value > 0) || !(value <= max)) {
        return -1;
    }
    *value_p = value;
    return 0;
}

static int paced_parse_work(const char *text, paced_work_t *work_p)
{
    unsigned i;

    for (i = 0; i < PACED_WORK_LAST; ++i) {
        if (!strcmp(text, paced_work_names[i])) {
            *work_p = (paced_work_t)i;
            return 0;
        }
    }
    return -1;
}

static int paced_parse_count(const char *text, unsigned *count_p)
{
    double value;

    if ((paced_parse_real(text, 1e6, &value) != 0) || (value != floor(value))) {
        return -1;
    }
    *count_p = (unsigned)value;
    return 0;
}

static int paced_opts_set(paced_opts_t *opts, int c)
{
    switch (c) {
    case 'c':
        opts->letter = optarg[0];
        return ((strlen(optarg) == 1) &&
                (strchr(PACED_CLASSES, optarg[0]) != NULL)) ? 0 : -1;
    case 's':
        return paced_parse_real(optarg, 86400, &opts->seconds);
    case 'i':
        return paced_parse_count(optarg, &opts->iterations);
    case 'w':
        return paced_parse_work(optarg, &opts->work);
    default:
        return paced_parse_real(optarg, 1000, &opts->pace);
    }
}

static void paced_help(FILE *file)
{
    const paced_code_t *code;

    fputs(paced_usage, file);
    for (code = paced_codes; code->name != NULL; ++code) {
        fprintf(file, " %s", code->name);
    }
    fputc('\n', file);
}

/* @return 0, 1 after help, -1 after a line about what is wrong */
static int paced_opts_parse(paced_opts_t *opts, int argc, char **argv,
                            int is_talking)
{
    int index = 0, c;

    *opts  = (paced_opts_t){.letter = 'C', .seconds = 15, .pace = 1};
    opterr = is_talking;
    while ((c = getopt_long(argc, argv, "h", paced_options, &index)) != -1) {
        if (c == 'h') {
            if (is_talking) {
                paced_help(stdout);
            }
            return 1;
        } else if (c == '?') {
            return -1;
        } else if (paced_opts_set(opts, c) != 0) {
            if (is_talking) {
                fprintf(stderr, "paced: bad value '%s' of --%s\n", optarg,
                        paced_options[index].name);
            }
            return -1;
        }
    }
    opts->code = (optind + 1 == argc) ? paced_code_find(argv[optind]) : NULL;
    if ((opts->code == NULL) && is_talking) {
        paced_help(stderr);
    }
    return (opts->code != NULL) ? 0 : -1;
}

static void paced_setup(paced_t *paced, paced_opts_t *opts)
{
    const paced_size_t *size;

    if (paced_code_shape(opts->code, opts->letter, paced->size, &paced->shape,
                         &size) != 0) {
        paced_fatal(paced, "%s cannot have %d ranks", opts->code->name,
                    paced->size);
    }
    paced->work = opts->work;
    if (opts->iterations == 0) {
        opts->iterations = fmax(4, ceil(opts->seconds * 1e3 /
                                        (size->iteration_ms * opts->pace)));
    }
    paced->iterations = opts->iterations;
    paced_plan(paced, size->iteration_ms * opts->pace);
}

/* Connections and eager pools come up before the baseline is taken */
static void paced_warm_up(const paced_t *paced)
{
    char bytes[1024] = {0};
    int i;

    for (i = 0; i < 4 * paced->size; ++i) {
        MPI_Bcast(bytes, sizeof(bytes), MPI_BYTE, i % paced->size,
                  MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* @return Seconds from the first rank's start to the last one's end */
static double paced_timed(paced_t *paced, paced_figures_t *own)
{
    uint64_t start, cpu_start;
    vmpin_t pin;
    double seconds;

    if (vmpin_start(&pin, PACED_SAMPLE_NS, 0) != 0) {
        paced_fatal(paced, "no VmPin in /proc/self/status");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    cpu_start = bench_cpu_now();
    start     = bench_now();
    paced_run(paced);
    MPI_Barrier(MPI_COMM_WORLD);
    seconds = (bench_now() - start) * 1e-9;
    vmpin_stop(&pin);

    bench_sort(paced->late_us, paced->num_late);
    own->pid             = getpid();
    own->message_seconds = paced->message_ns * 1e-9;
    own->compute_seconds = paced->compute_ns * 1e-9;
    own->blocks          = (double)paced->blocks;
    own->wrong           = (double)paced->wrong;
    own->late_us         = bench_quantile(paced->late_us, paced->num_late, 0.5);
    own->late_98_us      = bench_quantile(paced->late_us, paced->num_late,
                                          0.98);
    own->vmpin_baseline  = (double)pin.baseline;
    own->vmpin_peak      = (double)pin.peak;
    own->vmpin_average   = vmpin_average(&pin);
    own->cpu_share       = (bench_cpu_now() - cpu_start) * 1e-9 / seconds;
    return seconds;
}

/* One line, and nothing else on stdout: the drivers read it with jq */
static void paced_print(const paced_t *paced, const paced_opts_t *opts,
                        double seconds, double wrong,
                        const paced_figures_t *figures)
{
    int i;

    printf("{\"bench\":\"paced\",\"code\":\"%s\",\"class\":\"%c\","
           "\"compute\":\"%s\",\"iterations\":%u,\"seconds\":%.6f,"
           "\"verified\":%s,\"rank\":[", opts->code->name, opts->letter,
           paced_work_names[opts->work], opts->iterations, seconds,
           (wrong == 0) ? "true" : "false");
    for (i = 0; i < paced->size; ++i) {
        printf("%s{\"pid\":%.0f,\"message_seconds\":%.6f,"
               "\"compute_seconds\":%.6f,\"blocks\":%.0f,\"wrong\":%.0f,"
               "\"late_us\":%.1f,\"late_98_us\":%.1f,"
               "\"vmpin_baseline_bytes\":%.0f,"
               "\"vmpin_peak_bytes\":%.0f,\"vmpin_average_bytes\":%.0f,"
               "\"cpu_share\":%.4f}", (i == 0) ? "" : ",", figures[i].pid,
               figures[i].message_seconds, figures[i].compute_seconds,
               figures[i].blocks, figures[i].wrong, figures[i].late_us,
               figures[i].late_98_us,
               figures[i].vmpin_baseline, figures[i].vmpin_peak,
               figures[i].vmpin_average, figures[i].cpu_share);
    }
    printf("]}\n");
    fflush(stdout);
}

static double paced_report(paced_t *paced, const paced_opts_t *opts,
                           double seconds, paced_figures_t *own)
{
    paced_figures_t *all = calloc(paced->size, sizeof(*all));
    double wrong         = 0;

    if (all == NULL) {
        paced_fatal(paced, "no memory for figures");
    }
    MPI_Allreduce(&own->wrong, &wrong, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Gather(own, PACED_FIGURES, MPI_DOUBLE, all, PACED_FIGURES, MPI_DOUBLE,
               0, MPI_COMM_WORLD);
    if (paced->rank == 0) {
        paced_print(paced, opts, seconds, wrong, all);
        if (wrong > 0) {
            fprintf(stderr, "paced: %.0f blocks arrived wrong\n", wrong);
        }
    }
    free(all);
    return wrong;
}

int main(int argc, char **argv)
{
    static paced_t paced;
    paced_figures_t own;
    paced_opts_t opts;
    double seconds, wrong;
    int status;

    paced_work_init();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &paced.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &paced.size);
    status = paced_opts_parse(&opts, argc, argv, paced.rank == 0);
    if (status != 0) {
        MPI_Finalize();
        return (status > 0) ? 0 : 2;
    }
    paced_setup(&paced, &opts);
    paced_warm_up(&paced);
    seconds = paced_timed(&paced, &own);
    wrong   = paced_report(&paced, &opts, seconds, &own);
    MPI_Finalize();
    return (wrong > 0) ? 1 : 0;
}
