/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "firehose_int.h"

#include <ucs/sys/clock.h>
#include <ucs/sys/sync/futex.h>

#include <sched.h>

/*
 * With UCX_FIREHOSE_FLAG_STRICT what is unmapped is revoked before it goes. The
 * thread that unmaps can neither send nor receive, for UCX allocates when it
 * does, and the caller may be the allocator. So it rings for a thread that
 * progresses, and sleeps until the buckets are let go. What keeps that thread
 * from it (a lock of the allocator, or of the program, that the caller holds; a
 * peer that makes no progress) cannot be told from here: the wait has a limit.
 * With UCX_FIREHOSE_FLAG_THREAD the same thread answers peers all the time.
 */

/* Part of each progress, not of the revoker's alone */
void ucp_firehose_revoker_tell(ucx_firehose_h firehose)
{
    ucp_firehose_revoker_t *revoker = &firehose->revoker;

    /* relaxed: the index lock orders it. A thread that found a bucket in use
     * under that lock had counted itself before, and the bucket has been let go
     * under the lock since. */
    if (ucs_unlikely(ucs_load_relaxed(&revoker->waiters) > 0)) {
        /* release [F-NEWS]: pairs with the load in
         * ucp_firehose_revoker_await() */
        ucs_add_acq_rel(&revoker->news, 1);
        ucs_futex_wake_all(&revoker->news, UCS_FUTEX_PRIVATE);
    }
}

static int ucp_firehose_revoker_may_wait(ucx_firehose_h firehose)
{
    const void *self = ucs_lock_self();

    /* relaxed: the thread compares with what itself would have stored */
    return (firehose->flags & UCX_FIREHOSE_FLAG_STRICT) &&
           (ucs_load_relaxed(&firehose->owner) != self) &&
           (ucs_load_relaxed(&firehose->revoker.self) != self);
}

static int ucp_firehose_revoker_await(ucx_firehose_h firehose, uint64_t doom)
{
    const uint64_t end = ucs_clock_monotonic() +
                         UCP_FIREHOSE_UNMAP_WAIT_MS * UINT64_C(1000000);
    ucp_firehose_revoker_t *revoker = &firehose->revoker;
    uint64_t now;
    uint32_t news;

    for (;;) {
        /* acquire [F-NEWS]: the look that follows is not older than this, so
         * that what it misses changes the word that is slept on */
        news = ucs_load_acquire(&revoker->news);
        if (!ucp_firehose_buckets_is_doomed(&firehose->buckets, doom)) {
            return 1;
        }
        now = ucs_clock_monotonic();
        if (now >= end) {
            return 0;
        }
        ucs_futex_wait(&revoker->news, news, end - now, UCS_FUTEX_PRIVATE);
    }
}

void ucp_firehose_revoker_wait(ucx_firehose_h firehose, uint64_t doom)
{
    ucp_firehose_revoker_t *revoker = &firehose->revoker;
    int is_over                   = 0;

    (void)ucs_add_relaxed(&revoker->unmaps, 1); /* relaxed: it counts */
    if (ucp_firehose_revoker_may_wait(firehose)) {
        (void)ucs_add_relaxed(&revoker->waiters, 1); /* the bell releases it */
        /* release [F-BELL]: pairs with the load in ucp_firehose_revoker_main(),
         * which finds what was struck before */
        ucs_add_acq_rel(&revoker->bell, 1);
        ucs_futex_wake(&revoker->bell, 1, UCS_FUTEX_PRIVATE);
        is_over = ucp_firehose_revoker_await(firehose, doom);
        (void)ucs_sub_relaxed(&revoker->waiters, 1); /* it releases nothing */
    }
    if (!is_over) {
        (void)ucs_add_relaxed(&revoker->late, 1); /* relaxed: it counts */
    }
}

/* What ends meanwhile is told by the program's own calls: a callback might wait for what
 * the thread that unmaps holds */
static unsigned ucp_firehose_revoker_turn(ucx_firehose_h firehose)
{
    unsigned count;

    if (!ucp_wire_thread_enter()) {
        return 0;
    }
    count = ucp_firehose_turn(firehose);
    ucp_wire_thread_leave();
    return count;
}

static void *ucp_firehose_revoker_main(void *arg)
{
    ucx_firehose_h firehose         = arg;
    ucp_firehose_revoker_t *revoker = &firehose->revoker;
    const int serves     = (firehose->flags & UCX_FIREHOSE_FLAG_THREAD) != 0;
    const uint64_t pause = serves ? UCP_FIREHOSE_IDLE_US * UINT64_C(1000) :
                                    UCS_FUTEX_FOREVER;
    uint32_t bell;
    int is_waited;

    /* relaxed: compared by this thread alone */
    ucs_store_relaxed(&revoker->self, ucs_lock_self());
    for (;;) {
        bell = ucs_load_acquire(&revoker->bell); /* acquire [F-BELL] */
        /* relaxed: what matters is that it is seen after the bell */
        if (ucs_load_relaxed(&revoker->stops)) {
            return NULL;
        }
        is_waited = ucs_load_relaxed(&revoker->waiters) > 0;
        if ((is_waited || serves) && (ucp_firehose_revoker_turn(firehose) > 0)) {
            continue;
        }
        if (is_waited) {
            sched_yield();
        } else {
            ucs_futex_wait(&revoker->bell, bell, pause, UCS_FUTEX_PRIVATE);
        }
    }
}

int ucp_firehose_revoker_start(ucx_firehose_h firehose)
{
    ucp_firehose_revoker_t *revoker = &firehose->revoker;
    int ret = ucp_wire_thread_start(&revoker->thread, ucp_firehose_revoker_main,
                                    firehose);

    revoker->runs = (ret == 0);
    return ret;
}

void ucp_firehose_revoker_stop(ucx_firehose_h firehose)
{
    ucp_firehose_revoker_t *revoker = &firehose->revoker;

    if (revoker->runs) {
        ucs_store_relaxed(&revoker->stops, 1);
        /* release [F-BELL]: with the store above */
        ucs_add_acq_rel(&revoker->bell, 1);
        ucs_futex_wake(&revoker->bell, 1, UCS_FUTEX_PRIVATE);
        ucs_spawn_join(&revoker->thread);
        revoker->runs = 0;
    }
}
