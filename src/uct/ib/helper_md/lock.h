/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_LOCK_H_
#define UCT_HELPER_LOCK_H_

#include <ucs/sys/atomic.h>

#include <pthread.h>
#include <sched.h>

/**
 * @file lock.h
 *
 * The light compare-and-swap lock of Li et al. 2011, section 4.1. It is held
 * for a few hundred instructions, or while UCT_HELPER_LOT regions are looked
 * at, and never across a registration, a system call, an allocation, a log line
 * or a call out: a memory-event callback takes it inside munmap().
 *
 * The owner is known, because a signal handler may unmap memory while the
 * very thread that it interrupted holds the lock.
 */

typedef struct uct_helper_lock {
    _Atomic(const void*) owner; /* NULL when free */
} uct_helper_lock_t;

/* Spins this often before it lets another thread run: the owner may have been
 * descheduled on a machine with fewer cores than threads. */
#define UCT_HELPER_LOCK_SPINS 100

/**
 * @return A value that differs between all running threads. Not the address of
 *         a thread-local variable: in a library that is loaded late the first
 *         access to one allocates, and this runs inside free().
 */
static inline const void *uct_helper_lock_self(void)
{
    return (const void*)pthread_self();
}

static inline void uct_helper_lock_init(uct_helper_lock_t *lock)
{
    atomic_init(&lock->owner, NULL);
}

/** @return Nonzero if the calling thread holds the lock. */
static inline int uct_helper_lock_is_mine(uct_helper_lock_t *lock)
{
    return ucs_load_relaxed(&lock->owner) == uct_helper_lock_self();
}

static inline void uct_helper_lock(uct_helper_lock_t *lock)
{
    unsigned spins       = 0;
    const void *expected = NULL;

    /* acquire [L-OWNER]: pairs with the release in uct_helper_unlock() */
    while (!ucs_cas_acq_rel(&lock->owner, &expected, uct_helper_lock_self())) {
        expected = NULL;
        if (++spins > UCT_HELPER_LOCK_SPINS) {
            sched_yield();
        }
    }
}

/** @return Nonzero if the lock has been taken; gives up after some spins. */
static inline int uct_helper_lock_try(uct_helper_lock_t *lock)
{
    unsigned spins;
    const void *expected;

    for (spins = 0; spins < UCT_HELPER_LOCK_SPINS; ++spins) {
        expected = NULL;
        /* acquire [L-OWNER]: pairs with the release in uct_helper_unlock() */
        if (ucs_cas_acq_rel(&lock->owner, &expected, uct_helper_lock_self())) {
            return 1;
        }
    }
    return 0;
}

static inline void uct_helper_unlock(uct_helper_lock_t *lock)
{
    /* release [L-OWNER]: pairs with the acquire in uct_helper_lock() */
    ucs_store_release(&lock->owner, NULL);
}

#endif
