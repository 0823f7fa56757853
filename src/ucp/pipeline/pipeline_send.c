/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucp/pipeline/pipeline_int.h>

/* The sender's side. A request is complete when all its bytes have left and no
 * operation of it is under way: until then its buffer is read. */

static void ucp_pipeline_send_pump(ucp_pipeline_piece_t *piece);

static void ucp_pipeline_send_fail(ucx_pipeline_request_h req,
                                   ucs_status_t status)
{
    if (req->status == UCS_OK) {
        req->status = status;
    }
}

void ucp_pipeline_send_check(ucx_pipeline_request_h req)
{
    ucx_pipeline_h self          = req->pipeline;
    ucp_pipeline_header_t header = {.type = UCP_PIPELINE_ABORT};

    if (req->complete || (req->ops > 0)) {
        return;
    }
    if (req->status != UCS_OK) {
        if (req->acked && (self->failed[req->peer] == UCS_OK)) {
            ucp_pipeline_tell(req, &header, NULL, 0, NULL, NULL);
        }
        ucp_pipeline_request_complete(req, req->status);
    } else if (req->done == req->total) {
        ucp_pipeline_request_complete(req, UCS_OK);
    }
}

/* MATCH or FIN has left */
static void ucp_pipeline_send_matched(void *arg, ucs_status_t status)
{
    ucx_pipeline_request_h req = arg;

    --req->ops;
    if (status != UCS_OK) {
        ucp_pipeline_send_fail(req, status);
    }
    ucp_pipeline_send_check(req);
}

ucs_status_t ucp_pipeline_send_begin(ucx_pipeline_request_h req)
{
    ucx_pipeline_h self          = req->pipeline;
    ucp_pipeline_header_t header = {.type   = UCP_PIPELINE_MATCH,
                                    .tag    = req->tag,
                                    .length = req->total};
    size_t key_length            = 0;
    char keys[UCP_WIRE_MAX_HEADER];
    ucs_status_t status;

    req->done = req->total;
    if (req->total > self->options.eager) { /* the answer is waited for */
        key_length = ucp_pipeline_offer_all(req, &header, keys);
        req->done  = (key_length > 0) ? 0 :
                     ucs_min(self->options.eager, (size_t)UCP_PIPELINE_FIRST);
    }
    req->next = req->done;
    status    = ucp_pipeline_post(req, &header, keys, key_length, req->buffer,
                                  req->done, ucp_pipeline_send_matched, req);
    if (status == UCS_INPROGRESS) {
        ++req->ops;
    } else if (status != UCS_OK) {
        ucp_pipeline_request_release(req);
        return status;
    }
    self->stats.copied += req->done;
    ucp_pipeline_send_check(req);
    return UCS_OK;
}

/* The last operation of a piece is over */
static void ucp_pipeline_send_piece_over(ucp_pipeline_piece_t *piece)
{
    ucx_pipeline_request_h req   = piece->req;
    ucx_pipeline_h self          = req->pipeline;
    ucp_pipeline_header_t header = {.type   = UCP_PIPELINE_FIN,
                                    .offset = piece->offset,
                                    .length = piece->length};
    ucs_status_t status          = UCS_OK;

    if (req->status != UCS_OK) {
        return; /* send_check() deletes it */
    }
    if (piece->reg != NULL) {
        self->stats.written += piece->length;
        /* the request ends no earlier: its user may make no progress then */
        status = ucp_pipeline_tell(req, &header, NULL, 0,
                                   ucp_pipeline_send_matched, req);
        req->ops += (status == UCS_INPROGRESS);
    }
    if (UCS_STATUS_IS_ERR(status)) {
        ucp_pipeline_send_fail(req, status);
        return;
    }
    req->done += piece->length;
    ucp_pipeline_piece_delete(piece);
}

static void ucp_pipeline_send_op_over(void *arg, ucs_status_t status)
{
    ucp_pipeline_piece_t *piece = arg;
    ucx_pipeline_request_h req  = piece->req;

    --req->ops;
    --piece->ops;
    if (status != UCS_OK) {
        ucp_pipeline_send_fail(req, status);
    }
    if (piece->reg == NULL) {
        ucp_pipeline_send_pump(piece);
    } else if (piece->ops == 0) {
        ucp_pipeline_send_piece_over(piece);
    }
    ucp_pipeline_send_check(req);
}

