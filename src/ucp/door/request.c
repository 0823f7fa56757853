/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "tell.h"

#include <ucp/api/ucp_compat.h>

/* --- Requests, whose end may be a receive's, and progress ----------------- */

/* The request ends with the call. Told before it, after which the request may be
 * another operation's. */
#define UCP_DOOR_ENDS(_name, _params, _args) \
    UCP_DOOR_ENTRY(void, _name, (void)0, _params, _args) \
    { \
        ucp_door_request_ended(request); \
        UCP_DOOR_REAL(_name) _args; \
    }

/* The call says whether the request has ended */
#define UCP_DOOR_TESTS(_ret, _name, _refusal, _has_ended, _params, _args) \
    UCP_DOOR_ENTRY(_ret, _name, _refusal, _params, _args) \
    { \
        _ret ret = UCP_DOOR_REAL(_name) _args; \
        \
        if (_has_ended) { \
            ucp_door_request_ended(request); \
        } \
        return ret; \
    }

UCP_DOOR_ENDS(ucp_request_free, (void *request), (request))

UCP_DOOR_ENDS(ucp_request_release, (void *request), (request))

/* An operation that cannot be cancelled has begun; nothing is told. Completion
 * functions that run inside are the program's. */
UCP_DOOR_ENDS(ucp_request_cancel, (ucp_worker_h worker, void *request),
              (worker, request))

UCP_DOOR_TESTS(ucs_status_t, ucp_request_check_status, UCS_ERR_UNSUPPORTED,
               ret != UCS_INPROGRESS, (void *request), (request))

UCP_DOOR_TESTS(ucs_status_t, ucp_tag_recv_request_test, UCS_ERR_UNSUPPORTED,
               ret != UCS_INPROGRESS,
               (void *request, ucp_tag_recv_info_t *info), (request, info))

UCP_DOOR_TESTS(ucs_status_t, ucp_request_test, UCS_ERR_UNSUPPORTED,
               ret != UCS_INPROGRESS,
               (void *request, ucp_tag_recv_info_t *info), (request, info))

UCP_DOOR_TESTS(int, ucp_request_is_completed, 1, ret, (void *request),
               (request))

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
