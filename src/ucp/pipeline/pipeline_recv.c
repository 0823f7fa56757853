/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucp/pipeline/pipeline_int.h>

#include <string.h>

/* The receiver's side. It decides how each byte travels, in order of offset;
 * its pieces lie between what is done and what has not been begun. */

static void ucp_pipeline_recv_check(ucx_pipeline_request_h req)
{
    if (req->done == req->total) {
        if (req->began > 0) {
            ucp_pipeline_tune_sample(req, 0);
        }
        ucp_pipeline_request_complete(req, UCS_OK);
    }
}

/* Bytes from `offset` on that are registered already */
static size_t ucp_pipeline_recv_is_kept(ucx_pipeline_request_h req,
                                        size_t offset)
{
    return ((offset < req->total) &&
            (req->pipeline->options.mode == UCX_PIPELINE_MODE_CACHE)) ?
           ucp_pipeline_cache_has(req->pipeline, req->buffer + offset) : 0;
}

/* Where the fragment ends that begins at `offset`: with what is kept there,
 * whatever size fragments had then; others that will be kept are aligned in
 * memory, so that the next message meets the same ones */
static size_t ucp_pipeline_recv_end(ucx_pipeline_request_h req, size_t offset)
{
    uintptr_t address = (uintptr_t)req->buffer + offset;
    size_t length     = ucp_pipeline_recv_is_kept(req, offset);

    if (req->is_whole) {
        return req->total;
    }
    if (length == 0) {
        length = req->pipeline->tune.fragment;
        if ((req->pipeline->options.mode == UCX_PIPELINE_MODE_CACHE) &&
            (req->stay != UCP_PIPELINE_DROP)) {
            length -= address & (length - 1);
        }
    }
    return ucs_min(offset + length, req->total);
}

/* Register the next fragment and tell the sender, without a key if it could
 * not be registered. @return Zero if there is no memory for it */
static int ucp_pipeline_recv_open(ucx_pipeline_request_h req)
{
    ucx_pipeline_h self          = req->pipeline;
    ucp_pipeline_header_t header = {0};
    const void *key              = NULL;
    size_t key_length            = 0;
    ucp_pipeline_piece_t *piece;

    ucp_pipeline_reg_decide(req, ucp_pipeline_recv_is_kept(req, req->next) > 0);
    piece = ucp_pipeline_piece_new(req, ucp_pipeline_recv_end(req, req->next));
    if (piece == NULL) {
        ucp_pipeline_lose(self, req->peer, UCS_ERR_NO_MEMORY);
        return 0;
    }
    piece->reg = ucp_pipeline_reg_get(req, piece->offset, piece->length);
    if (piece->reg != NULL) {
        key_length = ucp_pipeline_reg_pack(self, piece->reg, &key);
    }
    if ((key_length == 0) && (piece->reg != NULL)) {
        ucp_pipeline_reg_put(self, piece->reg);
        piece->reg = NULL;
    }
    header.type    = UCP_PIPELINE_READY;
    header.offset  = piece->offset;
    header.length  = piece->length;
    header.address = (uintptr_t)req->buffer + piece->offset;
    return !UCS_STATUS_IS_ERR(ucp_pipeline_tell(req, &header, key, key_length,
                                                NULL, NULL));
}

/* At most depth pieces at a time. What is kept takes no registration, so more
 * of that may be under way: the link is not to wait for an answer. */
static int ucp_pipeline_recv_may_open(ucx_pipeline_request_h req)
{
    unsigned depth = req->pipeline->options.depth;

    return (req->next < req->total) &&
           ((req->num_pieces < depth) ||
            ((req->num_pieces < depth + UCP_PIPELINE_AHEAD) &&
             ucp_pipeline_recv_is_kept(req, req->next)));
}

static void ucp_pipeline_recv_advance(ucx_pipeline_request_h req)
{
    while (ucp_pipeline_recv_may_open(req) && ucp_pipeline_recv_open(req)) {
    }
}

static void ucp_pipeline_recv_ack(ucx_pipeline_request_h req, size_t wanted,
                                  size_t offset)
{
    ucp_pipeline_header_t header = {.type   = UCP_PIPELINE_ACK,
                                    .length = wanted,
                                    .offset = offset};

    ucp_pipeline_tell(req, &header, NULL, 0, NULL, NULL);
}

/* Up to where a message is copied, if that is derived: nothing if its first
 * fragment is kept, or the second: then the buffer comes again, and the first one
 * is to be kept as well. A message that would be copied as a whole is not once its
 * buffer has come often enough. */
