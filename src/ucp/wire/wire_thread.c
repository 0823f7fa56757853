/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucp/wire/tuning_table.h>
#include <ucp/wire/wire_thread.h>

#include <ucs/sys/proc/process.h>

#include <time.h>

/* Read: a thread of ours is in UCX. Written: a fork is under way.
 * Anything may be held when it is taken for writing, hence the limit there. */
static pthread_rwlock_t ucp_wire_threads =
        PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pthread_once_t ucp_wire_fork_once = PTHREAD_ONCE_INIT;
static __thread int ucp_wire_holds_fork;

static void ucp_wire_fork_prepare(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec       += UCP_WIRE_FORK_WAIT_SECONDS;
    ucp_wire_holds_fork =
            pthread_rwlock_timedwrlock(&ucp_wire_threads, &until) == 0;
}

static void ucp_wire_fork_parent(void)
{
    if (ucp_wire_holds_fork) {
        ucp_wire_holds_fork = 0;
        pthread_rwlock_unlock(&ucp_wire_threads);
    }
}

/* The lock knows its writer by a number that the child does not have */
static void ucp_wire_fork_child(void)
{
    static const pthread_rwlock_t unlocked =
            PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

    ucp_wire_holds_fork = 0;
    ucp_wire_threads    = unlocked;
}

static void ucp_wire_fork_init(void)
{
    (void)pthread_atfork(ucp_wire_fork_prepare, ucp_wire_fork_parent,
                         ucp_wire_fork_child);
}

int ucp_wire_thread_start(ucs_spawned_t *thread, void *(*main_func)(void *arg),
                          void *arg)
{
    pthread_once(&ucp_wire_fork_once, ucp_wire_fork_init);
    return ucs_spawn(thread, 0, main_func, arg);
}

static void ucp_wire_adopt(void)
{
}

uint32_t ucp_wire_process(void)
{
    ucs_process_init(ucp_wire_adopt);
    return ucs_process_id();
}

int ucp_wire_thread_enter(void)
{
    return pthread_rwlock_tryrdlock(&ucp_wire_threads) == 0;
}

void ucp_wire_thread_leave(void)
{
    pthread_rwlock_unlock(&ucp_wire_threads);
}
