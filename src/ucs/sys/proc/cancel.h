/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_CANCEL_H_
#define UCS_CANCEL_H_

#include <pthread.h>

static inline int ucs_cancel_disable(void)
{
    int old;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    return old;
}

static inline void ucs_cancel_restore(const int *old)
{
    pthread_setcancelstate(*old, NULL);
}

/**
 * Defer cancellation of the calling thread to the end of the block, by whatever way
 * it is left. Drivers and log lines contain cancellation points; a thread cancelled
 * there would leave a lock taken or a registration unfinished, and hang all that wait
 * for it. Blocks may be nested.
 */
#define ucs_cancel_hold() \
    int ucs_cancel_old __attribute__((cleanup(ucs_cancel_restore))) = \
            ucs_cancel_disable()

#endif
