/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "firehose_int.h"

#include <stdlib.h>

typedef ucp_firehose_hold_t hold_t;
typedef ucp_firehose_peer_t peer_t;

/* The first of a list that is not empty. It is a function so that the head is read
 * as ucs_list_is_empty() and ucs_list_del() reach it, through a pointer to a link:
 * where a loop reads it as the peer's member, too, which UCX's macro does, gcc 12
 * at -O2 moves that read out of the loop past ucs_list_del(), and the same grant
 * is sent twice (gcc 14 and 16 and clang 14 do not). */
static hold_t *ucp_firehose_holds_first(ucs_list_link_t *list)
{
    return ucs_list_head(list, hold_t, out);
}

static void
ucp_firehose_hold_queue(hold_t *hold, ucp_firehose_hold_out_t is_out)
{
    peer_t *peer = hold->peer;

    if (hold->is_out != UCP_FIREHOSE_OUT_NONE) {
        ucs_list_del(&hold->out);
    }
    hold->is_out = is_out;
    switch (is_out) {
    case UCP_FIREHOSE_OUT_PENDING:
        ucs_list_add_tail(&peer->firehose->pending, &hold->out);
        break;
    case UCP_FIREHOSE_OUT_GRANT:
        ucs_list_add_tail(&peer->grants, &hold->out);
        ucp_firehose_peer_activate(peer);
        break;
    case UCP_FIREHOSE_OUT_REVOKE:
        ucs_list_add_tail(&peer->revokes, &hold->out);
        ucp_firehose_peer_activate(peer);
        break;
    default:
        break;
    }
}

static void ucp_firehose_hold_detach(hold_t *hold)
{
    if (hold->bucket != NULL) {
        ucs_list_del(&hold->link);
        ucp_firehose_buckets_put(&hold->peer->firehose->buckets, hold->bucket,
                                 UCP_FIREHOSE_REMOTE);
        hold->bucket = NULL;
    }
}

/* A move says as well that its sender has done with what the firehose pointed
 * to, whether or not it was told that this was revoked */
