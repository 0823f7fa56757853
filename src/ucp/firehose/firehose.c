/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "firehose_int.h"

#include <stdlib.h>
#include <unistd.h>

/* The engine's life and its turns. */

typedef ucp_firehose_peer_t peer_t;

/* Relative to all of M and MAXVICTIM there are few buckets: at most as many as
 * an index counts */
static ucs_status_t ucp_firehose_size_up(ucx_firehose_h firehose,
                                         const ucx_firehose_params_t *params)
{
    const ucp_firehose_pin_ops_t ops = {ucp_firehose_pin, ucp_firehose_unpin,
                                        firehose};
    const size_t page = sysconf(_SC_PAGESIZE);
    size_t bucket     = page;
    size_t victims, lent;

    if (params->field_mask & UCX_FIREHOSE_PARAM_FIELD_BUCKET) {
        bucket = params->bucket;
    }
    if ((bucket < page) || (bucket & (bucket - 1)) ||
        (bucket > (UINT64_C(1) << 40))) {
        return UCS_ERR_INVALID_PARAM;
    }
    victims = params->memory / bucket / UCP_FIREHOSE_VICTIM_PART;
    victims = (victims > UCP_FIREHOSE_VICTIM_LEAST) ? victims :
                                                      UCP_FIREHOSE_VICTIM_LEAST;
    if (params->field_mask & UCX_FIREHOSE_PARAM_FIELD_VICTIMS) {
        victims = params->victims / bucket;
    }
    if (victims == 0) {
        return UCS_ERR_EXCEEDS_LIMIT;
    }
    lent = (params->num_nodes > 1) ?
                   params->memory / bucket / (params->num_nodes - 1) :
                   0;
    firehose->lent  = (lent < UINT32_MAX) ? lent : UINT32_MAX;
    firehose->shift = __builtin_ctzl(bucket);
    return ucp_firehose_buckets_init(&firehose->buckets, bucket,
                                     (size_t)firehose->lent *
                                             (params->num_nodes - 1),
                                     victims, &ops);
}

/* A node may have thousands of peers and reach a few of them: what has not been
 * met is not touched, and costs no memory. @return The peer. */
static peer_t *ucp_firehose_meet(ucx_firehose_h firehose, unsigned node)
{
    peer_t *peer = &firehose->peers[node];

    if (peer->firehose == NULL) {
        peer->firehose = firehose;
        peer->node     = node;
        ucs_list_head_init(&peer->free);
        ucs_list_head_init(&peer->unused);
        ucs_list_head_init(&peer->outbox);
        ucs_list_head_init(&peer->waiting);
        ucs_list_head_init(&peer->held);
        ucs_list_head_init(&peer->epochs);
        ucs_list_head_init(&peer->grants);
        ucs_list_head_init(&peer->revokes);
    }
    return peer;
}

static void ucp_firehose_on_message(void *arg, unsigned node,
                                    const void *header, size_t header_length,
                                    const void *payload, size_t length)
{
    ucx_firehose_h firehose = arg;

    if ((node < firehose->num_nodes) && (node != firehose->node) &&
        (!firehose->is_stopped || (firehose->peers[node].firehose != NULL))) {
        ucp_firehose_peer_receive(ucp_firehose_meet(firehose, node), header,
                                  header_length, payload, length);
    }
}

static void
ucp_firehose_on_failure(void *arg, unsigned node, ucs_status_t status)
{
    ucx_firehose_h firehose = arg;

    if (node < firehose->num_nodes) {
        ucp_firehose_peer_fail(ucp_firehose_meet(firehose, node),
                               (status == UCS_OK) ? UCS_ERR_CONNECTION_RESET :
                                                    status);
    }
}

void ucp_firehose_destroy(ucx_firehose_h firehose)
{
    ucp_firehose_epoch_t *epoch, *next;
    peer_t *peer;
    unsigned node;

    for (node = 0; (firehose->peers != NULL) && (node < firehose->num_nodes);
         ++node) {
        peer = &firehose->peers[node];
        if (peer->firehose == NULL) {
            continue;
        }
        ucs_list_for_each_safe(epoch, next, &peer->epochs, call.link) {
            free(epoch); /* nothing is in it */
        }
        ucp_firehose_fires_cleanup(peer);
        free(peer->holds);
    }
    free(firehose->peers);
    if (firehose->hit != NULL) {
        free(firehose->hit->op);
        free(firehose->hit);
    }
    ucp_firehose_buckets_cleanup(&firehose->buckets);
    ucp_wire_destroy(firehose->wire);
    free(firehose->packet);
    pthread_mutex_destroy(&firehose->lock);
    free(firehose);
}

static ucx_firehose_h ucp_firehose_alloc(const ucx_firehose_params_t *params)
{
    ucx_firehose_h firehose = calloc(1, sizeof(*firehose));

    if (firehose == NULL) {
        return NULL;
    }
    pthread_mutex_init(&firehose->lock, NULL);
    ucs_lock_init(&firehose->unmapping.lock);
    ucs_list_head_init(&firehose->active);
    ucs_list_head_init(&firehose->later);
    ucs_list_head_init(&firehose->ready);
    ucs_list_head_init(&firehose->starved);
    ucs_list_head_init(&firehose->pending);
    ucs_list_head_init(&firehose->done);
    firehose->node      = params->node;
    firehose->num_nodes = params->num_nodes;
    if (params->field_mask & UCX_FIREHOSE_PARAM_FIELD_FLAGS) {
        firehose->flags = params->flags;
    }
    return firehose;
}

