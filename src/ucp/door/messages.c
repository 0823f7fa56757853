/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "tell.h"

#include <ucp/api/ucp_compat.h>

/* The entry point of a send: its arguments are named buffer, count, datatype */
#define UCP_DOOR_SENDS(_ret, _name, _params, _args) \
    UCP_DOOR_PASSING(_ret, _name, UCS_OPERATION_SEND, \
                     ucp_door_most(count, datatype), \
                     ucp_door_data(buffer, count, datatype), _params, _args)

/* The entry point of a receive with parameters: its arguments are named buffer,
 * count, param */
#define UCP_DOOR_RECEIVES_WITH_PARAM(_name, _params, _args) \
    UCP_DOOR_PASSING_ENTRY(ucs_status_ptr_t, _name, \
                           ucp_door_passes(ucp_door_param_most(count, param)), \
                           _params, _args) \
    UCP_DOOR_RECEIVES(_name, ucp_door_param_data(buffer, count, param), _args)

/* --- Tagged messages ------------------------------------------------------ */

UCP_DOOR_SENDS(ucs_status_ptr_t, ucp_tag_send_nb,
               (ucp_ep_h ep, const void *buffer, size_t count,
                ucp_datatype_t datatype, ucp_tag_t tag,
                ucp_send_callback_t cb),
               (ep, buffer, count, datatype, tag, cb))

UCP_DOOR_SENDS(ucs_status_t, ucp_tag_send_nbr,
               (ucp_ep_h ep, const void *buffer, size_t count,
                ucp_datatype_t datatype, ucp_tag_t tag, void *req),
               (ep, buffer, count, datatype, tag, req))

UCP_DOOR_WITH_PARAM(ucp_tag_send_nbx, UCS_OPERATION_SEND,
                    (ucp_ep_h ep, const void *buffer, size_t count,
                     ucp_tag_t tag, const ucp_request_param_t *param),
                    (ep, buffer, count, tag, param))

UCP_DOOR_SENDS(ucs_status_ptr_t, ucp_tag_send_sync_nb,
               (ucp_ep_h ep, const void *buffer, size_t count,
                ucp_datatype_t datatype, ucp_tag_t tag,
                ucp_send_callback_t cb),
               (ep, buffer, count, datatype, tag, cb))

UCP_DOOR_WITH_PARAM(ucp_tag_send_sync_nbx, UCS_OPERATION_SEND,
                    (ucp_ep_h ep, const void *buffer, size_t count,
                     ucp_tag_t tag, const ucp_request_param_t *param),
                    (ep, buffer, count, tag, param))

UCP_DOOR_ENTRY(ucs_status_ptr_t, ucp_tag_recv_nb,
               UCP_DOOR_REFUSAL(ucs_status_ptr_t),
               (ucp_worker_h worker, void *buffer, size_t count,
                ucp_datatype_t datatype, ucp_tag_t tag, ucp_tag_t tag_mask,
                ucp_tag_recv_callback_t cb),
               (worker, buffer, count, datatype, tag, tag_mask, cb))
UCP_DOOR_RECEIVES(ucp_tag_recv_nb, ucp_door_data(buffer, count, datatype),
                  (worker, buffer, count, datatype, tag, tag_mask, cb))

/* The request is the program's memory, in use if UCX returns UCS_INPROGRESS */
UCP_DOOR_PASSING_ENTRY(ucs_status_t, ucp_tag_recv_nbr,
                       ucp_door_passes(ucp_door_most(count, datatype)),
                       (ucp_worker_h worker, void *buffer, size_t count,
                        ucp_datatype_t datatype, ucp_tag_t tag,
                        ucp_tag_t tag_mask, void *req),
                       (worker, buffer, count, datatype, tag, tag_mask, req))
{
    ucp_door_receive_t receive;
    ucs_status_t ret;

    ucp_door_receive_begin(&receive, ucp_door_data(buffer, count, datatype),
                           UCP_DOOR_SITE);
    ret = UCP_DOOR_REAL(ucp_tag_recv_nbr)(worker, buffer, count, datatype, tag,
                                          tag_mask, req);
    ucp_door_receive_end(&receive, UCS_STATUS_IS_ERR(ret) ?
                                           UCS_STATUS_PTR(ret) : req);
    return ret;
}

UCP_DOOR_RECEIVES_WITH_PARAM(ucp_tag_recv_nbx,
                             (ucp_worker_h worker, void *buffer, size_t count,
                              ucp_tag_t tag, ucp_tag_t tag_mask,
                              const ucp_request_param_t *param),
                             (worker, buffer, count, tag, tag_mask, param))

UCP_DOOR_ENTRY(ucs_status_ptr_t, ucp_tag_msg_recv_nb,
               UCP_DOOR_REFUSAL(ucs_status_ptr_t),
               (ucp_worker_h worker, void *buffer, size_t count,
                ucp_datatype_t datatype, ucp_tag_message_h message,
                ucp_tag_recv_callback_t cb),
               (worker, buffer, count, datatype, message, cb))
UCP_DOOR_RECEIVES(ucp_tag_msg_recv_nb, ucp_door_data(buffer, count, datatype),
                  (worker, buffer, count, datatype, message, cb))

UCP_DOOR_RECEIVES_WITH_PARAM(ucp_tag_msg_recv_nbx,
                             (ucp_worker_h worker, void *buffer, size_t count,
                              ucp_tag_message_h message,
                              const ucp_request_param_t *param),
                             (worker, buffer, count, message, param))

/*
 * Active messages. Of one with a header the data are what follows that.
 */

UCP_DOOR_SENDS(ucs_status_ptr_t, ucp_am_send_nb,
               (ucp_ep_h ep, uint16_t id, const void *buffer, size_t count,
                ucp_datatype_t datatype, ucp_send_callback_t cb,
                unsigned flags),
               (ep, id, buffer, count, datatype, cb, flags))

UCP_DOOR_WITH_PARAM(ucp_am_send_nbx, UCS_OPERATION_SEND,
                    (ucp_ep_h ep, unsigned id, const void *header,
                     size_t header_length, const void *buffer, size_t count,
                     const ucp_request_param_t *param),
                    (ep, id, header, header_length, buffer, count, param))

UCP_DOOR_RECEIVES_WITH_PARAM(ucp_am_recv_data_nbx,
                             (ucp_worker_h worker, void *data_desc,
                              void *buffer, size_t count,
                              const ucp_request_param_t *param),
                             (worker, data_desc, buffer, count, param))
