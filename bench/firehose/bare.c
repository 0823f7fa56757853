/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "bare.h"

#include <string.h>

int bare_open(bare_t *bare, void *memory, size_t length, void **address_p,
              size_t *address_length_p, void **key_p, size_t *key_length_p)
{
    ucp_params_t params            = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                      .features   = UCP_FEATURE_RMA};
    ucp_worker_params_t worker     = {0};
    ucp_mem_map_params_t mem       = {.field_mask =
                                              UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                                              UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                      .address = memory,
                                      .length  = length};
    ucp_address_t **worker_address = (ucp_address_t**)address_p;

    memset(bare, 0, sizeof(*bare));
    return (ucp_init(&params, NULL, &bare->context) == UCS_OK) &&
           (ucp_worker_create(bare->context, &worker, &bare->worker) ==
            UCS_OK) &&
           (ucp_worker_get_address(bare->worker, worker_address,
                                   address_length_p) == UCS_OK) &&
           (ucp_mem_map(bare->context, &mem, &bare->memh) == UCS_OK) &&
           (ucp_rkey_pack(bare->context, bare->memh, key_p, key_length_p) ==
            UCS_OK);
}

int bare_connect(bare_t *bare, const void *address, const void *key)
{
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
                              .address    = address,
                              .err_mode   = UCP_ERR_HANDLING_MODE_PEER};

    return (ucp_ep_create(bare->worker, &params, &bare->ep) == UCS_OK) &&
           (ucp_ep_rkey_unpack(bare->ep, key, &bare->rkey) == UCS_OK);
}

void bare_put(bare_t *bare, const void *local, uint64_t remote, size_t length)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH,
                                 .memh         = bare->memh};
    ucs_status_ptr_t request;

    request = ucp_put_nbx(bare->ep, local, length, remote, bare->rkey, &param);
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request); /* it goes when it has ended */
    }
}

void bare_flush(bare_t *bare)
{
    ucp_request_param_t param = {0};
    ucs_status_ptr_t request  = ucp_ep_flush_nbx(bare->ep, &param);

    while (UCS_PTR_IS_PTR(request) &&
           (ucp_request_check_status(request) == UCS_INPROGRESS)) {
        ucp_worker_progress(bare->worker);
    }
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
}

void bare_close(bare_t *bare)
{
    if (bare->rkey != NULL) {
        ucp_rkey_destroy(bare->rkey);
    }
    ucp_mem_unmap(bare->context, bare->memh);
    ucp_worker_destroy(bare->worker); /* with its endpoint */
    ucp_cleanup(bare->context);
}
