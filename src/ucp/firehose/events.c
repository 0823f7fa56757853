/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "events.h"

#include "firehose_core.h"

#include <ucm/api/ucm.h>
#include <ucs/sys/listeners.h>
#include <ucs/sys/process.h>

#include <pthread.h>

/* UCX's own caches use 1000; lower is earlier */
#define UCP_FIREHOSE_EVENTS_PRIORITY 900

static ucs_listeners_t ucp_firehose_listeners;
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
    ucx_firehose_h firehose;
    unsigned i;

    (void)arg;
    if (!ucs_process_is(ucp_firehose_events_process)) {
        return;
    }
    for (i = 0; i < UCS_LISTENERS_MAX; ++i) {
        firehose = ucs_listeners_enter(&ucp_firehose_listeners, i);
        if (firehose != NULL) {
            ucp_firehose_events_tell(firehose, type, event);
            ucs_listeners_exit(&ucp_firehose_listeners, i);
        }
    }
}

/* A child that opens an instance of its own begins anew: those of its parent
 * are its parent's */
static void ucp_firehose_events_adopt(void)
{
    ucs_listeners_forget(&ucp_firehose_listeners);
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
    pthread_once(&ucp_firehose_events_once, ucp_firehose_events_install);
    ucp_firehose_events_process = ucs_process_id();
    if (ucp_firehose_events_status != UCS_OK) {
        return ucp_firehose_events_status;
    }
    return ucs_listeners_join(&ucp_firehose_listeners, firehose);
}

void ucp_firehose_events_leave(ucx_firehose_h firehose)
{
    ucs_listeners_leave(&ucp_firehose_listeners, firehose);
}
