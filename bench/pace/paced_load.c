/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "../bench_util.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/*
 * Takes a share of each core at random: bursts of exponential length, which
 * begin after times of exponential length. Where it has to wait for a core it
 * catches up. Ends with the process that started it.
 */

/* Mean length of a burst: some of a scheduler's slices */
#define LOAD_BURST_NS 5e6

#define LOAD_NSEC UINT64_C(1000000000)

static double load_share;

/* Exponential, of mean 1 */
static double load_random(unsigned *seed)
{
    return -log((rand_r(seed) + 1.0) / (RAND_MAX + 2.0));
}

/* By the thread's own time, so that it takes its share where it has to wait */
static void load_burst(double ns)
{
    uint64_t end = bench_cpu_now() + (uint64_t)ns;

    while (bench_cpu_now() < end) {
    }
}

static void load_pause(uint64_t until)
{
    struct timespec time = {.tv_sec  = (time_t)(until / LOAD_NSEC),
                            .tv_nsec = (long)(until % LOAD_NSEC)};

    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

static void *load_thread(void *arg)
{
    int cpu       = (int)(intptr_t)arg;
    unsigned seed = cpu + 1;
    uint64_t due  = bench_now();
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    CPU_SET(cpu, &cpus);
    pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
    for (;;) {
        load_pause(due);
        load_burst(LOAD_BURST_NS * load_random(&seed));
        due += (uint64_t)(LOAD_BURST_NS / load_share * load_random(&seed));
    }
    return NULL;
}

int main(int argc, char **argv)
{
    double percent = (argc == 2) ? atof(argv[1]) : 0;
    cpu_set_t cpus;
    pthread_t thread;
    int cpu;

    if (!(percent > 0) || !(percent < 100)) {
        fprintf(stderr, "Usage: paced_load PERCENT of each core, above 0 and "
                "below 100\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    load_share = percent / 100;
    sched_getaffinity(0, sizeof(cpus), &cpus);
    for (cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &cpus) &&
            (pthread_create(&thread, NULL, load_thread,
                            (void*)(intptr_t)cpu) != 0)) {
            perror("paced_load");
            return 2;
        }
    }
    for (;;) {
        pause();
    }
}
