/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "posted.h"

#include <ucs/sys/hash.h>

#include <stddef.h>

#define UCP_DOOR_REQUEST_WRITING 1

static ucp_door_request_t *ucp_door_request_place(ucp_door_posted_t *posted,
                                                  uintptr_t request, unsigned i)
{
    uint64_t first = ucs_hash_mix(request);

    return &posted->requests[(first + i) & (UCP_DOOR_REQUESTS - 1)];
}

ucp_door_ticket_t ucp_door_request_end(ucp_door_posted_t *posted,
                                       const void *request)
{
    ucp_door_request_t *place;
    ucp_door_ticket_t ticket;
    uintptr_t found;
    unsigned i;

    if (ucs_load_relaxed(&posted->num_requests) == 0) {
        return 0;
    }

    for (i = 0; i < UCP_DOOR_PROBES; ++i) {
        place = ucp_door_request_place(posted, (uintptr_t)request, i);
        found = (uintptr_t)request;
        /* [O-REQUEST] The acquire pairs with the release of the thread that
         * follows the request: the ticket is this one's. */
        if (ucs_load_acquire(&place->request) != found) {
            continue;
        }
        ticket = ucs_load_relaxed(&place->ticket);
        /* [O-REQUEST] The release pairs with the acquire of the thread that
         * takes the place next. */
        if (ucs_cas_acq_rel(&place->request, &found, 0)) {
            ucs_sub_relaxed(&posted->num_requests, 1);
            return ticket;
        }
    }

    return 0;
}

ucp_door_ticket_t ucp_door_request_follow(ucp_door_posted_t *posted,
                                          const void *request,
                                          ucp_door_ticket_t ticket)
{
    /* UCX has reused the request's memory, so its last receive has ended */
    ucp_door_ticket_t before = ucp_door_request_end(posted, request);
    ucp_door_request_t *place;
    uintptr_t free;
    unsigned i;

    for (i = 0; i < UCP_DOOR_PROBES; ++i) {
        place = ucp_door_request_place(posted, (uintptr_t)request, i);
        free  = 0;
        /* [O-REQUEST] The acquire pairs with the release of the place's last
         * end, whose ticket has been read. */
        if (ucs_cas_acq_rel(&place->request, &free, UCP_DOOR_REQUEST_WRITING)) {
            ucs_add_relaxed(&posted->num_requests, 1);
            ucs_store_relaxed(&place->ticket, ticket);
            /* [O-REQUEST] A thread that finds the request finds its ticket. */
            ucs_store_release(&place->request, (uintptr_t)request);
            return before;
        }
    }

    /* No place: tell this one's end at once; the earlier one's was never
     * told */
    return ticket;
}
