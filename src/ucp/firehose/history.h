/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCP_FIREHOSE_HISTORY_H_
#define UCP_FIREHOSE_HISTORY_H_

#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>

/**
 * @file history.h
 *
 * Which bucket is missed after which: a table of pairs, one for each place of a
 * hash, so that each operation takes constant time. A pair is followed once it has
 * come twice, and makes room once another one has come as often. The caller locks.
 */

BEGIN_C_DECLS

typedef struct ucp_firehose_pair {
    uint64_t from, to;
    unsigned trust; /**< times that it has come less those it has not */
} ucp_firehose_pair_t;

typedef struct ucp_firehose_history {
    ucp_firehose_pair_t *pairs; /**< NULL: none is kept */
    uint64_t            mask;
    uint64_t            last; /**< the last miss */
} ucp_firehose_history_t;

/** @param [in] count  Pairs to be kept, about. @return UCS_OK or
 *          UCS_ERR_NO_MEMORY. */
ucs_status_t
ucp_firehose_history_init(ucp_firehose_history_t *history, size_t count);

/** Release what it remembers. */
void ucp_firehose_history_cleanup(ucp_firehose_history_t *history);

/** This bucket is missed now. */
void ucp_firehose_history_learn(ucp_firehose_history_t *history,
                                uint64_t bucket);

/** @return Nonzero and in @a *next_p what follows; zero: not known. */
int ucp_firehose_history_next(const ucp_firehose_history_t *history,
                              uint64_t bucket, uint64_t *next_p);

END_C_DECLS

#endif
