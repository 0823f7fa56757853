/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#define _GNU_SOURCE
#include "life.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/*
 * Memory that is registered, given back and unmapped, over and over: what the
 * process holds must not grow. A quarter has always the same length, the others
 * have lengths that follow no pattern.
 */

#define LIFE_PAGE         4096ul
#define LIFE_MIN_PAGES    4  /* shorter ones the helper does not manage */
#define LIFE_LENGTHS      16
#define LIFE_RHYTHM       (64ul << 10)
#define LIFE_KINDS        4
/* The helper's tables fill up to their bounds first: they are pages that are
 * there once they have been written to. How soon depends on how often the
 * helper looks, on a busy machine later; so that is waited for, but no longer
 * than a leak would show. malloc's smallest block, lost at every tenth of 10^5
 * unmaps, would be above LIFE_TOLERANCE. */
#define LIFE_WARM_UP      50000
#define LIFE_WARM_UPS     12
#define LIFE_WARM         0.005


/* Bijective mix, so that sizes do not follow a pattern */
static unsigned long life_unmaps_random(unsigned long seed)
{
    seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9ul;
    return (seed ^ (seed >> 27)) * 0x94d049bb133111ebul;
}

/* One buffer's life; each kind ends in exactly one event of the memory that
 * was registered */
static void life_unmaps_cycle(uct_md_h md, unsigned long i)
{
    size_t length = (LIFE_MIN_PAGES +
                     (life_unmaps_random(i) >> 33) % LIFE_LENGTHS) * LIFE_PAGE;
    void *address;

    switch (i % LIFE_KINDS) {
    case 0: /* replaced at once, then gone */
        address = life_map(length);
        life_use(md, address, length);
        if (mmap(address, length, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != address) {
            life_fail("cannot map over a buffer");
        }
        munmap(address, length);
        break;
    case 1: /* what allocators do */
        address = life_map(length);
        life_use(md, address, length);
        madvise(address, length, MADV_DONTNEED);
        munmap(address, length);
        break;
    case 2: /* the C library's own mapping */
        address = malloc(length);
        memset(address, 1, length);
        life_use(md, address, length);
        free(address);
        break;
    default:
        address = life_map(LIFE_RHYTHM);
        life_use(md, address, LIFE_RHYTHM);
        life_use(md, address, LIFE_RHYTHM);
        munmap(address, LIFE_RHYTHM);
        break;
    }
}

static void life_unmaps_run(uct_md_h md, unsigned long first,
                            unsigned long last)
{
    unsigned long i;

    for (i = first; i < last; ++i) {
        life_step("unmap");
        life_unmaps_cycle(md, i);
    }
    /* What fitted below the top of the heap came from there and is mapped
     * still: whatever is free is given back */
    malloc_trim(0);
    life_drain(md);
}

/* @return The unmaps until what is resident had stopped to grow. */
static unsigned long life_unmaps_warm_up(uct_md_h md, life_sample_t *sample)
{
    unsigned long count = 0;
    double before;

    sample->rss = 0;
    do {
        before = sample->rss;
        life_unmaps_run(md, count, count + LIFE_WARM_UP);
        count += LIFE_WARM_UP;
        life_proc_sample(sample);
    } while ((sample->rss > before * (1 + LIFE_WARM)) &&
             (count < LIFE_WARM_UPS * (unsigned long)LIFE_WARM_UP));
    return count;
}

void life_unmaps(const life_options_t *options)
{
    uct_md_h md = life_domain_open();
    life_sample_t before, half, after;
    unsigned long first;

    /* Each block a mapping of its own; setting it also keeps it there */
    mallopt(M_MMAP_THRESHOLD, LIFE_MIN_PAGES * LIFE_PAGE);
    first = life_unmaps_warm_up(md, &before);
    life_unmaps_run(md, first, first + options->count / 2);
    life_proc_sample(&half);
    life_unmaps_run(md, first + options->count / 2, first + options->count);
    life_proc_sample(&after);

    printf("unmaps %lu after %lu: rss %zu -> %zu -> %zu fds %u -> %u "
           "vmas %u -> %u locked %zu -> %zu\n", options->count, first,
           before.rss, half.rss, after.rss, before.fds, after.fds, before.vmas, after.vmas, before.locked,
           after.locked);
    /* A leak goes on; tables that are filled late do not */
    life_proc_compare(&half, &after);
    life_domain_close(md);
}
