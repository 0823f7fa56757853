/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "tell.h"

static void ucp_door_receive_tell(ucp_door_receive_t *receive,
                                  ucp_door_data_t data, ucp_door_site_t site)
{
    ucp_door_state_t *state = ucp_door_get();
    uint32_t id             = 0;
    ucp_door_ring_t *ring;

    if (!ucp_door_is_wanted(UCS_OPERATION_RECEIVE, data.length) ||
        ((ring = ucp_door_ring(state)) == NULL)) {
        return;
    }

    receive->posted = &state->posted;
    receive->data   = data;
    if (data.length >= UCP_DOOR_FOLLOW_MIN) {
        do {
            id = ++ring->last_id;
        } while (id == 0);
        receive->ticket = ucp_door_ticket(ring->number, id);
    }
    ucp_door_tell(state, ring, UCS_OPERATION_RECEIVE, data, site, id);
}

void ucp_door_receive_begin(ucp_door_receive_t *receive, ucp_door_data_t data,
                            ucp_door_site_t site)
{
    receive->place  = ucp_door_thread.place;
    receive->ticket = 0;
    if (receive->place != UCP_DOOR_IN_UCP) {
        ucp_door_thread.place = UCP_DOOR_IN_UCP;
        ucp_door_receive_tell(receive, data, site);
    }
}

void ucp_door_receive_end(ucp_door_receive_t *receive, ucs_status_ptr_t request)
{
    int is_posted = (receive->ticket != 0) && (request != NULL) &&
                    !UCS_PTR_IS_ERR(request);

    /* A completed or refused receive has no request */
    ucp_door_tell_end(is_posted ? ucp_door_request_follow(receive->posted,
                                                          request,
                                                          receive->ticket) :
                                  receive->ticket);
    if (is_posted) {
        ucp_door_posted(receive->data);
    }
    ucp_door_leave(receive->place);
}

void ucp_door_request_ended(const void *request)
{
    ucp_door_tell_end(ucp_door_request_end(&ucp_door_get()->posted, request));
}
