/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "spawn.h"

#include <signal.h>


int uct_helper_spawn(pthread_t *id_p, size_t stack_size,
                     void *(*main_func)(void *arg), void *arg)
{
    sigset_t all, old;
    pthread_attr_t attr;
    int ret;

    ret = pthread_attr_init(&attr);
    if (ret != 0) {
        return ret;
    }

    if (stack_size > 0) {
        pthread_attr_setstacksize(&attr, stack_size);
    }
    /* The thread inherits the mask: blocking by itself would be too late */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    ret = pthread_create(id_p, &attr, main_func, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return ret;
}
