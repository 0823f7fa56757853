/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "going.h"

#include <string.h>

typedef ucp_firehose_going_t going_t;
typedef ucp_firehose_going_range_t range_t;

void ucp_firehose_going_init(going_t *going)
{
    memset(going, 0, sizeof(*going));
    ucs_lock_init(&going->lock);
    atomic_init(&going->count, 0);
}

/* Lock held */
static void ucp_firehose_going_set(going_t *going, range_t *range,
                                   uint64_t start, uint64_t end)
{
    unsigned count = ucs_load_relaxed(&going->count);

    /* relaxed: who reads it without the lock looks again under it */
    ucs_store_relaxed(&going->count, count + (end > 0) - (range->end > 0));
    range->start = start;
    range->end   = end;
    range->until = UINT64_MAX;
}

unsigned
ucp_firehose_going_enter(going_t *going, uint64_t start, uint64_t end)
{
    unsigned place;

    if (ucs_lock_is_mine(&going->lock)) {
        return UCP_FIREHOSE_GOING_MAX; /* in a signal handler: not known */
    }
    ucs_lock(&going->lock);
    place       = going->next;
    going->next = (place + 1) % UCP_FIREHOSE_GOING_MAX;
    ucp_firehose_going_set(going, &going->ranges[place], start, end);
    ucs_unlock(&going->lock);
    return place;
}

void ucp_firehose_going_leave(going_t *going, unsigned place, uint64_t start,
                              uint64_t until)
{
    if ((place == UCP_FIREHOSE_GOING_MAX) || ucs_lock_is_mine(&going->lock)) {
        return;
    }
    ucs_lock(&going->lock);
    if (going->ranges[place].start == start) { /* else it is another's now */
        going->ranges[place].until = until;
    }
    ucs_unlock(&going->lock);
}

void ucp_firehose_going_renew(going_t *going, uint64_t start, uint64_t end)
{
    range_t *range;

    /* relaxed: a thread that maps here after the unmapping is ordered with it
     * by the kernel, or by what told it that the place is free */
    if ((ucs_load_relaxed(&going->count) == 0) ||
        ucs_lock_is_mine(&going->lock)) {
        return;
    }
    ucs_lock(&going->lock);
    for (range = going->ranges;
         range < going->ranges + UCP_FIREHOSE_GOING_MAX; ++range) {
        if ((range->start < end) && (range->end > start)) {
            ucp_firehose_going_set(going, range, 0, 0);
        }
    }
    ucs_unlock(&going->lock);
}

int ucp_firehose_going_has(going_t *going, uint64_t start, uint64_t end,
                           uint64_t now)
{
    int has = 0;
    range_t *range;

    ucs_lock(&going->lock);
    for (range = going->ranges;
         range < going->ranges + UCP_FIREHOSE_GOING_MAX; ++range) {
        if ((range->end > 0) && (range->until <= now)) {
            ucp_firehose_going_set(going, range, 0, 0);
        }
        has |= (range->start < end) && (range->end > start);
    }
    ucs_unlock(&going->lock);
    return has;
}
