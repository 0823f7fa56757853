/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "firehose_int.h"

/*
 * A transfer that lies in one bucket at either end, both of which are there: the
 * common case. It is begun without a list being gone through, and where the wire
 * ends it at once nothing is left of it but marks and sums.
 */

typedef ucp_firehose_fire_t fire_t;
typedef ucp_firehose_peer_t peer_t;
typedef ucp_firehose_piece_t piece_t;

static int ucp_firehose_is_inside(uint64_t address, size_t length,
                                  unsigned shift)
{
    return (address >> shift) == ((address + length - 1) >> shift);
}

/* @return The firehose, NULL: it is no hit, or others wait whose turn it is */
static fire_t *
ucp_firehose_hit_fire(peer_t *peer, uint64_t remote, size_t length)
{
    fire_t *fire;

    if ((peer->state != UCP_FIREHOSE_PEER_READY) || (peer->num_fences > 0) ||
        (peer->num_fires == 0) ||
        !ucp_firehose_is_inside(remote, length, peer->shift) ||
        !ucs_list_is_empty(&peer->waiting) ||
        !ucs_list_is_empty(&peer->firehose->starved)) {
        return NULL;
    }
    fire = (fire_t*)ucp_firehose_index_find(&peer->index,
                                            remote >> peer->shift
                                                   << peer->shift);
    return ((fire != NULL) && (fire->state == UCP_FIREHOSE_READY)) ? fire :
                                                                     NULL;
}

/* What the wire is given beforehand, and keeps if it does not end at once */
static piece_t *ucp_firehose_hit_piece(ucx_firehose_h firehose)
{
    piece_t *piece = firehose->hit;

    if (piece == NULL) {
        piece = ucp_firehose_item_get(firehose);
        if (piece == NULL) {
            return NULL;
        }
        piece->op = ucp_firehose_item_get(firehose);
        if (piece->op == NULL) {
            ucp_firehose_item_put(firehose, piece);
            return NULL;
        }
        firehose->hit = piece;
    }
    return piece;
}

ucs_status_t ucp_firehose_hit(peer_t *peer, int is_put, char *local,
                              uint64_t remote, size_t length,
                              ucx_firehose_done_func_t done, void *arg)
{
    ucx_firehose_h firehose = peer->firehose;
    fire_t *fire            = ucp_firehose_hit_fire(peer, remote, length);
    ucp_firehose_bucket_t *bucket;
    ucs_status_t status;
    piece_t *piece;

    if ((fire == NULL) || !ucp_firehose_is_inside((uintptr_t)local, length,
                                                  firehose->shift)) {
        return UCS_ERR_NO_ELEM;
    }
    bucket = ucp_firehose_buckets_touch(&firehose->buckets,
                                        (uintptr_t)local >> firehose->shift
                                                         << firehose->shift);
    piece  = ucp_firehose_hit_piece(firehose);
    if ((bucket == NULL) || (piece == NULL) ||
        (ucp_firehose_op_epoch(peer) == NULL)) {
        return UCS_ERR_NO_ELEM;
    }
    status = ucp_wire_move(firehose->wire, peer->node, is_put, bucket->pin,
                           local, length, remote, fire->key,
                           ucp_firehose_piece_done, piece);
    if (UCS_STATUS_IS_ERR(status)) {
        return UCS_ERR_NO_ELEM; /* it is begun again, and tells */
    }
    ++firehose->attr.hits;
    fire->is_recent = 1;
    if (is_put) {
        fire->last_put = ++peer->puts;
    }
    if (status == UCS_INPROGRESS) {
        firehose->hit = NULL;
        ucp_firehose_buckets_hold(&firehose->buckets, bucket);
        ucp_firehose_fire_hold(fire);
        piece->fire   = fire;
        piece->bucket = bucket;
        ucp_firehose_op_begun(piece, peer, done, arg);
    }
    return status;
}
