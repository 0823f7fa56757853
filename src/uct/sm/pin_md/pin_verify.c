/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "pin_md_int.h"

#include <ucs/debug/log_def.h>
#include <ucs/sys/io/log.h>
#include <ucs/sys/clock.h>
#include <ucs/sys/math.h>
#include <ucs/sys/mem/own_map.h>
#include <ucs/sys/proc/cancel.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

/* Compared at a time. Not on the stack: the program's threads may have small
 * ones. */
#define UCT_PIN_VERIFY_CHUNK (16ul << 10)

/* Below the comparison's own frame, what the stack may be used for */
#define UCT_PIN_VERIFY_STACK (256ul << 10)

/* A difference must be there so often, and the device's byte the same */
#define UCT_PIN_VERIFY_ROUNDS 5

/* What the virtual address shows; pages that it cannot show are left as they
 * are in @a data. Not a plain copy: they may be gone, and that is no crime. By
 * the thread's number: the process's is that of its first thread, whose memory
 * is gone once it has left. */
static void uct_pin_verify_shown(uintptr_t address, unsigned char *data,
                                 size_t length, size_t page_size)
{
    pid_t self = syscall(SYS_gettid);
    struct iovec local, remote;
    ssize_t ret;
    size_t part;

    while (length > 0) {
        local.iov_base  = data;
        remote.iov_base = (void*)address;
        local.iov_len   = remote.iov_len = length;
        ret  = process_vm_readv(self, &local, 1, &remote, 1, 0);
        part = (ret > 0) ? (size_t)ret : page_size - (address % page_size);
        part = ucs_min(part, length);
        address += part;
        data    += part;
        length  -= part;
    }
}

/* One comparison */
typedef struct uct_pin_verify_run {
    uct_pin_region_t     *region;
    size_t               page_size;
    uintptr_t            frame;     /* stack frame of the comparison */
    unsigned char        *seen;     /* a chunk, through the registration */
    unsigned char        *shown;    /* a chunk, through the virtual address */
    uct_pin_difference_t difference; /* as found last */
} uct_pin_verify_run_t;

/* A buffer on the stack shares its first page with the very functions that
 * compare, whose frames change between one look and the other */
static int uct_pin_verify_is_own_stack(const uct_pin_verify_run_t *run,
                                       uintptr_t address)
{
    return (address < run->frame) &&
           (run->frame - address < UCT_PIN_VERIFY_STACK);
}

/* First difference in at most a chunk. @return Its offset or @a length. */
static size_t uct_pin_verify_look(uct_pin_verify_run_t *run, size_t offset,
                                  size_t length)
{
    uct_pin_region_t *region = run->region;
    uintptr_t address        = (uintptr_t)region->address + offset;
    unsigned char *seen      = run->seen;
    unsigned char *shown     = run->shown;
    size_t i;
    int ret;

    ret = uct_pin_region_copy(region, UCT_PIN_VIEW_READ, offset, seen, length);
    if (ret == -EBADF) { /* the program has closed what it is read by */
        return length;
    }
    if (ret < 0) {
        ucs_helper_log_plain(UCS_LOG_LEVEL_ERROR,
                             "pin_md: reading the registration of %p length "
                             "%zu: %s", region->address, region->length,
                             strerror(-ret));
        return length;
    }

    memcpy(shown, seen, length);
    uct_pin_verify_shown(address, shown, length, run->page_size);
    if (!memcmp(seen, shown, length)) {
        return length;
    }

    for (i = 0; i < length; ++i) {
        if ((seen[i] != shown[i]) &&
            !uct_pin_verify_is_own_stack(run, address + i)) {
            run->difference.address = address + i;
            run->difference.seen    = seen[i];
            run->difference.shown   = shown[i];
            return i;
        }
    }

    return length;
}

/* A page that the registration has lost never follows what is written through
 * the virtual address. So a difference stands if it is there each time and the
 * device sees the same byte each time. */
static int uct_pin_verify_lasts(uct_pin_verify_run_t *run, size_t offset)
{
    unsigned char first = run->difference.seen;
    unsigned round;

    for (round = 1; round < UCT_PIN_VERIFY_ROUNDS; ++round) {
        sched_yield();
        if ((uct_pin_verify_look(run, offset, 1) != 0) ||
            (run->difference.seen != first)) {
            return 0;
        }
    }

    return 1;
}

/* @return Nonzero if there is a difference that lasts */
static int uct_pin_verify_chunk(uct_pin_verify_run_t *run, size_t offset,
                                size_t length)
{
    size_t found;

    while (length > 0) {
        found = uct_pin_verify_look(run, offset, length);
        if (found == length) {
            return 0;
        }
        if (uct_pin_verify_lasts(run, offset + found)) {
            return 1;
        }
        offset += found + 1;
        length -= found + 1;
    }

    return 0;
}

static int uct_pin_verify_all(uct_pin_verify_run_t *run)
{
    size_t offset, length;

    for (offset = 0; offset < run->region->length; offset += length) {
        length = ucs_min(run->region->length - offset, UCT_PIN_VERIFY_CHUNK);
        if (uct_pin_verify_chunk(run, offset, length)) {
            return 1;
        }
    }

    return 0;
}

static int uct_pin_verify_compare(uct_pin_region_t *region, size_t page_size,
                                  uct_pin_difference_t *difference)
{
    uct_pin_verify_run_t run = {
        .region    = region,
        .page_size = page_size,
        .frame     = (uintptr_t)__builtin_frame_address(0),
        .seen      = ucs_own_map(2 * UCT_PIN_VERIFY_CHUNK)
    };
    int differs;

    if (run.seen == NULL) {
        ucs_helper_log_plain(UCS_LOG_LEVEL_ERROR,
                             "pin_md: no memory to compare %p length %zu with "
                             "what is registered", region->address,
                             region->length);
        return 0;
    }

    run.shown = run.seen + UCT_PIN_VERIFY_CHUNK;
    differs   = uct_pin_verify_all(&run);
    if (differs) {
        *difference = run.difference;
    }
    ucs_own_unmap(run.seen, 2 * UCT_PIN_VERIFY_CHUNK);
    return differs;
}

/* The pinned region of a handle, NULL if there is nothing to look at */
static uct_pin_region_t *uct_pin_md_visible(const uct_pin_md_t *pin,
                                            uct_mem_h memh)
{
    uct_pin_region_t *region = memh;

    return ((pin != NULL) && pin->config.verify &&
            uct_pin_md_is_owner(pin) && (region->ring != NULL)) ?
           region : NULL;
}

int uct_pin_md_compare(uct_md_h md, uct_mem_h memh,
                       uct_pin_difference_t *difference)
{
    uct_pin_md_t *pin        = uct_pin_md_find(md);
    uct_pin_region_t *region = uct_pin_md_visible(pin, memh);
    ucs_cancel_hold();

    return (region != NULL) &&
           uct_pin_verify_compare(region, pin->page_size, difference);
}

void uct_pin_md_stale(uct_md_h md, uct_mem_h memh,
                      const uct_pin_difference_t *difference)
{
    const uct_pin_region_t *region = memh;

    ucs_error("pin_md: stale registration: the byte at %p is 0x%02x through "
              "registration %" PRIu64 " of %p length %zu and 0x%02x through the "
              "virtual address",
              (void*)difference->address, difference->seen, region->serial,
              region->address, region->length, difference->shown);
    abort();
}
