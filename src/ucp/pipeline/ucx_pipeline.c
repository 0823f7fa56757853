/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucp/pipeline/pipeline_int.h>

#include <sched.h>

/* What users call for a message */

ucs_status_t ucx_pipeline_send(ucx_pipeline_h self, unsigned peer, uint64_t tag,
                               const void *buffer, size_t length,
                               ucx_pipeline_request_h *request_p)
{
    ucx_pipeline_request_h req;
    ucs_status_t status;

    if ((peer >= self->wire->num_peers) || ((buffer == NULL) && (length > 0))) {
        return UCS_ERR_INVALID_PARAM;
    }
    pthread_mutex_lock(&self->lock);
    status = self->failed[peer];
    if (status != UCS_OK) {
        goto out;
    }
    req = ucp_pipeline_request_new(self, UCP_PIPELINE_SEND);
    if (req == NULL) {
        status = UCS_ERR_NO_MEMORY;
        goto out;
    }
    req->peer   = peer;
    req->tag    = tag;
    req->buffer = (char*)buffer;
    req->total  = length;
    ucp_pipeline_request_activate(req);
    status = ucp_pipeline_send_begin(req);
    if (status == UCS_OK) {
        *request_p = req;
    } else {
        ucp_pipeline_request_unlink(req);
        ucp_pipeline_request_delete(req);
    }
out:
    pthread_mutex_unlock(&self->lock);
    return status;
}

ucs_status_t ucx_pipeline_recv(ucx_pipeline_h self, unsigned peer, uint64_t tag,
                               uint64_t mask, void *buffer, size_t length,
                               ucx_pipeline_request_h *request_p)
{
    ucs_status_t status = UCS_OK;
    ucx_pipeline_request_h req;

    if (((peer != UCX_PIPELINE_ANY_SOURCE) &&
         (peer >= self->wire->num_peers)) ||
        ((buffer == NULL) && (length > 0))) {
        return UCS_ERR_INVALID_PARAM;
    }
    pthread_mutex_lock(&self->lock);
    req = ucp_pipeline_request_new(self, UCP_PIPELINE_RECV);
    if (req == NULL) {
        status = UCS_ERR_NO_MEMORY;
        goto out;
    }
    req->peer   = peer;
    req->tag    = tag;
    req->mask   = mask;
    req->buffer = buffer;
    req->room   = length;
    req->posted = 1;
    if (!ucp_pipeline_match_unexpected(self, req)) {
        if (peer != UCX_PIPELINE_ANY_SOURCE) {
            status = self->failed[peer];
        }
        if (status != UCS_OK) {
            ucp_pipeline_request_delete(req);
            goto out;
        }
        ucs_list_add_tail(&self->posted, &req->list);
    }
    *request_p = req;
out:
    pthread_mutex_unlock(&self->lock);
    return status;
}

int ucx_pipeline_test(ucx_pipeline_request_h req, ucx_pipeline_status_t *status)
{
    ucx_pipeline_h self = req->pipeline;
    int complete;

    pthread_mutex_lock(&self->lock);
    complete = req->complete;
    if (complete && (status != NULL)) {
        status->status = req->status;
        status->peer   = req->peer;
        status->tag    = req->tag;
        status->length = req->total;
    }
    pthread_mutex_unlock(&self->lock);
    return complete;
}

ucs_status_t ucx_pipeline_wait(ucx_pipeline_request_h req,
                               ucx_pipeline_status_t *status)
{
    ucx_pipeline_status_t ended;

    while (!ucx_pipeline_test(req, &ended)) {
        if (ucx_pipeline_progress(req->pipeline) == 0) {
            sched_yield(); /* the peer may need this core */
        }
    }
    if (status != NULL) {
        *status = ended;
    }
    return ended.status;
}

ucs_status_t ucx_pipeline_cancel(ucx_pipeline_request_h req)
{
    ucx_pipeline_h self = req->pipeline;
    ucs_status_t status = UCS_ERR_BUSY;

    pthread_mutex_lock(&self->lock);
    if (req->kind == UCP_PIPELINE_SEND) {
        status = UCS_ERR_UNSUPPORTED;
    } else if (req->posted) {
        ucp_pipeline_request_complete(req, UCS_ERR_CANCELED);
        status = UCS_OK;
    }
    pthread_mutex_unlock(&self->lock);
    return status;
}

ucs_status_t ucx_pipeline_request_free(ucx_pipeline_request_h req)
{
    ucx_pipeline_h self = req->pipeline;
    ucs_status_t status = UCS_ERR_BUSY;

    pthread_mutex_lock(&self->lock);
    if (req->complete) {
        ucp_pipeline_request_delete(req);
        status = UCS_OK;
    }
    pthread_mutex_unlock(&self->lock);
    return status;
}
