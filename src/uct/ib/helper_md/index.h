/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_INDEX_H_
#define UCT_HELPER_INDEX_H_

#include "region.h"
#include <ucs/sys/compiler_def.h>

/**
 * @file index.h
 *
 * Look-up structures of the registration cache.
 *
 * The truth is an interval tree (by range) and a chained hash table (by the
 * lower domain's handle), both under the index lock. In front of each stands a
 * table of hints that is read without a lock: a hint may be stale or point to
 * anything, the region's own word and fields decide [R-LIVE].
 */

BEGIN_C_DECLS

#define UCT_HELPER_INDEX_BITS    12

/** A dormant region serves requests that are shorter by this factor. */
#define UCT_HELPER_INDEX_STRETCH 4

#define UCT_HELPER_INDEX_SLOTS (1u << UCT_HELPER_INDEX_BITS)

typedef _Atomic(uct_helper_region_t*) uct_helper_hint_t;

typedef struct uct_helper_index {
    uct_helper_hint_t   range_hints[UCT_HELPER_INDEX_SLOTS];
    uct_helper_hint_t   memh_hints[UCT_HELPER_INDEX_SLOTS];
    uct_helper_region_t *memh_chains[UCT_HELPER_INDEX_SLOTS];
    uct_helper_itree_t  tree;
    unsigned            stretch; /* of dormant regions; 1: exact ones only */
} uct_helper_index_t;

void uct_helper_index_init(uct_helper_index_t *index);

/** Take a region into the look-up by range. Under the lock. */
void uct_helper_index_add(uct_helper_index_t *index,
                          uct_helper_region_t *region);

/** Take a region out of the look-up by range. Under the lock. */
void uct_helper_index_remove(uct_helper_index_t *index,
                             uct_helper_region_t *region);

/**
 * Best region for a request, under the lock: a live one that covers range and
 * access; else one that is being registered and will; else a dormant one that
 * covers the range and is at most `stretch` times as long; else NULL.
 */
uct_helper_region_t *uct_helper_index_find(uct_helper_index_t *index,
                                           uintptr_t start, uintptr_t end,
                                           unsigned access);

/** @return The first region that overlaps [start, end), or NULL; under the
 *          lock. */
uct_helper_region_t *uct_helper_index_first(uct_helper_index_t *index,
                                            uintptr_t start, uintptr_t end);

/** @return The next overlapping region after @a region; under the lock. */
uct_helper_region_t *uct_helper_index_next(uct_helper_index_t *index,
                                           uct_helper_region_t *region,
                                           uintptr_t start, uintptr_t end);

/** Take a live region into, or out of, the look-up by handle. Under the lock;
 *  the region's memh is set. */
void uct_helper_index_add_memh(uct_helper_index_t *index,
                               uct_helper_region_t *region);
void uct_helper_index_remove_memh(uct_helper_region_t *region);

/** @return The region with this handle, or NULL. Under the lock. */
uct_helper_region_t *uct_helper_index_find_memh(uct_helper_index_t *index,
                                                uct_mem_h memh);

static inline unsigned uct_helper_index_hash(uintptr_t a, uintptr_t b)
{
    uint64_t x = (a ^ (b << 17) ^ (b >> 7)) * UINT64_C(0x9e3779b97f4a7c15);

    return (unsigned)(x >> (64 - UCT_HELPER_INDEX_BITS));
}

static inline uct_helper_hint_t *
uct_helper_index_range_hint(uct_helper_index_t *index, uintptr_t start,
                            uintptr_t end)
{
    return &index->range_hints[uct_helper_index_hash(start, end)];
}

static inline uct_helper_hint_t *
uct_helper_index_memh_hint(uct_helper_index_t *index, uct_mem_h memh)
{
    return &index->memh_hints[uct_helper_index_hash((uintptr_t)memh, 0)];
}

END_C_DECLS

#endif
