/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * Two ranks pass messages through three rotating buffers with long gaps
 * between, and watch what the kernel says is pinned (VmPin of
 * /proc/self/status). Judged from the third iteration on:
 *   --expect predict       falls in the gap, and has risen again before the use
 *   --expect falls         falls in the gap, whether it is worth while to have it
 *                          risen again before the use or not
 *   --expect on_demand     falls in the gap, and stays down until the use
 *   --expect leave_pinned  never falls
 */

#include "ring.h"
#include "../../bench/bench_options.h"
#include "../../bench/mpi/vmpin.h"

#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NUM_BUFFERS     3
#define MAX_ITERATIONS  1000
#define FIRST           3 /* iteration that is judged */

typedef enum {
    EXPECT_PREDICT,
    EXPECT_FALLS,
    EXPECT_ON_DEMAND,
    EXPECT_LEAVE_PINNED,
    EXPECT_LAST
} expect_t;

static const char *expect_names[EXPECT_LAST] = {
    "predict", "falls", "on_demand", "leave_pinned"
};

/* One gap and the use that ends it */
typedef struct {
    int64_t low;       /* VmPin, bytes: smallest in the gap */
    int64_t before;    /* just before the use */
    int64_t posted;    /* just after the operation was posted */
    double  fall_ms;   /* from the gap's start until pinned was low, or -1 */
    double  lead_ms;   /* from the last rise until the use, or -1 */
} gap_t;

/* Fractions of the judged gaps */
typedef struct {
    double fell, rose;
} verdict_t;

static struct {
    unsigned iterations;
    size_t   size;
    unsigned gap_ms;
    double   min_fraction;
    expect_t expect;
} opts = {
    .iterations   = 12,
    .size         = 1024 * 1024,
    .gap_ms       = 100,
    .min_fraction = 0.8
};

static int     status_fd  = -1;
static int64_t base;
static int64_t peak_pinned; /* largest VmPin of all samples */
static gap_t   gaps[MAX_ITERATIONS][NUM_BUFFERS];

static double now_ms(void)
{
    return bench_now() * 1e-6;
}

/* --- what the kernel says ------------------------------------------------ */

static int64_t sample(void)
{
    int64_t pinned = vmpin_read(status_fd);

    if (pinned < 0) {
        fail("cannot read VmPin in /proc/self/status");
    }
    if (pinned > peak_pinned) {
        peak_pinned = pinned;
    }
    return pinned;
}

static void watch_open(void)
{
    status_fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (status_fd < 0) {
        fail("cannot open /proc/self/status");
    }
}

/* --- the loop ------------------------------------------------------------ */

/* Half a message over the baseline tells "the next buffer is pinned" from
 * "none is", whatever the rounding to pages */
static int is_low(int64_t pinned)
{
    return pinned < base + (int64_t)opts.size / 2;
}

static void pause_until(double deadline)
{
    double more;
    struct timespec ts;

    while ((more = deadline - now_ms()) > 0) {
        ts.tv_sec  = more / 1e3;
        ts.tv_nsec = (more - ts.tv_sec * 1e3) * 1e6;
        nanosleep(&ts, NULL);
    }
}

/* Uses start at multiples of the gap, as long as they keep up: on a noisy
 * machine the period would otherwise be the sum of all delays */
static double gap_end(double now)
{
    static double schedule;

    schedule += opts.gap_ms;
    if (schedule < now + opts.gap_ms / 2.0) {
        schedule = now + opts.gap_ms;
    }
    return schedule;
}

static void gap_watch(gap_t *gap)
{
    double start    = now_ms();
    double end      = gap_end(start);
    double interval = (opts.gap_ms >= 100) ? opts.gap_ms / 50.0 : 2.0;
    double rise     = -1;
    int was_low     = 0;
    int64_t s       = sample();
    double t;

    gap->low     = s;
    gap->fall_ms = -1;
    do {
        t = now_ms();
        if (is_low(s) && (gap->fall_ms < 0)) {
            gap->fall_ms = t - start;
        } else if (!is_low(s) && was_low) {
            rise = t;
        }
        was_low          = is_low(s);
        gap->low         = (s < gap->low) ? s : gap->low;
        pause_until((t + interval < end) ? t + interval : end);
        s = sample();
    } while (now_ms() < end);

    gap->before  = s;
    rise         = (!is_low(s) && was_low) ? now_ms() : rise;
    gap->lead_ms = ((rise < 0) || is_low(s)) ? -1 : now_ms() - rise;
}

