/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "hear.h"

#include <ucp/api/ucp_compat.h>

/*
 * Requests, whose end may be a receive's, and progress
 */


/* Told before the call, after which the request may be another operation's */
UCP_DOOR_ENTRY(void, ucp_request_free, (void)0, (void *request), (request))
{
    ucp_door_request_ended(request);
    UCP_DOOR_REAL(ucp_request_free)(request);
}

UCP_DOOR_ENTRY(void, ucp_request_release, (void)0, (void *request), (request))
{
    ucp_door_request_ended(request);
    UCP_DOOR_REAL(ucp_request_release)(request);
}

/* An operation that cannot be cancelled has begun; nothing is told. Completion
 * functions that run inside are the program's. */
UCP_DOOR_ENTRY(void, ucp_request_cancel, (void)0,
               (ucp_worker_h worker, void *request), (worker, request))
{
    ucp_door_request_ended(request);
    UCP_DOOR_REAL(ucp_request_cancel)(worker, request);
}

UCP_DOOR_ENTRY(ucs_status_t, ucp_request_check_status, UCS_ERR_UNSUPPORTED,
               (void *request), (request))
{
    ucs_status_t status = UCP_DOOR_REAL(ucp_request_check_status)(request);

    if (status != UCS_INPROGRESS) {
        ucp_door_request_ended(request);
    }
    return status;
}

UCP_DOOR_ENTRY(ucs_status_t, ucp_tag_recv_request_test, UCS_ERR_UNSUPPORTED,
               (void *request, ucp_tag_recv_info_t *info), (request, info))
{
    ucs_status_t status = UCP_DOOR_REAL(ucp_tag_recv_request_test)(request,
                                                                   info);

    if (status != UCS_INPROGRESS) {
        ucp_door_request_ended(request);
    }
    return status;
}

UCP_DOOR_ENTRY(ucs_status_t, ucp_request_test, UCS_ERR_UNSUPPORTED,
               (void *request, ucp_tag_recv_info_t *info), (request, info))
{
    ucs_status_t status = UCP_DOOR_REAL(ucp_request_test)(request, info);

    if (status != UCS_INPROGRESS) {
        ucp_door_request_ended(request);
    }
    return status;
}

UCP_DOOR_ENTRY(int, ucp_request_is_completed, 1, (void *request), (request))
{
    int is_completed = UCP_DOOR_REAL(ucp_request_is_completed)(request);

    if (is_completed) {
        ucp_door_request_ended(request);
    }
    return is_completed;
}

/* Calls from a completion function or from inside UCP only pass */
UCP_DOOR_ENTRY(unsigned, ucp_worker_progress, 0, (ucp_worker_h worker),
               (worker))
{
    unsigned place = ucp_door_thread.place;
    unsigned count;

    if (place != UCP_DOOR_OUTSIDE) {
        return UCP_DOOR_REAL(ucp_worker_progress)(worker);
    }

    ucp_door_thread.place = UCP_DOOR_IN_PROGRESS;
    count                 = UCP_DOOR_REAL(ucp_worker_progress)(worker);
    ucp_door_leave(UCP_DOOR_OUTSIDE);
    if (ucp_door_is_idle(count)) {
        ucp_door_idle();
    }
    return count;
}
