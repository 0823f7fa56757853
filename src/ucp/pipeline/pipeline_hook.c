/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucp/pipeline/pipeline_int.h>

#include <ucm/api/ucm.h>

/* After all that UCX itself does at an event */
#define UCP_PIPELINE_HOOK_PRIORITY 1000

static void ucp_pipeline_hook_event(ucm_event_type_t type, ucm_event_t *event,
                                    void *arg)
{
    ucp_pipeline_unmapped(arg, event->vm_unmapped.address,
                          event->vm_unmapped.size);
}

int ucp_pipeline_hook(ucx_pipeline_h self)
{
    return ucm_set_event_handler(UCM_EVENT_VM_UNMAPPED,
                                 UCP_PIPELINE_HOOK_PRIORITY,
                                 ucp_pipeline_hook_event, self) == UCS_OK;
}

void ucp_pipeline_unhook(ucx_pipeline_h self)
{
    ucm_unset_event_handler(UCM_EVENT_VM_UNMAPPED, ucp_pipeline_hook_event,
                            self);
}