static void use_buffer(char *buffer, int value, gap_t *gap)
{
    MPI_Request request;
    MPI_Status status;
    size_t i;

    if (rank == 0) {
        MPI_Isend(buffer, opts.size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
    } else {
        MPI_Irecv(buffer, opts.size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
    }
    gap->posted = sample();
    MPI_Wait(&request, &status);

    for (i = 0; (rank == 1) && (i < opts.size); i++) {
        if (buffer[i] != (char)value) {
            fail("wrong data");
        }
    }
}

static char *buffer_alloc(void)
{
    char *buffer = aligned_alloc(4096, (opts.size + 4095) / 4096 * 4096);

    if (buffer == NULL) {
        fail("out of memory");
    }
    memset(buffer, 0, opts.size);
    return buffer;
}

/* UCX makes its own pinned pools on the way: small messages, then one of the
 * size of the others, through a buffer that is never used again */
static void warm_up(char *buffer)
{
    gap_t gap;
    int i, small = 0;

    for (i = 0; i < 16; i++) {
        MPI_Sendrecv_replace(&small, 1, MPI_INT, 1 - rank, 1, 1 - rank, 1,
                             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    use_buffer(buffer, 0, &gap);
    base = INT64_MAX / 2;
    gap_watch(&gap);
    base = gap.low;
}

static void main_loop(void)
{
    char *buffers[NUM_BUFFERS + 1];
    unsigned i, b;
    int value;

    for (b = 0; b <= NUM_BUFFERS; b++) {
        buffers[b] = buffer_alloc();
    }
    warm_up(buffers[NUM_BUFFERS]);

    for (i = 0; i < opts.iterations; i++) {
        for (b = 0; b < NUM_BUFFERS; b++) {
            value = 1 + (i * NUM_BUFFERS + b) % 100;
            if (rank == 0) {
                memset(buffers[b], value, opts.size);
            }
            gap_watch(&gaps[i][b]);
            use_buffer(buffers[b], value, &gaps[i][b]);
        }
    }

    for (b = 0; b <= NUM_BUFFERS; b++) {
        free(buffers[b]);
    }
}

/* --- judging ------------------------------------------------------------- */

static verdict_t judge(void)
{
    verdict_t v = {0, 0};
    double n    = (opts.iterations - (FIRST - 1)) * NUM_BUFFERS;
    unsigned i, b;
    const gap_t *gap;

    for (i = FIRST - 1; i < opts.iterations; i++) {
        for (b = 0; b < NUM_BUFFERS; b++) {
            gap     = &gaps[i][b];
            v.fell += is_low(gap->low);
            v.rose += !is_low(gap->before);
        }
    }

    v.fell /= n;
    v.rose /= n;
    return v;
}

static int pair_is_good(double fell, double rose)
{
    double most = opts.min_fraction;

    switch (opts.expect) {
    case EXPECT_PREDICT:
        return (fell >= most) && (rose >= most);
    case EXPECT_FALLS:
        return fell >= most;
    case EXPECT_ON_DEMAND:
        return (fell >= most) && (rose <= 1 - most);
    default:
        return (fell <= 1 - most) && (rose >= most);
    }
}

static void print_table(void)
{
    unsigned i, b;
    const gap_t *gap;

    printf("rank %d: %ld KB pinned before the loop; over that, KB:\n"
           "  iter buf      low   before   posted  fall_ms  lead_ms\n", rank,
           (long)base / 1024);
    for (i = 0; i < opts.iterations; i++) {
        for (b = 0; b < NUM_BUFFERS; b++) {
            gap = &gaps[i][b];
            printf("  %4u %3u %8ld %8ld %8ld %8.1f %8.1f\n", i + 1, b,
                   (long)(gap->low - base) / 1024,
                   (long)(gap->before - base) / 1024,
                   (long)(gap->posted - base) / 1024,
                   gap->fall_ms, gap->lead_ms);
        }
    }
}

static int report(void)
{
    verdict_t v = judge();
    int good    = pair_is_good(v.fell, v.rose);

    print_table();
    printf("pinwatch: rank %d pid %d: VmPin baseline %ld peak %ld bytes\n",
           rank, (int)getpid(), (long)base, (long)peak_pinned);
    printf("pinwatch: rank %d: VmPin fell in %.2f of the gaps, was up before "
           "%.2f of the uses: %s\n", rank, v.fell, v.rose,
           good ? "as expected" : "NOT as expected");
    fflush(stdout);
    return good;
}

/* --- program ------------------------------------------------------------- */

static void parse_options(char **argv)
{
    const char *expect           = "predict";
    const bench_option_t table[] = {
        {"iterations", BENCH_COUNT, &opts.iterations, FIRST, MAX_ITERATIONS,
         "passes over the three buffers [12]"},
        {"size", BENCH_SIZE, &opts.size, 4096, 1 << 30, "of a message [1m]"},
        {"gap-ms", BENCH_COUNT, &opts.gap_ms, 1, 1e6,
         "from one use to the next [100]"},
        {"min-fraction", BENCH_REAL, &opts.min_fraction, 0, 1,
         "of the gaps must be as expected [0.8]"},
        {"expect", BENCH_TEXT, &expect, 0, 0,
         "predict, falls, on_demand or leave_pinned [predict]"},
        {NULL}
    };

    bench_options_or_exit("pinwatch [options]", table, argv, NULL);
    while (strcmp(expect, expect_names[opts.expect]) != 0) {
        if (++opts.expect == EXPECT_LAST) {
            fprintf(stderr, "bad value '%s' of --expect\n", expect);
            exit(2);
        }
    }
}

int main(int argc __attribute__((unused)), char **argv)
{
    int good, all_good, turn;

    parse_options(argv);
    ring_begin("pinwatch", MPI_THREAD_SINGLE);
    if (num_ranks != 2) {
        fail("needs two ranks");
    }

    watch_open();
    main_loop();

    good = 0;
    for (turn = 0; turn < num_ranks; turn++) {
        if (turn == rank) {
            good = report();
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }

    MPI_Allreduce(&good, &all_good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("pinwatch: %s, %u bytes, %u iterations: %s\n",
               expect_names[opts.expect], (unsigned)opts.size, opts.iterations,
               all_good ? "OK" : "FAILED");
    }
    MPI_Finalize();
    return all_good ? 0 : 1;
}
