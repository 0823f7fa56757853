/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_HEAP_H_
#define UCS_HEAP_H_

#include <ucs/arch/bitops.h>
#include <ucs/sys/compiler_def.h>

#include <stdint.h>

/*
 * Binary heap, the least key on top. Intrusive: an element is part of its
 * object and knows its position, so that any can be removed. The caller's lock
 * protects heap and elements, and nothing is allocated under it: the owner adds
 * room before, in segments that double in length, so that nothing is copied.
 *
 * Invariant of each element e at position i:
 *   e.index == i + 1,  e.key >= key of the element at (i - 1) / 2
 */

BEGIN_C_DECLS

/** Elements in the first segment; a power of two. */
#define UCS_HEAP_FIRST 64u

/** All together hold more elements than an unsigned can count. */
#define UCS_HEAP_SEGMENTS 26

typedef struct ucs_heap_elem {
    uint64_t key;
    unsigned index; /**< position + 1, 0: not in a heap */
} ucs_heap_elem_t;

/** All zeros if empty, without room. */
typedef struct ucs_heap {
    ucs_heap_elem_t **segments[UCS_HEAP_SEGMENTS];
    unsigned        num_segments;
    unsigned        count;
} ucs_heap_t;

/** Release the segments; the elements are not touched. */
void ucs_heap_cleanup(ucs_heap_t *heap);

/** @return Elements that segment @a number holds. */
static inline unsigned ucs_heap_segment_length(unsigned number)
{
    return UCS_HEAP_FIRST << number;
}

/** @return Elements that there is room for. */
static inline unsigned ucs_heap_capacity(const ucs_heap_t *heap)
{
    return ucs_heap_segment_length(heap->num_segments) - UCS_HEAP_FIRST;
}

/** @return The place of the element at a position below the capacity. */
static inline ucs_heap_elem_t **ucs_heap_at(const ucs_heap_t *heap,
                                            unsigned position)
{
    unsigned number = ucs_ilog2(position / UCS_HEAP_FIRST + 1);

    return &heap->segments[number][position + UCS_HEAP_FIRST -
                                   ucs_heap_segment_length(number)];
}

/**
 * Hand over the next segment.
 *
 * @param [in] segment  From ucs_own_alloc(), as many pointers as
 *                      ucs_heap_segment_length() of `num_segments`,
 *                      owned by the heap from now on.
 */
void ucs_heap_grow(ucs_heap_t *heap, ucs_heap_elem_t **segment);

/** Add an element with this key, which is in no heap; there must be room. */
void ucs_heap_push(ucs_heap_t *heap, ucs_heap_elem_t *elem, uint64_t key);

/** Remove an element of this heap; does nothing if it is in none. */
void ucs_heap_remove(ucs_heap_t *heap, ucs_heap_elem_t *elem);

/** Give an element of this heap a key that is not less than the one it has. */
void ucs_heap_raise(ucs_heap_t *heap, ucs_heap_elem_t *elem, uint64_t key);

END_C_DECLS

#endif
