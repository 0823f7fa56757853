/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_FUTEX_H_
#define UCS_FUTEX_H_

#include <ucs/sys/sync/atomic.h>
#include <ucs/sys/compiler_def.h>

#include <stdint.h>

/*
 * Sleep on a word until another thread changes it and wakes. These functions do
 * not order memory: the word's loads and stores do. They neither allocate nor
 * fail; each wait may return early.
 */

BEGIN_C_DECLS

/** No limit of time. */
#define UCS_FUTEX_FOREVER UINT64_MAX

/** Threads that may wait for a word. */
typedef enum ucs_futex_scope {
    UCS_FUTEX_PRIVATE, /**< of this process */
    UCS_FUTEX_SHARED   /**< of all processes that map its memory */
} ucs_futex_scope_t;

/** Wake up to @a count threads that wait on @a word. */
void ucs_futex_wake(_Atomic(uint32_t) *word, int count,
                    ucs_futex_scope_t scope);

/** Wake all threads that wait on @a word. */
void ucs_futex_wake_all(_Atomic(uint32_t) *word, ucs_futex_scope_t scope);

/**
 * Block while @a *word == @a value.
 *
 * @param [in] ns  At most so long, nanoseconds, or UCS_FUTEX_FOREVER.
 */
void ucs_futex_wait(_Atomic(uint32_t) *word, uint32_t value, uint64_t ns,
                    ucs_futex_scope_t scope);

/** Likewise for threads of this process; spins shortly first. */
void ucs_futex_spin_and_wait(_Atomic(uint32_t) *word, uint32_t value,
                             uint64_t ns);

/** A word to wait for, and its value until then. */
typedef struct ucs_futex_word {
    _Atomic(uint32_t) *word;
    uint32_t          value;
    ucs_futex_scope_t scope;
} ucs_futex_word_t;

/**
 * Block while both words have these values, at most @a ns nanoseconds.
 *
 * @return Zero if the kernel cannot wait for two words (before Linux 5.16, or a
 *         filter refuses the call).
 */
int ucs_futex_wait_both(const ucs_futex_word_t words[2], uint64_t ns);

END_C_DECLS

#endif
