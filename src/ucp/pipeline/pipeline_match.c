/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucp/pipeline/pipeline_int.h>

#include <stdlib.h>
#include <string.h>

static int ucp_pipeline_matches(ucx_pipeline_request_h req, unsigned peer,
                                uint64_t tag)
{
    return ((req->peer == UCX_PIPELINE_ANY_SOURCE) || (req->peer == peer)) &&
           (((tag ^ req->tag) & req->mask) == 0);
}

/* The oldest posted receive that matches, or the message waits for one */
static int ucp_pipeline_match_posted(ucx_pipeline_h self, unsigned peer,
                                     const ucp_pipeline_header_t *header,
                                     const void *key, size_t key_length,
                                     const void *bytes, size_t length)
{
    ucp_pipeline_unexpected_t *unexpected;
    ucx_pipeline_request_h req;

    if (length > header->length) {
        return 0;
    }
    ucs_list_for_each(req, &self->posted, list) {
        if (ucp_pipeline_matches(req, peer, header->tag)) {
            ucp_pipeline_recv_match(req, peer, header, key, key_length, bytes,
                                    length);
            return 1;
        }
    }
    unexpected = malloc(sizeof(*unexpected) + key_length + length);
    if (unexpected == NULL) {
        /* a message is lost, and with it the order: nothing is right then */
        ucp_pipeline_peer_failed(self, peer, UCS_ERR_NO_MEMORY);
        return 1;
    }
    unexpected->peer       = peer;
    unexpected->status     = UCS_OK;
    unexpected->header     = *header;
    unexpected->key_length = key_length;
    unexpected->length     = length;
    memcpy(unexpected->bytes, key, key_length);
    if (length > 0) {
        memcpy(unexpected->bytes + key_length, bytes, length);
    }
    ucs_list_add_tail(&self->unexpected, &unexpected->list);
    return 1;
}

/* The oldest message that matches, or NULL */
static ucp_pipeline_unexpected_t *
ucp_pipeline_find_unexpected(ucx_pipeline_h self, ucx_pipeline_request_h req)
{
    ucp_pipeline_unexpected_t *message;

    ucs_list_for_each(message, &self->unexpected, list) {
        if (ucp_pipeline_matches(req, message->peer, message->header.tag)) {
            return message;
        }
    }
    return NULL;
}

/* The receive has the message, whose copy ends */
static void ucp_pipeline_match_message(ucx_pipeline_request_h req,
                                       ucp_pipeline_unexpected_t *message)
{
    ucs_list_del(&message->list);
    ucp_pipeline_recv_match(req, message->peer, &message->header,
                            message->bytes, message->key_length,
                            message->bytes + message->key_length,
                            message->length);
    free(message);
}

int ucp_pipeline_match_unexpected(ucx_pipeline_h self,
                                  ucx_pipeline_request_h req)
{
    ucp_pipeline_unexpected_t *message;

    message = ucp_pipeline_find_unexpected(self, req);
    if (message == NULL) {
        return 0;
    }
    ucp_pipeline_match_message(req, message);
    return 1;
}

int ucx_pipeline_mprobe(ucx_pipeline_h self, unsigned peer, uint64_t tag,
                        uint64_t mask, ucx_pipeline_message_h *message_p,
                        ucx_pipeline_status_t *status)
{
    struct ucx_pipeline_request wanted = {
        .peer = peer, .tag = tag, .mask = mask
    };
    ucp_pipeline_unexpected_t *message;

    pthread_mutex_lock(&self->lock);
    message = ucp_pipeline_find_unexpected(self, &wanted);
    if ((message != NULL) && (status != NULL)) {
        status->status = UCS_OK;
        status->peer   = message->peer;
        status->tag    = message->header.tag;
        status->length = message->header.length;
    }
    if ((message != NULL) && (message_p != NULL)) {
        ucs_list_del(&message->list);
        ucs_list_add_tail(&self->taken, &message->list);
        *message_p = message;
    }
    pthread_mutex_unlock(&self->lock);
    return message != NULL;
}

int ucx_pipeline_probe(ucx_pipeline_h self, unsigned peer, uint64_t tag,
                       uint64_t mask, ucx_pipeline_status_t *status)
{
    return ucx_pipeline_mprobe(self, peer, tag, mask, NULL, status);
}

