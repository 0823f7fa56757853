/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "spawn.h"
#include "process.h"

#include <ucs/sys/atomic.h>

#include <errno.h>
#include <signal.h>

/* One beginning or end, and one thread: see ucs_spawn_ours() */
#define UCS_SPAWN_CHANGE (UINT64_C(1) << 32)
#define UCS_SPAWN_THREAD UINT64_C(1)

/* Larger stacks than this are not tried, bytes */
#define UCS_SPAWN_STACK_MAX (UINT64_C(1) << 30)

static _Atomic(uint64_t) ucs_spawn_state;


/* The C library takes a program's thread-local variables off the stack, and
 * refuses one that does not hold them; it does not say how large they are */
static int ucs_spawn_create(pthread_t *id_p, pthread_attr_t *attr,
                            size_t stack_size, void *(*main_func)(void *arg),
                            void *arg)
{
    int ret;

    do {
        if (stack_size > 0) {
            pthread_attr_setstacksize(attr, stack_size);
        }
        ret         = pthread_create(id_p, attr, main_func, arg);
        stack_size *= 2;
    } while ((ret == EINVAL) && (stack_size > 0) &&
             (stack_size <= UCS_SPAWN_STACK_MAX));
    return ret;
}

int ucs_spawn(pthread_t *id_p, size_t stack_size, void *(*main_func)(void *arg),
              void *arg)
{
    sigset_t all, old;
    pthread_attr_t attr;
    int ret;

    ret = pthread_attr_init(&attr);
    if (ret != 0) {
        return ret;
    }

    /* The thread inherits the mask: blocking by itself would be too late */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    ret = ucs_spawn_create(id_p, &attr, stack_size, main_func, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return ret;
}

void ucs_spawn_enter(void)
{
    /* First a child of whatever kind must have forgotten its parent's */
    ucs_process_id();
    /* release [S-OURS]: pairs with the acquire in ucs_spawn_ours(); the kernel
     * counts this thread already */
    ucs_add_acq_rel(&ucs_spawn_state, UCS_SPAWN_CHANGE + UCS_SPAWN_THREAD);
}

void ucs_spawn_leave(void)
{
    /* release [S-OURS]: likewise; the kernel still counts this thread */
    ucs_add_acq_rel(&ucs_spawn_state, UCS_SPAWN_CHANGE - UCS_SPAWN_THREAD);
}

uint64_t ucs_spawn_ours(void)
{
    /* acquire [S-OURS]: pairs with the additions of a thread that enters or
     * leaves: what the kernel says of it in between is later than the one and
     * earlier than the other */
    return ucs_load_acquire(&ucs_spawn_state);
}

void ucs_spawn_forget(void)
{
    ucs_store_relaxed(&ucs_spawn_state, 0);
}
