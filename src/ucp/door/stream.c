/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "tell.h"

#include <ucp/api/ucp_compat.h>

/*
 * Streams. UCX may register the data of a send. It copies those of a receive,
 * which is told without its buffer.
 */

#define UCP_DOOR_COPIED ((ucp_door_data_t){0, 0})


UCP_DOOR_PASSING(ucs_status_ptr_t, ucp_stream_send_nb, UCP_DOOR_NO_FUNCTION,
                 UCS_OPERATION_SEND, ucp_door_most(count, datatype),
                 ucp_door_data(buffer, count, datatype),
                 (ucp_ep_h ep, const void *buffer, size_t count,
                  ucp_datatype_t datatype, ucp_send_callback_t cb,
                  unsigned flags),
                 (ep, buffer, count, datatype, cb, flags))

UCP_DOOR_PASSING(ucs_status_ptr_t, ucp_stream_send_nbx, UCP_DOOR_NO_FUNCTION,
                 UCS_OPERATION_SEND, ucp_door_param_most(count, param),
                 ucp_door_param_data(buffer, count, param),
                 (ucp_ep_h ep, const void *buffer, size_t count,
                  const ucp_request_param_t *param),
                 (ep, buffer, count, param))

UCP_DOOR_OPERATION(ucs_status_ptr_t, ucp_stream_recv_nb, UCP_DOOR_NO_FUNCTION,
                   UCS_OPERATION_RECEIVE, UCP_DOOR_COPIED,
                   (ucp_ep_h ep, void *buffer, size_t count,
                    ucp_datatype_t datatype, ucp_stream_recv_callback_t cb,
                    size_t *length, unsigned flags),
                   (ep, buffer, count, datatype, cb, length, flags))

UCP_DOOR_OPERATION(ucs_status_ptr_t, ucp_stream_recv_nbx, UCP_DOOR_NO_FUNCTION,
                   UCS_OPERATION_RECEIVE, UCP_DOOR_COPIED,
                   (ucp_ep_h ep, void *buffer, size_t count, size_t *length,
                    const ucp_request_param_t *param),
                   (ep, buffer, count, length, param))
