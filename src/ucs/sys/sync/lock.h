/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_LOCK_H_
#define UCS_LOCK_H_

#include <ucs/sys/sync/atomic.h>
#include <ucs/sys/sync/give_way.h>

#include <pthread.h>

/*
 * The compare-and-swap lock of Li et al. 2011, section 4.1. It is held for a
 * few hundred instructions, or for a bounded lot of a longer walk, and never
 * across a registration, system call, allocation, log line or callback: a
 * memory event takes it inside munmap().
 *
 * It knows its owner: a signal handler may unmap memory while the thread that
 * it interrupted holds the lock.
 */

typedef struct ucs_lock {
    _Atomic(const void*) owner; /* NULL when free */
} ucs_lock_t;

/* Spins this often before it lets another thread run: the owner may have been
 * descheduled on a machine with fewer cores than threads. */
#define UCS_LOCK_SPINS 100

#if defined(__has_builtin) && !defined(pthread_self)
#  define UCS_LOCK_HAVE_THREAD_POINTER __has_builtin(__builtin_thread_pointer)
#else
#  define UCS_LOCK_HAVE_THREAD_POINTER 0
#endif

/**
 * @return A value that differs between all running threads. Not the address of
 *         a thread-local variable: in a library that is loaded late the first
 *         access to one allocates, and this runs inside free().
 */
static inline const void *ucs_lock_self(void)
{
#if UCS_LOCK_HAVE_THREAD_POINTER
    return __builtin_thread_pointer(); /* one load, pthread_self() is a call */
#else
    return (const void*)pthread_self();
#endif
}

/** Initialize a free lock. */
static inline void ucs_lock_init(ucs_lock_t *lock)
{
    atomic_init(&lock->owner, NULL);
}

/** @return Nonzero if the calling thread holds the lock. */
static inline int ucs_lock_is_mine(ucs_lock_t *lock)
{
    return ucs_load_relaxed(&lock->owner) == ucs_lock_self();
}

/** Take the lock; the calling thread does not hold it. Spins and lets other
 *  threads run in turn. */
static inline void ucs_lock(ucs_lock_t *lock)
{
    unsigned spins       = 0;
    const void *expected = NULL;

    /* acquire [L-OWNER]: pairs with the release in ucs_unlock(), so that what
     * its last owner wrote is seen */
    while (!ucs_cas_acq_rel(&lock->owner, &expected, ucs_lock_self())) {
        expected = NULL;
        if (++spins > UCS_LOCK_SPINS) {
            ucs_give_way();
        }
    }
}

/** @return Nonzero if the lock has been taken; gives up after some spins. */
static inline int ucs_lock_try(ucs_lock_t *lock)
{
    unsigned spins;
    const void *expected;

    for (spins = 0; spins < UCS_LOCK_SPINS; ++spins) {
        expected = NULL;
        /* acquire [L-OWNER]: pairs with the release in ucs_unlock() */
        if (ucs_cas_acq_rel(&lock->owner, &expected, ucs_lock_self())) {
            return 1;
        }
    }
    return 0;
}

/** Release the lock; the calling thread holds it. */
static inline void ucs_unlock(ucs_lock_t *lock)
{
    /* release [L-OWNER]: pairs with the acquires in ucs_lock() and
     * ucs_lock_try() */
    ucs_store_release(&lock->owner, NULL);
}

#endif