static size_t ucp_pipeline_recv_offset(ucx_pipeline_request_h req)
{
    ucx_pipeline_h self = req->pipeline;
    size_t offset       = ucp_pipeline_tune_offset(self);

    if (self->options.mode != UCX_PIPELINE_MODE_CACHE) {
        return offset;
    }
    if (ucp_pipeline_recv_is_kept(req, req->next) ||
        ucp_pipeline_recv_is_kept(req, ucp_pipeline_recv_end(req, req->next))) {
        return 0;
    }
    if (!ucp_pipeline_tune_is_whole(self, req->total)) {
        return offset;
    }
    if (!ucp_pipeline_tune_buys(self, req->buffer, req->total)) {
        return req->total;
    }
    req->is_whole = 1;
    req->stay     = UCP_PIPELINE_KEEP; /* it is not new */
    return 0;
}

static size_t ucp_pipeline_recv_copied(ucx_pipeline_request_h req)
{
    const ucx_pipeline_options_t *options = &req->pipeline->options;
    size_t offset                         = options->rdma_offset;

    if (options->mode == UCX_PIPELINE_MODE_COPY) {
        return req->total;
    }
    if (offset == UCX_PIPELINE_DERIVED) {
        offset = ucp_pipeline_recv_offset(req);
    }
    return ucs_max(ucs_min(req->total, offset), req->next);
}

/* Answer the sender and begin */
void ucp_pipeline_recv_begin(ucx_pipeline_request_h req)
{
    size_t copied;

    if (req->total > req->room) {
        if (req->done < req->total) {
            ucp_pipeline_recv_ack(req, 0, req->total);
        }
        ucp_pipeline_request_complete(req, UCS_ERR_MESSAGE_TRUNCATED);
        return;
    }
    if (req->done < req->total) {
        copied = ucp_pipeline_recv_copied(req);
        if ((copied == 0) && ucp_pipeline_read_begin(req)) {
            return;
        }
        req->began = 0;
        if (copied == req->total) {
            ucp_pipeline_tune_begin(req);
        }
        if ((copied > req->next) &&
            (ucp_pipeline_piece_new(req, copied) == NULL)) {
            ucp_pipeline_lose(req->pipeline, req->peer, UCS_ERR_NO_MEMORY);
            return;
        }
        ucp_pipeline_recv_ack(req, req->total, copied);
        ucp_pipeline_recv_advance(req);
    }
    ucp_pipeline_recv_check(req);
}

void ucp_pipeline_recv_match(ucx_pipeline_request_h req, unsigned peer,
                             const ucp_pipeline_header_t *header,
                             const void *key, size_t key_length,
                             const void *bytes, size_t length)
{
    req->posted = 0;
    req->peer   = peer;
    req->tag    = header->tag;
    req->remote = header->from;
    req->total  = header->length;
    req->done   = length;
    req->next   = length;
    if (length > 0) {
        memcpy(req->buffer, bytes, ucs_min(length, req->room));
    }
    ucs_list_del(&req->list);
    ucp_pipeline_request_activate(req);
    ucp_pipeline_offer_take(req, header, key, key_length);
    ucp_pipeline_recv_begin(req);
}

/* A piece is over: the next one begins */
static void ucp_pipeline_recv_piece_over(ucp_pipeline_piece_t *piece)
{
    ucx_pipeline_request_h req = piece->req;

    req->done += piece->length;
    ucp_pipeline_piece_delete(piece);
    ucp_pipeline_recv_advance(req);
    if (!req->complete) {
        ucp_pipeline_recv_check(req);
    }
}

int ucp_pipeline_recv_data(ucx_pipeline_request_h req,
                           const ucp_pipeline_header_t *header,
                           const void *bytes, size_t length)
{
    ucp_pipeline_piece_t *piece;

    if ((length == 0) || req->is_read) {
        return 0;
    }
    ucs_list_for_each(piece, &req->pieces, list) {
        if ((header->offset != piece->offset + piece->moved) ||
            (length > piece->length - piece->moved)) {
            continue;
        }
        memcpy(req->buffer + header->offset, bytes, length);
        piece->moved += length;
        if (piece->moved == piece->length) {
            ucp_pipeline_recv_piece_over(piece);
        }
        return 1;
    }
    return 0;
}

int ucp_pipeline_recv_fin(ucx_pipeline_request_h req,
                          const ucp_pipeline_header_t *header)
{
    ucp_pipeline_piece_t *piece;

    if (req->is_read) {
        return 0;
    }
    ucs_list_for_each(piece, &req->pieces, list) {
        if ((piece->offset == header->offset) && (piece->reg != NULL) &&
            (piece->length == header->length) && (piece->moved == 0)) {
            ucp_pipeline_recv_piece_over(piece);
            return 1;
        }
    }
    return 0;
}

void ucp_pipeline_recv_abort(ucx_pipeline_request_h req, ucs_status_t status)
{
    if (req->is_read) {
        req->status = status; /* until it ends, the buffer is written to */
        return;
    }
    ucp_pipeline_request_complete(req, status);
}
