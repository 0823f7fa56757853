/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucp/pipeline/pipeline_int.h>

#include <math.h>

/* Whether what a buffer had registered that is new stays. Of the buffer nothing
 * is known, but something is of those before it (ucs/predict/newcomers.h): a
 * program that sends each message from new memory had all of it kept in vain. A
 * newcomer is a buffer and not a fragment, or the end of a long message would be
 * dropped because its beginning has not come back yet. */

/* With the cache's lock: those that were unmapped meanwhile will not come back.
 * Events come on any thread, so the account is told here, by a thread with the
 * pipeline's lock. */
static void ucp_pipeline_new_settle(ucp_pipeline_cache_t *cache)
{
    ucp_pipeline_newcomer_t *newcomer;
    unsigned i;

    for (i = 0; i < UCS_PREDICT_NEWCOMERS; ++i) {
        newcomer = &cache->newcomers[i];
        if (newcomer->is_lost) {
            ucs_predict_newcomers_lost(&cache->account, i + 1, newcomer->since,
                                       UCP_PIPELINE_NEW_DECAY);
            *newcomer = (ucp_pipeline_newcomer_t){0};
        }
    }
}

int ucp_pipeline_new_returns(ucx_pipeline_h self, uintptr_t start,
                             uintptr_t end)
{
    ucp_pipeline_cache_t *cache = &self->cache;
    uint64_t now                = ucp_wire_time(self->wire);
    ucp_pipeline_newcomer_t *newcomer;
    int has_returned = 0;
    unsigned i;

    ucs_lock(&cache->lock);
    ucp_pipeline_new_settle(cache);
    for (i = 0; i < UCS_PREDICT_NEWCOMERS; ++i) {
        newcomer = &cache->newcomers[i];
        if ((newcomer->start < end) && (start < newcomer->end)) {
            ucs_predict_newcomers_return(&cache->account, i + 1,
                                         newcomer->since, now,
                                         UCP_PIPELINE_NEW_DECAY);
            *newcomer    = (ucp_pipeline_newcomer_t){0};
            has_returned = 1;
        }
    }
    ucs_unlock(&cache->lock);
    return has_returned;
}

int ucp_pipeline_new_stays(ucx_pipeline_h self, uintptr_t start, uintptr_t end)
{
    ucp_pipeline_cache_t *cache = &self->cache;
    uint64_t now                = ucp_wire_time(self->wire);
    double rent                 = ucp_pipeline_tune_rent(self, end - start);
    unsigned number;
    int is_kept;

    if (!(rent > 0) || isinf(rent)) {
        return 1; /* memory has no price, or a registration has none */
    }
    is_kept = ucs_predict_newcomers_add(&cache->account, now, rent,
                                        UCP_PIPELINE_NEW_CREDIT,
                                        UCP_PIPELINE_NEW_DECAY, &number);
    if (number > 0) {
        ucs_lock(&cache->lock);
        cache->newcomers[number - 1] = (ucp_pipeline_newcomer_t){
            .start = start, .end = end, .since = now
        };
        ucs_unlock(&cache->lock);
    }
    return is_kept;
}

void ucp_pipeline_new_unmapped(ucp_pipeline_cache_t *cache, uintptr_t start,
                               uintptr_t end)
{
    ucp_pipeline_newcomer_t *newcomer;
    unsigned i;

    for (i = 0; i < UCS_PREDICT_NEWCOMERS; ++i) {
        newcomer = &cache->newcomers[i];
        if ((newcomer->start < end) && (start < newcomer->end)) {
            newcomer->is_lost = 1;
        }
    }
}
