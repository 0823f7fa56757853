/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "unmapping.h"

#include <string.h>

typedef ucp_firehose_unmapping_t unmapping_t;
typedef ucp_firehose_unmapping_range_t range_t;

void ucp_firehose_unmapping_init(unmapping_t *self)
{
    memset(self, 0, sizeof(*self));
    ucs_lock_init(&self->lock);
    atomic_init(&self->count, 0);
}

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

unsigned
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

void ucp_firehose_unmapping_leave(unmapping_t *self, unsigned place,
                                  uint64_t start, uint64_t until)
{
    if ((place == UCP_FIREHOSE_UNMAPPING_MAX) ||
        ucs_lock_is_mine(&self->lock)) {
        return;
    }
    ucs_lock(&self->lock);
    if (self->ranges[place].start == start) { /* else it is another's now */
        self->ranges[place].until = until;
    }
    ucs_unlock(&self->lock);
}

void ucp_firehose_unmapping_renew(unmapping_t *self, uint64_t start,
                                  uint64_t end)
{
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

int ucp_firehose_unmapping_has(unmapping_t *self, uint64_t start, uint64_t end,
                               uint64_t now)
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
