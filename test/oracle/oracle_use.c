/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "oracle.h"

#include <ucs/sys/sync/atomic.h>
#include <uct/ib/helper_md/helper_md.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* One in so many uses starts another process */
#define ORACLE_AROUND    1024

/* Bytes that the device writes */
#define ORACLE_WRITE_MAX 512

/* Differences that are printed */
#define ORACLE_PRINT_MAX 10

static _Atomic unsigned oracle_printed;

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
    unsigned i;

    if (ucs_add_relaxed(&oracle_printed, 1) >= ORACLE_PRINT_MAX) {
        return;
    }

    flockfile(stderr);
    fprintf(stderr, "oracle: %s: seed %" PRIu64 " epoch %u thread %u cycle %"
            PRIu64 ": registration %" PRIu64 "; disturbed by", what,
            worker->options->seed, worker->epoch, worker->index,
            ucs_load_relaxed(&worker->cycles), uct_pin_md_serial(memh));
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

/* @return Nonzero if the registration shows what the addresses do, page by page.
 *         Of a slot it may hold a part only, of a use it holds all. */
static int oracle_shows(oracle_worker_t *worker, uct_mem_h memh,
                        const char *address, size_t length, int is_slot)
{
    const char *end = address + length;
    char seen[4096];
    size_t size;

    for (; address < end; address += size) {
        size = sizeof(seen) - ((uintptr_t)address % sizeof(seen));
        size = ((size_t)(end - address) < size) ? (size_t)(end - address) :
                                                  size;
        if (uct_pin_md_read(oracle_md(worker->world), memh, (uintptr_t)address,
                            seen, size) != UCS_OK) {
            if (!is_slot) {
                oracle_die("uct_pin_md_read");
            }
        } else if (memcmp(seen, address, size) != 0) {
            return 0;
        }
    }
    return 1;
}

void oracle_check_own(oracle_worker_t *worker, uct_mem_h memh,
                      const char *address, size_t length, const char *what)
{
    if (!oracle_shows(worker, memh, address, length, 0)) {
        ++worker->stale;
        oracle_print(worker, NULL, memh, what);
    }
}

static void oracle_map_over(char *address, size_t length, int prot)
{
    if (mmap(address, length, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
             0) != address) {
        oracle_die("mmap over memory that nobody uses");
    }
}

void oracle_renew(oracle_worker_t *worker, char *address, size_t length)
{
    switch (oracle_below(worker, 3)) {
    case 0:
        oracle_map_over(address, length, PROT_NONE);
        /* fall through */
    case 1:
        oracle_map_over(address, length, PROT_READ | PROT_WRITE);
        break;
    default:
        if (madvise(address, length, MADV_DONTNEED) != 0) {
            oracle_die("madvise of memory that nobody uses");
        }
        break;
    }
}

/* A registration may be larger than this use, and others may take the rest away
 * while it lasts: an allocator, or, of one that covers neighbours, the thread
 * whose slot it reaches into. Then the helper has struck it, and only what
 * nobody else may take away must still be the same: the use and its slot. */
static int oracle_is_excused(oracle_worker_t *worker, oracle_slot_t *slot,
                             uct_mem_h memh, const char *address,
                             size_t length)
{
    return ((slot == NULL) || worker->options->has_covers) &&
           uct_helper_md_is_gone(oracle_md(worker->world), memh) &&
           oracle_shows(worker, memh, address, length, 0) &&
           ((slot == NULL) ||
            oracle_shows(worker, memh, slot->address, slot->length, 1));
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
