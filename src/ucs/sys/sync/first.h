/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_FIRST_H_
#define UCS_FIRST_H_

#include <ucs/sys/sync/atomic.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/sys/sync/lock.h>

#include <stdint.h>

/*
 * A sum that the first thread changes without a read-modify-write, for most
 * programs communicate from one thread; other threads use another word. The
 * first thread is the first that comes. A later thread can have its identity
 * only after its end.
 */

typedef struct ucs_first {
    _Atomic(const void*) thread; /* NULL: none has come yet */
} ucs_first_t;

/** Distance of words that different threads write. */
#define UCS_FIRST_LINE 64

/** A sum that any thread changes; zeroed memory is a sum of 0. */
typedef struct ucs_first_sum {
    /* Written by the first thread alone */
    _Atomic(uint64_t) first __attribute__((aligned(UCS_FIRST_LINE)));
    /* Each of the two alone may be below 0 */
    _Atomic(uint64_t) others __attribute__((aligned(UCS_FIRST_LINE)));
} ucs_first_sum_t;

/** @return Nonzero if the caller is the first thread; it may become it. */
static inline int ucs_first_is_me(ucs_first_t *first)
{
    const void *self   = ucs_lock_self();
    const void *thread = ucs_load_relaxed(&first->thread);

    return ucs_likely(thread == self) ||
           ((thread == NULL) && ucs_cas_relaxed(&first->thread, &thread, self));
}

/** @return The sum after @a value was added to it. */
static inline uint64_t
ucs_first_sum_add(ucs_first_sum_t *sum, int is_first, uint64_t value)
{
    if (ucs_likely(is_first)) {
        value += ucs_load_relaxed(&sum->first);
        ucs_store_relaxed(&sum->first, value);
        return value + ucs_load_relaxed(&sum->others);
    }
    value += ucs_add_relaxed(&sum->others, value);
    return value + ucs_load_relaxed(&sum->first);
}

/** @return The sum; exact while nobody adds. */
static inline uint64_t ucs_first_sum_get(ucs_first_sum_t *sum)
{
    return ucs_load_relaxed(&sum->first) + ucs_load_relaxed(&sum->others);
}

#endif
