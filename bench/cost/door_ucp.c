/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */

/*
 * Of UCP as much as door_cost calls, doing nothing: what is left is the call.
 */

#include <ucp/api/ucp.h>

ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h ep, const void *buffer, size_t count,
                                  ucp_tag_t tag,
                                  const ucp_request_param_t *param)
{
    return NULL;
}

ucs_status_ptr_t ucp_tag_recv_nbx(ucp_worker_h worker, void *buffer,
                                  size_t count, ucp_tag_t tag,
                                  ucp_tag_t tag_mask,
                                  const ucp_request_param_t *param)
{
    return NULL;
}

unsigned ucp_worker_progress(ucp_worker_h worker)
{
    return 0;
}
