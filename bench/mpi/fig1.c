/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "vmpin.h"
#include "../bench_options.h"

#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/*
 * The microbenchmark of "Scalable Memory Registration for High Performance
 * Networks Using Helper Threads" (CF'11), Fig. 1: a sender and a receiver, a
 * few buffers in turn, computation between the messages. Prints one JSON line.
 */

/* Iterations 1 and 2 teach the predictor (first use, first period); figures are
 * taken from iteration 3 on, for every policy alike */
#define FIG1_SKIP_ITERATIONS 2

typedef struct fig1_opts {
    unsigned   iterations;
    unsigned   num_buffers;
    size_t     size;       /* Of a message, bytes */
    double     compute_ms; /* Between messages */
    int        is_asleep;  /* Computation sleeps, else it is busy */
    double     sample_ms;  /* Period of the VmPin sampler; 0: none */
    int        is_reused;  /* Same buffers in every iteration */
    const char *trace;     /* Prefix of the VmPin traces, or NULL */
} fig1_opts_t;

/* What a rank tells rank 0 in the end; plain doubles, for MPI_Gather */
typedef struct fig1_result {
    vmpin_rank_t rank;
    double       p10_us, median_us, p90_us, mean_us;
    double       elapsed;
    double       errors;
} fig1_result_t;

#define FIG1_RESULT_DOUBLES (sizeof(fig1_result_t) / sizeof(double))

typedef struct fig1 {
    fig1_opts_t opts;
    int         rank;
    uint64_t    slept_ns;    /* That it meant to */
    uint64_t    num_errors;  /* Words that arrived wrong */
    double      *times;      /* Microseconds a message, all iterations */
    unsigned    num_times;
    uint64_t    **buffers;   /* opts.num_buffers, NULL until first used */
    vmpin_t     pin;
} fig1_t;

static void fig1_fatal(const char *what)
{
    perror(what);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static size_t fig1_words(const fig1_t *fig1)
{
    return (fig1->opts.size + sizeof(uint64_t) - 1) / sizeof(uint64_t);
}

static uint64_t *fig1_buffer_alloc(const fig1_t *fig1)
{
    size_t length = fig1_words(fig1) * sizeof(uint64_t);
    void *address = bench_map(length, MAP_PRIVATE);

    /* The kernel accounts a pinned huge page whole: VmPin would tell of more
     * than was registered */
    madvise(address, length, MADV_NOHUGEPAGE);
    memset(address, 0, length);
    return address;
}

static uint64_t fig1_word(uint64_t key, size_t index)
{
    return key + (index * 0x9e3779b97f4a7c15ul);
}

static void fig1_fill(const fig1_t *fig1, uint64_t *words, uint64_t key)
{
    size_t count = fig1_words(fig1);
    size_t i;

    for (i = 0; i < count; ++i) {
        words[i] = fig1_word(key, i);
    }
}

static void fig1_verify(fig1_t *fig1, const uint64_t *words, uint64_t key)
{
    size_t count = fig1->opts.size / sizeof(uint64_t);
    size_t tail  = fig1->opts.size % sizeof(uint64_t);
    uint64_t last;
    size_t i;

    for (i = 0; i < count; ++i) {
        fig1->num_errors += (words[i] != fig1_word(key, i));
    }

    if (tail != 0) {
        last              = fig1_word(key, count);
        fig1->num_errors += (memcmp(&words[count], &last, tail) != 0);
    }
}

static void fig1_busy(uint64_t deadline)
{
    volatile double sink = 1;
    int i;

    while (bench_now() < deadline) {
        for (i = 0; i < 200; ++i) {
            sink = (sink * 1.000001) + 0.5;
        }
    }
}

static void fig1_sleep(fig1_t *fig1, uint64_t deadline)
{
    struct timespec time = {(time_t)(deadline / 1000000000),
                            (long)(deadline % 1000000000)};
    uint64_t now         = bench_now();

    fig1->slept_ns += (deadline > now) ? deadline - now : 0;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) ==
           EINTR) {
    }
}

/* random_comp() of the paper, which is busy until the deadline; or asleep, as
 * where something else computes */
static void fig1_compute(fig1_t *fig1, uint64_t start)
{
    uint64_t deadline = start + (uint64_t)(fig1->opts.compute_ms * 1e6);

    if (fig1->opts.is_asleep) {
        fig1_sleep(fig1, deadline);
    } else {
        fig1_busy(deadline);
    }
}

