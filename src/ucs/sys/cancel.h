/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_CANCEL_H_
#define UCS_CANCEL_H_

#include <ucs/sys/compiler_def.h>

#include <pthread.h>

BEGIN_C_DECLS

/**
 * What a thread of the application calls from here on may be a cancellation
 * point: a driver writes, a log line does. A thread that is cancelled there
 * would leave a lock that nobody opens, or a region that is for ever being
 * registered, and hang all that wait for it.
 *
 * @return What @ref ucs_cancel_restore takes.
 */
static inline int ucs_cancel_disable(void)
{
    int old;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    return old;
}


/** The end of what @ref ucs_cancel_disable began, in the same thread. Such
 *  pairs may be nested. @param [in] old  What that returned. */
static inline void ucs_cancel_restore(int old)
{
    pthread_setcancelstate(old, NULL);
}

END_C_DECLS

#endif
