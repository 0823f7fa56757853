/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_FORK_MUTEX_H_
#define UCS_FORK_MUTEX_H_

#ifndef _GNU_SOURCE
#  error "define _GNU_SOURCE"
#endif

#include <ucs/sys/sync/atomic.h>

#include <errno.h>
#include <pthread.h>
#include <time.h>

/**
 * @file fork_mutex.h
 *
 * A mutex that fork() and exit() take. A signal handler may call these. The thread
 * that it interrupted may have the mutex, or a lock that the mutex's owner waits for.
 * So a thread that has it takes it once more, and a wait ends. The next one does not
 * begin until the mutex has been free: a timer's signal may come again before the
 * thread goes on.
 */

/** A wait is of so many pauses, a second or a little more. A step takes milliseconds. */
#define UCS_FORK_MUTEX_TRIES    10000
#define UCS_FORK_MUTEX_PAUSE_NS 100000

typedef struct ucs_fork_mutex {
    pthread_mutex_t mutex;   /**< all others take and release this as usual */
    unsigned        nested;  /**< holds by its owner beside the first */
    _Atomic(int)    in_vain; /**< the latest hold has waited */
} ucs_fork_mutex_t;

#define UCS_FORK_MUTEX_INITIALIZER {PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP, 0, 0}


/** A free mutex, in a forked child whatever it was. */
static inline void ucs_fork_mutex_init(ucs_fork_mutex_t *lock)
{
    const pthread_mutex_t free_mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;

    lock->mutex  = free_mutex;
    lock->nested = 0;
    ucs_store_relaxed(&lock->in_vain, 0);
}

/** @return 0: the caller has it now; EDEADLK: and had it before; ETIMEDOUT. */
static inline int ucs_fork_mutex_try(ucs_fork_mutex_t *lock)
{
    const struct timespec past = {0, 0};

    /* pthread_mutex_trylock() does not tell who has it */
    return pthread_mutex_timedlock(&lock->mutex, &past);
}

/** @return Nonzero if the calling thread has it now, to be released; zero if others
 *          have had it for @ref UCS_FORK_MUTEX_TRIES. */
static inline int ucs_fork_mutex_hold(ucs_fork_mutex_t *lock)
{
    const struct timespec pause = {0, UCS_FORK_MUTEX_PAUSE_NS};
    unsigned left = ucs_load_relaxed(&lock->in_vain) ? 0 : UCS_FORK_MUTEX_TRIES;
    int ret;

    while (((ret = ucs_fork_mutex_try(lock)) == ETIMEDOUT) && (left-- > 0)) {
        nanosleep(&pause, NULL);
    }
    ucs_store_relaxed(&lock->in_vain, ret == ETIMEDOUT);
    lock->nested += (ret == EDEADLK);
    return (ret == 0) || (ret == EDEADLK);
}

/** The same without a wait: for a thread that has what the owner may wait for. */
static inline int ucs_fork_mutex_hold_now(ucs_fork_mutex_t *lock)
{
    int ret = ucs_fork_mutex_try(lock);

    lock->nested += (ret == EDEADLK);
    return ret != ETIMEDOUT;
}

/** @return Nonzero if the calling thread has it. */
static inline int ucs_fork_mutex_is_mine(ucs_fork_mutex_t *lock)
{
    int ret = ucs_fork_mutex_try(lock);

    if (ret == 0) {
        pthread_mutex_unlock(&lock->mutex);
    }
    return ret == EDEADLK;
}

/** End one hold; nothing if there was none. */
static inline void ucs_fork_mutex_release(ucs_fork_mutex_t *lock)
{
    if (!ucs_fork_mutex_is_mine(lock)) {
        return;
    }
    if (lock->nested > 0) {
        --lock->nested;
    } else {
        pthread_mutex_unlock(&lock->mutex);
    }
}

#endif
