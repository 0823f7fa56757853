/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "tell.h"

#include <ucp/api/ucp_compat.h>

/*
 * Memory that the program registers itself; put, get and atomics. An older
 * atomic's operand is a value, or the word of its result.
 */

#define UCP_DOOR_BYTES ucp_dt_make_contig(1)

/* Memory that UCX will allocate has no address yet. A program built with an
 * older UCX has shorter parameters, so only fields that are set are read. */
static ucp_door_data_t ucp_door_map_data(const ucp_mem_map_params_t *params)
{
    const uint64_t fields = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                            UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    uint64_t mask         = params->field_mask;

    if (((mask & fields) != fields) ||
        ((mask & UCP_MEM_MAP_PARAM_FIELD_FLAGS) &&
         (params->flags & UCP_MEM_MAP_ALLOCATE)) ||
        ((mask & UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE) &&
         (params->memory_type != UCS_MEMORY_TYPE_HOST) &&
         (params->memory_type != UCS_MEMORY_TYPE_UNKNOWN))) {
        return (ucp_door_data_t){0, 0};
    }

    return ucp_door_data(params->address, params->length, UCP_DOOR_BYTES);
}

/* The entry point of a put or get: its arguments are named buffer, length */
#define UCP_DOOR_MOVES(_ret, _name, _kind, _params, _args) \
    UCP_DOOR_PASSING(_ret, _name, _kind, length, \
                     ucp_door_data(buffer, length, UCP_DOOR_BYTES), _params, \
                     _args)

UCP_DOOR_OPERATION(ucs_status_t, ucp_mem_map, UCS_OPERATION_MAP,
                   ucp_door_map_data(params),
                   (ucp_context_h context, const ucp_mem_map_params_t *params,
                    ucp_mem_h *memh_p),
                   (context, params, memh_p))

UCP_DOOR_OPERATION(ucs_status_t, ucp_mem_unmap, UCS_OPERATION_UNMAP,
                   ucp_door_data(NULL, 0, UCP_DOOR_BYTES),
                   (ucp_context_h context, ucp_mem_h memh), (context, memh))

UCP_DOOR_MOVES(ucs_status_ptr_t, ucp_put_nb, UCS_OPERATION_PUT,
               (ucp_ep_h ep, const void *buffer, size_t length,
                uint64_t remote_addr, ucp_rkey_h rkey,
                ucp_send_callback_t cb),
               (ep, buffer, length, remote_addr, rkey, cb))

UCP_DOOR_MOVES(ucs_status_t, ucp_put_nbi, UCS_OPERATION_PUT,
               (ucp_ep_h ep, const void *buffer, size_t length,
                uint64_t remote_addr, ucp_rkey_h rkey),
               (ep, buffer, length, remote_addr, rkey))

UCP_DOOR_WITH_PARAM(ucp_put_nbx, UCS_OPERATION_PUT,
                    (ucp_ep_h ep, const void *buffer, size_t count,
                     uint64_t remote_addr, ucp_rkey_h rkey,
                     const ucp_request_param_t *param),
                    (ep, buffer, count, remote_addr, rkey, param))

UCP_DOOR_OPERATION(ucs_status_t, ucp_put, UCS_OPERATION_PUT,
                   ucp_door_data(buffer, length, UCP_DOOR_BYTES),
                   (ucp_ep_h ep, const void *buffer, size_t length,
                    uint64_t remote_addr, ucp_rkey_h rkey),
                   (ep, buffer, length, remote_addr, rkey))

UCP_DOOR_MOVES(ucs_status_ptr_t, ucp_get_nb, UCS_OPERATION_GET,
               (ucp_ep_h ep, void *buffer, size_t length,
                uint64_t remote_addr, ucp_rkey_h rkey,
                ucp_send_callback_t cb),
               (ep, buffer, length, remote_addr, rkey, cb))

UCP_DOOR_MOVES(ucs_status_t, ucp_get_nbi, UCS_OPERATION_GET,
               (ucp_ep_h ep, void *buffer, size_t length,
                uint64_t remote_addr, ucp_rkey_h rkey),
               (ep, buffer, length, remote_addr, rkey))

UCP_DOOR_WITH_PARAM(ucp_get_nbx, UCS_OPERATION_GET,
                    (ucp_ep_h ep, void *buffer, size_t count,
                     uint64_t remote_addr, ucp_rkey_h rkey,
                     const ucp_request_param_t *param),
                    (ep, buffer, count, remote_addr, rkey, param))

UCP_DOOR_OPERATION(ucs_status_t, ucp_get, UCS_OPERATION_GET,
                   ucp_door_data(buffer, length, UCP_DOOR_BYTES),
                   (ucp_ep_h ep, void *buffer, size_t length,
                    uint64_t remote_addr, ucp_rkey_h rkey),
                   (ep, buffer, length, remote_addr, rkey))

UCP_DOOR_PASSING(ucs_status_t, ucp_atomic_post, UCS_OPERATION_ATOMIC, op_size,
                 ucp_door_data(NULL, op_size, UCP_DOOR_BYTES),
                 (ucp_ep_h ep, ucp_atomic_post_op_t opcode, uint64_t value,
                  size_t op_size, uint64_t remote_addr, ucp_rkey_h rkey),
                 (ep, opcode, value, op_size, remote_addr, rkey))

UCP_DOOR_PASSING(ucs_status_ptr_t, ucp_atomic_fetch_nb, UCS_OPERATION_ATOMIC,
                 op_size,
                 ucp_door_data(result, op_size, UCP_DOOR_BYTES),
                 (ucp_ep_h ep, ucp_atomic_fetch_op_t opcode, uint64_t value,
                  void *result, size_t op_size, uint64_t remote_addr,
                  ucp_rkey_h rkey, ucp_send_callback_t cb),
                 (ep, opcode, value, result, op_size, remote_addr, rkey, cb))

UCP_DOOR_WITH_PARAM(ucp_atomic_op_nbx, UCS_OPERATION_ATOMIC,
                    (ucp_ep_h ep, ucp_atomic_op_t opcode, const void *buffer,
                     size_t count, uint64_t remote_addr, ucp_rkey_h rkey,
                     const ucp_request_param_t *param),
                    (ep, opcode, buffer, count, remote_addr, rkey, param))
