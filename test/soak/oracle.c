/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE
#endif

#include "oracle.h"
#include "own_ledger.h"

#include <uct/base/uct_abi.h>
#include <ucs/sys/clock.h>
#include <uct/ib/helper_md/watch/calls.h>
#include <uct/ib/helper_md/helper_md.h>

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* Cycles of a worker between two domains, each with a policy of its own */
#define ORACLE_EPOCH 4000

#define ORACLE_MAX_THREADS 64

/* One in so many cycles ... */
#define ORACLE_PLANT     64  /* plants a fault */
#define ORACLE_PAUSE     64  /* pauses, so that the helper comes to act */
#define ORACLE_ELSEWHERE 16  /* uses memory that is no slot */
#define ORACLE_COMMON    8   /* uses memory that others use as well */
#define ORACLE_AROUND    1024 /* starts another process */
#define ORACLE_ROW       8   /* registers neighbours, with --covers */
#define ORACLE_TWIN      256 /* compares mappings with what they would be */

/* In one of so many domains the program takes our descriptor away */
#define ORACLE_TAKE      16

#define ORACLE_PAUSE_NS  300000

/* Bytes that the device writes */
#define ORACLE_WRITE_MAX 512

/* Seconds without a cycle after which the program is taken for hung */
#define ORACLE_WATCHDOG 30

/* Differences that are printed */
#define ORACLE_PRINT_MAX 10

size_t oracle_page;

static _Atomic unsigned oracle_printed;


static uint64_t oracle_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec * UINT64_C(1000000000)) + now.tv_nsec;
}

void oracle_die(const char *what)
{
    fprintf(stderr, "oracle: %s%s%s\n", what, (errno != 0) ? ": " : "",
            (errno != 0) ? strerror(errno) : "");
    _exit(2);
}

