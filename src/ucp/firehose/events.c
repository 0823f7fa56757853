/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "events.h"

#include "firehose_core.h"

#include <ucm/api/ucm.h>
#include <ucs/sys/atomic.h>
#include <ucs/sys/process.h>

#include <pthread.h>
#include <sched.h>

/* UCX's own caches use 1000; lower is earlier */
#define UCP_FIREHOSE_EVENTS_PRIORITY 900

/** Instances of one process that hear of events. */
#define UCP_FIREHOSE_EVENTS_MAX 16

/*
 * Invariant: an event is inside an instance only while readers > 0 of its slot,
 * and cannot reach it once `firehose` has become NULL.
 */
typedef struct ucp_firehose_listener {
    _Atomic(ucx_firehose_h) firehose;
    _Atomic(unsigned)       readers;
} ucp_firehose_listener_t;

static ucp_firehose_listener_t ucp_firehose_listeners[UCP_FIREHOSE_EVENTS_MAX];
static pthread_once_t ucp_firehose_events_once = PTHREAD_ONCE_INIT;
static ucs_status_t ucp_firehose_events_status;
/* A child of a fork has neither the threads of its parent nor what they pinned,
 * and finds locks closed that they held */
static uint32_t ucp_firehose_events_process;

static void ucp_firehose_events_tell(ucx_firehose_h firehose,
                                     ucm_event_type_t type,
                                     const ucm_event_t *event)
{
    uintptr_t start;

    if (type == UCM_EVENT_VM_UNMAPPED) {
        start = (uintptr_t)event->vm_unmapped.address;
        ucp_firehose_unmapped(firehose, start, start + event->vm_unmapped.size);
    } else if (type == UCM_EVENT_VM_MAPPED) {
        start = (uintptr_t)event->vm_mapped.address;
        ucp_firehose_mapped(firehose, start, start + event->vm_mapped.size);
    }
}

/* Called before memory goes, and after it has come. Allocates, frees and logs
 * nothing, for the caller may be the allocator, and waits for the warden alone,
 * with a limit. */
static void ucp_firehose_events_callback(ucm_event_type_t type,
                                         ucm_event_t *event, void *arg)
{
    ucp_firehose_listener_t *slot;
    ucx_firehose_h firehose;
    unsigned i;

    (void)arg;
    if (!ucs_process_is(ucp_firehose_events_process)) {
        return;
    }
    for (i = 0; i < UCP_FIREHOSE_EVENTS_MAX; ++i) {
        slot = &ucp_firehose_listeners[i];
        if (ucs_load_relaxed(&slot->firehose) == NULL) {
            continue; /* relaxed: who joins meanwhile has pinned nothing yet */
        }
        /* [F-READER] The add comes after the swap in
         * ucp_firehose_events_leave(), and then the NULL is seen below, or
         * before it, and then that function waits for the sub */
        ucs_add_acq_rel(&slot->readers, 1);
        firehose = ucs_load_acquire(&slot->firehose);
        if (firehose != NULL) {
            ucp_firehose_events_tell(firehose, type, event);
        }
        /* [F-READER] pairs with the add in ucp_firehose_events_leave() */
        ucs_sub_acq_rel(&slot->readers, 1);
    }
}

/* A child that opens an instance of its own begins anew: those of its parent
 * are its parent's */
static void ucp_firehose_events_adopt(void)
{
    unsigned i;

    for (i = 0; i < UCP_FIREHOSE_EVENTS_MAX; ++i) {
        atomic_init(&ucp_firehose_listeners[i].firehose, NULL);
        atomic_init(&ucp_firehose_listeners[i].readers, 0);
    }
}

static void ucp_firehose_events_install(void)
{
    ucs_process_init(ucp_firehose_events_adopt);
    ucp_firehose_events_status =
            ucm_set_event_handler(UCM_EVENT_VM_UNMAPPED | UCM_EVENT_VM_MAPPED,
                                  UCP_FIREHOSE_EVENTS_PRIORITY,
                                  ucp_firehose_events_callback, NULL);
    if (ucp_firehose_events_status == UCS_OK) {
        ucp_firehose_events_status = ucm_test_events(UCM_EVENT_VM_UNMAPPED);
    }
}

ucs_status_t ucp_firehose_events_join(ucx_firehose_h firehose)
{
    ucx_firehose_h none;
    unsigned i;

    pthread_once(&ucp_firehose_events_once, ucp_firehose_events_install);
    ucp_firehose_events_process = ucs_process_id();
    if (ucp_firehose_events_status != UCS_OK) {
        return ucp_firehose_events_status;
    }
    for (i = 0; i < UCP_FIREHOSE_EVENTS_MAX; ++i) {
        none = NULL;
        /* [F-READER] pairs with the load in ucp_firehose_events_callback(), for
         * which the instance is whole */
        if (ucs_cas_acq_rel(&ucp_firehose_listeners[i].firehose, &none,
                            firehose)) {
            return UCS_OK;
        }
    }
    return UCS_ERR_EXCEEDS_LIMIT;
}

void ucp_firehose_events_leave(ucx_firehose_h firehose)
{
    ucp_firehose_listener_t *slot;
    unsigned i;

    for (i = 0; i < UCP_FIREHOSE_EVENTS_MAX; ++i) {
        slot = &ucp_firehose_listeners[i];
        if (ucs_load_relaxed(&slot->firehose) != firehose) {
            continue; /* relaxed: this thread, or one before it, wrote it */
        }
        /* [F-READER] pairs with the add in ucp_firehose_events_callback() */
        ucs_swap_acq_rel(&slot->firehose, NULL);
        /* [F-READER] an add of nothing, so that it is ordered with the add and
         * the sub in ucp_firehose_events_callback() */
        while (ucs_add_acq_rel(&slot->readers, 0) > 0) {
            sched_yield();
        }
    }
}
