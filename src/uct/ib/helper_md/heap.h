/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_HEAP_H_
#define UCT_HELPER_HEAP_H_

#include "region.h"

#include <ucs/type/status.h>
#include <ucs/sys/compiler_def.h>

/**
 * @file heap.h
 *
 * Registered regions, the least recently used on top. A use does not touch the
 * heap (the hit path takes no lock): the key that a region has here may be
 * older than its last use, never younger, and @ref uct_helper_heap_oldest
 * corrects the ones that it meets. The order is exactly LRU all the same, at a
 * logarithmic cost for each use that was made in between, paid by eviction.
 *
 * Protected by the index lock; room is made outside of it.
 */

BEGIN_C_DECLS

typedef struct uct_helper_heap {
    uct_helper_region_t **array;
    unsigned            count;
    unsigned            capacity;
} uct_helper_heap_t;

void uct_helper_heap_init(uct_helper_heap_t *heap);

/** Release the array; the regions are not touched. */
void uct_helper_heap_cleanup(uct_helper_heap_t *heap);

/**
 * Hand over a larger array.
 *
 * @param [in] array     From malloc(), @a capacity pointers, owned by the heap
 *                       from now on.
 * @return The array that it replaces, to be released by the caller outside of
 *         the lock; NULL if there was none.
 */
uct_helper_region_t **uct_helper_heap_grow(uct_helper_heap_t *heap,
                                           uct_helper_region_t **array,
                                           unsigned capacity);

/** Add a region; the heap must have room. */
void uct_helper_heap_push(uct_helper_heap_t *heap, uct_helper_region_t *region);

/** Remove a region if it is in the heap. */
void uct_helper_heap_remove(uct_helper_heap_t *heap,
                            uct_helper_region_t *region);

/**
 * @return The least recently used region that has no user, or NULL. It stays
 *         in the heap.
 */
uct_helper_region_t *uct_helper_heap_oldest(uct_helper_heap_t *heap);

/** @return Nonzero if order and back references hold; for tests and debug. */
int uct_helper_heap_is_valid(const uct_helper_heap_t *heap);

END_C_DECLS

#endif
