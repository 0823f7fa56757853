/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "firehose_int.h"

#include <ucm/api/ucm.h>
#include <ucp/wire/wire_ucp.h>
#include <ucs/sys/proc/process.h>

#include <sched.h>

/*
 * An instance over UCP, with memory events and, on request, a thread (revoker.c).
 */

/* UCX's own caches use 1000; lower is earlier */
#define UCP_FIREHOSE_EVENTS_PRIORITY 900
#define UCP_FIREHOSE_EVENTS          (UCM_EVENT_VM_UNMAPPED | UCM_EVENT_VM_MAPPED)

/* Called before memory goes, and after it has come. Allocates, frees and logs
 * nothing, for the caller may be the allocator, and waits for the revoker alone,
 * with a limit. */
static void ucp_firehose_event(ucm_event_type_t type, ucm_event_t *event,
                               void *arg)
{
    ucx_firehose_h firehose = arg;
    uintptr_t start;

    if (!ucs_process_is(firehose->process)) {
        return;
    }
    if (type == UCM_EVENT_VM_UNMAPPED) {
        start = (uintptr_t)event->vm_unmapped.address;
        ucp_firehose_unmapped(firehose, start, start + event->vm_unmapped.size);
    } else if (type == UCM_EVENT_VM_MAPPED) {
        start = (uintptr_t)event->vm_mapped.address;
        ucp_firehose_mapped(firehose, start, start + event->vm_mapped.size);
    }
}

static void ucp_firehose_listen(ucx_firehose_h firehose)
{
    firehose->process    = ucp_wire_process();
    firehose->has_events =
            (ucm_set_event_handler(UCP_FIREHOSE_EVENTS,
                                   UCP_FIREHOSE_EVENTS_PRIORITY,
                                   ucp_firehose_event, firehose) == UCS_OK) &&
            (ucm_test_events(UCM_EVENT_VM_UNMAPPED) == UCS_OK);
}

ucs_status_t
ucx_firehose_open(const ucx_firehose_params_t *params, ucx_firehose_h *fh_p)
{
    ucx_firehose_h firehose;
    ucs_status_t status;
    ucp_wire_t *wire;

    status = ucp_wire_ucp_create(params->node, params->num_nodes, &wire);
    if (status == UCS_OK) {
        status = ucp_firehose_create(params, wire, &firehose);
    }
    if (status != UCS_OK) {
        return status;
    }
    if ((firehose->flags & (UCX_FIREHOSE_FLAG_STRICT |
                            UCX_FIREHOSE_FLAG_THREAD)) &&
        (ucp_firehose_revoker_start(firehose) != 0)) {
        ucp_firehose_destroy(firehose);
        return UCS_ERR_NO_MEMORY;
    }
    ucp_firehose_listen(firehose);
    *fh_p = firehose;
    return UCS_OK;
}

void ucx_firehose_close(ucx_firehose_h firehose)
{
    ucp_firehose_stop(firehose);
    while (!ucp_firehose_is_idle(firehose)) {
        if (ucx_firehose_progress(firehose) == 0) {
            sched_yield();
        }
    }
    /* UCM's lock sees to it that no event is inside when it has been told */
    ucm_unset_event_handler(UCP_FIREHOSE_EVENTS, ucp_firehose_event, firehose);
    ucp_firehose_revoker_stop(firehose);
    ucp_firehose_destroy(firehose);
}

void ucx_firehose_address(ucx_firehose_h firehose, const void **address_p,
                          size_t *length_p)
{
    ucp_firehose_lock(firehose);
    ucp_wire_ucp_address(firehose->wire, address_p, length_p);
    ucp_firehose_unlock(firehose);
}

ucs_status_t ucx_firehose_connect(ucx_firehose_h firehose, unsigned node,
                                  const void *address)
{
    ucs_status_t status;

    if ((node >= firehose->num_nodes) || (node == firehose->node)) {
        return UCS_ERR_INVALID_PARAM;
    }
    ucp_firehose_lock(firehose);
    status = ucp_wire_ucp_connect(firehose->wire, node, address);
    ucp_firehose_unlock(firehose);
    if (status == UCS_OK) {
        ucp_firehose_greet(firehose, node);
    }
    return status;
}