ucs_status_t ucx_pipeline_mrecv(ucx_pipeline_h self,
                                ucx_pipeline_message_h message, void *buffer,
                                size_t length,
                                ucx_pipeline_request_h *request_p)
{
    ucx_pipeline_request_h req;
    ucs_status_t status;

    if ((buffer == NULL) && (length > 0)) {
        return UCS_ERR_INVALID_PARAM;
    }
    pthread_mutex_lock(&self->lock);
    status = message->status;
    if (status != UCS_OK) {
        ucs_list_del(&message->list);
        free(message);
        goto out;
    }
    req = ucp_pipeline_request_new(self, UCP_PIPELINE_RECV);
    if (req == NULL) {
        status = UCS_ERR_NO_MEMORY;
        goto out;
    }
    req->buffer = buffer;
    req->room   = length;
    ucp_pipeline_match_message(req, message);
    *request_p = req;
out:
    pthread_mutex_unlock(&self->lock);
    return status;
}

/* @return Zero if no correct peer sends this now */
static int ucp_pipeline_handle(ucx_pipeline_h self, unsigned peer,
                               const ucp_pipeline_header_t *header,
                               const void *key, size_t key_length,
                               const void *bytes, size_t length)
{
    ucp_pipeline_kind_t kind = ((header->type <= UCP_PIPELINE_READY) ||
                                (header->type == UCP_PIPELINE_DONE)) ?
                               UCP_PIPELINE_SEND : UCP_PIPELINE_RECV;
    ucx_pipeline_request_h req;

    if (header->type == UCP_PIPELINE_MATCH) {
        return ucp_pipeline_match_posted(self, peer, header, key, key_length,
                                         bytes, length);
    }
    req = ucp_pipeline_request_find(self, header->to, peer, kind);
    if (req == NULL) {
        return 0;
    }
    switch (header->type) {
    case UCP_PIPELINE_ACK:
        return ucp_pipeline_send_acked(req, header);
    case UCP_PIPELINE_READY:
        /* what had been asked for when the send failed is not answered */
        return (req->status != UCS_OK) ||
               ucp_pipeline_send_ready(req, header, key, key_length);
    case UCP_PIPELINE_DATA:
        return ucp_pipeline_recv_data(req, header, bytes, length);
    case UCP_PIPELINE_FIN:
        return ucp_pipeline_recv_fin(req, header);
    case UCP_PIPELINE_ABORT:
        ucp_pipeline_recv_abort(req, UCS_ERR_CONNECTION_RESET);
        return 1;
    case UCP_PIPELINE_DONE:
        return ucp_pipeline_read_done(req, header);
    default:
        return 0;
    }
}

void ucp_pipeline_arrived(void *arg, unsigned peer, const void *header,
                          size_t header_length, const void *payload,
                          size_t length)
{
    ucx_pipeline_h self = arg;
    ucp_pipeline_header_t first;

    if ((header_length < sizeof(first)) || (self->failed[peer] != UCS_OK)) {
        ++self->stats.refused;
        return;
    }
    memcpy(&first, header, sizeof(first));
    if ((first.magic != UCP_PIPELINE_MAGIC) ||
        !ucp_pipeline_handle(self, peer, &first,
                             (const char*)header + sizeof(first),
                             header_length - sizeof(first), payload, length)) {
        ++self->stats.refused;
    }
}

/* What was matched or can only be sent by the peer ends. A message that is
 * whole stays, for it has arrived. */
void ucp_pipeline_peer_failed(void *arg, unsigned peer, ucs_status_t status)
{
    ucx_pipeline_h self = arg;
    ucp_pipeline_unexpected_t *message, *next_message;
    ucx_pipeline_request_h req, next;

    if (self->failed[peer] != UCS_OK) {
        return;
    }
    self->failed[peer] = status;
    ucs_list_for_each_safe(req, next, &self->posted, list) {
        if (req->peer == peer) {
            ucp_pipeline_request_complete(req, status);
        }
    }
    ucs_list_for_each_safe(message, next_message, &self->unexpected, list) {
        if ((message->peer == peer) &&
            (message->length < message->header.length)) {
            ucs_list_del(&message->list);
            free(message);
        }
    }
    ucs_list_for_each(message, &self->taken, list) {
        if ((message->peer == peer) &&
            (message->length < message->header.length)) {
            message->status = status;
        }
    }
    ucs_list_for_each(req, &self->active, list) {
        if ((req->peer == peer) && (req->kind == UCP_PIPELINE_SEND) &&
            (req->status == UCS_OK)) {
            req->status = status;
        }
    }
    ucs_list_for_each_safe(req, next, &self->active, list) {
        if (req->peer != peer) {
            continue;
        }
        if (req->kind == UCP_PIPELINE_SEND) {
            ucp_pipeline_send_check(req);
        } else {
            ucp_pipeline_recv_abort(req, status);
        }
    }
}
