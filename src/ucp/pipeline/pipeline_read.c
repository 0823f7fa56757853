/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucp/pipeline/pipeline_int.h>

/* A message that its receiver reads. Where all of the sender's buffer is
 * registered MATCH brings the keys; where all of the receiver's is, too, or is to
 * be, it reads, each piece that one registration has at either end at once, and
 * DONE is its only answer. Else it answers as if there were no keys. */

int ucp_pipeline_read_done(ucx_pipeline_request_h req,
                           const ucp_pipeline_header_t *header)
{
    if (req->acked || ucs_list_is_empty(&req->offers) ||
        (header->length != req->total)) {
        return 0;
    }
    req->done = req->total;
    req->next = req->total;
    ucp_pipeline_request_release(req);
    ucp_pipeline_send_check(req);
    return 1;
}

/* It cannot be read: it is asked for, as if nothing had been read */
static void ucp_pipeline_read_give_up(ucx_pipeline_request_h req)
{
    ucp_pipeline_pieces_delete(req);
    ucp_pipeline_request_release(req);
    req->next    = 0;
    req->is_read = 0;
}

static void ucp_pipeline_read_finish(ucx_pipeline_request_h req)
{
    ucp_pipeline_header_t header = {.type   = UCP_PIPELINE_DONE,
                                    .length = req->total};

    ucp_pipeline_tell(req, &header, NULL, 0, NULL, NULL);
    req->pipeline->stats.read += req->total;
    ucp_pipeline_tune_sample(req, 1);
    ucp_pipeline_request_complete(req, UCS_OK);
}

/* Nothing of it is under way any more: until then the buffer is written to */
static void ucp_pipeline_read_end(ucx_pipeline_request_h req)
{
    req->is_read = 0;
    if (req->status != UCS_OK) { /* the peer was lost meanwhile */
        ucp_pipeline_recv_abort(req, req->status);
    } else if (req->is_refused) {
        ucp_pipeline_read_give_up(req);
        ucp_pipeline_recv_begin(req);
    } else {
        ucp_pipeline_read_finish(req);
    }
}

/* What the sender has registered at `offset` of the message */
static ucp_pipeline_offer_t *ucp_pipeline_read_offer(ucx_pipeline_request_h req,
                                                     size_t offset)
{
    ucp_pipeline_offer_t *offer;

    ucs_list_for_each(offer, &req->offers, list) {
        if (offset < offer->end) {
            break; /* the last one ends where the message does */
        }
    }
    return offer;
}

/* One of the operations is over */
static void ucp_pipeline_read_ended(ucp_pipeline_piece_t *piece,
                                    ucs_status_t status)
{
    --piece->req->ops;
    piece->req->is_refused |= (status != UCS_OK);
}

static void ucp_pipeline_read_over(void *arg, ucs_status_t status);

/* Read what is not under way yet, as much of it at a time as is written of a
 * message: what this process asks and answers travels behind what others read
 * here */
static void ucp_pipeline_read_more(ucx_pipeline_request_h req)
{
    ucp_wire_t *wire = req->pipeline->wire;
    ucp_pipeline_piece_t *piece;
    ucs_status_t status;

    ucs_list_for_each(piece, &req->pieces, list) {
        if (req->is_refused || (req->status != UCS_OK) ||
            (req->ops >= UCP_PIPELINE_MOVES)) {
            break;
        }
        if (piece->moved > 0) {
            continue;
        }
        piece->moved = piece->length;
        ++req->ops;
        status = ucp_wire_move(wire, req->peer, 0, piece->reg->mem,
                               req->buffer + piece->offset, piece->length,
                               req->address + piece->offset,
                               ucp_pipeline_read_offer(req, piece->offset)->key,
                               ucp_pipeline_read_over, piece);
        if (status != UCS_INPROGRESS) {
            ucp_pipeline_read_ended(piece, status);
        }
    }
}

static void ucp_pipeline_read_over(void *arg, ucs_status_t status)
{
    ucp_pipeline_piece_t *piece = arg;
    ucx_pipeline_request_h req  = piece->req;

    ucp_pipeline_read_ended(piece, status);
    ucp_pipeline_read_more(req);
    if (req->ops == 0) {
        ucp_pipeline_read_end(req);
    }
}

/* What this end has registered from `next` on */
static ucp_pipeline_reg_t *ucp_pipeline_read_reg(ucx_pipeline_request_h req)
{
    ucp_pipeline_piece_t *last;

    if (!ucs_list_is_empty(&req->pieces)) {
        last = ucs_list_tail(&req->pieces, ucp_pipeline_piece_t, list);
        if (last->reg->end > (uintptr_t)req->buffer + req->next) {
            ucp_pipeline_reg_share(req->pipeline, last->reg);
            return last->reg;
        }
    }
    return req->is_whole ? ucp_pipeline_reg_get(req, 0, req->total) :
                           ucp_pipeline_reg_find(req, req->next);
}

/* Cut the message where a registration of either end ends.
 * @return Zero if this end's buffer is not registered as a whole */
static int ucp_pipeline_read_cut(ucx_pipeline_request_h req)
{
    ucp_pipeline_offer_t *offer;
    ucp_pipeline_piece_t *piece;
    ucp_pipeline_reg_t *reg;
    size_t end;

    ucs_list_for_each(offer, &req->offers, list) {
        while (req->next < offer->end) {
            reg = ucp_pipeline_read_reg(req);
            if (reg == NULL) {
                return 0;
            }
            end   = reg->end - (uintptr_t)req->buffer;
            piece = ucp_pipeline_piece_new(req, ucs_min(end, offer->end));
            if (piece == NULL) {
                ucp_pipeline_reg_put(req->pipeline, reg);
                return 0;
            }
            piece->reg = reg;
        }
    }
    return 1;
}

/* Begin to read, if there are keys and this end's buffer is registered as a
 * whole, or comes so often that it is now. @return Zero: it is to be asked for */
int ucp_pipeline_read_begin(ucx_pipeline_request_h req)
{
    if (ucs_list_is_empty(&req->offers)) {
        return 0;
    }
    if (!ucp_pipeline_read_cut(req)) {
        ucp_pipeline_read_give_up(req);
        return 0;
    }
    req->is_read = 1;
    ucp_pipeline_tune_begin(req);
    ucp_pipeline_read_more(req);
    if (req->ops == 0) {
        ucp_pipeline_read_end(req);
    }
    return 1;
}
