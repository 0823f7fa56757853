/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "oracle.h"

#include <ucs/sys/sync/atomic.h>

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* Cycles of a worker between two domains, each with a policy of its own */
#define ORACLE_EPOCH 4000

/* In one of so many domains the program takes our descriptor away */
#define ORACLE_TAKE      16

/* Seconds without a cycle after which the program is taken for hung */
#define ORACLE_WATCHDOG 30

typedef struct oracle_totals {
    uint64_t cycles, stale, planted, found;
    uint64_t on_time, uses, wasted, invalidated, covers;
} oracle_totals_t;

static void oracle_print_file(const char *task, const char *name)
{
    char path[PATH_MAX], line[512];
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%s/%s", task, name);
    file = fopen(path, "re");
    while ((file != NULL) && (fgets(line, sizeof(line), file) != NULL)) {
        fprintf(stderr, "  %s %s: %s%s", task, name, line,
                strchr(line, '\n') ? "" : "\n");
    }
    if (file != NULL) {
        fclose(file);
    }
}

/* What each thread waits for, as far as the kernel tells */
static void oracle_print_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *entry;

    while ((tasks != NULL) && ((entry = readdir(tasks)) != NULL)) {
        if (entry->d_name[0] != '.') {
            oracle_print_file(entry->d_name, "comm");
            oracle_print_file(entry->d_name, "stat");
            oracle_print_file(entry->d_name, "syscall");
            oracle_print_file(entry->d_name, "stack");
        }
    }
}

/* Wait for a worker as long as it makes progress */
static void oracle_join(oracle_worker_t *worker)
{
    uint64_t seen = UINT64_MAX;
    struct timespec limit;

    do {
        if (ucs_load_relaxed(&worker->cycles) == seen) {
            fprintf(stderr, "oracle: thread %u hangs: seed %" PRIu64
                    " epoch %u cycle %" PRIu64 "\n", worker->index,
                    worker->options->seed, worker->epoch, seen);
            /* What hangs may hold the allocator's locks, which this needs */
            signal(SIGALRM, SIG_DFL);
            alarm(5);
            oracle_print_threads();
            abort();
        }
        seen = ucs_load_relaxed(&worker->cycles);
        clock_gettime(CLOCK_REALTIME, &limit);
        limit.tv_sec += ORACLE_WATCHDOG;
    } while (pthread_timedjoin_np(worker->thread, NULL, &limit) == ETIMEDOUT);
}

static void oracle_count(oracle_totals_t *totals,
                         const oracle_worker_t *worker)
{
    totals->cycles  += ucs_load_relaxed(&worker->cycles);
    totals->stale   += worker->stale;
    totals->planted += worker->planted;
    totals->found   += worker->found;
}

static uint64_t oracle_quota(const oracle_options_t *options,
                             const oracle_totals_t *totals)
{
    uint64_t left;

    if (options->cycles == 0) {
        return ORACLE_EPOCH;
    }
    left = (options->cycles - totals->cycles + options->threads - 1) /
           options->threads;
    return (left < ORACLE_EPOCH) ? left : ORACLE_EPOCH;
}

static ucs_regcache_cover_kind_t
oracle_coalesce(const oracle_options_t *options, unsigned epoch)
{
    return !options->has_covers ? UCS_REGCACHE_COVER_OFF :
           (epoch % 2)          ? UCS_REGCACHE_COVER_LOCAL :
                                  UCS_REGCACHE_COVER_REMOTE;
}

static void oracle_prepare(const oracle_options_t *options,
                           oracle_world_t *world, unsigned epoch,
                           uint64_t quota, uint64_t deadline,
                           oracle_worker_t *workers)
{
    oracle_worker_t *worker;
    unsigned i;

    for (i = 0; i < options->threads; ++i) {
        worker           = &workers[i];
        worker->options  = options;
        worker->world    = world;
        worker->index    = i;
        worker->epoch    = epoch;
        worker->coalesce = oracle_coalesce(options, epoch);
        worker->random   = options->seed ^ ((uint64_t)epoch << 32) ^
                           ((uint64_t)(i + 1) << 56);
        worker->quota    = quota;
        worker->deadline = deadline;
        worker->pidfd    = -1;
    }
}

/* What passes a ceiling goes at its end: nothing could become stale */
static void oracle_check_ceiling(int policy, const ucs_regcache_stats_t *stats)
{
    char said[160];

    if ((policy == UCS_REGCACHE_POLICY_LRU) ||
        (policy == UCS_REGCACHE_POLICY_OVERLAP) || (stats->over_ceiling == 0)) {
        return;
    }
    errno = 0;
    snprintf(said, sizeof(said),
             "policy %s: %lu of %lu uses passed a ceiling that was not set, "
             "%lu evicted, %lu bytes pinned by %lu registrations",
             ucs_regcache_policy_names[policy],
             (unsigned long)stats->over_ceiling, (unsigned long)stats->uses,
             (unsigned long)stats->evicted, (unsigned long)stats->pinned_bytes,
             (unsigned long)stats->regions);
    oracle_die(said);
}

