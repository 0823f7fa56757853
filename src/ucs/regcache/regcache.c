/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "regcache_int.h"

#include <ucs/sys/compiler_def.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UCS_REGCACHE_DQ_LENGTH    1024
#define UCS_REGCACHE_MAX_CONTEXTS 4096

/* Models before the first sample, on the dear side of what NICs of the last
 * fifteen years need (Goglin 2009, table 1), so that the first predictions
 * err towards registering early */
#define UCS_REGCACHE_REG_NS_PER_PAGE   250.0
#define UCS_REGCACHE_REG_NS            20000.0
#define UCS_REGCACHE_DEREG_NS_PER_PAGE 100.0
#define UCS_REGCACHE_DEREG_NS          10000.0

/* Lateness of the helper's wake-up before it has been measured */
#define UCS_REGCACHE_LATENESS_NS 100000

const char *ucs_regcache_policy_names[] = {
        [UCS_REGCACHE_POLICY_PREDICT]      = "predict",
        [UCS_REGCACHE_POLICY_PAPER]        = "paper",
        [UCS_REGCACHE_POLICY_LEAVE_PINNED] = "leave_pinned",
        [UCS_REGCACHE_POLICY_ON_DEMAND]    = "on_demand",
        [UCS_REGCACHE_POLICY_LRU]          = "lru",
        [UCS_REGCACHE_POLICY_LAST]         = NULL};

static const ucs_regcache_policy_ops_t *
ucs_regcache_policy_find(ucs_regcache_policy_t policy)
{
    switch (policy) {
    case UCS_REGCACHE_POLICY_PREDICT:
        return &ucs_regcache_policy_order;
    case UCS_REGCACHE_POLICY_PAPER:
        return &ucs_regcache_policy_paper;
    default:
        return NULL;
    }
}

static ucs_status_t ucs_regcache_init(ucs_regcache_h cache,
                                      const ucs_regcache_params_t *params)
{
    size_t page_size = params->page_size ? params->page_size :
                                           (size_t)sysconf(_SC_PAGESIZE);

    if ((params->policy >= UCS_REGCACHE_POLICY_LAST) ||
        (page_size & (page_size - 1)) || !(params->miss_target >= 0) ||
        !(params->miss_target < 1) || !(params->cpu_target >= 0) ||
        !(params->cpu_target <= 1)) {
        return UCS_ERR_INVALID_PARAM;
    }

    cache->config.policy      = params->policy;
    cache->plan.ops           = ucs_regcache_policy_find(params->policy);
    cache->plan.miss_target   = params->miss_target;
    cache->plan.cpu_target    = params->cpu_target;
    cache->plan.share         = params->cpu_target;
    cache->config.min_size    = params->min_size;
    cache->config.max_pinned  = params->max_pinned;
    cache->config.max_regions = params->max_regions;
    cache->config.page_mask   = page_size - 1;
    cache->config.access_mask = params->access_mask ? params->access_mask :
                                                      UINT_MAX;
    cache->created            = ucs_regcache_now(cache);
    cache->plan.next_due      = UCS_REGCACHE_TIME_NEVER;
    cache->plan.sweep_at      = UCS_REGCACHE_TIME_NEVER;
    cache->plan.lateness      = UCS_REGCACHE_LATENESS_NS;

    cache->account.time = cache->created;
    ucs_lock_init(&cache->lock);
    ucs_regcache_index_init(&cache->index);
    if ((cache->plan.ops != NULL) && (cache->config.max_pinned != SIZE_MAX)) {
        cache->index.stretch = 1; /* a use takes the room that it needs */
    }
    ucs_heap_init(&cache->lru[UCS_REGCACHE_CLASS_SMALL]);
    ucs_heap_init(&cache->lru[UCS_REGCACHE_CLASS_MANAGED]);
    ucs_extents_init(&cache->memory.seen);
    ucs_extents_init(&cache->memory.kept);
    ucs_extents_init(&cache->memory.barred);
    ucs_predict_cost_init(&cache->cost.reg, UCS_REGCACHE_REG_NS_PER_PAGE,
                          UCS_REGCACHE_REG_NS);
    ucs_predict_cost_init(&cache->cost.dereg, UCS_REGCACHE_DEREG_NS_PER_PAGE,
                          UCS_REGCACHE_DEREG_NS);
    return UCS_OK;
}

ucs_status_t ucs_regcache_create(const ucs_regcache_params_t *params,
                                 const ucs_regcache_env_t *env,
                                 ucs_regcache_h *cache_p)
{
    unsigned max_contexts = params->max_contexts ? params->max_contexts :
                                                   UCS_REGCACHE_MAX_CONTEXTS;
    ucs_regcache_h cache;
    ucs_status_t status;

    cache = calloc(1, sizeof(*cache));
    if (cache == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    cache->env                 = *env;
    cache->config.max_contexts = max_contexts;
    status                     = ucs_regcache_init(cache, params);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = ucs_dq_create(params->dq_length ? params->dq_length :
                                               UCS_REGCACHE_DQ_LENGTH,
                           &cache->use.queue);
    if (status != UCS_OK) {
        goto err_free;
    }

    if (cache->plan.ops != NULL) {
        status = cache->plan.ops->init(cache, max_contexts);
        if (status != UCS_OK) {
            goto err_destroy_dq;
        }
    }

    status = ucs_regcache_rq_init(&cache->plan.rq, max_contexts);
    if (status != UCS_OK) {
        goto err_cleanup_steer;
    }

    *cache_p = cache;
    return UCS_OK;

err_cleanup_steer:
    if (cache->plan.ops != NULL) {
        cache->plan.ops->cleanup(cache);
    }
err_destroy_dq:
    ucs_dq_destroy(cache->use.queue);
err_free:
    free(cache);
    return status;
}

void ucs_regcache_destroy(ucs_regcache_h cache)
{
    ucs_regcache_chunk_t *chunk;

    ucs_regcache_reclaim(cache);
    ucs_regcache_deregister_all(cache);
    while ((chunk = cache->store.chunks) != NULL) {
        cache->store.chunks = chunk->next;
        free(chunk);
    }
    ucs_regcache_rq_cleanup(&cache->plan.rq);
    if (cache->plan.ops != NULL) {
        cache->plan.ops->cleanup(cache);
    }
    ucs_dq_destroy(cache->use.queue);
    ucs_heap_cleanup(&cache->lru[UCS_REGCACHE_CLASS_SMALL]);
    ucs_heap_cleanup(&cache->lru[UCS_REGCACHE_CLASS_MANAGED]);
    ucs_extents_cleanup(&cache->memory.barred);
    ucs_extents_cleanup(&cache->memory.kept);
    ucs_extents_cleanup(&cache->memory.seen);
    free(cache);
}
