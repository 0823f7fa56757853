/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "index.h"

#include <ucs/sys/preprocessor.h>
#include <ucs/sys/compiler_def.h>

static ucs_regcache_region_t *ucs_regcache_index_region(ucs_itree_node_t *node)
{
    return (node == NULL) ? NULL :
                            ucs_container_of(node, ucs_regcache_region_t, node);
}

void ucs_regcache_index_add(ucs_regcache_index_t *index,
                            ucs_regcache_region_t *region)
{
    region->node.start = ucs_load_relaxed(&region->start);
    region->node.end   = ucs_load_relaxed(&region->end);
    ucs_itree_insert(&index->tree, &region->node);
}

void ucs_regcache_index_remove(ucs_regcache_index_t *index,
                               ucs_regcache_region_t *region)
{
    ucs_itree_remove(&index->tree, &region->node);
}

ucs_regcache_region_t *ucs_regcache_index_first(ucs_regcache_index_t *index,
                                                uintptr_t start, uintptr_t end)
{
    return ucs_regcache_index_region(ucs_itree_first(&index->tree, start, end));
}

ucs_regcache_region_t *ucs_regcache_index_next(ucs_regcache_index_t *index,
                                               ucs_regcache_region_t *region,
                                               uintptr_t start, uintptr_t end)
{
    return ucs_regcache_index_region(
            ucs_itree_next(&index->tree, &region->node, start, end));
}

/* How good a region is for a request; 0: of no use */
static int ucs_regcache_index_rank(const ucs_regcache_index_t *index,
                                   ucs_regcache_region_t *region,
                                   uintptr_t start, uintptr_t end,
                                   unsigned access)
{
    int covers = (region->node.start <= start) && (region->node.end >= end) &&
                 !(access & ~ucs_load_relaxed(&region->access));

    switch (ucs_regcache_word_state(ucs_load_relaxed(&region->word))) {
    case UCS_REGCACHE_STATE_LIVE:
        return covers ? 3 : 0;
    case UCS_REGCACHE_STATE_REGISTERING:
        return covers ? 2 : 0;
    case UCS_REGCACHE_STATE_DORMANT:
        /* What nobody asked for gets no access that nobody asked for */
        return (region->node.start <= start) && (region->node.end >= end) &&
               (covers || !region->is_cover) &&
               ((region->node.end - region->node.start) /
                        index->stretch <=
                end - start);
    default:
        return 0;
    }
}

ucs_regcache_region_t *ucs_regcache_index_find(ucs_regcache_index_t *index,
                                               uintptr_t start, uintptr_t end,
                                               unsigned access)
{
    ucs_regcache_region_t *best = NULL;
    int best_rank               = 0;
    ucs_regcache_region_t *region;
    int rank;

    for (region = ucs_regcache_index_first(index, start, end); region != NULL;
         region = ucs_regcache_index_next(index, region, start, end)) {
        rank = ucs_regcache_index_rank(index, region, start, end, access);
        if (rank > best_rank) {
            best      = region;
            best_rank = rank;
        }
        if ((best_rank == 3) || (region->node.start > start)) {
            break;
        }
    }
    return best;
}

static ucs_regcache_region_t **
ucs_regcache_index_chain(ucs_regcache_index_t *index, ucs_regcache_memh_t memh)
{
    return &index->memh_chains[ucs_regcache_index_hash((uintptr_t)memh, 0)];
}

void ucs_regcache_index_add_memh(ucs_regcache_index_t *index,
                                 ucs_regcache_region_t *region)
{
    ucs_regcache_region_t **chain = ucs_regcache_index_chain(
            index, ucs_load_relaxed(&region->memh));

    region->memh_next = *chain;
    region->memh_link = chain;
    if (region->memh_next != NULL) {
        region->memh_next->memh_link = &region->memh_next;
    }
    *chain = region;
}

void ucs_regcache_index_remove_memh(ucs_regcache_region_t *region)
{
    *region->memh_link = region->memh_next;
    if (region->memh_next != NULL) {
        region->memh_next->memh_link = region->memh_link;
    }
}

ucs_regcache_region_t *ucs_regcache_index_find_memh(ucs_regcache_index_t *index,
                                                    ucs_regcache_memh_t memh)
{
    ucs_regcache_region_t *region = *ucs_regcache_index_chain(index, memh);

    while ((region != NULL) && (ucs_load_relaxed(&region->memh) != memh)) {
        region = region->memh_next;
    }
    return region;
}
