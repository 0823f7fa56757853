/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucp/pipeline/pipeline_int.h>

#include <string.h>

/* A message that cannot be sent, or that there is no memory for, ends its peer
 * on this side: what comes after it would mean nothing. That is done by the next
 * progress, as those who send are in the middle of a request. */

void ucp_pipeline_lose(ucx_pipeline_h self, unsigned peer, ucs_status_t status)
{
    if (self->lost[peer] == UCS_OK) {
        self->lost[peer] = status;
        ++self->num_lost;
    }
}

void ucp_pipeline_end_lost(ucx_pipeline_h self)
{
    unsigned i;

    for (i = 0; (i < self->wire->num_peers) && (self->num_lost > 0); ++i) {
        if (self->lost[i] != UCS_OK) {
            ucp_pipeline_peer_failed(self, i, self->lost[i]);
            self->lost[i] = UCS_OK;
            --self->num_lost;
        }
    }
}

ucs_status_t ucp_pipeline_post(ucx_pipeline_request_h req,
                               ucp_pipeline_header_t *header, const void *key,
                               size_t key_length, const void *payload,
                               size_t length, ucp_wire_done_func_t done,
                               void *arg)
{
    char bytes[UCP_WIRE_MAX_HEADER];

    header->magic = UCP_PIPELINE_MAGIC;
    header->from  = req->id;
    memcpy(bytes, header, sizeof(*header));
    if (key_length > 0) {
        memcpy(bytes + sizeof(*header), key, key_length);
    }
    return ucp_wire_am_send(req->pipeline->wire, req->peer, bytes,
                            sizeof(*header) + key_length, payload, length, done,
                            arg);
}

ucs_status_t ucp_pipeline_tell(ucx_pipeline_request_h req,
                               ucp_pipeline_header_t *header, const void *key,
                               size_t key_length, ucp_wire_done_func_t done,
                               void *arg)
{
    ucs_status_t status;

    header->to = req->remote;
    status     = ucp_pipeline_post(req, header, key, key_length, NULL, 0, done,
                                   arg);
    if (UCS_STATUS_IS_ERR(status)) {
        ucp_pipeline_lose(req->pipeline, req->peer, status);
    }
    return status;
}
