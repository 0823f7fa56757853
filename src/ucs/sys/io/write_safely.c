/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/io/write_safely.h>

#include <errno.h>
#include <stddef.h>
#include <time.h>

static const int ucs_write_signals[] = {SIGXFSZ, SIGPIPE};

#define UCS_WRITE_NUM_SIGNALS \
    (sizeof(ucs_write_signals) / sizeof(ucs_write_signals[0]))

void ucs_write_hold(ucs_write_guard_t *guard)
{
    sigset_t ours;
    size_t i;

    sigemptyset(&ours);
    for (i = 0; i < UCS_WRITE_NUM_SIGNALS; ++i) {
        sigaddset(&ours, ucs_write_signals[i]);
    }
    sigpending(&guard->pending);
    pthread_sigmask(SIG_BLOCK, &ours, &guard->mask);
}

/* A write raises its signal in the writing thread, so it is pending here when
 * the write returns */
void ucs_write_release(const ucs_write_guard_t *guard)
{
    const struct timespec at_once = {0, 0};
    int error                     = errno;
    sigset_t one;
    size_t i;

    for (i = 0; i < UCS_WRITE_NUM_SIGNALS; ++i) {
        if (!sigismember(&guard->pending, ucs_write_signals[i])) {
            sigemptyset(&one);
            sigaddset(&one, ucs_write_signals[i]);
            (void)sigtimedwait(&one, NULL, &at_once);
        }
    }
    pthread_sigmask(SIG_SETMASK, &guard->mask, NULL);
    errno = error;
}