/* splitmix64: any seed is as good as another */
uint64_t oracle_random(oracle_worker_t *worker)
{
    uint64_t value = (worker->random += UINT64_C(0x9e3779b97f4a7c15));

    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

/*
 * One use
 */

void oracle_fill(oracle_worker_t *worker, char *address, size_t length)
{
    char *end = address + length;
    uint64_t stamp;
    char *next;

    for (; address < end; address = next) {
        next = (char*)(((uintptr_t)address + oracle_page) & ~(oracle_page - 1));
        next = (next < end) ? next : end;
        if ((size_t)(next - address) >= sizeof(stamp)) {
            stamp = oracle_random(worker);
            memcpy(address, &stamp, sizeof(stamp));
            memcpy(next - sizeof(stamp), &stamp, sizeof(stamp));
        }
    }
}

void oracle_print(const oracle_worker_t *worker, const oracle_slot_t *slot,
                  uct_mem_h memh, const char *what)
{
    char history[512];
    unsigned i;

    if (ucs_add_relaxed(&oracle_printed, 1) >= ORACLE_PRINT_MAX) {
        return;
    }

    uct_pin_md_history(oracle_md(worker->world), memh, history,
                       sizeof(history));
    flockfile(stderr);
    fprintf(stderr, "oracle: %s: seed %" PRIu64 " epoch %u thread %u cycle %"
            PRIu64 ": %s; disturbed by", what, worker->options->seed,
            worker->epoch, worker->index, ucs_load_relaxed(&worker->cycles),
            history);
    for (i = 0; (slot != NULL) && (i < 4) && (slot->history[i] != NULL); ++i) {
        fprintf(stderr, " %s", slot->history[i]);
    }
    fprintf(stderr, "\n");
    funlockfile(stderr);
}

/* The device writes, and the virtual address must show it.
 * @return Nonzero if it does not. */
static int oracle_device_writes(oracle_worker_t *worker, uct_mem_h memh,
                                char *address, size_t length)
{
    size_t size   = 1 + oracle_below(worker, (length < ORACLE_WRITE_MAX) ?
                                             length : ORACLE_WRITE_MAX);
    size_t offset = oracle_below(worker, length - size + 1);
    char data[ORACLE_WRITE_MAX];
    uint64_t random;
    size_t i;

    random = oracle_random(worker);
    for (i = 0; i < size; ++i) {
        data[i] = random >> (8 * (i % sizeof(random)));
    }
    if (uct_pin_md_write(oracle_md(worker->world), memh,
                         (uintptr_t)address + offset, data, size) != UCS_OK) {
        oracle_die("uct_pin_md_write");
    }
    return memcmp(address + offset, data, size);
}

/* After a difference, so that it counts once */
static void oracle_cleanse(oracle_worker_t *worker, const char *address,
                           size_t length)
{
    ucs_regcache_unmapped(uct_helper_md_cache(oracle_md(worker->world)),
                          (uintptr_t)address, length);
}

/* A registration may be larger than this use, and an allocator may take the
 * rest away while it lasts: then the helper has struck it, and only what is in
 * use must still be the same. Nobody takes a slot away in its use. */
static int oracle_is_excused(oracle_worker_t *worker, oracle_slot_t *slot,
                             uct_mem_h memh, const char *address,
                             size_t length)
{
    static __thread char seen[ORACLE_HEAP_MAX];

    if ((slot != NULL) ||
        !uct_helper_md_is_gone(oracle_md(worker->world), memh)) {
        return 0;
    }
    if (uct_pin_md_read(oracle_md(worker->world), memh, (uintptr_t)address,
                        seen, length) != UCS_OK) {
        oracle_die("uct_pin_md_read");
    }
    return !memcmp(seen, address, length);
}

void oracle_check(oracle_worker_t *worker, oracle_slot_t *slot, uct_mem_h memh,
                  char *address, size_t length)
{
    uct_pin_difference_t difference;

    if ((oracle_below(worker, 2) &&
         oracle_device_writes(worker, memh, address, length)) ||
        (uct_pin_md_compare(oracle_md(worker->world), memh, &difference) &&
         !oracle_is_excused(worker, slot, memh, address, length))) {
        ++worker->stale;
        oracle_print(worker, slot, memh, "stale");
        oracle_cleanse(worker, address, length);
    }
}

void oracle_use(oracle_worker_t *worker, oracle_slot_t *slot, char *address,
                size_t length)
{
    int is_early = oracle_below(worker, 2);
    /* All of a slot, for a registration may be larger than this use */
    char *all    = (slot != NULL) ? slot->address : address;
    size_t size  = (slot != NULL) ? slot->length : length;
    uct_mem_h memh;

    if (is_early) {
        oracle_fill(worker, all, size);
    }
    memh = oracle_get(worker->world, address, length);
    if (!is_early) {
        oracle_fill(worker, all, size);
    }
    if ((slot != NULL) && (oracle_below(worker, ORACLE_AROUND) == 0)) {
        oracle_around(worker, slot);
        oracle_fill(worker, all, size);
    }
    oracle_check(worker, slot, memh, address, length);
    oracle_put(worker->world, memh);
}

/*
 * Planted faults
 */

/* @a memh has lost its pages; the comparison has to tell */
static void oracle_expect(oracle_worker_t *worker, oracle_slot_t *slot,
                          uct_mem_h memh)
{
    uct_pin_difference_t difference;

    oracle_fill(worker, slot->address, slot->length);
    ++worker->planted;
    if (uct_pin_md_compare(oracle_md(worker->world), memh, &difference)) {
        ++worker->found;
    } else {
        oracle_print(worker, slot, memh, "planted, not found");
    }
}

/* Behind the helper's back altogether */
static void oracle_plant_lower(oracle_worker_t *worker, oracle_slot_t *slot)
{
    uct_mem_h memh = oracle_lower_get(worker->world, slot->address,
                                      slot->length);

    oracle_disturb_unseen(worker, slot);
    oracle_expect(worker, slot, memh);
    oracle_lower_put(worker->world, memh);
}

/* Where the disturbance is unseen indeed the helper hands out the registration
 * that it has; a use in between keeps the policy from dropping it */
static void oracle_plant_hit(oracle_worker_t *worker, oracle_slot_t *slot,
                             int is_in_use)
{
    uct_mem_h memh  = oracle_get(worker->world, slot->address, slot->length);
    uint64_t serial = uct_pin_md_serial(memh);
    uct_mem_h again;

    if (!is_in_use) {
        oracle_put(worker->world, memh);
    }
    oracle_disturb_unseen(worker, slot);
    again = oracle_get(worker->world, slot->address, slot->length);
    if (uct_pin_md_serial(again) == serial) {
        oracle_expect(worker, slot, again);
    }
    oracle_put(worker->world, again);
    if (is_in_use) {
        oracle_put(worker->world, memh);
    }
}

static void oracle_plant(oracle_worker_t *worker, oracle_slot_t *slot)
{
    oracle_fill(worker, slot->address, slot->length);
    switch (oracle_below(worker, 3)) {
    case 0:
        oracle_plant_lower(worker, slot);
        break;
    case 1:
        oracle_plant_hit(worker, slot, 1);
        break;
    default:
        oracle_plant_hit(worker, slot, 0);
        break;
    }

    /* Now everybody may know */
    oracle_slot_unmap(slot);
    oracle_slot_map(worker, slot);
}

/*
 * A worker
 */

static void oracle_pause(oracle_worker_t *worker)
{
    struct timespec pause = {0, oracle_below(worker, ORACLE_PAUSE_NS)};

    nanosleep(&pause, NULL);
}

static void oracle_cycle(oracle_worker_t *worker)
{
    oracle_slot_t *slot = &worker->slots[oracle_below(worker, ORACLE_SLOTS)];
    size_t offset       = 0;
    size_t length       = slot->length;

    if (oracle_below(worker, ORACLE_ELSEWHERE) == 0) {
        oracle_elsewhere(worker);
        return;
    }

    if (worker->options->has_covers &&
        (oracle_below(worker, ORACLE_ROW) == 0)) {
        oracle_row(worker);
        return;
    }

    if ((oracle_below(worker, ORACLE_TWIN) == 0) && worker->options->has_rows) {
        oracle_twin(worker);
        return;
    }

    if (oracle_below(worker, ORACLE_COMMON) == 0) {
        oracle_common(worker);
        return;
    }

    if (oracle_below(worker, ORACLE_PLANT) == 0) {
        oracle_plant(worker, slot);
        return;
    }

    if (oracle_below(worker, 2)) {
        offset = oracle_below(worker, slot->length);
        length = 1 + oracle_below(worker, slot->length - offset);
    }
    oracle_use(worker, slot, slot->address + offset, length);

    if (oracle_below(worker, ORACLE_PAUSE) == 0) {
        oracle_pause(worker);
    }
    if (oracle_below(worker, 2)) {
        oracle_disturb(worker, slot);
    }
}

static int oracle_is_over(const oracle_worker_t *worker, uint64_t done)
{
    return (done >= worker->quota) ||
           ((worker->deadline > 0) && ((done & 63) == 0) &&
            (oracle_now() >= worker->deadline));
}

static void *oracle_work(void *arg)
{
    oracle_worker_t *worker = arg;
    uint64_t done;
    unsigned i;

    for (i = 0; i < ORACLE_SLOTS; ++i) {
        oracle_slot_map(worker, &worker->slots[i]);
    }
    for (done = 0; !oracle_is_over(worker, done); ++done) {
        oracle_cycle(worker);
        ucs_store_relaxed(&worker->cycles, done + 1);
    }
    for (i = 0; i < ORACLE_SLOTS; ++i) {
        oracle_slot_unmap(&worker->slots[i]);
    }
    oracle_disturb_close(worker);
    return NULL;
}

/*
 * Epochs
 */

typedef struct oracle_totals {
    uint64_t cycles, stale, planted, found;
    uint64_t on_time, uses, wasted, invalidated, covers;
} oracle_totals_t;

/* Wait for a worker as long as it makes progress */
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

static void oracle_epoch(const oracle_options_t *options, unsigned epoch,
                         uint64_t deadline, oracle_totals_t *totals)
{
    int policy               = (options->policy >= 0) ?
                                       options->policy :
                                       (int)((options->seed + epoch) %
                                             UCS_REGCACHE_POLICY_LAST);
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
    /* What passes a ceiling goes at its end: nothing could become stale */
    if ((policy != UCS_REGCACHE_POLICY_LRU) &&
        (policy != UCS_REGCACHE_POLICY_OVERLAP) && (stats.over_ceiling > 0)) {
        errno = 0;
        oracle_die("uses passed a ceiling that was not set");
    }
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

static int oracle_run(const oracle_options_t *options)
{
    uint64_t start         = oracle_now();
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
             ((deadline == 0) || (oracle_now() < deadline)));

    elapsed = (oracle_now() - start) * 1e-9;
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

static void oracle_usage(FILE *out)
{
    fprintf(out,
            "usage: oracle [options]\n"
            "  --seconds N      run so long, 0: no limit  [10]\n"
            "  --seed S         replays the same programs [from the clock]\n"
            "  --cycles N       run so many cycles at most\n"
            "  --epoch N        start with this one of the seed's domains [0]\n"
            "  --threads N      threads of the application [2]\n"
            "  --policy NAME    policy of the helper [one after the other]\n"
            "  --covers         neighbours share registrations\n"
            "  --hooks-only     without what UCX's own hooks do not see, and\n"
            "                   without userfaultfd, which does\n"
            "The last line is `cycles N stale N planted N found N`; the exit\n"
            "code is 0 if nothing was stale and all that was planted found.\n");
}

static int oracle_parse_policy(const char *name)
{
    int i;

    for (i = 0; ucs_regcache_policy_names[i] != NULL; ++i) {
        if (!strcasecmp(ucs_regcache_policy_names[i], name)) {
            return i;
        }
    }
    fprintf(stderr, "oracle: --policy: '%s' is no policy\n", name);
    exit(2);
}

static uint64_t oracle_parse_number(const char *option, const char *text,
                                    uint64_t max)
{
    char *end;
    uint64_t value;

    errno = 0;
    value = strtoull(text, &end, 0);
    if ((errno != 0) || (*text < '0') || (*text > '9') || (*end != '\0') ||
        (value > max)) {
        fprintf(stderr, "oracle: --%s: '%s' is not a number up to %" PRIu64
                "\n", option, text, max);
        exit(2);
    }
    return value;
}

static void oracle_parse(int argc, char **argv, oracle_options_t *options)
{
    static const struct option names[] = {
        {"seconds", required_argument, NULL, 's'},
        {"seed", required_argument, NULL, 'S'},
        {"cycles", required_argument, NULL, 'c'},
        {"epoch", required_argument, NULL, 'e'},
        {"threads", required_argument, NULL, 't'},
        {"policy", required_argument, NULL, 'p'},
        {"covers", no_argument, NULL, 'C'},
        {"hooks-only", no_argument, NULL, 'o'},
        {"help", no_argument, NULL, 'h'},
        {}
    };
    int c, index;

    while ((c = getopt_long(argc, argv, "h", names, &index)) != -1) {
        switch (c) {
        case 's':
            options->seconds = oracle_parse_number("seconds", optarg, 1 << 30);
            break;
        case 'S':
            options->seed = oracle_parse_number("seed", optarg, UINT64_MAX);
            break;
        case 'c':
            options->cycles = oracle_parse_number("cycles", optarg,
                                                  UINT64_MAX / 2);
            break;
        case 'e':
            options->epoch = oracle_parse_number("epoch", optarg, UINT32_MAX);
            break;
        case 't':
            options->threads = oracle_parse_number("threads", optarg,
                                                   ORACLE_MAX_THREADS);
            break;
        case 'p':
            options->policy = oracle_parse_policy(optarg);
            break;
        case 'C':
            options->has_covers = 1;
            break;
        case 'o':
            options->hooks_only = 1;
            break;
        case 'h':
            oracle_usage(stdout);
            exit(0);
        default:
            oracle_usage(stderr);
            exit(2);
        }
    }

    if (options->threads == 0) {
        options->threads = 1;
    }
}

/* Without userfaultfd what the hooks miss goes unnoticed, and that is known */
static void oracle_probe_monitor(oracle_options_t *options)
{
    const char *reason;

    if (options->hooks_only) {
        return;
    }
    if (uct_helper_monitor_start(&reason) == UCS_OK) {
        uct_helper_monitor_stop();
        return;
    }
    printf("oracle: %s: --hooks-only\n", reason);
    options->hooks_only = 1;
}

/* The calls that the preloaded stub sees are among the disturbances */
static int oracle_load_stub(char **argv)
{
    if (uct_helper_calls_listen()) {
        unsetenv("LD_PRELOAD");
        return 1;
    }
    if ((getenv("LD_PRELOAD") == NULL) && (access(ORACLE_STUB, R_OK) == 0) &&
        (setenv("LD_PRELOAD", ORACLE_STUB, 1) == 0)) {
        execv("/proc/self/exe", argv);
    }
    return 0;
}

/* Before Linux 6.11 a mapping may lie beside one that is not watched with it */
static int oracle_has_rows(void)
{
    uct_helper_range_t range;

    return uct_helper_range_find(UCT_HELPER_RANGE_WAY_QUERY,
                                 (uintptr_t)&range, (uintptr_t)(&range + 1),
                                 &range) != UCT_HELPER_RANGE_UNKNOWN;
}

/* Up to Linux 6.4 io_uring takes no page of a file but of tmpfs, not even of a
 * segment of System V */
static int oracle_kernel_takes_files(void)
{
    unsigned major = 0, minor = 0;
    struct utsname name;

    return (uname(&name) == 0) &&
           (sscanf(name.release, "%u.%u", &major, &minor) == 2) &&
           ((major > 6) || ((major == 6) && (minor >= 5)));
}

int main(int argc, char **argv)
{
    oracle_options_t options = {
        .seconds = 10,
        .seed    = oracle_now(),
        .threads = 2,
        .policy  = -1
    };
    int done;

    oracle_parse(argc, argv, &options);
    options.has_stub    = oracle_load_stub(argv);
    options.takes_files = oracle_kernel_takes_files();
    options.has_rows    = oracle_has_rows();
    /* The domains are the oracle's own, in the first form, whatever UCX runs */
    uct_abi_select(uct_abi_row(0));
    oracle_page      = sysconf(_SC_PAGESIZE);
    oracle_probe_monitor(&options);
    /* Fixed, or the first large free() would move it out of reach */
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    own_ledger_take("oracle");
    done = oracle_run(&options);
    if (!own_ledger_is_valid()) {
        oracle_die("the node's ledger is damaged");
    }
    own_ledger_remove();
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}
