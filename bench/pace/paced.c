/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "paced_run.h"
#include "../bench_options.h"
#include "../mpi/vmpin.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The codes of the helper-thread paper (Li et al., CF'11) and others at the
 * pace of production: buffers of the size that a rank has there, and as long
 * between two communications, in which the rank sleeps or computes. Prints one
 * JSON line.
 */

/* Of the sampler of VmPin: rare enough not to matter where ranks sleep */
#define PACED_SAMPLE_NS UINT64_C(10000000)

typedef struct paced_opts {
    const paced_code_t *code;
    const char         *letter;
    double             seconds;
    unsigned           iterations;
    const char         *compute;
    double             pace;
    size_t             piece;
    const char         *walk;
} paced_opts_t;

/* What a rank tells; plain doubles, for MPI_Gather */
typedef struct paced_figures {
    vmpin_rank_t rank;
    double       message_seconds, compute_seconds;
    double       blocks, wrong;
    double       late_us, late_98_us;
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

/* @return @a count if it is none */
static unsigned paced_find(const char *const *names, unsigned count,
                           const char *text)
{
    unsigned i;

    for (i = 0; (i < count) && strcmp(text, names[i]); ++i) {
    }
    return i;
}

static unsigned paced_find_work(const char *text)
{
    return paced_find(paced_work_names, PACED_WORK_LAST, text);
}

static unsigned paced_find_walk(const char *text)
{
    return paced_find(paced_walk_names, PACED_WALK_LAST, text);
}

/* @return 0, 1 after help, -1 after a line about what is wrong */
static int paced_opts_parse(paced_opts_t *opts, char **argv, int is_silent)
{
    const bench_option_t options[] = {
        {"class", BENCH_TEXT, &opts->letter, 0, 0,
         "C|D      sizes of a rank [C]; A, B: all of a NAS code"},
        {"seconds", BENCH_REAL, &opts->seconds, 0, 86400,
         "S        iterations whose computation takes about so long [15], at\n"
         "                         least four"},
        {"iterations", BENCH_COUNT, &opts->iterations, 1, 1e6,
         "N        so many instead"},
        {"compute", BENCH_TEXT, &opts->compute, 0, 0,
         "HOW      asleep, busy or mixed [asleep]"},
        {"pace", BENCH_REAL, &opts->pace, 1e-6, 1000,
         "FACTOR   of all computation [1]"},
        {"piece", BENCH_SIZE, &opts->piece, 4096, 1 << 27,
         "SIZE     of march, a power of two [64k, of class D 256k]"},
        {"walk", BENCH_TEXT, &opts->walk, 0, 0,
         "HOW      of march through its array: up, down or strided [up]"},
        {0}
    };
    const char *name;
    int ret;

    *opts = (paced_opts_t){.letter = "C", .seconds = 15, .compute = "asleep",
                           .pace = 1, .walk = "up"};
    ret   = bench_options_parse(
            "mpirun -n RANKS paced CODE [options]\n"
            "CODE is one of ft ft2d cg mg is bt sp lu halo march chain phases. "
            "Prints\none JSON line. Exit code 1: data arrived wrong; 2: could not "
            "run.",
            options, argv, is_silent, &name);
    if (ret != 0) {
        return ret;
    }
    opts->code = (name != NULL) ? paced_code_find(name) : NULL;
    if ((opts->code != NULL) && (strlen(opts->letter) == 1) &&
        (paced_find_work(opts->compute) != PACED_WORK_LAST) &&
        (paced_find_walk(opts->walk) != PACED_WALK_LAST) &&
        ((opts->piece & (opts->piece - 1)) == 0)) {
        return 0;
    }
    if (!is_silent) {
        fprintf(stderr, "paced: no such code, class, computation, piece or walk; see --help\n");
    }
    return -1;
}

static void paced_setup(paced_t *paced, paced_opts_t *opts)
{
    const paced_size_t *size;

    paced_codes_set_march(opts->piece, paced_find_walk(opts->walk));
    if (paced_code_shape(opts->code, *opts->letter, paced->size, &paced->shape,
                         &size) != 0) {
        paced_fatal(paced, "%s of class %c cannot have %d ranks",
                    opts->code->name, *opts->letter, paced->size);
    }
    paced->work = paced_find_work(opts->compute);
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
    own->rank            = vmpin_tell(&pin, (bench_cpu_now() - cpu_start) * 1e-9 /
                                            seconds);
    own->message_seconds = paced->message_ns * 1e-9;
    own->compute_seconds = paced->compute_ns * 1e-9;
    own->blocks          = (double)paced->blocks;
    own->wrong           = (double)paced->wrong;
    own->late_us         = bench_quantile(paced->late_us, paced->num_late, 0.5);
    own->late_98_us      = bench_quantile(paced->late_us, paced->num_late,
                                          0.98);
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
           "\"verified\":%s,\"rank\":[", opts->code->name, *opts->letter,
           opts->compute, opts->iterations, seconds,
           (wrong == 0) ? "true" : "false");
    for (i = 0; i < paced->size; ++i) {
        printf("%s{\"message_seconds\":%.6f,\"compute_seconds\":%.6f,"
               "\"blocks\":%.0f,\"wrong\":%.0f,\"late_us\":%.1f,"
               "\"late_98_us\":%.1f,", (i == 0) ? "" : ",",
               figures[i].message_seconds, figures[i].compute_seconds,
               figures[i].blocks, figures[i].wrong, figures[i].late_us,
               figures[i].late_98_us);
        vmpin_print(&figures[i].rank);
        printf("}");
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
    status = paced_opts_parse(&opts, argv, paced.rank != 0);
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
