/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "firehose_int.h"

#include <time.h>

/*
 * The thread that moves an instance forward on request, and forks beside it.
 *
 * UCM holds a read-write lock while memory is mapped or unmapped. A child whose
 * parent's thread was in there finds it taken for ever, and hangs as soon as it
 * opens an instance or a UCX context of its own. So fork() waits until no
 * thread of ours is inside UCX.
 */

/* Read: a thread of ours is in UCX. Written: a fork is under way.
 * Anything may be held when it is taken for writing, hence the limit there. */
static pthread_rwlock_t ucp_firehose_threads =
        PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pthread_once_t ucp_firehose_fork_once = PTHREAD_ONCE_INIT;
static __thread int ucp_firehose_is_inside;
static __thread int ucp_firehose_holds_fork;

static void ucp_firehose_fork_prepare(void)
{
    struct timespec until;

    if (ucp_firehose_is_inside) {
        return; /* the program forks in a completion function */
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec           += UCP_FIREHOSE_FORK_WAIT_S;
    ucp_firehose_holds_fork =
            pthread_rwlock_timedwrlock(&ucp_firehose_threads, &until) == 0;
}

static void ucp_firehose_fork_parent(void)
{
    if (ucp_firehose_holds_fork) {
        ucp_firehose_holds_fork = 0;
        pthread_rwlock_unlock(&ucp_firehose_threads);
    }
}

/* The lock knows its writer by a number that the child does not have */
static void ucp_firehose_fork_child(void)
{
    static const pthread_rwlock_t unlocked =
            PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

    ucp_firehose_holds_fork = 0;
    ucp_firehose_threads    = unlocked;
}

static void ucp_firehose_fork_init(void)
{
    (void)pthread_atfork(ucp_firehose_fork_prepare, ucp_firehose_fork_parent,
                         ucp_firehose_fork_child);
}

static unsigned ucp_firehose_thread_turn(ucx_firehose_h firehose)
{
    unsigned count;

    pthread_rwlock_rdlock(&ucp_firehose_threads);
    ucp_firehose_is_inside = 1;
    count                  = ucx_firehose_progress(firehose);
    ucp_firehose_is_inside = 0;
    pthread_rwlock_unlock(&ucp_firehose_threads);
    return count;
}

static void *ucp_firehose_thread(void *arg)
{
    const struct timespec idle = {.tv_nsec = UCP_FIREHOSE_IDLE_US * 1000};
    ucx_firehose_h firehose    = arg;

    /* relaxed: what matters is that it is seen at some time */
    while (!ucs_load_relaxed(&firehose->thread_stops)) {
        if (ucp_firehose_thread_turn(firehose) == 0) {
            nanosleep(&idle, NULL);
        }
    }
    return NULL;
}

ucs_status_t ucp_firehose_thread_start(ucx_firehose_h firehose)
{
    pthread_once(&ucp_firehose_fork_once, ucp_firehose_fork_init);
    if (pthread_create(&firehose->thread, NULL, ucp_firehose_thread,
                       firehose) != 0) {
        return UCS_ERR_NO_MEMORY;
    }
    firehose->has_thread = 1;
    return UCS_OK;
}

void ucp_firehose_thread_stop(ucx_firehose_h firehose)
{
    if (firehose->has_thread) {
        ucs_store_relaxed(&firehose->thread_stops, 1);
        pthread_join(firehose->thread, NULL);
    }
}
