/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "buffer.h"

#include <ucs/regcache/regcache_int.h>

int ucs_regcache_buffer_is_current(const ucs_regcache_buffer_t *buffer)
{
    return (buffer->region != NULL) &&
           (ucs_regcache_region_gen(buffer->region) == buffer->generation);
}

void ucs_regcache_buffer_leave(ucs_regcache_h cache,
                               ucs_regcache_buffer_t *buffer)
{
    ucs_regcache_region_t *region = buffer->region;

    if (ucs_regcache_buffer_is_current(buffer)) {
        ucs_regcache_plan_forget(cache, region);
        ucs_regcache_plan_deregister(cache, region);
    }
    buffer->region = NULL;
}

void ucs_regcache_buffer_set(ucs_regcache_h cache, ucs_regcache_buffer_t *buffer,
                             ucs_predict_ref_t ref,
                             ucs_regcache_region_t *region,
                             uint64_t generation)
{
    ucs_regcache_rq_item_t *item = &cache->plan.rq.items[ref.index];

    if (item->region != region) {
        ucs_regcache_plan_cancel(cache, item);
    }
    if (buffer->region != region) {
        ucs_regcache_buffer_leave(cache, buffer);
    }
    buffer->region         = region;
    buffer->generation     = generation;
    buffer->ref_generation = ref.generation;
    ucs_regcache_plan_remember(cache, region, generation);
}

void ucs_regcache_buffer_confirm(ucs_regcache_h cache,
                                 const ucs_regcache_buffer_t *buffer,
                                 ucs_regcache_rq_item_t *item)
{
    if ((item->region == buffer->region) &&
        (item->generation != buffer->generation)) {
        ucs_regcache_rq_remove(&cache->plan.rq, item);
    }
}
