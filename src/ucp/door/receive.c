/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "tell.h"

/* Fields of the parameters that this build knows; flags are above them */
#define UCP_DOOR_PARAM_FIELDS \
    (UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FIELD_CALLBACK | \
     UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_DATATYPE | \
     UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_REPLY_BUFFER | \
     UCP_OP_ATTR_FIELD_MEMORY_TYPE | UCP_OP_ATTR_FIELD_RECV_INFO | \
     UCP_OP_ATTR_FIELD_MEMH)
#define UCP_DOOR_PARAM_FLAGS 0xffff0000u

/* Completion functions of tagged receives and active messages differ in one
 * argument */
static void *ucp_door_wrap_over(ucp_door_wrap_t *wrap,
                                ucp_door_callback_t *callback_p)
{
    ucp_door_ticket_t ticket = ucs_load_relaxed(&wrap->ticket);
    void *argument           = wrap->argument;

    *callback_p = wrap->callback;
    if (ucp_door_wrap_end(wrap, ticket)) {
        ucp_door_tell_end(ticket);
    }

    return argument;
}

static void ucp_door_received(void *request, ucs_status_t status,
                              const ucp_tag_recv_info_t *info, void *user_data)
{
    unsigned place = ucp_door_thread.place;
    ucp_door_callback_t callback;
    void *argument;

    argument              = ucp_door_wrap_over(user_data, &callback);
    ucp_door_thread.place = UCP_DOOR_IN_PROGRESS;
    ((ucp_tag_recv_nbx_callback_t)callback)(request, status, info, argument);
    ucp_door_leave(place);
}

static void ucp_door_received_am(void *request, ucs_status_t status,
                                 size_t length, void *user_data)
{
    unsigned place = ucp_door_thread.place;
    ucp_door_callback_t callback;
    void *argument;

    argument              = ucp_door_wrap_over(user_data, &callback);
    ucp_door_thread.place = UCP_DOOR_IN_PROGRESS;
    ((ucp_am_recv_data_nbx_callback_t)callback)(request, status, length,
                                                argument);
    ucp_door_leave(place);
}

/* A program built with an older UCX has shorter parameters, so only fields that
 * are set are read */
static void ucp_door_param_copy(ucp_request_param_t *to,
                                const ucp_request_param_t *from)
{
    uint32_t mask = from->op_attr_mask;

    *to = (ucp_request_param_t){.op_attr_mask = mask};
    if (mask & UCP_OP_ATTR_FIELD_FLAGS) {
        to->flags = from->flags;
    }
    if (mask & UCP_OP_ATTR_FIELD_REQUEST) {
        to->request = from->request;
    }
    if (mask & UCP_OP_ATTR_FIELD_DATATYPE) {
        to->datatype = from->datatype;
    }
    if (mask & UCP_OP_ATTR_FIELD_REPLY_BUFFER) {
        to->reply_buffer = from->reply_buffer;
    }
    if (mask & UCP_OP_ATTR_FIELD_MEMORY_TYPE) {
        to->memory_type = from->memory_type;
    }
    if (mask & UCP_OP_ATTR_FIELD_RECV_INFO) {
        to->recv_info = from->recv_info;
    }
    if (mask & UCP_OP_ATTR_FIELD_MEMH) {
        to->memh = from->memh;
    }
}

/* A receive without a completion function, or with parameters unknown to this
 * build, is followed by its request */
static void ucp_door_receive_wrap(ucp_door_receive_t *receive,
                                  const ucp_request_param_t *param)
{
    uint32_t mask = param->op_attr_mask;
    ucp_door_callback_t callback;

    if (!(mask & UCP_OP_ATTR_FIELD_CALLBACK) ||
        (mask & ~(UCP_DOOR_PARAM_FIELDS | UCP_DOOR_PARAM_FLAGS))) {
        return;
    }

    callback = receive->is_am ? (ucp_door_callback_t)param->cb.recv_am :
                                (ucp_door_callback_t)param->cb.recv;
    if (callback == NULL) {
        return;
    }

    receive->wrap = ucp_door_wrap_take(receive->posted, receive->ticket,
                                       callback,
                                       (mask & UCP_OP_ATTR_FIELD_USER_DATA) ?
                                       param->user_data : NULL);
    if (receive->wrap == NULL) {
        return;
    }

    ucp_door_param_copy(&receive->copy, param);
    receive->copy.op_attr_mask |= UCP_OP_ATTR_FIELD_USER_DATA;
    receive->copy.user_data     = receive->wrap;
    if (receive->is_am) {
        receive->copy.cb.recv_am = ucp_door_received_am;
    } else {
        receive->copy.cb.recv = ucp_door_received;
    }
    receive->param = &receive->copy;
}

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
                            ucp_door_site_t site,
                            const ucp_request_param_t *param, int is_am)
{
    receive->place  = ucp_door_thread.place;
    receive->ticket = 0;
    receive->wrap   = NULL;
    receive->is_am  = is_am;
    receive->param  = param;
    if (receive->place == UCP_DOOR_IN_UCP) {
        return;
    }

    ucp_door_thread.place = UCP_DOOR_IN_UCP;
    ucp_door_receive_tell(receive, data, site);
    if ((receive->ticket != 0) && (param != NULL)) {
        ucp_door_receive_wrap(receive, param);
    }
}

void ucp_door_receive_end(ucp_door_receive_t *receive, ucs_status_ptr_t request)
{
    int is_posted = (receive->ticket != 0) && (request != NULL) &&
                    !UCS_PTR_IS_ERR(request);
    ucp_door_ticket_t ended = 0;

    if (is_posted) {
        if (receive->wrap == NULL) {
            ended = ucp_door_request_follow(receive->posted, request,
                                            receive->ticket);
        }
    } else if ((receive->wrap == NULL) ||
               ucp_door_wrap_end(receive->wrap, receive->ticket)) {
        /* A completed or refused receive has no request */
        ended = receive->ticket;
    }

    ucp_door_tell_end(ended);
    if (is_posted) {
        ucp_door_posted(receive->data);
    }
    ucp_door_leave(receive->place);
}

void ucp_door_request_ended(const void *request)
{
    ucp_door_tell_end(ucp_door_request_end(&ucp_door_get()->posted, request));
}
