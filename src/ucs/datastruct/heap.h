/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_HEAP_H_
#define UCS_HEAP_H_

#include <ucs/regcache/region.h>

#include <ucs/type/status.h>
#include <ucs/arch/bitops.h>
#include <ucs/sys/compiler_def.h>

/**
 * @file heap.h
 *
 * Registered regions, the least recently used on top. A use does not touch the
 * heap (the hit path takes no lock): the key that a region has here may be
 * older than its last use, never younger, and @ref ucs_heap_oldest
 * corrects the ones that it meets. The order is LRU all the same, at a
 * logarithmic cost for each use that was made in between, paid by eviction.
 * There may be as many of these as there are regions, so one eviction corrects
 * so many only, and takes the least recently used of them; the next ones go on
 * from there.
 *
 * Protected by the index lock; room is made outside of it, in segments of which
 * each is twice as long as the one before, so that nothing is ever copied.
 */

BEGIN_C_DECLS

/** Regions in the first segment; a power of two. */
#define UCS_HEAP_FIRST 64u

/** All together hold more regions than an unsigned can count. */
#define UCS_HEAP_SEGMENTS 26

typedef struct ucs_heap {
    ucs_regcache_region_t **segments[UCS_HEAP_SEGMENTS];
    unsigned              num_segments;
    unsigned              count;
} ucs_heap_t;

void ucs_heap_init(ucs_heap_t *heap);

/** Release the segments; the regions are not touched. */
void ucs_heap_cleanup(ucs_heap_t *heap);

/** @return Regions that segment @a number holds. */
static inline unsigned ucs_heap_segment_length(unsigned number)
{
    return UCS_HEAP_FIRST << number;
}

/** @return Regions that there is room for. */
static inline unsigned ucs_heap_capacity(const ucs_heap_t *heap)
{
    return ucs_heap_segment_length(heap->num_segments) - UCS_HEAP_FIRST;
}

/** @return Where the region at a position, below the capacity, stands. */
static inline ucs_regcache_region_t **ucs_heap_at(const ucs_heap_t *heap,
                                                  unsigned index)
{
    unsigned number = ucs_ilog2(index / UCS_HEAP_FIRST + 1);

    return &heap->segments[number][index + UCS_HEAP_FIRST -
                                   ucs_heap_segment_length(number)];
}

/**
 * Hand over the next segment.
 *
 * @param [in] segment  From malloc(), as many pointers as
 *                      ucs_heap_segment_length() of `num_segments`,
 *                      owned by the heap from now on.
 */
void ucs_heap_grow(ucs_heap_t *heap, ucs_regcache_region_t **segment);

/** Add a region; the heap must have room. */
void ucs_heap_push(ucs_heap_t *heap, ucs_regcache_region_t *region);

/** Remove a region if it is in the heap. */
void ucs_heap_remove(ucs_heap_t *heap, ucs_regcache_region_t *region);

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
ucs_regcache_region_t *ucs_heap_oldest(ucs_heap_t *heap, uint64_t now,
                                       unsigned *left_p);

/** @return Nonzero if order and back references hold; for tests and debug. */
int ucs_heap_is_valid(const ucs_heap_t *heap);

END_C_DECLS

#endif