/* Account for an operation just begun. Returns zero if it failed */
static int ucp_pipeline_send_begun(ucp_pipeline_piece_t *piece,
                                   ucs_status_t status)
{
    if (status == UCS_INPROGRESS) {
        ++piece->ops;
        ++piece->req->ops;
    } else if (status != UCS_OK) {
        ucp_pipeline_send_fail(piece->req, status);
        return 0;
    }
    return 1;
}

/* Bytes of a message with copied data: so few that one is copied out while
 * another travels and a third is copied in */
static size_t ucp_pipeline_send_copy_length(const ucp_pipeline_piece_t *piece)
{
    size_t length = UCP_PIPELINE_COPY_MIN;

    while ((length < UCP_PIPELINE_COPY) &&
           (length * UCP_PIPELINE_COPY_PARTS < piece->length)) {
        length *= 2;
    }
    return ucs_min(piece->length - piece->moved, length);
}

static void ucp_pipeline_send_pump(ucp_pipeline_piece_t *piece)
{
    ucx_pipeline_request_h req = piece->req;
    ucx_pipeline_h self        = req->pipeline;
    ucp_pipeline_header_t header;
    ucs_status_t status;
    size_t length;

    while ((req->status == UCS_OK) && (piece->moved < piece->length) &&
           (piece->ops < UCP_PIPELINE_COPIES)) {
        length = ucp_pipeline_send_copy_length(piece);
        header = (ucp_pipeline_header_t){.type   = UCP_PIPELINE_DATA,
                                         .to     = req->remote,
                                         .offset = piece->offset +
                                                   piece->moved};
        status = ucp_pipeline_post(req, &header, NULL, 0,
                                   req->buffer + header.offset, length,
                                   ucp_pipeline_send_op_over, piece);
        if (ucp_pipeline_send_begun(piece, status)) {
            piece->moved       += length;
            self->stats.copied += length;
        }
    }
    if ((piece->ops == 0) && (piece->moved == piece->length)) {
        ucp_pipeline_send_piece_over(piece);
    }
}

/* Nothing is to be copied, and the receiver registers what it will ask for: so
 * does this end meanwhile, and all of it, so that the next message's receiver
 * may read */
static void ucp_pipeline_send_prepare(ucx_pipeline_request_h req)
{
    ucx_pipeline_h self = req->pipeline;
    ucp_pipeline_offer_t *offer;

    if (ucs_list_is_empty(&req->offers) &&
        (self->options.mode == UCX_PIPELINE_MODE_CACHE) &&
        ucp_pipeline_tune_is_whole(self, req->total) &&
        (ucp_pipeline_cache_has(self, req->buffer) == 0)) {
        offer = ucp_pipeline_offer_new(req, req->total);
        if (offer != NULL) {
            offer->reg = ucp_pipeline_reg_get(req, 0, req->total);
        }
    }
}

int ucp_pipeline_send_acked(ucx_pipeline_request_h req,
                            const ucp_pipeline_header_t *header)
{
    ucp_pipeline_piece_t *piece;

    if (req->acked || (req->next >= req->total) ||
        ((header->length != 0) && (header->length != req->total)) ||
        (header->offset < req->next) || (header->offset > req->total)) {
        return 0;
    }
    req->acked  = 1;
    req->remote = header->from;
    if (header->length == 0) {
        req->acked = 0; /* the receive is over, nobody is to be told */
        req->done  = req->total;
        req->next  = req->total;
    } else if (header->offset > req->next) {
        piece = ucp_pipeline_piece_new(req, header->offset);
        if (piece == NULL) {
            ucp_pipeline_send_fail(req, UCS_ERR_NO_MEMORY);
        } else {
            ucp_pipeline_send_pump(piece);
        }
    } else {
        ucp_pipeline_send_prepare(req);
    }
    ucp_pipeline_send_check(req);
    return 1;
}

