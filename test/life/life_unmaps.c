/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "life.h"

#include <ucs/sys/hash.h>

#include <malloc.h>
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
/* Malloc's smallest block, lost at every tenth of 10^5 unmaps, would be above
 * LIFE_TOLERANCE */
#define LIFE_WARM_UP      50000

/* One buffer's life; each kind ends in exactly one event of the memory that
 * was registered */
static void life_unmaps_cycle(uct_md_h md, unsigned long i)
{
    size_t length = (LIFE_MIN_PAGES +
                     (ucs_hash_mix(i) >> 33) % LIFE_LENGTHS) * LIFE_PAGE;
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

static void life_unmaps_run(void *md, unsigned long first, unsigned long last)
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

void life_unmaps(const life_options_t *options)
{
    uct_md_h md = life_domain_open();

    /* Each block a mapping of its own; setting it also keeps it there */
    mallopt(M_MMAP_THRESHOLD, LIFE_MIN_PAGES * LIFE_PAGE);
    life_soak("unmaps", life_unmaps_run, md, LIFE_WARM_UP, options->count, 1);
    life_domain_close(md);
}
