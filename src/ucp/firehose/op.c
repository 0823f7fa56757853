/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "firehose_int.h"

#include <stdlib.h>

typedef ucp_firehose_op_t op_t;
typedef ucp_firehose_piece_t piece_t;
typedef ucp_firehose_epoch_t epoch_t;

/* @return The oldest epoch of a peer, or NULL */
static epoch_t *ucp_firehose_peer_first_epoch(ucp_firehose_peer_t *peer)
{
    return ucs_list_is_empty(&peer->epochs) ?
                   NULL :
                   ucs_list_head(&peer->epochs, epoch_t, call.link);
}

/* A call is to be made when the lock has been let go */
static void
ucp_firehose_call_end(ucx_firehose_h firehose, ucp_firehose_call_t *call)
{
    call->is_done = 1;
    ucs_list_add_tail(&firehose->done, &call->link);
    ++firehose->num_done;
}

static void ucp_firehose_op_make_ready(op_t *op)
{
    if (!op->is_ready) {
        op->is_ready = 1;
        ucs_list_add_tail(&op->peer->firehose->ready, &op->call.link);
    }
}

epoch_t *ucp_firehose_op_epoch(ucp_firehose_peer_t *peer)
{
    epoch_t *epoch;

    if (!ucs_list_is_empty(&peer->epochs)) {
        epoch = ucs_list_tail(&peer->epochs, epoch_t, call.link);
        if (!epoch->is_closed) {
            return epoch;
        }
    }
    epoch = calloc(1, sizeof(*epoch));
    if (epoch != NULL) {
        ucs_list_add_tail(&peer->epochs, &epoch->call.link);
    }
    return epoch;
}

