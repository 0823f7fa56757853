/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "engine_int.h"

#include <ucs/sys/preprocessor.h>

#include <stdlib.h>

/*
 * Stock
 */

static ucs_status_t uct_helper_engine_stock_regions(uct_helper_engine_h engine)
{
    uct_helper_chunk_t *chunk = calloc(1, sizeof(*chunk));
    unsigned i;

    if (chunk == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    uct_helper_engine_lock(engine);
    chunk->next    = engine->chunks;
    engine->chunks = chunk;
    for (i = 0; i < UCT_HELPER_CHUNK; ++i) {
        chunk->regions[i].next = engine->free_regions;
        engine->free_regions   = &chunk->regions[i];
    }
    engine->num_free    += UCT_HELPER_CHUNK;
    engine->num_regions += UCT_HELPER_CHUNK;
    uct_helper_engine_unlock(engine);
    return UCS_OK;
}

/* Another thread may have added one meanwhile */
static void uct_helper_engine_grow_heap(uct_helper_engine_h engine,
                                        uct_helper_heap_t *heap,
                                        uct_helper_region_t **segment,
                                        unsigned number)
{
    int is_wanted;

    uct_helper_engine_lock(engine);
    is_wanted = (heap->num_segments == number);
    if (is_wanted) {
        uct_helper_heap_grow(heap, segment);
    }
    uct_helper_engine_unlock(engine);
    if (!is_wanted) {
        free(segment);
    }
}

/* Each LRU order must be able to hold every region that there is */
static ucs_status_t uct_helper_engine_stock_heap(uct_helper_engine_h engine,
                                                 uct_helper_heap_t *heap)
{
    uct_helper_region_t **segment;
    unsigned number;
    int is_short;

    for (;;) {
        uct_helper_engine_lock(engine);
        number   = heap->num_segments;
        is_short = uct_helper_heap_capacity(heap) < engine->num_regions;
        uct_helper_engine_unlock(engine);
        if (!is_short) {
            return UCS_OK;
        }

        segment = malloc(uct_helper_heap_segment_length(number) *
                         sizeof(*segment));
        if (segment == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
        uct_helper_engine_grow_heap(engine, heap, segment, number);
    }
}

static ucs_status_t uct_helper_engine_stock_extents(uct_helper_engine_h engine,
                                                    uct_helper_extents_t *set)
{
    uct_helper_itree_node_t *nodes[UCT_HELPER_EXTENTS_SPARES];
    unsigned i;

    for (i = 0; i < UCT_HELPER_EXTENTS_SPARES; ++i) {
        nodes[i] = malloc(sizeof(*nodes[i]));
        if (nodes[i] == NULL) {
            goto err;
        }
    }

    uct_helper_engine_lock(engine);
    for (i = 0; i < UCT_HELPER_EXTENTS_SPARES; ++i) {
        uct_helper_extents_give(set, nodes[i]);
    }
    uct_helper_engine_unlock(engine);
    return UCS_OK;

err:
    while (i-- > 0) {
        free(nodes[i]);
    }
    return UCS_ERR_NO_MEMORY;
}

ucs_status_t uct_helper_engine_stock(uct_helper_engine_h engine)
{
    uct_helper_extents_t *sets[] = {&engine->seen, &engine->kept,
                                    &engine->barred};
    ucs_status_t status          = UCS_OK;
    int extents[ucs_static_array_size(sets)];
    int regions, class;
    unsigned i;

    uct_helper_engine_lock(engine);
    /* Several threads may be between here and their allocation */
    regions = engine->num_free < UCT_HELPER_CHUNK / 2;
    for (i = 0; i < ucs_static_array_size(sets); ++i) {
        extents[i] = sets[i]->spares < UCT_HELPER_EXTENTS_SPARES / 2;
    }
    uct_helper_engine_unlock(engine);

    if (regions) {
        status = uct_helper_engine_stock_regions(engine);
    }
    for (i = 0; (i < ucs_static_array_size(sets)) && (status == UCS_OK); ++i) {
        if (extents[i]) {
            status = uct_helper_engine_stock_extents(engine, sets[i]);
        }
    }
    for (class = 0; (class < UCT_HELPER_CLASS_LAST) && (status == UCS_OK);
         ++class) {
        status = uct_helper_engine_stock_heap(engine, &engine->lru[class]);
    }
    return status;
}

/*
 * Regions
 */

uct_helper_region_t *uct_helper_region_alloc(uct_helper_engine_h engine)
{
    uct_helper_region_t *region = engine->free_regions;

    if (region != NULL) {
        engine->free_regions = region->next;
        --engine->num_free;
        region->next       = NULL;
        region->invalidate = NULL;
    }
    return region;
}

void uct_helper_region_free(uct_helper_engine_h engine,
                            uct_helper_region_t *region)
{
    uint64_t gen = uct_helper_region_gen(region) + 1;

    ucs_store_relaxed(&region->planned, 0);
    /* release [R-FIELDS]: whoever reads a field of the next life has this
     * word's change before it */
    ucs_store_release(&region->word, (gen << UCT_HELPER_WORD_GEN_SHIFT) |
                                             UCT_HELPER_STATE_FREE);
    region->next         = engine->free_regions;
    engine->free_regions = region;
    ++engine->num_free;
}