/* Write a fragment. The flush is begun at once: it ends when the bytes are
 * visible there, and FIN may go. */
static void ucp_pipeline_send_put(ucp_pipeline_piece_t *piece)
{
    ucx_pipeline_request_h req = piece->req;
    ucx_pipeline_h self        = req->pipeline;

    piece->waits = 0;
    --self->num_waits;
    ++req->num_writes;
    if (ucp_pipeline_send_begun(
                piece, ucp_wire_move(self->wire, req->peer, 1, piece->reg->mem,
                                     req->buffer + piece->offset, piece->length,
                                     piece->address, piece->key,
                                     ucp_pipeline_send_op_over, piece))) {
        ucp_pipeline_send_begun(piece,
                                ucp_wire_flush(self->wire, req->peer,
                                               ucp_pipeline_send_op_over,
                                               piece));
    }
    if (piece->ops == 0) {
        ucp_pipeline_send_piece_over(piece);
    }
}

/* The oldest fragment of the message that was written from least recently */
static ucp_pipeline_piece_t *ucp_pipeline_send_next(ucx_pipeline_h self)
{
    ucx_pipeline_request_h req;
    ucp_pipeline_piece_t *piece;

    ucs_list_for_each(req, &self->active, list) {
        if ((req->kind != UCP_PIPELINE_SEND) || (req->status != UCS_OK) ||
            (req->num_writes >= UCP_PIPELINE_MOVES)) {
            continue;
        }
        ucs_list_for_each(piece, &req->pieces, list) {
            if (piece->waits) {
                return piece;
            }
        }
    }
    return NULL;
}

/* Write what waits. What this process answers to others travels behind what it
 * has given to its link, so that is never more than some fragments: a whole
 * message at once had every node of a ring wait for its neighbours' answers. */
void ucp_pipeline_send_write(ucx_pipeline_h self)
{
    ucx_pipeline_request_h req;
    ucp_pipeline_piece_t *piece;

    while (self->num_waits > 0) {
        piece = ucp_pipeline_send_next(self);
        if (piece == NULL) {
            break; /* what waits is of messages that failed */
        }
        req = piece->req;
        ucs_list_del(&req->list);
        ucs_list_add_tail(&self->active, &req->list);
        ucp_pipeline_send_put(piece);
        ucp_pipeline_send_check(req);
    }
}

static ucp_pipeline_reg_t *ucp_pipeline_send_reg(ucp_pipeline_piece_t *piece)
{
    ucx_pipeline_request_h req = piece->req;
    size_t end                 = piece->offset + piece->length;
    ucp_pipeline_reg_t *reg    = ucp_pipeline_offer_withdraw(req, end);

    return (reg != NULL) ? reg :
           ucp_pipeline_reg_get(req, piece->offset, piece->length);
}

int ucp_pipeline_send_ready(ucx_pipeline_request_h req,
                            const ucp_pipeline_header_t *header,
                            const void *key, size_t key_length)
{
    ucx_pipeline_h self = req->pipeline;
    ucp_pipeline_piece_t *piece;

    if (!req->acked || (req->status != UCS_OK) ||
        (header->offset != req->next) || (header->length == 0) ||
        (header->length > req->total - req->next)) {
        return 0;
    }
    piece = ucp_pipeline_piece_new(req, req->next + header->length);
    if (piece == NULL) {
        ucp_pipeline_send_fail(req, UCS_ERR_NO_MEMORY);
        ucp_pipeline_send_check(req);
        return 1;
    }
    if ((key_length > 0) &&
        (ucp_wire_key_unpack(self->wire, req->peer, key, key_length,
                             &piece->key) == UCS_OK)) {
        piece->reg = ucp_pipeline_send_reg(piece);
    }
    if (piece->reg != NULL) {
        piece->address = header->address;
        piece->waits   = 1;
        ++self->num_waits;
    } else { /* what cannot be registered is copied */
        ucp_pipeline_send_pump(piece);
    }
    ucp_pipeline_send_check(req);
    return 1;
}
