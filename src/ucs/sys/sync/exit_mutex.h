/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_EXIT_MUTEX_H_
#define UCS_EXIT_MUTEX_H_

#include <errno.h>
#include <pthread.h>
#include <time.h>

/*
 * A mutex that exit() takes. A signal handler may call exit(). The thread that it
 * interrupted may have the mutex, or a lock that the mutex's owner waits for. So a
 * thread that has it takes it once more, and a wait ends.
 */

/** A wait is of so many pauses, a second or a little more. A step takes milliseconds. */
#define UCS_EXIT_MUTEX_TRIES    10000
#define UCS_EXIT_MUTEX_PAUSE_NS 100000

typedef struct ucs_exit_mutex {
    pthread_mutex_t mutex;  /**< all others take and release this as usual */
    unsigned        nested; /**< holds by its owner beside the first */
} ucs_exit_mutex_t;

#define UCS_EXIT_MUTEX_INITIALIZER {PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP, 0}

/** A free mutex, in a forked child whatever it was. */
static inline void ucs_exit_mutex_init(ucs_exit_mutex_t *lock)
{
    const ucs_exit_mutex_t free_mutex = UCS_EXIT_MUTEX_INITIALIZER;

    *lock = free_mutex;
}

/** @return Nonzero if the calling thread has it now, to be released; zero if others
 *          have had it for @ref UCS_EXIT_MUTEX_TRIES. */
static inline int ucs_exit_mutex_hold(ucs_exit_mutex_t *lock)
{
    const struct timespec pause = {0, UCS_EXIT_MUTEX_PAUSE_NS};
    const struct timespec past  = {0, 0};
    unsigned left               = UCS_EXIT_MUTEX_TRIES;
    int ret;

    /* pthread_mutex_trylock() does not tell who has it */
    while (((ret = pthread_mutex_timedlock(&lock->mutex, &past)) == ETIMEDOUT) &&
           (left-- > 0)) {
        nanosleep(&pause, NULL);
    }
    lock->nested += (ret == EDEADLK);
    return ret != ETIMEDOUT;
}

/** End one hold. */
static inline void ucs_exit_mutex_release(ucs_exit_mutex_t *lock)
{
    if (lock->nested > 0) {
        --lock->nested;
    } else {
        pthread_mutex_unlock(&lock->mutex);
    }
}

#endif