/* One after the other. Where registrations are to be shared, every second one is predict:
 * some of the others share none. */
static int oracle_policy(const oracle_options_t *options, unsigned epoch)
{
    if (options->policy >= 0) {
        return options->policy;
    }
    if (options->has_covers && (epoch % 2 == 0)) {
        return UCS_REGCACHE_POLICY_PREDICT;
    }
    return (int)((options->seed + epoch) % UCS_REGCACHE_POLICY_LAST);
}

static void oracle_epoch(const oracle_options_t *options, unsigned epoch,
                         uint64_t deadline, oracle_totals_t *totals)
{
    int policy               = oracle_policy(options, epoch);
    uct_helper_monitor_t monitor = options->hooks_only ?
                                           UCT_HELPER_MONITOR_UCM :
                                           UCT_HELPER_MONITOR_AUTO;
    oracle_worker_t *workers = calloc(options->threads, sizeof(*workers));
    oracle_world_t *world    = oracle_world_open((ucs_regcache_policy_t)policy,
                                                 monitor,
                                                 oracle_coalesce(options,
                                                                 epoch));
    int taken                = ((options->seed + epoch) % ORACLE_TAKE == 0) ?
                                       oracle_take_descriptor() :
                                       -1;
    ucs_regcache_stats_t stats;
    oracle_worker_t *worker;
    unsigned i;

    oracle_prepare(options, world, epoch, oracle_quota(options, totals),
                   deadline, workers);
    oracle_common_open(&workers[0]);
    for (i = 0; i < options->threads; ++i) {
        worker = &workers[i];
        if (pthread_create(&worker->thread, NULL, oracle_work, worker) != 0) {
            oracle_die("pthread_create");
        }
    }
    for (i = 0; i < options->threads; ++i) {
        oracle_join(&workers[i]);
        oracle_count(totals, &workers[i]);
    }

    oracle_common_close(world);
    oracle_world_close(world, &stats);
    if ((taken >= 0) && (close(taken) != 0)) {
        oracle_die("a descriptor of the program's was closed");
    }
    oracle_check_ceiling(policy, &stats);
    totals->uses        += stats.uses;
    totals->on_time     += stats.on_time;
    totals->wasted      += stats.wasted;
    totals->invalidated += stats.invalidated;
    totals->covers      += stats.covers;
    free(workers);
}

/* Of this process and of those that it has waited for */
static double oracle_cpu_seconds(void)
{
    double seconds = 0;
    struct rusage usage;
    unsigned i;

    for (i = 0; i < 2; ++i) {
        getrusage((i == 0) ? RUSAGE_SELF : RUSAGE_CHILDREN, &usage);
        seconds += usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
                   (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
    }
    return seconds;
}

int oracle_run(const oracle_options_t *options)
{
    uint64_t start         = ucs_clock_monotonic();
    uint64_t deadline      = (options->seconds > 0) ?
                             start + (uint64_t)(options->seconds * 1e9) : 0;
    oracle_totals_t totals = {};
    unsigned epoch         = options->epoch;
    double elapsed;

    printf("oracle: seed %" PRIu64 ", %u threads%s%s%s\n", options->seed,
           options->threads,
           options->hooks_only ?
           ", without what UCX's hooks do not see" : "",
           !options->has_stub ? ", without the stub" :
           !options->has_rows ? ", without twins" : "",
           !options->takes_files ? ", without pages of files" : "");
    fflush(stdout);
    do {
        oracle_epoch(options, epoch++, deadline, &totals);
    } while (((options->cycles == 0) || (totals.cycles < options->cycles)) &&
             ((deadline == 0) || (ucs_clock_monotonic() < deadline)));

    elapsed = (ucs_clock_monotonic() - start) * 1e-9;
    printf("oracle: %u domains, %.1f s, %.0f cycles/s, %.0f for each second "
           "of a processor\n"
           "oracle: %" PRIu64 " uses, %"
           PRIu64 " found registered, %" PRIu64 " registered in vain, %" PRIu64
           " struck by memory events\n", epoch - options->epoch, elapsed,
           totals.cycles / elapsed, totals.cycles / oracle_cpu_seconds(),
           totals.uses, totals.on_time, totals.wasted,
           totals.invalidated);
    if (options->has_covers) {
        printf("oracle: %" PRIu64 " registrations for neighbours\n",
               totals.covers);
    }
    printf("cycles %" PRIu64 " stale %" PRIu64 " planted %" PRIu64 " found %"
           PRIu64 "\n", totals.cycles, totals.stale, totals.planted,
           totals.found);
    return (totals.stale == 0) && (totals.planted > 0) &&
           (!options->has_covers || (totals.covers > 0)) &&
           (totals.found == totals.planted);
}
