/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <ucp/pipeline/pipeline_int.h>

/* A message that its receiver reads. Where all of the sender's buffer is
 * registered MATCH brings the key; where all of the receiver's is, too, or is to
 * be, it reads, and DONE is its only answer. Else it answers as if there were no
 * key. The sender holds its registration until one of both has come. */

size_t ucp_pipeline_read_offer(ucx_pipeline_request_h req,
                               ucp_pipeline_header_t *header,
                               const void **key_p)
{
    size_t length;

    req->reg = ucp_pipeline_reg_find(req, 0, req->total);
    if (req->reg == NULL) {
        return 0;
    }
    length = ucp_pipeline_reg_pack(req->pipeline, req->reg, key_p);
    if (length == 0) {
        ucp_pipeline_request_release(req);
    }
    header->to = (uintptr_t)req->buffer;
    return length;
}

int ucp_pipeline_read_done(ucx_pipeline_request_h req,
                           const ucp_pipeline_header_t *header)
{
    if (req->acked || (req->reg == NULL) || (header->length != req->total)) {
        return 0;
    }
    req->done = req->total;
    req->next = req->total;
    ucp_pipeline_request_release(req);
    ucp_pipeline_send_check(req);
    return 1;
}

/* A key that cannot be one is overlooked: the message is asked for */
void ucp_pipeline_read_take(ucx_pipeline_request_h req,
                            const ucp_pipeline_header_t *header,
                            const void *key, size_t key_length)
{
    ucx_pipeline_h self = req->pipeline;

    if ((key_length == 0) || (req->next > 0) || (header->to == 0) ||
        (req->total > UINT64_MAX - header->to)) {
        return;
    }
    req->address = header->to;
    if (ucp_wire_key_unpack(self->wire, req->peer, key, key_length,
                            &req->key) != UCS_OK) {
        req->key = NULL;
    }
}

/* It cannot be read: it is asked for */
static void ucp_pipeline_read_give_up(ucp_pipeline_piece_t *piece)
{
    ucx_pipeline_request_h req = piece->req;

    req->next = 0;
    req->read = UCP_PIPELINE_UNREAD;
    ucp_pipeline_piece_delete(piece);
    ucp_pipeline_request_release(req);
}

void ucp_pipeline_read_finish(ucx_pipeline_request_h req)
{
    ucx_pipeline_h self          = req->pipeline;
    ucp_pipeline_header_t header = {0};

    header.type   = UCP_PIPELINE_DONE;
    header.to     = req->remote;
    header.from   = req->id;
    header.length = req->total;
    if (ucp_pipeline_post(self, req->peer, &header, NULL, 0, NULL, 0, NULL,
                          NULL) == UCS_ERR_NO_MEMORY) {
        self->is_starved = 1;
        return;
    }
    self->stats.read += req->total;
    req->done         = req->total;
    ucp_pipeline_piece_delete(ucs_list_head(&req->pieces, ucp_pipeline_piece_t,
                                            list));
    ucp_pipeline_request_complete(req, UCS_OK);
}

static void ucp_pipeline_read_over(void *arg, ucs_status_t status)
{
    ucp_pipeline_piece_t *piece = arg;
    ucx_pipeline_request_h req  = piece->req;

    req->read = UCP_PIPELINE_READ;
    if (req->status != UCS_OK) { /* the peer was lost meanwhile */
        ucp_pipeline_recv_abort(req, req->status);
    } else if (status != UCS_OK) {
        ucp_pipeline_read_give_up(piece);
        ucp_pipeline_recv_begin(req);
    } else {
        ucp_pipeline_tune_read(req);
        ucp_pipeline_read_finish(req);
    }
}

/* Begin to read, if there is a key and this end's buffer is registered as a
 * whole, or comes so often that it is now. @return Zero: it is to be asked for */
int ucp_pipeline_read_begin(ucx_pipeline_request_h req)
{
    ucx_pipeline_h self = req->pipeline;
    ucp_pipeline_piece_t *piece;
    ucs_status_t status;

    if ((req->key == NULL) ||
        (!req->is_whole &&
         (ucp_pipeline_cache_has(self, req->buffer) < req->total))) {
        return 0;
    }
    piece = ucp_pipeline_piece_new(req, req->total);
    if (piece == NULL) {
        self->is_starved = 1;
        return 1;
    }
    piece->reg = ucp_pipeline_reg_get(req, 0, req->total);
    if (piece->reg == NULL) {
        ucp_pipeline_read_give_up(piece);
        return 0;
    }
    ++req->num_registered;
    req->read = UCP_PIPELINE_READING;
    ucp_pipeline_tune_begin(req);
    status = ucp_wire_get(self->wire, req->peer, piece->reg->mem, req->buffer,
                          req->total, req->address, req->key,
                          ucp_pipeline_read_over, piece);
    if (status == UCS_OK) {
        ucp_pipeline_read_over(piece, UCS_OK);
    } else if (status != UCS_INPROGRESS) {
        ucp_pipeline_read_give_up(piece);
        return 0;
    }
    return 1;
}
