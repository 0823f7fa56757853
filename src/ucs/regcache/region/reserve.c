/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/regcache/regcache_int.h>

#include <ucs/sys/mem/own_memory.h>

#include <string.h>

/*
 * Nothing is allocated under the lock. What a registration may need there is in
 * reserve when the lock is taken for it: what is short is noted under the lock,
 * allocated outside, and handed over when the lock is taken again.
 */

#define UCS_REGCACHE_RESERVE_SETS (4 + UCS_REGCACHE_GIVEN)

/* What is short, and what of it has been allocated */
typedef struct ucs_regcache_supply {
    int                   wants_chunk;
    ucs_regcache_chunk_t  *chunk;
    int                   wants_nodes[UCS_REGCACHE_RESERVE_SETS];
    ucs_extents_node_t      *nodes[UCS_REGCACHE_RESERVE_SETS]; /* by `next` */
    int                   wants_segment[UCS_REGCACHE_CLASS_LAST];
    unsigned              number[UCS_REGCACHE_CLASS_LAST]; /* of the segment */
    ucs_heap_elem_t       **segment[UCS_REGCACHE_CLASS_LAST];
} ucs_regcache_supply_t;

static ucs_extents_t *ucs_regcache_reserve_set(ucs_regcache_h cache, unsigned i)
{
    ucs_extents_t *sets[] = {&cache->memory.seen, &cache->memory.kept,
                             &cache->memory.barred, &cache->memory.untouched};

    return (i < 4) ? sets[i] : &cache->memory.given[i - 4].bytes;
}

/* What may have been touched, and what was given to others, only covers ask */
static int ucs_regcache_reserve_is_used(ucs_regcache_h cache, unsigned i)
{
    ucs_regcache_cover_kind_t kind = cache->config.cover.kind;

    return (i < 3) || ((i == 3) ? (kind != UCS_REGCACHE_COVER_OFF) :
                                  (kind == UCS_REGCACHE_COVER_LOCAL));
}

/* Under the lock. @return Nonzero if anything is short. */
static int ucs_regcache_supply_note(ucs_regcache_h cache,
                                    ucs_regcache_supply_t *supply)
{
    unsigned regions = cache->store.num_regions;
    ucs_extents_t *set;
    int is_short;
    unsigned i;

    /* Several threads may be between here and their allocation */
    supply->wants_chunk = cache->store.num_free < UCS_REGCACHE_CHUNK / 2;
    regions += supply->wants_chunk ? UCS_REGCACHE_CHUNK : 0;
    is_short = supply->wants_chunk;
    for (i = 0; i < UCS_REGCACHE_RESERVE_SETS; ++i) {
        set                    = ucs_regcache_reserve_set(cache, i);
        supply->wants_nodes[i] = (set->spares < UCS_EXTENTS_SPARES / 2) &&
                                 ucs_regcache_reserve_is_used(cache, i);
        is_short |= supply->wants_nodes[i];
    }
    /* Each LRU order must be able to hold every region that there is */
    for (i = 0; i < UCS_REGCACHE_CLASS_LAST; ++i) {
        supply->number[i]        = cache->lru[i].num_segments;
        supply->wants_segment[i] = ucs_heap_capacity(&cache->lru[i]) < regions;
        is_short |= supply->wants_segment[i];
    }
    return is_short;
}

static ucs_extents_node_t *ucs_regcache_supply_nodes(void)
{
    ucs_extents_node_t *nodes = NULL;
    ucs_extents_node_t *node;
    unsigned i;

    for (i = 0; i < UCS_EXTENTS_SPARES; ++i) {
        node = ucs_own_alloc(sizeof(*node));
        if (node == NULL) {
            break;
        }
        node->next = nodes;
        nodes      = node;
    }
    return nodes;
}

