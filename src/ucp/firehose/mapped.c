/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "firehose_int.h"

#include <ucs/sys/clock.h>
#include <ucs/sys/sync/atomic.h>

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Memory of this process: whether it is there, and whether it is about to go
 */

/* Since Linux 5.14; not in this C library's headers */
#define UCP_FIREHOSE_POPULATE_WRITE 23

/* By the system call, not the function: hooks of memory events stand in front
 * of that, and this changes no mapping */
static int ucp_firehose_populate(uint64_t address, size_t length)
{
    return (int)syscall(SYS_madvise, address, length,
                        UCP_FIREHOSE_POPULATE_WRITE);
}

/* @return Nonzero if the kernel can; a page of the stack shows it */
static int ucp_firehose_can_populate(void)
{
    const size_t page = sysconf(_SC_PAGESIZE);
    char own;

    return ucp_firehose_populate((uintptr_t)&own & ~(page - 1), page) == 0;
}

/* Older kernels tell of holes only. By the system call, for this is a point where a
 * thread can be canceled. */
static int ucp_firehose_has_hole(uint64_t address, size_t length)
{
    return (syscall(SYS_msync, address, length, MS_ASYNC) != 0) &&
           (errno == ENOMEM);
}

/* @return UCS_OK; or UCS_ERR_INVALID_ADDR: some of it is not mapped, or, from Linux
 *         5.14 on, not for reading and writing, or its pages cannot be had */
static ucs_status_t ucp_firehose_check_mapped(uint64_t address, size_t length)
{
    while (ucp_firehose_populate(address, length) != 0) {
        if ((errno != EAGAIN) && (errno != EINTR)) {
            return (ucp_firehose_can_populate() ||
                    ucp_firehose_has_hole(address, length)) ?
                           UCS_ERR_INVALID_ADDR :
                           UCS_OK;
        }
    }
    return UCS_OK;
}

/* --- What is being unmapped ----------------------------------------------- */

typedef ucp_firehose_unmapping_t unmapping_t;
typedef ucp_firehose_unmapping_range_t range_t;

/* Lock held */
static void ucp_firehose_unmapping_set(unmapping_t *self, range_t *range,
                                       uint64_t start, uint64_t end)
{
    unsigned count = ucs_load_relaxed(&self->count);

    /* relaxed: who reads it without the lock looks again under it */
    ucs_store_relaxed(&self->count, count + (end > 0) - (range->end > 0));
    range->start = start;
    range->end   = end;
    range->until = UINT64_MAX;
}

/* The event has come. @return For ucp_firehose_unmapping_leave() */
static unsigned
ucp_firehose_unmapping_enter(unmapping_t *self, uint64_t start, uint64_t end)
{
    unsigned place;

    if (ucs_lock_is_mine(&self->lock)) {
        return UCP_FIREHOSE_UNMAPPING_MAX; /* in a signal handler: not known */
    }
    ucs_lock(&self->lock);
    place      = self->next;
    self->next = (place + 1) % UCP_FIREHOSE_UNMAPPING_MAX;
    ucp_firehose_unmapping_set(self, &self->ranges[place], start, end);
    ucs_unlock(&self->lock);
    return place;
}

/* The event returns: from `until` on the range counts as gone */
static void ucp_firehose_unmapping_leave(unmapping_t *self, unsigned place,
                                         uint64_t start, uint64_t until)
{
    if (ucs_lock_is_mine(&self->lock)) {
        return;
    }
    ucs_lock(&self->lock);
    if (self->ranges[place].start == start) { /* else it is another's now */
        self->ranges[place].until = until;
    }
    ucs_unlock(&self->lock);
}

void ucp_firehose_mapped(ucx_firehose_h firehose, uint64_t start, uint64_t end)
{
    unmapping_t *self = &firehose->unmapping;
    range_t *range;

    /* relaxed: a thread that maps here after the unmapping is ordered with it
     * by the kernel, or by what told it that the place is free */
    if ((ucs_load_relaxed(&self->count) == 0) ||
        ucs_lock_is_mine(&self->lock)) {
        return;
    }
    ucs_lock(&self->lock);
    for (range = self->ranges;
         range < self->ranges + UCP_FIREHOSE_UNMAPPING_MAX; ++range) {
        if ((range->start < end) && (range->end > start)) {
            ucp_firehose_unmapping_set(self, range, 0, 0);
        }
    }
    ucs_unlock(&self->lock);
}

/* @return Nonzero if something of the range is being unmapped */
static int ucp_firehose_unmapping_has(unmapping_t *self, uint64_t start,
                                      uint64_t end, uint64_t now)
{
    int has = 0;
    range_t *range;

    ucs_lock(&self->lock);
    for (range = self->ranges;
         range < self->ranges + UCP_FIREHOSE_UNMAPPING_MAX; ++range) {
        if ((range->end > 0) && (range->until <= now)) {
            ucp_firehose_unmapping_set(self, range, 0, 0);
        }
        has |= (range->start < end) && (range->end > start);
    }
    ucs_unlock(&self->lock);
    return has;
}

/* --- Pinning and unmapping ------------------------------------------------ */

ucs_status_t ucp_firehose_pin(void *arg, uint64_t address, size_t length,
                              void **pin_p)
{
    ucx_firehose_h firehose = arg;
    ucp_wire_mem_t *mem;
    ucs_status_t status;

    if ((firehose->flags & UCX_FIREHOSE_FLAG_STRICT) &&
        ucp_firehose_unmapping_has(&firehose->unmapping, address,
                                   address + length, ucs_clock_monotonic())) {
        return UCS_ERR_NO_RESOURCE; /* it is tried again */
    }
    /* What registers without a look at the pages would fail at the peer, or in
     * this process, when data move */
    status = ucp_firehose_check_mapped(address, length);
    if (status == UCS_OK) {
        status = ucp_wire_mem_reg(firehose->wire, (void*)address, length, &mem);
    }
    if (status == UCS_OK) {
        *pin_p = mem;
    }
    return status;
}

void ucp_firehose_unpin(void *arg, void *pin)
{
    ucx_firehose_h firehose = arg;

    ucp_wire_mem_dereg(firehose->wire, pin);
}

void ucp_firehose_unmapped(ucx_firehose_h firehose, uint64_t start,
                           uint64_t end)
{
    unsigned place = UCP_FIREHOSE_UNMAPPING_MAX;
    uint64_t doom;

    if (firehose->flags & UCX_FIREHOSE_FLAG_STRICT) {
        /* First, so that what is in the table since is pinned after this */
        place = ucp_firehose_unmapping_enter(&firehose->unmapping, start, end);
    }
    doom = ucp_firehose_buckets_doom(&firehose->buckets, start, end);
    if (doom != 0) {
        ucp_firehose_revoker_wait(firehose, doom);
    }
    if (place != UCP_FIREHOSE_UNMAPPING_MAX) {
        ucp_firehose_unmapping_leave(&firehose->unmapping, place, start,
                                     ucs_clock_monotonic() +
                                             UCP_FIREHOSE_UNMAPPING_MS *
                                                     UINT64_C(1000000));
    }
}
