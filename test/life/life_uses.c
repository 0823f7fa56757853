/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#define _GNU_SOURCE
#include "life.h"

#include <stdio.h>
#include <time.h>

/*
 * A job of many hours in a few minutes: the same buffers used over and over, in
 * rounds and out of turn, with a pause now and then so that the helper
 * deregisters and foresees. What the process holds must not grow with the uses.
 */

#define LIFE_USES_BUFFERS 48
#define LIFE_USES_LENGTH  (64ul << 10)

/* Uses between two pauses, and their length: most uses are hits, and each
 * pause is long enough for a helper to run */
#define LIFE_USES_ROUND   100000
#define LIFE_USES_PAUSE   2000000 /* nanoseconds */

/* The helper's tables fill up to their bounds first, so that is waited for, but
 * no longer than a leak would show: malloc's smallest block, lost at one of a
 * thousand of 10^8 uses, would be 3 MB. */
#define LIFE_USES_WARM_UP  5000000
#define LIFE_USES_WARM_UPS 12
#define LIFE_USES_WARM     0.005


/* Every eighth use is of another buffer than the round has it */
static unsigned life_uses_next(unsigned long i)
{
    unsigned long mixed = i * 0x9e3779b97f4a7c15ul;

    return ((i % 8 == 7) ? mixed >> 40 : i) % LIFE_USES_BUFFERS;
}

static void life_uses_run(uct_md_h md, void **buffers, unsigned long first,
                          unsigned long last)
{
    const struct timespec pause = {0, LIFE_USES_PAUSE};
    unsigned long i;

    for (i = first; i < last; ++i) {
        if (i % LIFE_USES_ROUND == 0) {
            life_step("use");
            nanosleep(&pause, NULL);
        }
        life_use(md, buffers[life_uses_next(i)], LIFE_USES_LENGTH);
    }
}

/* @return The uses until what is resident had stopped to grow. */
static unsigned long life_uses_warm_up(uct_md_h md, void **buffers,
                                       life_sample_t *sample)
{
    unsigned long count = 0;
    double before;

    sample->rss = 0;
    do {
        before = sample->rss;
        life_uses_run(md, buffers, count, count + LIFE_USES_WARM_UP);
        count += LIFE_USES_WARM_UP;
        life_proc_sample(sample);
    } while ((sample->rss > before * (1 + LIFE_USES_WARM)) &&
             (count < LIFE_USES_WARM_UPS * (unsigned long)LIFE_USES_WARM_UP));
    return count;
}

void life_uses(const life_options_t *options)
{
    uct_md_h md = life_domain_open();
    void *buffers[LIFE_USES_BUFFERS];
    life_sample_t before, half, after;
    struct timespec start, end;
    unsigned long first;
    int i;

    for (i = 0; i < LIFE_USES_BUFFERS; ++i) {
        buffers[i] = life_map(LIFE_USES_LENGTH);
    }

    first = life_uses_warm_up(md, buffers, &before);
    clock_gettime(CLOCK_MONOTONIC, &start);
    life_uses_run(md, buffers, first, first + options->count / 2);
    life_proc_sample(&half);
    life_uses_run(md, buffers, first + options->count / 2,
                  first + options->count);
    clock_gettime(CLOCK_MONOTONIC, &end);
    life_proc_sample(&after);

    printf("uses %lu after %lu, in %ld s: rss %zu -> %zu -> %zu fds %u -> %u "
           "vmas %u -> %u\n",
           options->count, first, (long)(end.tv_sec - start.tv_sec), before.rss,
           half.rss, after.rss, before.fds, after.fds, before.vmas, after.vmas);
    /* What is locked goes up and down with what is kept at the moment */
    after.locked = half.locked;
    /* A leak goes on; tables that are filled late do not */
    life_proc_compare(&half, &after);
    life_domain_close(md);
}