ucs_status_t ucp_firehose_create(const ucx_firehose_params_t *params,
                                 ucp_wire_t *wire, ucx_firehose_h *firehose_p)
{
    ucx_firehose_h firehose = ucp_firehose_alloc(params);
    ucs_status_t status;

    if (firehose == NULL) {
        ucp_wire_destroy(wire);
        return UCS_ERR_NO_MEMORY;
    }
    firehose->wire = wire;
    wire->handlers = (ucp_wire_handlers_t){ucp_firehose_on_message,
                                           ucp_firehose_on_failure, firehose};
    status         = ucp_firehose_size_up(firehose, params);
    if (status == UCS_OK) {
        firehose->peers  = calloc(params->num_nodes, sizeof(*firehose->peers));
        firehose->packet = malloc(wire->max_payload);
        status = ((firehose->peers == NULL) || (firehose->packet == NULL)) ?
                         UCS_ERR_NO_MEMORY : UCS_OK;
    }
    if (status != UCS_OK) {
        ucp_firehose_destroy(firehose);
        return status;
    }
    *firehose_p = firehose;
    return UCS_OK;
}

void ucp_firehose_greet(ucx_firehose_h firehose, unsigned node)
{
    peer_t *peer;

    ucp_firehose_lock(firehose);
    peer             = ucp_firehose_meet(firehose, node);
    peer->is_greeted = 1;
    peer->owes_hello = 1;
    ucp_firehose_peer_activate(peer);
    ucp_firehose_run(firehose);
    ucp_firehose_unlock(firehose);
}

void ucp_firehose_run(ucx_firehose_h firehose)
{
    ucp_firehose_op_t *op;
    peer_t *peer;

    do {
        while (!ucs_list_is_empty(&firehose->ready)) {
            op = ucs_list_extract_head(&firehose->ready, ucp_firehose_op_t,
                                       call.link);
            ucp_firehose_op_go_on(op);
        }
        ucp_firehose_starved_run(firehose);
        ucp_firehose_holds_run(firehose);
        while (!ucs_list_is_empty(&firehose->active)) {
            peer = ucs_list_extract_head(&firehose->active, peer_t, active);
            peer->is_active = 0;
            ucp_firehose_peer_run(peer);
        }
    } while (!ucs_list_is_empty(&firehose->ready));
}

/* Makes the calls of what has ended, without the lock */
static unsigned ucp_firehose_make_calls(ucs_list_link_t *calls)
{
    unsigned count = 0;
    ucp_firehose_call_t *call, *next;

    ucs_list_for_each_safe(call, next, calls, link) {
        if (call->done != NULL) {
            call->done(call->arg, call->status);
        }
        free(call); /* first member of what has ended */
        ++count;
    }
    return count;
}

/* Lock held */
static unsigned ucp_firehose_advance(ucx_firehose_h firehose)
{
    unsigned count;

    count  = ucp_wire_progress(firehose->wire);
    count += !ucs_list_is_empty(&firehose->later); /* they are tried again */
    ucs_list_splice_tail(&firehose->active, &firehose->later);
    ucs_list_head_init(&firehose->later);
    ucp_firehose_holds_strike(firehose);
    ucp_firehose_run(firehose);
    ucp_firehose_revoker_tell(firehose);
    return count;
}

unsigned ucp_firehose_turn(ucx_firehose_h firehose)
{
    unsigned count;

    ucp_firehose_lock(firehose);
    count = ucp_firehose_advance(firehose);
    ucp_firehose_unlock(firehose);
    return count;
}

unsigned ucx_firehose_progress(ucx_firehose_h firehose)
{
    ucs_list_link_t calls;
    unsigned count;

    ucs_list_head_init(&calls);
    ucp_firehose_lock(firehose);
    count = ucp_firehose_advance(firehose);
    ucs_list_splice_tail(&calls, &firehose->done);
    ucs_list_head_init(&firehose->done);
    firehose->num_done = 0;
    ucp_firehose_unlock(firehose);
    return count + ucp_firehose_make_calls(&calls);
}

void ucp_firehose_stop(ucx_firehose_h firehose)
{
    unsigned node;

    ucp_firehose_lock(firehose);
    firehose->is_stopped = 1;
    for (node = 0; node < firehose->num_nodes; ++node) {
        if (firehose->peers[node].firehose != NULL) {
            ucp_firehose_peer_fail(&firehose->peers[node], UCS_ERR_CANCELED);
        }
    }
    ucp_firehose_holds_strike(firehose);
    ucp_firehose_run(firehose);
    ucp_firehose_unlock(firehose);
}

int ucp_firehose_is_idle(ucx_firehose_h firehose)
{
    int is_idle;

    ucp_firehose_lock(firehose);
    is_idle = (firehose->transfers == 0) && (firehose->num_done == 0) &&
              ucs_list_is_empty(&firehose->starved) &&
              ucs_list_is_empty(&firehose->active) &&
              ucs_list_is_empty(&firehose->later);
    ucp_firehose_unlock(firehose);
    return is_idle;
}

uint64_t
ucp_firehose_revoke(ucx_firehose_h firehose, uint64_t start, uint64_t end)
{
    uint64_t doom;

    ucp_firehose_lock(firehose);
    ucp_firehose_buckets_doom(&firehose->buckets, start, end);
    doom = firehose->buckets.num_dooms;
    ucp_firehose_holds_strike(firehose);
    ucp_firehose_run(firehose);
    ucp_firehose_unlock(firehose);
    return doom;
}

int ucp_firehose_is_released(ucx_firehose_h firehose, uint64_t doom)
{
    int is_released;

    ucp_firehose_lock(firehose);
    is_released = !ucp_firehose_buckets_is_doomed(&firehose->buckets, doom);
    ucp_firehose_unlock(firehose);
    return is_released;
}
