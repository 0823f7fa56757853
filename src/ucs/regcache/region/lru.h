/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_REGCACHE_LRU_H_
#define UCS_REGCACHE_LRU_H_

#include <ucs/datastruct/heap.h>
#include <ucs/regcache/region/region.h>

/*
 * Registered regions, the least recently used on top of a heap. A use does not touch
 * the heap (the hit path takes no lock): the key that a region has there may be older
 * than its last use, never younger, and @ref ucs_regcache_lru_oldest corrects the ones
 * that it meets, only so many in one eviction. Protected by the index lock, as are the
 * functions below.
 */

BEGIN_C_DECLS

/** @return The region that an element of an LRU heap stands in. */
static inline ucs_regcache_region_t *
ucs_regcache_lru_region(ucs_heap_elem_t *elem)
{
    return ucs_container_of(elem, ucs_regcache_region_t, lru);
}

/** Add a region, as it was last used; the heap must have room. */
static inline void
ucs_regcache_lru_push(ucs_heap_t *heap, ucs_regcache_region_t *region)
{
    ucs_heap_push(heap, &region->lru, ucs_load_relaxed(&region->last_use));
}

/**
 * Look for the least recently used region that has no user. It stays in the
 * heap.
 *
 * @param [in]    now     ns, when the search began: the lock may be let go
 *                        between two lots of it, and what is corrected stays.
 * @param [inout] left_p  Regions that may be corrected before that. If these do
 *                        not suffice, it is the least recently used of them.
 *
 * @return The region, or NULL: none is idle, or, if @a left_p has become 0,
 *         none that was corrected.
 */
ucs_regcache_region_t *
ucs_regcache_lru_oldest(ucs_heap_t *heap, uint64_t now, unsigned *left_p);

END_C_DECLS

#endif