ucs_status_t ucp_firehose_op_begin(ucp_firehose_peer_t *peer, int is_put,
                                   char *local, uint64_t remote, size_t length,
                                   ucx_firehose_done_func_t done, void *arg,
                                   op_t **op_p)
{
    epoch_t *epoch = ucp_firehose_op_epoch(peer);
    op_t *op       = (epoch == NULL) ? NULL : calloc(1, sizeof(*op));

    if (op == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    op->epoch = epoch;
    ++op->epoch->count;
    op->call.done = done;
    op->call.arg  = arg;
    op->peer      = peer;
    op->is_put    = is_put;
    op->local     = local;
    op->remote    = remote;
    op->length    = length;
    if (peer->state == UCP_FIREHOSE_PEER_NEW) {
        ucs_list_add_tail(&peer->held, &op->call.link);
    } else {
        ucp_firehose_op_make_ready(op);
    }
    *op_p = op;
    return UCS_OK;
}

void ucp_firehose_op_begun(piece_t *piece, ucp_firehose_peer_t *peer,
                           ucx_firehose_done_func_t done, void *arg)
{
    op_t *op = piece->op;

    op->epoch = ucp_firehose_op_epoch(peer);
    ++op->epoch->count;
    op->call.done = done;
    op->call.arg  = arg;
    op->peer      = peer;
    op->pieces    = 1; /* and no bytes that are left to begin */
    ++peer->firehose->transfers;
}

static void ucp_firehose_op_end(op_t *op)
{
    epoch_t *epoch = op->epoch;

    if (epoch->call.status == UCS_OK) {
        epoch->call.status = op->call.status;
    }
    if (--epoch->count == 0) {
        ucp_firehose_peer_activate(op->peer);
    }
    ucp_firehose_call_end(op->peer->firehose, &op->call);
}

static size_t ucp_firehose_to_bucket_end(uint64_t address, unsigned shift)
{
    return (UINT64_C(1) << shift) - (address & ((UINT64_C(1) << shift) - 1));
}

/* Bytes of the next piece: up to the end of the bucket at either end */
static size_t ucp_firehose_op_step(const op_t *op)
{
    size_t left   = op->length - op->begun;
    size_t remote = ucp_firehose_to_bucket_end(op->remote + op->begun,
                                               op->peer->shift);
    size_t local  = ucp_firehose_to_bucket_end(
             (uintptr_t)op->local + op->begun, op->peer->firehose->shift);

    left = (remote < left) ? remote : left;
    return (local < left) ? local : left;
}

static void ucp_firehose_op_next(op_t *op)
{
    piece_t *piece = calloc(1, sizeof(*piece));

    if (piece == NULL) {
        op->call.status = UCS_ERR_NO_MEMORY;
        return;
    }
    piece->op     = op;
    piece->local  = op->local + op->begun;
    piece->remote = op->remote + op->begun;
    piece->length = ucp_firehose_op_step(op);
    op->begun    += piece->length;
    ++op->pieces;
    ucp_firehose_fire_find(piece);
}

/* `is_ready` is set meanwhile, so that pieces that end here do not queue the
 * operation that is being gone on with */
void ucp_firehose_op_go_on(op_t *op)
{
    if ((op->peer->state == UCP_FIREHOSE_PEER_FAILED) &&
        (op->begun < op->length) && (op->call.status == UCS_OK)) {
        op->call.status = op->peer->status;
    }
    while ((op->begun < op->length) && (op->pieces < UCP_FIREHOSE_WINDOW) &&
           (op->call.status == UCS_OK)) {
        ucp_firehose_op_next(op);
    }
    op->is_ready = 0;
    if ((op->pieces == 0) &&
        ((op->begun == op->length) || (op->call.status != UCS_OK))) {
        ucp_firehose_op_end(op);
    }
}

void ucp_firehose_piece_end(piece_t *piece, ucs_status_t status)
{
    op_t *op                = piece->op;
    ucx_firehose_h firehose = op->peer->firehose;

    if (piece->bucket != NULL) {
        ucp_firehose_buckets_put(&firehose->buckets, piece->bucket,
                                 UCP_FIREHOSE_LOCAL);
    }
    if (piece->fire != NULL) {
        ucp_firehose_fire_put(op->peer, piece->fire);
    }
    free(piece);
    --op->pieces;
    if ((status != UCS_OK) && (op->call.status == UCS_OK)) {
        op->call.status = status;
    }
    ucp_firehose_op_make_ready(op);
}

void ucp_firehose_piece_done(void *arg, ucs_status_t status)
{
    piece_t *piece = arg;

    --piece->op->peer->firehose->transfers;
    ucp_firehose_piece_end(piece, status);
}

static void ucp_firehose_piece_move(piece_t *piece)
{
    ucp_firehose_peer_t *peer = piece->op->peer;
    ucx_firehose_h firehose   = peer->firehose;
    ucs_status_t status;

    ++firehose->transfers;
    if (piece->op->is_put) {
        piece->fire->last_put = ++peer->puts;
    }
    status = ucp_wire_move(firehose->wire, peer->node, piece->op->is_put,
                           piece->bucket->pin, piece->local, piece->length,
                           piece->remote, piece->fire->key,
                           ucp_firehose_piece_done, piece);
    if (status != UCS_INPROGRESS) {
        ucp_firehose_piece_done(piece, status);
    }
}

/* @return Zero if there is no local bucket to be had */
static int ucp_firehose_piece_try(piece_t *piece)
{
    ucx_firehose_h firehose = piece->op->peer->firehose;
    ucs_status_t status;

    status = ucp_firehose_buckets_get(&firehose->buckets,
                                      (uintptr_t)piece->local >>
                                              firehose->shift
                                              << firehose->shift,
                                      UCP_FIREHOSE_LOCAL, &piece->bucket);
    if (status == UCS_ERR_NO_RESOURCE) {
        return 0;
    }
    if (status == UCS_OK) {
        ucp_firehose_piece_move(piece);
    } else {
        ucp_firehose_piece_end(piece, status);
    }
    return 1;
}

/* A piece holds a local bucket only while its data move, which ends whatever
 * others do: a piece that waits for one holds none, so that none waits in a
 * circle */
void ucp_firehose_piece_transfer(piece_t *piece)
{
    ucx_firehose_h firehose = piece->op->peer->firehose;

    if (!ucs_list_is_empty(&firehose->starved) ||
        !ucp_firehose_piece_try(piece)) {
        ucs_list_add_tail(&firehose->starved, &piece->link);
    }
}

void ucp_firehose_starved_run(ucx_firehose_h firehose)
{
    piece_t *piece;

    while (!ucs_list_is_empty(&firehose->starved)) {
        piece = ucs_list_extract_head(&firehose->starved, piece_t, link);
        if (!ucp_firehose_piece_try(piece)) {
            ucs_list_add_head(&firehose->starved, &piece->link);
            return;
        }
    }
}

ucs_status_t ucp_firehose_epoch_close(ucp_firehose_peer_t *peer,
                                      ucx_firehose_done_func_t done, void *arg,
                                      epoch_t **epoch_p)
{
    epoch_t *epoch;

    if (ucs_list_is_empty(&peer->epochs) && (peer->flushed == peer->puts)) {
        return UCS_OK;
    }
    epoch = ucp_firehose_op_epoch(peer);
    if (epoch == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    epoch->is_closed = 1;
    epoch->call.done = done;
    epoch->call.arg  = arg;
    ucp_firehose_peer_activate(peer);
    *epoch_p = epoch;
    return UCS_INPROGRESS;
}

void ucp_firehose_held_release(ucp_firehose_peer_t *peer)
{
    while (!ucs_list_is_empty(&peer->held)) {
        ucp_firehose_op_make_ready(
                ucs_list_extract_head(&peer->held, op_t, call.link));
    }
}

/* A put that is begun while an epoch is being flushed does not put that off */
static int ucp_firehose_epoch_is_over(ucp_firehose_peer_t *peer, epoch_t *epoch)
{
    if (!epoch->is_closed || (epoch->count > 0)) {
        return 0;
    }
    if (peer->state == UCP_FIREHOSE_PEER_FAILED) {
        epoch->call.status = (epoch->call.status == UCS_OK) ?
                                     peer->status :
                                     epoch->call.status;
        return 1;
    }
    if (!epoch->is_needed) {
        epoch->is_needed = 1;
        epoch->need      = peer->puts;
    }
    return ucp_firehose_peer_is_flushed(peer, epoch->need);
}

void ucp_firehose_epochs_run(ucp_firehose_peer_t *peer)
{
    epoch_t *epoch;

    while ((epoch = ucp_firehose_peer_first_epoch(peer)) != NULL) {
        if (!ucp_firehose_epoch_is_over(peer, epoch)) {
            return;
        }
        ucs_list_del(&epoch->call.link);
        ucp_firehose_call_end(peer->firehose, &epoch->call);
    }
}
