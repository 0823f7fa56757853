/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_WRITE_SAFELY_H_
#define UCS_WRITE_SAFELY_H_

#include <signal.h>

/**
 * What a write may raise besides its error: SIGXFSZ at the limit of a file's
 * size, SIGPIPE where nobody reads any more. Either ends a program that does
 * not expect it, and the program does not know that the helper writes.
 *
 * While held, the error is all that comes. To be used by one thread, as a pair;
 * it may be nested. Neither call allocates or fails.
 */
typedef struct ucs_write_guard {
    sigset_t mask;    /* of the thread, before */
    sigset_t pending; /* before: not ours to take */
} ucs_write_guard_t;

/** Hold the signals of failed writes back from the calling thread. */
void ucs_write_hold(ucs_write_guard_t *guard);

/** Take those that came since, and let the thread have its signals again.
 *  Leaves errno as it is. */
void ucs_write_release(const ucs_write_guard_t *guard);

#endif
