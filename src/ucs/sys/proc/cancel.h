/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_CANCEL_H_
#define UCS_CANCEL_H_

#include <pthread.h>

/**
 * Defer cancellation of the calling thread. Drivers and log lines contain
 * cancellation points; a thread cancelled there would leave a lock taken or a
 * registration unfinished, and hang all that wait for it.
 *
 * @return The state, for @ref ucs_cancel_restore.
 */
static inline int ucs_cancel_disable(void)
{
    int old;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    return old;
}

/** Restore the state, in the same thread. Pairs may be nested. @param [in] old
 *  From @ref ucs_cancel_disable. */
static inline void ucs_cancel_restore(int old)
{
    pthread_setcancelstate(old, NULL);
}

#endif
