/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "history.h"

#include "firehose_tuning.h"
#include "index.h"

#include <ucs/sys/hash.h>

ucs_status_t
ucp_firehose_history_init(ucp_firehose_history_t *history, size_t count)
{
    uint64_t places = 64;

    while (places < count) {
        places *= 2;
    }
    history->mask  = places - 1;
    history->last  = UINT64_MAX;
    history->pairs = ucp_firehose_table_alloc(places *
                                              sizeof(*history->pairs));
    return (history->pairs == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
}

void ucp_firehose_history_cleanup(ucp_firehose_history_t *history)
{
    ucp_firehose_table_free(history->pairs,
                            (history->mask + 1) * sizeof(*history->pairs));
    history->pairs = NULL;
}

static ucp_firehose_pair_t *
ucp_firehose_history_pair(const ucp_firehose_history_t *history, uint64_t from)
{
    return &history->pairs[ucs_hash_mix(from) & history->mask];
}

void ucp_firehose_history_learn(ucp_firehose_history_t *history,
                                uint64_t bucket)
{
    ucp_firehose_pair_t *pair = ucp_firehose_history_pair(history,
                                                          history->last);

    if ((pair->from == history->last) && (pair->to == bucket)) {
        pair->trust += pair->trust < UCP_FIREHOSE_HISTORY_TRUST;
    } else if (pair->trust > 0) {
        --pair->trust;
    } else {
        pair->from = history->last;
        pair->to   = bucket;
    }
    history->last = bucket;
}

int ucp_firehose_history_next(const ucp_firehose_history_t *history,
                              uint64_t bucket, uint64_t *next_p)
{
    const ucp_firehose_pair_t *pair = ucp_firehose_history_pair(history,
                                                                bucket);

    if ((pair->from != bucket) || (pair->trust == 0)) {
        return 0;
    }
    *next_p = pair->to;
    return 1;
}
