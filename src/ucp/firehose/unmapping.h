/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCP_FIREHOSE_UNMAPPING_H_
#define UCP_FIREHOSE_UNMAPPING_H_

#include <ucs/sys/compiler_def.h>
#include <ucs/sys/sync/lock.h>

#include <stdint.h>

/**
 * @file unmapping.h
 *
 * Memory that is being unmapped. UCX's event comes before the memory goes, and
 * none tells when it has gone: a peer that is told of the one and reaches for
 * the memory at once would have it pinned again in between. So a range counts
 * as being unmapped until memory is mapped there anew, or for some time after
 * the event.
 *
 * All functions may be called by any thread and inside munmap(): one lock,
 * which is never held across a call out.
 */

BEGIN_C_DECLS

/** Ranges that are known at a time; one more takes the place of the oldest. */
#define UCP_FIREHOSE_UNMAPPING_MAX 64

typedef struct ucp_firehose_unmapping_range {
    uint64_t start;
    uint64_t end;   /**< 0: free */
    uint64_t until; /**< nanoseconds; UINT64_MAX: its event has not returned */
} ucp_firehose_unmapping_range_t;

typedef struct ucp_firehose_unmapping {
    ucs_lock_t                     lock;
    unsigned                       next;
    _Atomic(unsigned)              count; /**< that are not free */
    ucp_firehose_unmapping_range_t ranges[UCP_FIREHOSE_UNMAPPING_MAX];
} ucp_firehose_unmapping_t;

/** Nothing is being unmapped. Before anybody else knows of it. */
void ucp_firehose_unmapping_init(ucp_firehose_unmapping_t *self);

/** The event of this range has come. @return For
 *  @ref ucp_firehose_unmapping_leave. */
unsigned ucp_firehose_unmapping_enter(ucp_firehose_unmapping_t *self,
                                      uint64_t start, uint64_t end);

/** The event returns: from @a until on the range counts as gone. */
void ucp_firehose_unmapping_leave(ucp_firehose_unmapping_t *self,
                                  unsigned place, uint64_t start,
                                  uint64_t until);

/** Memory has been mapped in this range: it is new. */
void ucp_firehose_unmapping_renew(ucp_firehose_unmapping_t *self,
                                  uint64_t start, uint64_t end);

/** @return Nonzero if something of the range is being unmapped at the time
 *          @a now. */
int ucp_firehose_unmapping_has(ucp_firehose_unmapping_t *self, uint64_t start,
                               uint64_t end, uint64_t now);

END_C_DECLS

#endif
