/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_REGCACHE_INDEX_H_
#define UCS_REGCACHE_INDEX_H_

#include "region.h"
#include <ucs/sys/hash.h>

/*
 * Look-up structures of the registration cache.
 *
 * The truth is an interval tree (by range) and a chained hash table (by the
 * lower domain's handle), both under the index lock. In front of each stands a
 * table of hints that is read without a lock: a hint may be stale or point to
 * anything, the region's own word and fields decide [R-LIVE].
 */

#define UCS_REGCACHE_INDEX_BITS    12

#define UCS_REGCACHE_INDEX_SLOTS (1u << UCS_REGCACHE_INDEX_BITS)

typedef _Atomic(ucs_regcache_region_t *) ucs_regcache_hint_t;

/** All zeros if empty: what is never used is not touched. */
typedef struct ucs_regcache_index {
    ucs_regcache_hint_t   range_hints[UCS_REGCACHE_INDEX_SLOTS];
    ucs_regcache_hint_t   memh_hints[UCS_REGCACHE_INDEX_SLOTS];
    ucs_regcache_region_t *memh_chains[UCS_REGCACHE_INDEX_SLOTS];
    ucs_itree_t           tree;
    unsigned              stretch; /* of dormant regions; 1: exact ones only */
} ucs_regcache_index_t;

/** Take a region into the look-up by range. Under the lock. */
void ucs_regcache_index_add(ucs_regcache_index_t *index,
                            ucs_regcache_region_t *region);

/** Take a region out of the look-up by range. Under the lock. */
void ucs_regcache_index_remove(ucs_regcache_index_t *index,
                               ucs_regcache_region_t *region);

/**
 * Best region for a request, under the lock: a live one that covers range and
 * access; else one that is being registered and will; else a dormant one that
 * covers the range and is at most `stretch` times as long; else NULL.
 */
ucs_regcache_region_t *ucs_regcache_index_find(ucs_regcache_index_t *index,
                                               uintptr_t start, uintptr_t end,
                                               unsigned access);

/** @return The first region that overlaps [start, end), or NULL; under the
 *          lock. */
ucs_regcache_region_t *ucs_regcache_index_first(ucs_regcache_index_t *index,
                                                uintptr_t start, uintptr_t end);

/** @return The next overlapping region after @a region; under the lock. */
ucs_regcache_region_t *ucs_regcache_index_next(ucs_regcache_index_t *index,
                                               ucs_regcache_region_t *region,
                                               uintptr_t start, uintptr_t end);

/** Take a live region into, or out of, the look-up by handle. Under the lock;
 *  the region's memh is set. */
void ucs_regcache_index_add_memh(ucs_regcache_index_t *index,
                                 ucs_regcache_region_t *region);
void ucs_regcache_index_remove_memh(ucs_regcache_region_t *region);

/** @return The region with this handle, or NULL. Under the lock. */
ucs_regcache_region_t *ucs_regcache_index_find_memh(ucs_regcache_index_t *index,
                                                    ucs_regcache_memh_t memh);

/** @return The place of a range, or of a handle and 0, among hints. */
static inline unsigned ucs_regcache_index_hash(uintptr_t a, uintptr_t b)
{
    uint64_t x = (a ^ (b << 17) ^ (b >> 7)) * UCS_HASH_FACTOR;

    return (unsigned)(x >> (64 - UCS_REGCACHE_INDEX_BITS));
}

/** @return The hint for a range: it may be about another, or stale. Read and
 *          written without the lock. */
static inline ucs_regcache_hint_t *ucs_regcache_index_range_hint(
        ucs_regcache_index_t *index, uintptr_t start, uintptr_t end)
{
    return &index->range_hints[ucs_regcache_index_hash(start, end)];
}

/** @return Likewise the hint for a handle. */
static inline ucs_regcache_hint_t *
ucs_regcache_index_memh_hint(ucs_regcache_index_t *index,
                             ucs_regcache_memh_t memh)
{
    return &index->memh_hints[ucs_regcache_index_hash((uintptr_t)memh, 0)];
}

#endif
