/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "leader.h"

#include <ucs/sys/sync/atomic.h>

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Before glibc 2.34 a program without threads may lack these, and then its
 * first thread cannot leave either */
#pragma weak pthread_key_create
#pragma weak pthread_getspecific
#pragma weak pthread_setspecific

/* The key belongs to the first thread; a forked child has copies of both. */
static pthread_key_t uct_leader_key;
static int uct_leader_has_key;

static _Atomic(uct_leader_func_t) uct_leader_func;

/* Process whose first thread has left, by number, for a child has a first
 * thread of its own; 0: none. */
static _Atomic(pid_t) uct_leader_left;

static void uct_leader_leave(void *arg)
{
    uct_leader_func_t func;

    /* [L-LEFT] Either this swap comes after the add in uct_leader_on_leave(),
     * and then the function is seen below, or before it, and then that function
     * sees that this thread has left. */
    ucs_swap_acq_rel(&uct_leader_left, getpid());
    func = ucs_load_relaxed(&uct_leader_func);
    if (func != NULL) {
        func();
    }
}

void uct_leader_watch(void)
{
    if ((syscall(SYS_gettid) != getpid()) || (pthread_key_create == NULL) ||
        (pthread_getspecific == NULL) || (pthread_setspecific == NULL)) {
        return;
    }

    if (!uct_leader_has_key) {
        uct_leader_has_key = (pthread_key_create(&uct_leader_key,
                                                 uct_leader_leave) == 0);
    }
    if (uct_leader_has_key && (pthread_getspecific(uct_leader_key) == NULL)) {
        /* A destructor is called only for values other than NULL */
        (void)pthread_setspecific(uct_leader_key, &uct_leader_key);
    }
}

void uct_leader_on_leave(uct_leader_func_t func)
{
    ucs_store_relaxed(&uct_leader_func, func);
    /* [L-LEFT] An add of nothing stands in one order with the swap in
     * uct_leader_leave(). */
    if ((func != NULL) && (ucs_add_acq_rel(&uct_leader_left, 0) == getpid())) {
        func();
    }
}
