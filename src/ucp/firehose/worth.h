/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCP_FIREHOSE_WORTH_H_
#define UCP_FIREHOSE_WORTH_H_

#include <ucs/sys/compiler_def.h>

#include <stddef.h>
#include <stdint.h>

/**
 * @file worth.h
 *
 * How long a victim is worth its memory: it saves a registration if it is used
 * again, and costs what its bytes cost meanwhile. One exchange rate decides, as
 * everywhere in the helper: all of MAXVICTIM, held all the time, is worth
 * UCP_FIREHOSE_PRICE of run time. With it each time that a bucket lies idle is a
 * ski rental: held until that has cost what pinning costs, no sequence of uses
 * makes it more than twice as dear as the best one can do (Karlin et al. 1988).
 * Once reuse distances have been seen, the time is chosen that would have cost
 * least for those. Numbers only; the caller locks, and has the clock.
 */

BEGIN_C_DECLS

/** Distances by powers of two nanoseconds: 2^63 is more than all. */
#define UCP_FIREHOSE_WORTH_BINS 64

typedef struct ucp_firehose_worth {
    uint64_t reuses[UCP_FIREHOSE_WORTH_BINS]; /**< by log2 of idle ns */
    uint64_t count;   /**< all of them, and `never` */
    uint64_t never;   /**< evicted, and not wanted again so far */
    uint64_t pin_ns;  /**< what a registration costs, a moving average */
    uint64_t unpin_ns;
    uint64_t keep_ns; /**< the choice: evict what has been idle for longer */
    size_t   victims; /**< MAXVICTIM in buckets */
    uint64_t chosen;  /**< `count` at the last choice */
} ucp_firehose_worth_t;

/** Nothing has been seen yet. @param victims  MAXVICTIM, buckets. */
void ucp_firehose_worth_init(ucp_firehose_worth_t *worth, size_t victims);

/** A registration, or a deregistration, has taken so long. */
void ucp_firehose_worth_pinned(ucp_firehose_worth_t *worth, uint64_t ns);
void ucp_firehose_worth_unpinned(ucp_firehose_worth_t *worth, uint64_t ns);

/** What has been idle for so long is used again; it was still pinned. */
void ucp_firehose_worth_revived(ucp_firehose_worth_t *worth, uint64_t idle_ns);

/** A victim has been unpinned. */
void ucp_firehose_worth_evicted(ucp_firehose_worth_t *worth);

/** What was evicted is pinned again, so long after its last use. */
void ucp_firehose_worth_repinned(ucp_firehose_worth_t *worth, uint64_t idle_ns);

/** Choose `keep_ns` anew, if enough has been seen since. */
void ucp_firehose_worth_choose(ucp_firehose_worth_t *worth);

END_C_DECLS

#endif
