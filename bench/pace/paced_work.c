/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "paced_run.h"
#include "../bench_util.h"

#include <errno.h>
#include <sys/prctl.h>
#include <time.h>

#define PACED_NSEC UINT64_C(1000000000)

/* Additions between two looks at the clock */
#define PACED_BURST 2000

const char *const paced_work_names[] = {
    [PACED_WORK_ASLEEP] = "asleep",
    [PACED_WORK_BUSY]   = "busy",
    [PACED_WORK_MIXED]  = "mixed",
    [PACED_WORK_LAST]   = NULL
};

void paced_work_init(void)
{
    prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul);
}

/* By the thread's own time: what others take of the core makes it longer */
static void paced_work_busy(uint64_t ns)
{
    uint64_t end         = bench_cpu_now() + ns;
    volatile double sink = 1;
    int i;

    while (bench_cpu_now() < end) {
        for (i = 0; i < PACED_BURST; ++i) {
            sink = sink * 0.999 + 0.001;
        }
    }
}

static uint64_t paced_work_asleep(uint64_t ns)
{
    uint64_t end         = bench_now() + ns;
    struct timespec when = {.tv_sec  = (time_t)(end / PACED_NSEC),
                            .tv_nsec = (long)(end % PACED_NSEC)};
    uint64_t now;

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) ==
           EINTR) {
    }
    now = bench_now();
    return (now > end) ? now - end : 0;
}

uint64_t paced_work(paced_work_t how, uint64_t ns)
{
    uint64_t busy_ns = (how == PACED_WORK_BUSY)  ? ns :
                       (how == PACED_WORK_MIXED) ? ns / 2 : 0;

    if (busy_ns > 0) {
        paced_work_busy(busy_ns);
    }
    return (ns > busy_ns) ? paced_work_asleep(ns - busy_ns) : 0;
}
