/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "index.h"

#include <ucs/sys/preprocessor.h>
#include <ucs/sys/compiler_def.h>

#include <string.h>

static uct_helper_region_t *
uct_helper_index_region(uct_helper_itree_node_t *node)
{
    return (node == NULL) ? NULL :
                            ucs_container_of(node, uct_helper_region_t, node);
}

void uct_helper_index_init(uct_helper_index_t *index)
{
    memset(index, 0, sizeof(*index));
    uct_helper_itree_init(&index->tree);
    index->stretch = UCT_HELPER_INDEX_STRETCH;
}

void uct_helper_index_add(uct_helper_index_t *index,
                          uct_helper_region_t *region)
{
    region->node.start = ucs_load_relaxed(&region->start);
    region->node.end   = ucs_load_relaxed(&region->end);
    uct_helper_itree_insert(&index->tree, &region->node);
}

void uct_helper_index_remove(uct_helper_index_t *index,
                             uct_helper_region_t *region)
{
    uct_helper_itree_remove(&index->tree, &region->node);
}

uct_helper_region_t *uct_helper_index_first(uct_helper_index_t *index,
                                            uintptr_t start, uintptr_t end)
{
    return uct_helper_index_region(
            uct_helper_itree_first(&index->tree, start, end));
}

uct_helper_region_t *uct_helper_index_next(uct_helper_index_t *index,
                                           uct_helper_region_t *region,
                                           uintptr_t start, uintptr_t end)
{
    return uct_helper_index_region(
            uct_helper_itree_next(&index->tree, &region->node, start, end));
}

/* How good a region is for a request; 0: of no use */
static int uct_helper_index_rank(const uct_helper_index_t *index,
                                 uct_helper_region_t *region, uintptr_t start,
                                 uintptr_t end, unsigned access)
{
    int covers = (region->node.start <= start) && (region->node.end >= end) &&
                 !(access & ~ucs_load_relaxed(&region->access));

    switch (uct_helper_word_state(ucs_load_relaxed(&region->word))) {
    case UCT_HELPER_STATE_LIVE:
        return covers ? 3 : 0;
    case UCT_HELPER_STATE_REGISTERING:
        return covers ? 2 : 0;
    case UCT_HELPER_STATE_DORMANT:
        return (region->node.start <= start) && (region->node.end >= end) &&
               ((region->node.end - region->node.start) /
                        index->stretch <=
                end - start);
    default:
        return 0;
    }
}

uct_helper_region_t *uct_helper_index_find(uct_helper_index_t *index,
                                           uintptr_t start, uintptr_t end,
                                           unsigned access)
{
    uct_helper_region_t *best = NULL;
    int best_rank             = 0;
    uct_helper_region_t *region;
    int rank;

    for (region = uct_helper_index_first(index, start, end); region != NULL;
         region = uct_helper_index_next(index, region, start, end)) {
        rank = uct_helper_index_rank(index, region, start, end, access);
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

static uct_helper_region_t **
uct_helper_index_chain(uct_helper_index_t *index, uct_mem_h memh)
{
    return &index->memh_chains[uct_helper_index_hash((uintptr_t)memh, 0)];
}

void uct_helper_index_add_memh(uct_helper_index_t *index,
                               uct_helper_region_t *region)
{
    uct_helper_region_t **chain =
            uct_helper_index_chain(index, ucs_load_relaxed(&region->memh));

    region->memh_next = *chain;
    region->memh_link = chain;
    if (region->memh_next != NULL) {
        region->memh_next->memh_link = &region->memh_next;
    }
    *chain = region;
}

void uct_helper_index_remove_memh(uct_helper_region_t *region)
{
    *region->memh_link = region->memh_next;
    if (region->memh_next != NULL) {
        region->memh_next->memh_link = region->memh_link;
    }
}

uct_helper_region_t *uct_helper_index_find_memh(uct_helper_index_t *index,
                                                uct_mem_h memh)
{
    uct_helper_region_t *region = *uct_helper_index_chain(index, memh);

    while ((region != NULL) && (ucs_load_relaxed(&region->memh) != memh)) {
        region = region->memh_next;
    }
    return region;
}
