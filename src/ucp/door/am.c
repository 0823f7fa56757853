/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "tell.h"

/*
 * Active messages. Of one with a header the data are what follows that.
 */


UCP_DOOR_PASSING(ucs_status_ptr_t, ucp_am_send_nb, UCP_DOOR_NO_FUNCTION,
                 UCS_OPERATION_SEND, ucp_door_most(count, datatype),
                 ucp_door_data(buffer, count, datatype),
                 (ucp_ep_h ep, uint16_t id, const void *buffer, size_t count,
                  ucp_datatype_t datatype, ucp_send_callback_t cb,
                  unsigned flags),
                 (ep, id, buffer, count, datatype, cb, flags))

UCP_DOOR_PASSING(ucs_status_ptr_t, ucp_am_send_nbx, UCP_DOOR_NO_FUNCTION,
                 UCS_OPERATION_SEND, ucp_door_param_most(count, param),
                 ucp_door_param_data(buffer, count, param),
                 (ucp_ep_h ep, unsigned id, const void *header,
                  size_t header_length, const void *buffer, size_t count,
                  const ucp_request_param_t *param),
                 (ep, id, header, header_length, buffer, count, param))

UCP_DOOR_PASSING_ENTRY(ucs_status_ptr_t, ucp_am_recv_data_nbx,
                       UCP_DOOR_NO_FUNCTION,
                       ucp_door_passes(ucp_door_param_most(count, param)),
                       (ucp_worker_h worker, void *data_desc, void *buffer,
                        size_t count, const ucp_request_param_t *param),
                       (worker, data_desc, buffer, count, param))
UCP_DOOR_RECEIVES(ucp_am_recv_data_nbx,
                  ucp_door_param_data(buffer, count, param), param, 1,
                  (worker, data_desc, buffer, count, receive.param))