ucs_status_t
ucp_firehose_hold_move(peer_t *peer, const ucp_firehose_entry_t *entry)
{
    ucx_firehose_h firehose = peer->firehose;
    uint64_t inside         = (UINT64_C(1) << firehose->shift) - 1;
    hold_t *hold;

    if (entry->firehose >= firehose->lent) {
        return UCS_ERR_INVALID_PARAM;
    }
    if (peer->holds == NULL) {
        /* Pages that are never touched cost nothing */
        peer->holds = calloc(firehose->lent, sizeof(*peer->holds));
        if (peer->holds == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
    }
    hold = &peer->holds[entry->firehose];
    if ((entry->epoch != hold->epoch + 1) ||
        (hold->is_out == UCP_FIREHOSE_OUT_PENDING) ||
        (hold->is_out == UCP_FIREHOSE_OUT_GRANT)) {
        return UCS_ERR_INVALID_PARAM;
    }
    hold->epoch = entry->epoch;
    hold->peer  = peer;
    ucp_firehose_hold_detach(hold);
    ucp_firehose_hold_queue(hold, UCP_FIREHOSE_OUT_NONE);
    if (entry->bucket == UCP_FIREHOSE_NOWHERE) {
        return UCS_OK;
    }
    if ((entry->bucket & inside) || (entry->bucket > INT64_MAX)) {
        return UCS_ERR_INVALID_PARAM;
    }
    hold->address = entry->bucket;
    ucp_firehose_hold_queue(hold, UCP_FIREHOSE_OUT_PENDING);
    return UCS_OK;
}

void ucp_firehose_holds_run(ucx_firehose_h firehose)
{
    ucp_firehose_bucket_t *bucket;
    ucs_status_t status;
    hold_t *hold;

    while (!ucs_list_is_empty(&firehose->pending)) {
        hold   = ucp_firehose_holds_first(&firehose->pending);
        status = ucp_firehose_buckets_get(&firehose->buckets, hold->address,
                                          UCP_FIREHOSE_REMOTE, &bucket);
        if (status == UCS_ERR_NO_RESOURCE) {
            return; /* a transfer of this process ends and gives one back */
        }
        hold->status = status;
        if (status == UCS_OK) {
            ++firehose->attr.moves;
            hold->bucket = bucket;
            ucs_list_add_tail(&bucket->holds, &hold->link);
        }
        ucp_firehose_hold_queue(hold, UCP_FIREHOSE_OUT_GRANT);
    }
}

/* A grant that has not left is no promise yet */
static void ucp_firehose_hold_strike(hold_t *hold)
{
    ++hold->peer->firehose->attr.revokes;
    if (hold->is_out == UCP_FIREHOSE_OUT_GRANT) {
        hold->status = UCS_ERR_INVALID_ADDR;
        ucp_firehose_hold_detach(hold);
    } else {
        ucp_firehose_hold_queue(hold, UCP_FIREHOSE_OUT_REVOKE);
    }
}

void ucp_firehose_holds_strike(ucx_firehose_h firehose)
{
    ucp_firehose_bucket_t *bucket;
    hold_t *hold, *next;

    while ((bucket = ucp_firehose_buckets_next_struck(&firehose->buckets)) !=
           NULL) {
        ucs_list_for_each_safe(hold, next, &bucket->holds, link) {
            ucp_firehose_hold_strike(hold);
        }
    }
}

/* What a grant says */
static void ucp_firehose_hold_answer(hold_t *hold, ucp_firehose_entry_t *entry)
{
    ucp_wire_t *wire = hold->peer->firehose->wire;
    size_t length    = 0;

    if (hold->status == UCS_OK) {
        hold->status = ucp_wire_mem_pack(wire, hold->bucket->pin, &entry->key,
                                         &length);
        if ((hold->status == UCS_OK) && (length > wire->max_payload / 2)) {
            hold->status = UCS_ERR_BUFFER_TOO_SMALL;
        }
    }
    if (hold->status != UCS_OK) {
        ucp_firehose_hold_detach(hold);
        length = 0;
    }
    entry->status     = hold->status;
    entry->key_length = length;
}

static void ucp_firehose_holds_fill(peer_t *peer, ucs_list_link_t *list,
                                    ucp_firehose_message_t *message)
{
    ucp_firehose_entry_t entry;
    hold_t *hold;

    ucs_list_for_each(hold, list, out) {
        entry = (ucp_firehose_entry_t){.firehose = hold - peer->holds,
                                       .epoch    = hold->epoch};
        if (message->kind == UCP_FIREHOSE_GRANT) {
            ucp_firehose_hold_answer(hold, &entry);
        }
        if (ucp_firehose_message_add(message, &entry) != UCS_OK) {
            break;
        }
    }
}

/* All of a list, in as many messages as it takes */
static void ucp_firehose_holds_send_list(peer_t *peer, ucs_list_link_t *list,
                                         ucp_firehose_kind_t kind)
{
    ucp_firehose_message_t message;

    while (!ucs_list_is_empty(list)) {
        ucp_firehose_message_begin(&message, kind, peer->firehose->packet,
                                   peer->firehose->wire->max_payload);
        ucp_firehose_holds_fill(peer, list, &message);
        if (ucp_firehose_peer_send(peer, &message) != UCS_OK) {
            return;
        }
        for (; message.count > 0; --message.count) {
            ucp_firehose_hold_queue(ucp_firehose_holds_first(list),
                                    UCP_FIREHOSE_OUT_NONE);
        }
    }
}

void ucp_firehose_holds_send(peer_t *peer)
{
    ucp_firehose_holds_send_list(peer, &peer->grants, UCP_FIREHOSE_GRANT);
    ucp_firehose_holds_send_list(peer, &peer->revokes, UCP_FIREHOSE_REVOKE);
}

/* The peer is lost: nothing of it can arrive any more */
void ucp_firehose_holds_drop(peer_t *peer)
{
    uint32_t i;

    for (i = 0; (peer->holds != NULL) && (i < peer->firehose->lent); ++i) {
        if (peer->holds[i].peer != NULL) {
            ucp_firehose_hold_detach(&peer->holds[i]);
            ucp_firehose_hold_queue(&peer->holds[i], UCP_FIREHOSE_OUT_NONE);
        }
    }
}