static void fig1_transfer(const fig1_t *fig1, uint64_t *words)
{
    if (fig1->rank == 0) {
        MPI_Send(words, (int)fig1->opts.size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(words, (int)fig1->opts.size, MPI_BYTE, 0, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    }
}

/* Preparing the next buffer belongs to the computation after the last message,
 * as it would in an application */
static void
fig1_prepare(fig1_t *fig1, unsigned index, uint64_t key)
{
    uint64_t **buffer_p = &fig1->buffers[index];

    /* Without reuse the old buffer stays mapped: nothing tells the library that
     * it will not be seen again */
    if (!fig1->opts.is_reused || (*buffer_p == NULL)) {
        *buffer_p = fig1_buffer_alloc(fig1);
    }

    if (fig1->rank == 0) {
        fig1_fill(fig1, *buffer_p, key);
    }
}

/* Returns when the message ended: the computation after it starts there, and
 * sampling and verifying are part of it */
static uint64_t fig1_message(fig1_t *fig1, unsigned index, uint64_t key)
{
    uint64_t start, end;

    start = bench_now();
    fig1_transfer(fig1, fig1->buffers[index]);
    end   = bench_now();

    fig1->times[fig1->num_times++] = (double)(end - start) * 1e-3;
    vmpin_sample(&fig1->pin);
    if (fig1->rank == 1) {
        fig1_verify(fig1, fig1->buffers[index], key);
    }
    return end;
}

static void fig1_loop(fig1_t *fig1)
{
    unsigned num_messages = fig1->opts.iterations * fig1->opts.num_buffers;
    uint64_t end;
    unsigned i;

    fig1_prepare(fig1, 0, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    for (i = 0; i < num_messages; ++i) {
        end = fig1_message(fig1, i % fig1->opts.num_buffers, i + 1);
        if (i + 1 < num_messages) {
            fig1_prepare(fig1, (i + 1) % fig1->opts.num_buffers, i + 2);
        }
        fig1_compute(fig1, end);
    }
}

/* Connections and eager pools come up before the baseline is taken */
static void fig1_warm_up(void)
{
    char bytes[1024] = {0};
    int i;

    for (i = 0; i < 20; ++i) {
        MPI_Bcast(bytes, sizeof(bytes), MPI_BYTE, i % 2, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void fig1_run(fig1_t *fig1, fig1_result_t *result)
{
    unsigned skip = FIG1_SKIP_ITERATIONS * fig1->opts.num_buffers;
    unsigned count, i;
    uint64_t start, cpu_start;
    double share;

    fig1_warm_up();
    if (vmpin_start(&fig1->pin, (uint64_t)(fig1->opts.sample_ms * 1e6),
                    fig1->opts.trace != NULL) != 0) {
        fig1_fatal("VmPin in /proc/self/status");
    }

    cpu_start = bench_cpu_now();
    start     = bench_now();
    fig1_loop(fig1);
    result->elapsed = (double)(bench_now() - start) * 1e-9;
    share           = (double)(bench_cpu_now() - cpu_start + fig1->slept_ns) *
                      1e-9 / result->elapsed;
    vmpin_stop(&fig1->pin);

    skip  = (skip < fig1->num_times) ? skip : 0;
    count = fig1->num_times - skip;
    for (i = skip; i < fig1->num_times; ++i) {
        result->mean_us += fig1->times[i] / count;
    }

    bench_sort(fig1->times + skip, count);
    result->p10_us    = bench_quantile(fig1->times + skip, count, 0.1);
    result->median_us = bench_quantile(fig1->times + skip, count, 0.5);
    result->p90_us    = bench_quantile(fig1->times + skip, count, 0.9);
    result->rank      = vmpin_tell(&fig1->pin, share);
    result->errors    = (double)fig1->num_errors;
}

static void fig1_print_rank(const char *name, const fig1_result_t *r)
{
    printf(",\"%s\":{\"p10_us\":%.3f,\"median_us\":%.3f,\"p90_us\":%.3f,"
           "\"mean_us\":%.3f,\"elapsed_seconds\":%.6f,\"errors\":%.0f,",
           name, r->p10_us, r->median_us, r->p90_us, r->mean_us, r->elapsed,
           r->errors);
    vmpin_print(&r->rank);
    printf("}");
}

static void fig1_print(const fig1_t *fig1, const fig1_result_t *results)
{
    const fig1_opts_t *opts = &fig1->opts;

    /* One line, and nothing else on stdout: the drivers read it with jq */
    printf("{\"bench\":\"fig1\",\"size\":%zu,\"iterations\":%u,\"buffers\":%u,"
           "\"reuse\":%s,\"asleep\":%s,\"compute_ms\":%g", opts->size,
           opts->iterations, opts->num_buffers,
           opts->is_reused ? "true" : "false",
           opts->is_asleep ? "true" : "false", opts->compute_ms);
    fig1_print_rank("sender", &results[0]);
    fig1_print_rank("receiver", &results[1]);
    printf("}\n");
    fflush(stdout);
}

static int fig1_write_trace(const fig1_t *fig1)
{
    char path[4096];

    if (fig1->opts.trace == NULL) {
        return 0;
    }

    snprintf(path, sizeof(path), "%s.%d", fig1->opts.trace, fig1->rank);
    if (vmpin_write_trace(&fig1->pin, path) == 0) {
        return 0;
    }

    perror(path);
    return -1;
}

static int fig1_opts_parse(fig1_opts_t *opts, char **argv, int is_silent)
{
    const bench_option_t options[] = {
        {"iterations", BENCH_COUNT, &opts->iterations, 1, 1e6,
         "N    of the outer loop [10]"},
        {"buffers", BENCH_COUNT, &opts->num_buffers, 1, 1e6,
         "N    messages an iteration, a buffer each [3]"},
        {"size", BENCH_SIZE, &opts->size, 1, INT_MAX,
         "BYTES of a message, suffix k or m [4m]"},
        {"compute-ms", BENCH_REAL, &opts->compute_ms, 0, 60000,
         "MS   computation after each message [20]"},
        {"asleep", BENCH_FLAG, &opts->is_asleep, 1, 1,
         "     it leaves the processor to others, as on an accelerator"},
        {"reuse", BENCH_FLAG, &opts->is_reused, 1, 1,
         "     same buffers in every iteration (default)"},
        {"no-reuse", BENCH_FLAG, &opts->is_reused, 0, 0,
         "     fresh buffers in every iteration, the old stay mapped"},
        {"sample", BENCH_REAL, &opts->sample_ms, 0, 60000,
         "MS   period of the VmPin sampler, 0 for none [5]"},
        {"trace", BENCH_TEXT, &opts->trace, 0, 0,
         "PREFIX write the samples to PREFIX.0 and PREFIX.1"},
        {0}
    };

    *opts = (fig1_opts_t){
        .iterations = 10, .num_buffers = 3, .size = 4 << 20, .compute_ms = 20,
        .sample_ms  = 5,  .is_reused   = 1
    };
    return bench_options_parse("mpirun -n 2 fig1 [options]\n"
                               "Prints one JSON line. Exit code 1: data arrived "
                               "wrong; 2: could not run.",
                               options, argv, is_silent, NULL);
}

int main(int argc, char **argv)
{
    fig1_result_t results[2] = {};
    fig1_result_t result     = {};
    fig1_t fig1              = {0};
    int num_ranks, ret;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &fig1.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
    ret = fig1_opts_parse(&fig1.opts, argv, fig1.rank != 0);
    if ((ret != 0) || (num_ranks != 2)) {
        if ((ret == 0) && (fig1.rank == 0)) {
            fprintf(stderr, "fig1: needs 2 ranks, got %d\n", num_ranks);
        }
        MPI_Finalize();
        return (ret > 0) ? 0 : 2;
    }

    fig1.times   = calloc(fig1.opts.iterations * fig1.opts.num_buffers,
                          sizeof(*fig1.times));
    fig1.buffers = calloc(fig1.opts.num_buffers, sizeof(*fig1.buffers));
    if ((fig1.times == NULL) || (fig1.buffers == NULL)) {
        fig1_fatal("calloc");
    }

    fig1_run(&fig1, &result);
    MPI_Gather(&result, FIG1_RESULT_DOUBLES, MPI_DOUBLE, results,
               FIG1_RESULT_DOUBLES, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (fig1.rank == 0) {
        fig1_print(&fig1, results);
    }

    ret = fig1_write_trace(&fig1);
    MPI_Finalize();
    if (fig1.num_errors != 0) {
        fprintf(stderr, "fig1: %llu words arrived wrong\n",
                (unsigned long long)fig1.num_errors);
        return 1;
    }
    return (ret == 0) ? 0 : 2;
}
