/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucp/pipeline/pipeline_int.h>

#include <stdlib.h>
#include <string.h>

/* No two requests have the same id, so that what a peer says of a request that is
 * gone, or of one that never was, is told apart. */

ucx_pipeline_request_h ucp_pipeline_request_new(ucx_pipeline_h self,
                                                ucp_pipeline_kind_t kind)
{
    ucx_pipeline_request_h req = calloc(1, sizeof(*req));

    if (req == NULL) {
        return NULL;
    }
    req->pipeline = self;
    req->kind     = kind;
    req->id       = ++self->last_id;
    ucs_list_head_init(&req->list);
    ucs_list_head_init(&req->pieces);
    ucs_list_head_init(&req->offers);
    ucs_list_add_tail(&self->requests, &req->all);
    return req;
}

void ucp_pipeline_request_delete(ucx_pipeline_request_h req)
{
    ucs_list_del(&req->all);
    free(req);
}

ucx_pipeline_request_h ucp_pipeline_request_find(ucx_pipeline_h self,
                                                 uint64_t id, unsigned peer,
                                                 ucp_pipeline_kind_t kind)
{
    ucx_pipeline_request_h req;

    ucs_list_for_each(req, &self->active, list) {
        if (req->id == id) {
            return ((req->peer == peer) && (req->kind == kind)) ? req : NULL;
        }
    }
    return NULL;
}

void ucp_pipeline_request_activate(ucx_pipeline_request_h req)
{
    ucs_list_add_tail(&req->pipeline->active, &req->list);
    ++req->pipeline->num_active;
}

/* Out of the list that it stands in */
void ucp_pipeline_request_unlink(ucx_pipeline_request_h req)
{
    ucs_list_del(&req->list);
    ucs_list_head_init(&req->list);
    req->pipeline->num_active -= !req->posted;
}

/* What it has beside its pieces */
void ucp_pipeline_request_release(ucx_pipeline_request_h req)
{
    ucp_pipeline_offer_t *offer, *next;

    ucs_list_for_each_safe(offer, next, &req->offers, list) {
        if (offer->reg != NULL) {
            ucp_pipeline_reg_put(req->pipeline, offer->reg);
        }
        if (offer->key != NULL) {
            ucp_wire_key_release(req->pipeline->wire, offer->key);
        }
        ucs_list_del(&offer->list);
        free(offer);
    }
}

/* Its peer may live on, or what it wrote may still be under way */
static void ucp_pipeline_request_revoke(ucx_pipeline_request_h req)
{
    ucp_pipeline_offer_t *offer;
    ucp_pipeline_piece_t *piece;

    ucs_list_for_each(piece, &req->pieces, list) {
        if (piece->reg != NULL) {
            ucp_pipeline_reg_revoke(req->pipeline, piece->reg);
        }
    }
    ucs_list_for_each(offer, &req->offers, list) {
        if (offer->reg != NULL) {
            ucp_pipeline_reg_revoke(req->pipeline, offer->reg);
        }
    }
}

void ucp_pipeline_request_complete(ucx_pipeline_request_h req,
                                   ucs_status_t status)
{
    if (status != UCS_OK) {
        ucp_pipeline_request_revoke(req);
    }
    ucp_pipeline_pieces_delete(req);
    ucp_pipeline_request_release(req);
    ucp_pipeline_request_unlink(req);
    req->posted   = 0;
    req->status   = status;
    req->complete = 1;
}

ucp_pipeline_piece_t *ucp_pipeline_piece_new(ucx_pipeline_request_h req,
                                             size_t end)
{
    ucp_pipeline_piece_t *piece = calloc(1, sizeof(*piece));

    if (piece != NULL) {
        piece->req    = req;
        piece->offset = req->next;
        piece->length = end - req->next;
        req->next     = end;
        ucs_list_add_tail(&req->pieces, &piece->list);
        ++req->num_pieces;
    }
    return piece;
}

void ucp_pipeline_piece_delete(ucp_pipeline_piece_t *piece)
{
    ucx_pipeline_h self = piece->req->pipeline;

    if (piece->key != NULL) {
        ucp_wire_key_release(self->wire, piece->key);
    }
    if (piece->waits) {
        --self->num_waits;
    } else if ((piece->reg != NULL) &&
               (piece->req->kind == UCP_PIPELINE_SEND)) {
        --piece->req->num_writes;
    }
    if (piece->reg != NULL) {
        ucp_pipeline_reg_put(self, piece->reg);
    }
    ucs_list_del(&piece->list);
    --piece->req->num_pieces;
    free(piece);
}

void ucp_pipeline_pieces_delete(ucx_pipeline_request_h req)
{
    ucp_pipeline_piece_t *piece, *next;

    ucs_list_for_each_safe(piece, next, &req->pieces, list) {
        ucp_pipeline_piece_delete(piece);
    }
}

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
