/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "regcache_int.h"
#include <ucs/regcache/policy/apply.h>
#include <ucs/predict/order/order.h>

#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>
#include <ucs/sys/mem/own_memory.h>

#include <limits.h>
#include <unistd.h>

/* All zeros before: sets, orders and index are empty */
static ucs_status_t ucs_regcache_init(ucs_regcache_h cache,
                                      const ucs_regcache_params_t *params)
{
    size_t page_size = params->page_size ? params->page_size :
                                           (size_t)sysconf(_SC_PAGESIZE);
    ucs_status_t status;

    if ((params->policy >= UCS_REGCACHE_POLICY_LAST) ||
        (page_size & (page_size - 1)) || !(params->max_slowdown >= 0) ||
        !(params->max_slowdown <= 1)) {
        return UCS_ERR_INVALID_PARAM;
    }

    cache->tuning = (params->tuning != NULL) ? *params->tuning :
                                               ucs_regcache_tuning_default;
    if (params->max_length > 0) {
        cache->tuning.cover_max = ucs_min(cache->tuning.cover_max,
                                          params->max_length);
    }
    cache->config.min_size    = params->min_size;
    cache->config.max_pinned  = params->max_pinned;
    cache->config.max_regions = params->max_regions;
    cache->config.page_mask   = page_size - 1;
    cache->config.access_mask = params->access_mask ? params->access_mask :
                                                      UINT_MAX;
    cache->config.max_slowdown = (params->max_slowdown > 0) ?
                                         params->max_slowdown :
                                         UCS_REGCACHE_MAX_SLOWDOWN;
    cache->config.region_bytes = (double)params->region_bytes;
    cache->created            = ucs_regcache_now(cache);

    cache->account.time = cache->created;
    ucs_lock_init(&cache->lock);
    cache->index.stretch = cache->tuning.stretch;
    status = ucs_regcache_cover_init(cache, params);
    /* ns, until it is measured: on the dear side of the NICs of fifteen years
     * (Goglin 2009, table 1), so that the first predictions err towards
     * registering early */
    ucs_predict_cost_init(&cache->cost.reg, 250, 20000);
    ucs_predict_cost_init(&cache->cost.dereg, 100, 10000);
    return status;
}

/* Uses that wait for the helper; more are lost, and their regions swept */
#define UCS_REGCACHE_DQ_LENGTH 1024

/* Contexts, or buffers, that a predictor remembers */
#define UCS_REGCACHE_CONTEXTS 4096

/* What the caller leaves to the defaults */
static ucs_regcache_params_t
ucs_regcache_fill(const ucs_regcache_params_t *params)
{
    ucs_regcache_params_t filled = *params;

    filled.dq_length    = params->dq_length ? params->dq_length :
                                              UCS_REGCACHE_DQ_LENGTH;
    filled.max_contexts = params->max_contexts ? params->max_contexts :
                                                 UCS_REGCACHE_CONTEXTS;
    return filled;
}

size_t ucs_regcache_max_bytes(const ucs_regcache_params_t *params,
                              size_t regions)
{
    ucs_regcache_params_t filled = ucs_regcache_fill(params);

    return sizeof(struct ucs_regcache) + ucs_dq_bytes(filled.dq_length) +
           filled.max_contexts * (UCS_PREDICT_ORDER_BUFFER_BYTES +
                                  UCS_PREDICT_ORDER_LABEL_BYTES +
                                  sizeof(ucs_regcache_rq_item_t) +
                                  sizeof(ucs_regcache_buffer_t)) +
           (regions + UCS_REGCACHE_CHUNK) * sizeof(ucs_regcache_region_t);
}

ucs_status_t ucs_regcache_create(const ucs_regcache_params_t *params,
                                 const ucs_regcache_env_t *env,
                                 ucs_regcache_h *cache_p)
{
    ucs_regcache_params_t filled;
    ucs_regcache_h cache;
    ucs_status_t status;

    cache = ucs_own_alloc(sizeof(*cache));
    if (cache == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    cache->env = *env;
    status     = ucs_regcache_init(cache, params);
    if (status != UCS_OK) {
        goto err_free;
    }

    filled = ucs_regcache_fill(params);
    status = ucs_dq_create(filled.dq_length, &cache->use.queue);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = ucs_regcache_plan_init(cache, &filled);
    if (status != UCS_OK) {
        goto err_destroy_dq;
    }
    *cache_p = cache;
    return UCS_OK;

err_destroy_dq:
    ucs_dq_destroy(cache->use.queue);
err_free:
    ucs_extents_cleanup(&cache->memory.untouched);
    ucs_own_free(cache);
    return status;
}

void ucs_regcache_destroy(ucs_regcache_h cache)
{
    ucs_regcache_chunk_t *chunk;
    unsigned i;

    ucs_regcache_reclaim(cache);
    ucs_regcache_deregister_all(cache);
    if (cache->env.leave_bytes != NULL) {
        (void)ucs_sub_relaxed(cache->env.leave_bytes, cache->leave_told);
    }
    while ((chunk = cache->store.chunks) != NULL) {
        cache->store.chunks = chunk->next;
        ucs_own_free(chunk);
    }
    ucs_regcache_plan_cleanup(cache);
    ucs_dq_destroy(cache->use.queue);
    ucs_heap_cleanup(&cache->lru[UCS_REGCACHE_CLASS_SMALL]);
    ucs_heap_cleanup(&cache->lru[UCS_REGCACHE_CLASS_MANAGED]);
    for (i = 0; i < UCS_REGCACHE_GIVEN; ++i) {
        ucs_extents_cleanup(&cache->memory.given[i].bytes);
    }
    ucs_extents_cleanup(&cache->memory.untouched);
    ucs_extents_cleanup(&cache->memory.barred);
    ucs_extents_cleanup(&cache->memory.kept);
    ucs_extents_cleanup(&cache->memory.seen);
    ucs_own_free(cache);
}
