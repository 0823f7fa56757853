/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "firehose_int.h"

#include <ucs/sys/clock.h>

#include <sched.h>
#include <stdlib.h>

/*
 * What a user calls. Each function takes the lock, begins something, does all
 * that has become possible (ucp_firehose_run()) and lets the lock go.
 */

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

    if ((peer->state != UCP_FIREHOSE_PEER_READY) || (peer->num_fires == 0) ||
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
        piece = calloc(1, sizeof(*piece));
        if (piece == NULL) {
            return NULL;
        }
        piece->op = calloc(1, sizeof(*piece->op));
        if (piece->op == NULL) {
            free(piece);
            return NULL;
        }
        firehose->hit = piece;
    }
    return piece;
}

static ucs_status_t ucp_firehose_hit(peer_t *peer, int is_put, char *local,
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

/* @return UCS_OK if something may be begun to the node; lock held */
static ucs_status_t ucp_firehose_reach(ucx_firehose_h firehose, unsigned node)
{
    if ((node >= firehose->num_nodes) || (node == firehose->node)) {
        return UCS_ERR_INVALID_PARAM;
    }
    if (firehose->peers[node].is_failing) {
        return firehose->peers[node].status;
    }
    return firehose->peers[node].is_greeted ? UCS_OK : UCS_ERR_NOT_CONNECTED;
}

/* Lock held. @return UCS_INPROGRESS, or how it ended: then it is forgotten */
static ucs_status_t
ucp_firehose_outcome(ucx_firehose_h firehose, ucp_firehose_call_t *call)
{
    ucs_status_t status = call->status;

    if (!call->is_done) {
        return UCS_INPROGRESS;
    }
    ucs_list_del(&call->link);
    --firehose->num_done;
    free(call); /* first member of what has ended */
    return status;
}

/* Lock held; the long way, by which all goes that is no hit */
static ucs_status_t
ucp_firehose_begin(ucp_firehose_peer_t *peer, int is_put, char *local,
                   uint64_t remote, size_t length,
                   ucx_firehose_done_func_t done, void *arg)
{
    ucp_firehose_op_t *op;
    ucs_status_t status;

    status = ucp_firehose_op_begin(peer, is_put, local, remote, length, done,
                                   arg, &op);
    if (status != UCS_OK) {
        return status;
    }
    ucp_firehose_run(peer->firehose);
    return ucp_firehose_outcome(peer->firehose, &op->call);
}

static ucs_status_t
ucp_firehose_move(ucx_firehose_h firehose, unsigned node, int is_put,
                  char *local, uint64_t remote, size_t length,
                  ucx_firehose_done_func_t done, void *arg)
{
    ucp_firehose_peer_t *peer = &firehose->peers[node];
    ucs_status_t status, hit;

    if ((remote + length < remote) ||
        ((uintptr_t)local + length < (uintptr_t)local)) {
        return UCS_ERR_INVALID_PARAM;
    }
    ucp_firehose_lock(firehose);
    status = ucp_firehose_reach(firehose, node);
    if ((status == UCS_OK) && (length > 0)) {
        hit    = ucp_firehose_hit(peer, is_put, local, remote, length, done,
                                  arg);
        status = (hit != UCS_ERR_NO_ELEM) ?
                         hit :
                         ucp_firehose_begin(peer, is_put, local, remote, length,
                                            done, arg);
    }
    ucp_firehose_unlock(firehose);
    return status;
}

ucs_status_t ucx_firehose_put_nb(ucx_firehose_h firehose, unsigned node,
                                 const void *local, uint64_t remote,
                                 size_t length, ucx_firehose_done_func_t done,
                                 void *arg)
{
    return ucp_firehose_move(firehose, node, 1, (char*)local, remote, length,
                             done, arg);
}

ucs_status_t ucx_firehose_get_nb(ucx_firehose_h firehose, unsigned node,
                                 void *local, uint64_t remote, size_t length,
                                 ucx_firehose_done_func_t done, void *arg)
{
    return ucp_firehose_move(firehose, node, 0, local, remote, length, done,
                             arg);
}

ucs_status_t ucx_firehose_flush_nb(ucx_firehose_h firehose, unsigned node,
                                   ucx_firehose_done_func_t done, void *arg)
{
    ucp_firehose_epoch_t *epoch;
    ucs_status_t status;

    ucp_firehose_lock(firehose);
    status = ucp_firehose_reach(firehose, node);
    if (status == UCS_OK) {
        status = ucp_firehose_epoch_close(&firehose->peers[node], done, arg,
                                          &epoch);
        if (status == UCS_INPROGRESS) {
            ucp_firehose_run(firehose);
            status = ucp_firehose_outcome(firehose, &epoch->call);
        }
    }
    ucp_firehose_unlock(firehose);
    return status;
}

/* What all flushes of one ucx_firehose_flush() have in common */
typedef struct ucp_firehose_flushes {
    _Atomic(unsigned) left;
    _Atomic(int)      status; /* the first error, UCS_OK: none */
} ucp_firehose_flushes_t;

static void ucp_firehose_flushed(void *arg, ucs_status_t status)
{
    ucp_firehose_flushes_t *flushes = arg;
    int none                        = UCS_OK;

    if (status != UCS_OK) {
        /* relaxed: the sub below orders it */
        (void)ucs_cas_relaxed(&flushes->status, &none, status);
    }
    /* release [F-FLUSHED]: pairs with the load in ucx_firehose_flush() */
    ucs_sub_acq_rel(&flushes->left, 1);
}

ucs_status_t ucx_firehose_flush(ucx_firehose_h firehose)
{
    ucp_firehose_flushes_t flushes;
    ucs_status_t status;
    unsigned node;

    atomic_init(&flushes.left, firehose->num_nodes);
    atomic_init(&flushes.status, UCS_OK);
    for (node = 0; node < firehose->num_nodes; ++node) {
        status = ucx_firehose_flush_nb(firehose, node, ucp_firehose_flushed,
                                       &flushes);
        if ((node == firehose->node) || (status == UCS_ERR_NOT_CONNECTED)) {
            status = UCS_OK;
        }
        if (status != UCS_INPROGRESS) {
            ucp_firehose_flushed(&flushes, status);
        }
    }
    /* acquire [F-FLUSHED]: pairs with the sub in ucp_firehose_flushed(): it is
     * the last that the thread there does with what lies on this stack */
    while (ucs_load_acquire(&flushes.left) > 0) {
        if (ucx_firehose_progress(firehose) == 0) {
            sched_yield();
        }
    }
    return (ucs_status_t)ucs_load_relaxed(&flushes.status);
}

ucs_status_t ucx_firehose_release(ucx_firehose_h firehose, const void *address,
                                  size_t length, uint64_t timeout)
{
    const uint64_t start = (uintptr_t)address, begin = ucs_clock_monotonic();
    uint64_t doom;

    if (start + length < start) {
        return UCS_ERR_INVALID_PARAM;
    }
    doom = ucp_firehose_revoke(firehose, start, start + length);
    while (!ucp_firehose_is_released(firehose, doom)) {
        if (ucs_clock_monotonic() - begin > timeout) {
            return UCS_ERR_TIMED_OUT;
        }
        if (ucx_firehose_progress(firehose) == 0) {
            sched_yield();
        }
    }
    return UCS_OK;
}

void ucx_firehose_query(ucx_firehose_h firehose, ucx_firehose_attr_t *attr)
{
    const ucp_firehose_buckets_t *buckets = &firehose->buckets;
    const size_t size                     = buckets->size;

    ucp_firehose_lock(firehose);
    *attr                 = firehose->attr;
    attr->bucket          = size;
    attr->pinned          = buckets->pinned * size;
    attr->pinned_peak     = buckets->peak * size;
    attr->pinned_max      = (buckets->max_remote + buckets->max_victims) *
                            size;
    attr->pins            = buckets->num_pins;
    attr->unpins          = buckets->num_unpins;
    attr->has_events      = firehose->has_events;
    /* relaxed: they count, and order nothing */
    attr->unmaps          = ucs_load_relaxed(&firehose->revoker.unmaps);
    attr->unmaps_late     = ucs_load_relaxed(&firehose->revoker.late);
    ucp_firehose_unlock(firehose);
}
