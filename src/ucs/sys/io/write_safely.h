/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_WRITE_SAFELY_H_
#define UCS_WRITE_SAFELY_H_

#include <signal.h>

/**
 * Suppresses the signals of failed writes: SIGXFSZ at the limit of a file's
 * size, SIGPIPE without a reader. They would end the program, which does not
 * know that the helper writes.
 *
 * While held, a write only returns its error. A pair of calls in one thread;
 * may be nested. Neither call allocates or fails.
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
