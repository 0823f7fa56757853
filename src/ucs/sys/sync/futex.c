/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/sys/sync/futex.h>
#include <ucs/sys/clock.h>

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define UCS_FUTEX_SPINS     64

#define UCS_FUTEX_SYS_WAITV 449

/* The kernel's struct futex_waitv, which older headers lack */
typedef struct ucs_futex_waitv {
    uint64_t value;
    uint64_t address;
    uint32_t flags;
    uint32_t reserved;
} ucs_futex_waitv_t;

enum {
    UCS_FUTEX_WAITV_SIZE_32 = 2
};

static int ucs_futex_flags(ucs_futex_scope_t scope)
{
    return (scope == UCS_FUTEX_PRIVATE) ? FUTEX_PRIVATE_FLAG : 0;
}

static struct timespec ucs_futex_time(uint64_t ns)
{
    struct timespec ts = {
        .tv_sec  = ns / UCS_CLOCK_NSEC_PER_SEC,
        .tv_nsec = ns % UCS_CLOCK_NSEC_PER_SEC
    };

    return ts;
}

void ucs_futex_wake(_Atomic(uint32_t) *word, int count, ucs_futex_scope_t scope)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE | ucs_futex_flags(scope), count,
                  NULL, NULL, 0);
}

void ucs_futex_wake_all(_Atomic(uint32_t) *word, ucs_futex_scope_t scope)
{
    ucs_futex_wake(word, INT_MAX, scope);
}

void ucs_futex_wait(_Atomic(uint32_t) *word, uint32_t value, uint64_t ns,
                    ucs_futex_scope_t scope)
{
    struct timespec timeout = ucs_futex_time(ns);

    (void)syscall(SYS_futex, word, FUTEX_WAIT | ucs_futex_flags(scope), value,
                  (ns == UCS_FUTEX_FOREVER) ? NULL : &timeout, NULL, 0);
}

void ucs_futex_spin_and_wait(_Atomic(uint32_t) *word, uint32_t value,
                             uint64_t ns)
{
    int i;

    /* A registration of some pages is over sooner than a sleep */
    for (i = 0; i < UCS_FUTEX_SPINS; ++i) {
        if (ucs_load_relaxed(word) != value) {
            return;
        }
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }

    ucs_futex_wait(word, value, ns, UCS_FUTEX_PRIVATE);
}

int ucs_futex_wait_both(const ucs_futex_word_t words[2], uint64_t ns)
{
    ucs_futex_waitv_t waiters[2];
    struct timespec until;
    int i;

    for (i = 0; i < 2; ++i) {
        waiters[i].value    = words[i].value;
        waiters[i].address  = (uintptr_t)words[i].word;
        waiters[i].flags    = UCS_FUTEX_WAITV_SIZE_32 |
                              ucs_futex_flags(words[i].scope);
        waiters[i].reserved = 0;
    }

    /* This call takes a time, not a duration */
    until = ucs_futex_time(ucs_clock_monotonic() + ns);
    return (syscall(UCS_FUTEX_SYS_WAITV, waiters, 2, 0,
                    (ns == UCS_FUTEX_FOREVER) ? NULL : &until,
                    CLOCK_MONOTONIC) >= 0) ||
           ((errno != ENOSYS) && (errno != EPERM) && (errno != EINVAL));
}
