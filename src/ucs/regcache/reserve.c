/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "regcache_int.h"

#include <ucs/sys/preprocessor.h>

#include <stdlib.h>

/*
 * Stock
 */

static ucs_status_t ucs_regcache_reserve_regions(ucs_regcache_h cache)
{
    ucs_regcache_chunk_t *chunk = calloc(1, sizeof(*chunk));
    unsigned i;

    if (chunk == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    ucs_regcache_lock(cache);
    chunk->next         = cache->store.chunks;
    cache->store.chunks = chunk;
    for (i = 0; i < UCS_REGCACHE_CHUNK; ++i) {
        chunk->regions[i].next = cache->store.free;
        cache->store.free      = &chunk->regions[i];
    }
    cache->store.num_free += UCS_REGCACHE_CHUNK;
    cache->store.num_regions += UCS_REGCACHE_CHUNK;
    ucs_regcache_unlock(cache);
    return UCS_OK;
}

/* Another thread may have added one meanwhile */
static void ucs_regcache_grow_heap(ucs_regcache_h cache, ucs_heap_t *heap,
                                   ucs_heap_elem_t **segment,
                                   unsigned number)
{
    int is_wanted;

    ucs_regcache_lock(cache);
    is_wanted = (heap->num_segments == number);
    if (is_wanted) {
        ucs_heap_grow(heap, segment);
    }
    ucs_regcache_unlock(cache);
    if (!is_wanted) {
        free(segment);
    }
}

/* Each LRU order must be able to hold every region that there is */
static ucs_status_t ucs_regcache_reserve_heap(ucs_regcache_h cache,
                                              ucs_heap_t *heap)
{
    ucs_heap_elem_t **segment;
    unsigned number;
    int is_short;

    for (;;) {
        ucs_regcache_lock(cache);
        number   = heap->num_segments;
        is_short = ucs_heap_capacity(heap) < cache->store.num_regions;
        ucs_regcache_unlock(cache);
        if (!is_short) {
            return UCS_OK;
        }

        segment = malloc(ucs_heap_segment_length(number) * sizeof(*segment));
        if (segment == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
        ucs_regcache_grow_heap(cache, heap, segment, number);
    }
}

static ucs_status_t ucs_regcache_reserve_extents(ucs_regcache_h cache,
                                                 ucs_extents_t *set)
{
    ucs_itree_node_t *nodes[UCS_EXTENTS_SPARES];
    unsigned i;

    for (i = 0; i < UCS_EXTENTS_SPARES; ++i) {
        nodes[i] = malloc(sizeof(*nodes[i]));
        if (nodes[i] == NULL) {
            goto err;
        }
    }

    ucs_regcache_lock(cache);
    for (i = 0; i < UCS_EXTENTS_SPARES; ++i) {
        ucs_extents_give(set, nodes[i]);
    }
    ucs_regcache_unlock(cache);
    return UCS_OK;

err:
    while (i-- > 0) {
        free(nodes[i]);
    }
    return UCS_ERR_NO_MEMORY;
}

ucs_status_t ucs_regcache_reserve(ucs_regcache_h cache)
{
    ucs_extents_t *sets[] = {&cache->memory.seen, &cache->memory.kept,
                             &cache->memory.barred};
    ucs_status_t status   = UCS_OK;
    int extents[ucs_static_array_size(sets)];
    int regions, class;
    unsigned i;

    ucs_regcache_lock(cache);
    /* Several threads may be between here and their allocation */
    regions = cache->store.num_free < UCS_REGCACHE_CHUNK / 2;
    for (i = 0; i < ucs_static_array_size(sets); ++i) {
        extents[i] = sets[i]->spares < UCS_EXTENTS_SPARES / 2;
    }
    ucs_regcache_unlock(cache);

    if (regions) {
        status = ucs_regcache_reserve_regions(cache);
    }
    for (i = 0; (i < ucs_static_array_size(sets)) && (status == UCS_OK); ++i) {
        if (extents[i]) {
            status = ucs_regcache_reserve_extents(cache, sets[i]);
        }
    }
    for (class = 0; (class < UCS_REGCACHE_CLASS_LAST) && (status == UCS_OK);
         ++class) {
        status = ucs_regcache_reserve_heap(cache, &cache->lru[class]);
    }
    return status;
}

/*
 * Regions
 */

ucs_regcache_region_t *ucs_regcache_region_alloc(ucs_regcache_h cache)
{
    ucs_regcache_region_t *region = cache->store.free;

    if (region != NULL) {
        cache->store.free = region->next;
        --cache->store.num_free;
        region->next       = NULL;
        region->invalidate = NULL;
    }
    return region;
}

void ucs_regcache_region_free(ucs_regcache_h cache,
                              ucs_regcache_region_t *region)
{
    uint64_t gen = ucs_regcache_region_gen(region) + 1;

    ucs_store_relaxed(&region->planned, 0);
    /* release [R-FIELDS]: whoever reads a field of the next life has this
     * word's change before it */
    ucs_store_release(&region->word, (gen << UCS_REGCACHE_WORD_GEN_SHIFT) |
                                             UCS_REGCACHE_STATE_FREE);
    region->next      = cache->store.free;
    cache->store.free = region;
    ++cache->store.num_free;
}