static void ucs_regcache_supply_release(ucs_regcache_supply_t *supply)
{
    ucs_extents_node_t *node;
    unsigned i;

    ucs_own_free(supply->chunk);
    for (i = 0; i < UCS_REGCACHE_RESERVE_SETS; ++i) {
        while ((node = supply->nodes[i]) != NULL) {
            supply->nodes[i] = node->next;
            ucs_own_free(node);
        }
    }
    for (i = 0; i < UCS_REGCACHE_CLASS_LAST; ++i) {
        ucs_own_free(supply->segment[i]);
    }
}

/* Outside of the lock. @return Zero if it is not to be had. */
static int ucs_regcache_supply_fill(ucs_regcache_supply_t *supply)
{
    int is_full = 1;
    unsigned i;

    if (supply->wants_chunk) {
        supply->chunk = ucs_own_alloc(sizeof(*supply->chunk));
        is_full      &= supply->chunk != NULL;
    }
    for (i = 0; i < UCS_REGCACHE_RESERVE_SETS; ++i) {
        if (supply->wants_nodes[i]) {
            supply->nodes[i] = ucs_regcache_supply_nodes();
            is_full         &= supply->nodes[i] != NULL;
        }
    }
    for (i = 0; i < UCS_REGCACHE_CLASS_LAST; ++i) {
        if (supply->wants_segment[i]) {
            supply->segment[i] = ucs_own_alloc(
                    ucs_heap_segment_length(supply->number[i]) *
                    sizeof(*supply->segment[i]));
            is_full           &= supply->segment[i] != NULL;
        }
    }
    return is_full;
}

static void ucs_regcache_store_add(ucs_regcache_store_t *store,
                                   ucs_regcache_chunk_t *chunk)
{
    unsigned i;

    chunk->next   = store->chunks;
    store->chunks = chunk;
    for (i = 0; i < UCS_REGCACHE_CHUNK; ++i) {
        chunk->regions[i].next = store->free;
        store->free            = &chunk->regions[i];
    }
    store->num_free    += UCS_REGCACHE_CHUNK;
    store->num_regions += UCS_REGCACHE_CHUNK;
}

/* Under the lock. @return Zero if a segment is left, which another thread has
 * added. */
static int ucs_regcache_supply_give(ucs_regcache_h cache,
                                    ucs_regcache_supply_t *supply)
{
    int is_given = 1;
    ucs_extents_node_t *node;
    unsigned i;

    if (supply->chunk != NULL) {
        ucs_regcache_store_add(&cache->store, supply->chunk);
        supply->chunk = NULL;
    }
    for (i = 0; i < UCS_REGCACHE_RESERVE_SETS; ++i) {
        while ((node = supply->nodes[i]) != NULL) {
            supply->nodes[i] = node->next;
            ucs_extents_give(ucs_regcache_reserve_set(cache, i), node);
        }
    }
    for (i = 0; i < UCS_REGCACHE_CLASS_LAST; ++i) {
        if ((supply->segment[i] != NULL) &&
            (cache->lru[i].num_segments == supply->number[i])) {
            ucs_heap_grow(&cache->lru[i], supply->segment[i]);
            supply->segment[i] = NULL;
        }
        is_given &= supply->segment[i] == NULL;
    }
    return is_given;
}

ucs_status_t ucs_regcache_lock_reserved(ucs_regcache_h cache)
{
    ucs_regcache_supply_t supply = {.chunk = NULL};
    int is_given;

    for (;;) {
        ucs_regcache_lock(cache);
        is_given = ucs_regcache_supply_give(cache, &supply);
        if (!ucs_regcache_supply_note(cache, &supply) && is_given) {
            return UCS_OK;
        }

        ucs_regcache_unlock(cache);
        ucs_regcache_supply_release(&supply);
        memset(supply.segment, 0, sizeof(supply.segment));
        if (!ucs_regcache_supply_fill(&supply)) {
            ucs_regcache_supply_release(&supply);
            return UCS_ERR_NO_MEMORY;
        }
    }
}
