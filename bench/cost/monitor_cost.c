/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
/*
 * What it costs to ask the kernel for the kind of memory, to watch a mapping,
 * and to unmap what is watched: medians in nanoseconds.
 */

#include "../bench_util.h"

#include <uct/ib/helper_md/watch/monitor.h>
#include <uct/ib/helper_md/watch/range.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COST_ROUNDS 2000

typedef void (*cost_func_t)(char *buffer);

static uct_helper_range_way_t cost_way;
static size_t cost_length = 1ul << 20;

static char *cost_map(void)
{
    return memset(bench_map(cost_length, MAP_PRIVATE), 1, cost_length);
}

/* Raw, so that nobody's hooks are in the figures */
static void cost_unmap(char *buffer)
{
    syscall(SYS_munmap, buffer, cost_length);
}

static void cost_discard(char *buffer)
{
    syscall(SYS_madvise, buffer, cost_length, MADV_DONTNEED);
}

static uct_helper_range_kind_t cost_range(char *buffer,
                                          uct_helper_range_t *range)
{
    return uct_helper_range_find(cost_way, (uintptr_t)buffer,
                                 (uintptr_t)buffer + cost_length, range);
}

static void cost_find(char *buffer)
{
    uct_helper_range_t range;

    if (cost_range(buffer, &range) != UCT_HELPER_RANGE_PRIVATE) {
        fprintf(stderr, "not told to be private memory\n");
        exit(1);
    }
}

static void cost_resident(char *buffer)
{
    if (!uct_helper_range_is_resident((uintptr_t)buffer,
                                      (uintptr_t)buffer + cost_length)) {
        fprintf(stderr, "not told to be in memory\n");
        exit(1);
    }
}

static void cost_watch(char *buffer)
{
    uct_helper_range_t range;

    cost_range(buffer, &range);
    if (!uct_helper_monitor_watch(&range)) {
        fprintf(stderr, "not watched\n");
        exit(1);
    }
}

/* What is mapped beside what is watched */
static void cost_spread(char *buffer)
{
    uct_helper_range_t range;

    uct_helper_monitor_spread((uintptr_t)buffer,
                              (uintptr_t)buffer + cost_length, &range);
}

static void cost_unwatch(char *buffer)
{
    uct_helper_monitor_unwatch((uintptr_t)buffer,
                               (uintptr_t)buffer + cost_length);
}

static void cost_unwatch_and_unmap(char *buffer)
{
    cost_unwatch(buffer);
    cost_unmap(buffer);
}

/* Each round has a mapping of its own */
static void cost_measure(const char *name, cost_func_t prepare,
                         cost_func_t measured)
{
    static double times[COST_ROUNDS];
    char *buffer;
    unsigned i;

    for (i = 0; i < COST_ROUNDS; ++i) {
        buffer = cost_map();
        if (prepare != NULL) {
            prepare(buffer);
        }
        times[i] = (double)bench_now();
        measured(buffer);
        times[i] = (double)bench_now() - times[i];
        if ((measured != cost_unmap) && (measured != cost_unwatch_and_unmap)) {
            cost_unmap(buffer);
        }
    }

    bench_sort(times, COST_ROUNDS);
    printf("%-36s median %8.0f   p10 %8.0f   p90 %8.0f\n", name,
           times[COST_ROUNDS / 2], times[COST_ROUNDS / 10],
           times[COST_ROUNDS * 9 / 10]);
}

/* monitor_cost [SIZE]: of the mappings */
int main(int argc, char **argv)
{
    const char *reason = "";
    uct_helper_range_t range;

    if ((argc > 1) && ((bench_parse_size(argv[1], &cost_length) != 0) ||
                       (cost_length == 0))) {
        fprintf(stderr, "monitor_cost [SIZE]\n");
        return 2;
    }
    printf("mappings of %zu bytes, %u rounds, nanoseconds\n", cost_length,
           COST_ROUNDS);
    cost_way = UCT_HELPER_RANGE_WAY_QUERY;
    if (cost_range((char*)&reason, &range) != UCT_HELPER_RANGE_UNKNOWN) {
        cost_measure("kind, PROCMAP_QUERY", NULL, cost_find);
    }
    cost_way = UCT_HELPER_RANGE_WAY_PARSE;
    cost_measure("kind, /proc/self/maps", NULL, cost_find);
    cost_measure("in memory (mincore)", NULL, cost_resident);
    cost_measure("munmap", NULL, cost_unmap);
    cost_measure("madvise, MADV_DONTNEED", NULL, cost_discard);
    reason = uct_helper_monitor_start();
    if (reason != NULL) {
        printf("%s\n", reason);
        return 0;
    }

    cost_way = UCT_HELPER_RANGE_WAY_AUTO;
    cost_measure("kind, and watch", NULL, cost_watch);
    cost_measure("mapped beside what is watched", cost_watch, cost_spread);
    cost_measure("watch no more", cost_watch, cost_unwatch);
    cost_measure("munmap, watched", cost_watch, cost_unmap);
    cost_measure("munmap, watched no more", cost_watch, cost_unwatch_and_unmap);
    cost_measure("madvise, MADV_DONTNEED, watched", cost_watch, cost_discard);
    uct_helper_monitor_stop();
    return 0;
}
