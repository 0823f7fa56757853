/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "firehose_int.h"

typedef ucp_firehose_peer_t peer_t;

void ucp_firehose_peer_activate(peer_t *peer)
{
    if (!peer->is_active) {
        peer->is_active = 1;
        ucs_list_add_tail(&peer->firehose->active, &peer->active);
    }
}

/* At the next progress */
static void ucp_firehose_peer_retry(peer_t *peer)
{
    if (peer->is_active) {
        ucs_list_del(&peer->active);
    }
    peer->is_active = 1;
    ucs_list_add_tail(&peer->firehose->later, &peer->active);
}

void ucp_firehose_peer_fail(peer_t *peer, ucs_status_t status)
{
    if (!peer->is_failing) {
        peer->is_failing = 1;
        peer->status     = status;
        ucp_firehose_peer_activate(peer);
    }
}

/* @return UCS_ERR_NO_RESOURCE if the peer is to be tried again */
static ucs_status_t ucp_firehose_peer_refused(peer_t *peer, ucs_status_t status)
{
    if ((status == UCS_ERR_NO_MEMORY) || (status == UCS_ERR_NO_RESOURCE)) {
        ucp_firehose_peer_retry(peer);
        return UCS_ERR_NO_RESOURCE;
    }
    ucp_firehose_peer_fail(peer, status);
    return status;
}

ucs_status_t ucp_firehose_peer_send(peer_t *peer,
                                    const ucp_firehose_message_t *message)
{
    const ucp_firehose_header_t header = {.kind  = message->kind,
                                          .count = message->count};
    ucs_status_t status;

    if (peer->is_failing) {
        return peer->status;
    }
    status = ucp_wire_am_send(peer->firehose->wire, peer->node, &header,
                              sizeof(header), message->bytes, message->length,
                              NULL, NULL);
    return UCS_STATUS_IS_ERR(status) ? ucp_firehose_peer_refused(peer, status) :
                                       UCS_OK;
}

static void ucp_firehose_peer_flush_done(void *arg, ucs_status_t status)
{
    peer_t *peer = arg;

    --peer->firehose->transfers;
    peer->is_flushing = 0;
    if (status == UCS_OK) {
        peer->flushed = peer->flushing;
        ucp_firehose_peer_activate(peer);
    } else {
        ucp_firehose_peer_refused(peer, status);
    }
}

int ucp_firehose_peer_is_flushed(peer_t *peer, uint64_t put)
{
    ucs_status_t status;

    if ((peer->flushed >= put) || peer->is_flushing || peer->is_failing) {
        return peer->flushed >= put;
    }
    peer->flushing = peer->puts;
    status = ucp_wire_flush(peer->firehose->wire, peer->node,
                            ucp_firehose_peer_flush_done, peer);
    if (status == UCS_OK) {
        peer->flushed = peer->flushing;
        return 1;
    }
    if (status == UCS_INPROGRESS) {
        peer->is_flushing = 1;
        ++peer->firehose->transfers;
    } else {
        ucp_firehose_peer_refused(peer, status);
    }
    return 0;
}

static void ucp_firehose_peer_greet(peer_t *peer)
{
    ucp_firehose_entry_t entry = {.firehose = peer->firehose->lent,
                                  .shift    = peer->firehose->shift};
    ucp_firehose_message_t message;

    ucp_firehose_message_begin(&message, UCP_FIREHOSE_HELLO,
                               peer->firehose->packet,
                               peer->firehose->wire->max_payload);
    (void)ucp_firehose_message_add(&message, &entry); /* there is room */
    if (ucp_firehose_peer_send(peer, &message) == UCS_OK) {
        peer->owes_hello = 0;
    }
}

static void ucp_firehose_peer_lose(peer_t *peer)
{
    peer->state      = UCP_FIREHOSE_PEER_FAILED;
    peer->owes_hello = 0;
    ucp_firehose_holds_drop(peer);
    ucp_firehose_fires_fail(peer);
    ucp_firehose_held_release(peer);
}

void ucp_firehose_peer_run(peer_t *peer)
{
    if (peer->is_failing && (peer->state != UCP_FIREHOSE_PEER_FAILED)) {
        ucp_firehose_peer_lose(peer);
    }
    if (peer->owes_hello) {
        ucp_firehose_peer_greet(peer);
    }
    if (peer->state == UCP_FIREHOSE_PEER_READY) {
        ucp_firehose_fires_run(peer);
        ucp_firehose_fires_send(peer);
    }
    ucp_firehose_holds_send(peer);
    ucp_firehose_epochs_run(peer);
}

static ucs_status_t
ucp_firehose_peer_hear(peer_t *peer, ucp_firehose_kind_t kind,
                       const ucp_firehose_entry_t *entry)
{
    ucs_status_t status;

    switch (kind) {
    case UCP_FIREHOSE_HELLO:
        status = ucp_firehose_fires_init(peer, entry);
        if (status == UCS_OK) {
            ucp_firehose_held_release(peer);
        }
        return status;
    case UCP_FIREHOSE_MOVE:
        return ucp_firehose_hold_move(peer, entry);
    case UCP_FIREHOSE_GRANT:
        return ucp_firehose_fire_granted(peer, entry);
    case UCP_FIREHOSE_REVOKE:
        return ucp_firehose_fire_revoked(peer, entry);
    default:
        return UCS_ERR_INVALID_PARAM;
    }
}

/* A peer that does not keep to the protocol is lost */
void ucp_firehose_peer_receive(peer_t *peer, const void *header,
                               size_t header_length, const void *payload,
                               size_t length)
{
    ucp_firehose_message_t message;
    ucp_firehose_entry_t entry;
    ucs_status_t status;

    if (peer->is_failing) {
        return;
    }
    status = ucp_firehose_message_open(&message, header, header_length, payload,
                                       length);
    while ((status == UCS_OK) && !peer->is_failing) {
        status = ucp_firehose_message_next(&message, &entry);
        if (status == UCS_OK) {
            status = ucp_firehose_peer_hear(peer, message.kind, &entry);
        }
    }
    if ((status != UCS_OK) && (status != UCS_ERR_NO_ELEM)) {
        ucp_firehose_peer_fail(peer, status);
    }
}
