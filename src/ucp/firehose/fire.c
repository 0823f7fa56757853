/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "firehose_int.h"

#include <stdlib.h>

typedef ucp_firehose_fire_t fire_t;
typedef ucp_firehose_peer_t peer_t;
typedef ucp_firehose_piece_t piece_t;

ucs_status_t ucp_firehose_fires_init(peer_t *peer,
                                     const ucp_firehose_entry_t *hello)
{
    uint32_t num = hello->firehose;
    ucs_status_t status;

    if ((peer->state != UCP_FIREHOSE_PEER_NEW) || (hello->shift < 12) ||
        (hello->shift > 40)) {
        return UCS_ERR_INVALID_PARAM;
    }
    num = (num < UCP_FIREHOSE_MAX_PER_NODE) ? num : UCP_FIREHOSE_MAX_PER_NODE;
    if (num > 0) {
        status = ucp_firehose_index_init(&peer->index, num);
        if (status != UCS_OK) {
            return status;
        }
        peer->fires = ucp_firehose_table_alloc(num * sizeof(*peer->fires));
        if (peer->fires == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
    }
    peer->shift     = hello->shift;
    peer->num_fires = num;
    peer->state     = UCP_FIREHOSE_PEER_READY;
    return UCS_OK;
}

static void ucp_firehose_fire_drop_key(peer_t *peer, fire_t *fire)
{
    if (fire->key != NULL) {
        ucp_wire_key_release(peer->firehose->wire, fire->key);
        fire->key = NULL;
    }
}

/* A firehose that nobody uses: one that points nowhere, or the one that was
 * used least recently; NULL: all are in use */
static fire_t *ucp_firehose_fire_take(peer_t *peer)
{
    unsigned chances = UCP_FIREHOSE_SECOND_CHANCES;
    fire_t *fire;

    if (!ucs_list_is_empty(&peer->free)) {
        return ucs_list_extract_head(&peer->free, fire_t, link);
    }
    if (peer->used_fires < peer->num_fires) {
        fire = &peer->fires[peer->used_fires++];
        ucs_list_head_init(&fire->waiters);
        return fire;
    }
    while (!ucs_list_is_empty(&peer->unused)) {
        fire = ucs_list_extract_head(&peer->unused, fire_t, link);
        if (fire->is_recent && (chances-- > 0)) {
            fire->is_recent = 0;
            ucs_list_add_tail(&peer->unused, &fire->link);
            continue;
        }
        ucp_firehose_index_remove(&peer->index, &fire->elem);
        return fire;
    }
    return NULL;
}

static void ucp_firehose_fire_want(peer_t *peer, fire_t *fire, uint64_t bucket)
{
    ++fire->epoch;
    fire->state     = UCP_FIREHOSE_WANTED;
    fire->is_recent = 0;
    ucp_firehose_index_add(&peer->index, &fire->elem, bucket);
    ucs_list_add_tail(&peer->outbox, &fire->link);
    ucp_firehose_peer_activate(peer);
}

static void ucp_firehose_fire_release(peer_t *peer, fire_t *fire)
{
    ++fire->epoch;
    fire->state = UCP_FIREHOSE_RELEASING;
    ucs_list_add_tail(&peer->outbox, &fire->link);
    ucp_firehose_peer_activate(peer);
}

void ucp_firehose_fire_hold(fire_t *fire)
{
    if (fire->refs++ == 0) {
        ucs_list_del(&fire->link);
    }
}

static void ucp_firehose_fire_use(peer_t *peer, fire_t *fire, piece_t *piece)
{
    ucp_firehose_fire_hold(fire);
    ++peer->firehose->attr.hits;
    piece->fire = fire;
    ucp_firehose_piece_transfer(piece);
}

/* @return Zero if all firehoses are in use */
static int ucp_firehose_fire_try(peer_t *peer, piece_t *piece)
{
    uint64_t bucket = piece->remote >> peer->shift << peer->shift;
    fire_t *fire;

    fire = (fire_t*)ucp_firehose_index_find(&peer->index, bucket);
    if ((fire != NULL) && (fire->state == UCP_FIREHOSE_READY)) {
        ucp_firehose_fire_use(peer, fire, piece);
        return 1;
    }
    if (fire != NULL) {
        ++peer->firehose->attr.joined;
        ucs_list_add_tail(&fire->waiters, &piece->link);
        return 1;
    }
    fire = ucp_firehose_fire_take(peer);
    if (fire == NULL) {
        return 0;
    }
    ++peer->firehose->attr.misses;
    ucp_firehose_fire_want(peer, fire, bucket);
    ucs_list_add_tail(&fire->waiters, &piece->link);
    return 1;
}

void ucp_firehose_fire_find(piece_t *piece)
{
    peer_t *peer = piece->op->peer;

    if (peer->state == UCP_FIREHOSE_PEER_FAILED) {
        ucp_firehose_piece_end(piece, peer->status);
    } else if (peer->num_fires == 0) {
        ucp_firehose_piece_end(piece, UCS_ERR_EXCEEDS_LIMIT);
    } else if (!ucs_list_is_empty(&peer->waiting) ||
               !ucp_firehose_fire_try(peer, piece)) {
        ucs_list_add_tail(&peer->waiting, &piece->link);
    }
}

void ucp_firehose_fires_run(peer_t *peer)
{
    piece_t *piece;

    while (!ucs_list_is_empty(&peer->waiting)) {
        piece = ucs_list_extract_head(&peer->waiting, piece_t, link);
        if (!ucp_firehose_fire_try(peer, piece)) {
            ucs_list_add_head(&peer->waiting, &piece->link);
            return;
        }
    }
}

void ucp_firehose_fire_put(peer_t *peer, fire_t *fire)
{
    if (--fire->refs > 0) {
        return;
    }
    if (peer->state == UCP_FIREHOSE_PEER_FAILED) {
        ucp_firehose_fire_drop_key(peer, fire);
    } else if (fire->state == UCP_FIREHOSE_REVOKED) {
        ucp_firehose_fire_release(peer, fire);
    } else {
        fire->is_recent = 0;
        ucs_list_add_tail(&peer->unused, &fire->link);
        ucp_firehose_peer_activate(peer); /* for those that wait */
    }
}

/* What has been written through it must be there before it goes elsewhere: the
 * peer deregisters the bucket then */
static void
ucp_firehose_fires_fill(peer_t *peer, ucp_firehose_message_t *message)
{
    ucp_firehose_entry_t entry = {0};
    fire_t *fire;

    ucs_list_for_each(fire, &peer->outbox, link) {
        if ((message->count == UCP_FIREHOSE_MAX_MOVES) ||
            !ucp_firehose_peer_is_flushed(peer, fire->last_put)) {
            break;
        }
        ucp_firehose_fire_drop_key(peer, fire);
        entry.firehose = fire - peer->fires;
        entry.epoch    = fire->epoch;
        entry.bucket   = (fire->state == UCP_FIREHOSE_WANTED) ?
                                 fire->elem.key :
                                 UCP_FIREHOSE_NOWHERE;
        if (ucp_firehose_message_add(message, &entry) != UCS_OK) {
            break;
        }
    }
}

void ucp_firehose_fires_send(peer_t *peer)
{
    ucp_firehose_message_t message;
    fire_t *fire;

    while (!ucs_list_is_empty(&peer->outbox)) {
        ucp_firehose_message_begin(&message, UCP_FIREHOSE_MOVE,
                                   peer->firehose->packet,
                                   peer->firehose->wire->max_payload);
        ucp_firehose_fires_fill(peer, &message);
        if ((message.count == 0) ||
            (ucp_firehose_peer_send(peer, &message) != UCS_OK)) {
            return;
        }
        for (; message.count > 0; --message.count) {
            fire = ucs_list_extract_head(&peer->outbox, fire_t, link);
            if (fire->state == UCP_FIREHOSE_WANTED) {
                fire->state = UCP_FIREHOSE_MOVING;
            } else {
                fire->state = UCP_FIREHOSE_FREE;
                ucs_list_add_tail(&peer->free, &fire->link);
                ucp_firehose_peer_activate(peer);
            }
        }
    }
}

static void ucp_firehose_fire_fail_waiters(fire_t *fire, ucs_status_t status)
{
    while (!ucs_list_is_empty(&fire->waiters)) {
        ucp_firehose_piece_end(ucs_list_extract_head(&fire->waiters, piece_t,
                                                     link),
                               status);
    }
}

static void ucp_firehose_fire_open(peer_t *peer, fire_t *fire)
{
    piece_t *piece;

    fire->state = UCP_FIREHOSE_READY;
    fire->refs  = ucs_list_length(&fire->waiters);
    if (fire->refs == 0) {
        ucs_list_add_tail(&peer->unused, &fire->link);
        ucp_firehose_peer_activate(peer);
        return;
    }
    /* Nothing is sent while the message is being read */
    while (!ucs_list_is_empty(&fire->waiters)) {
        piece       = ucs_list_extract_head(&fire->waiters, piece_t, link);
        piece->fire = fire;
        ucs_list_add_tail(&peer->firehose->starved, &piece->link);
    }
}

ucs_status_t
ucp_firehose_fire_granted(peer_t *peer, const ucp_firehose_entry_t *entry)
{
    ucs_status_t status = (ucs_status_t)entry->status;
    fire_t *fire;

    if (entry->firehose >= peer->used_fires) {
        return UCS_ERR_INVALID_PARAM;
    }
    fire = &peer->fires[entry->firehose];
    if ((fire->state != UCP_FIREHOSE_MOVING) || (fire->epoch != entry->epoch) ||
        (status > UCS_OK) || ((status == UCS_OK) && (entry->key_length == 0))) {
        return UCS_ERR_INVALID_PARAM;
    }
    if (status == UCS_OK) {
        status = ucp_wire_key_unpack(peer->firehose->wire, peer->node,
                                     entry->key, entry->key_length, &fire->key);
        if (status == UCS_OK) {
            ucp_firehose_fire_open(peer, fire);
            return UCS_OK;
        }
        fire->key = NULL;
        ucp_firehose_index_remove(&peer->index, &fire->elem);
        ucp_firehose_fire_release(peer, fire); /* it has been granted */
    } else {
        ucp_firehose_index_remove(&peer->index, &fire->elem);
        fire->state = UCP_FIREHOSE_FREE;
        ucs_list_add_tail(&peer->free, &fire->link);
        ucp_firehose_peer_activate(peer);
    }
    ucp_firehose_fire_fail_waiters(fire, status);
    return UCS_OK;
}

/* One that has moved on, or is about to, needs no answer: the target takes the
 * move for it */
ucs_status_t
ucp_firehose_fire_revoked(peer_t *peer, const ucp_firehose_entry_t *entry)
{
    fire_t *fire;

    if (entry->firehose >= peer->used_fires) {
        return UCS_ERR_INVALID_PARAM;
    }
    fire = &peer->fires[entry->firehose];
    if ((fire->state != UCP_FIREHOSE_READY) || (fire->epoch != entry->epoch)) {
        return UCS_OK;
    }
    ucp_firehose_index_remove(&peer->index, &fire->elem);
    if (fire->refs > 0) {
        fire->state = UCP_FIREHOSE_REVOKED;
    } else {
        ucs_list_del(&fire->link);
        ucp_firehose_fire_release(peer, fire);
    }
    return UCS_OK;
}

void ucp_firehose_fires_fail(peer_t *peer)
{
    fire_t *fire;
    uint32_t i;

    for (i = 0; i < peer->used_fires; ++i) {
        fire = &peer->fires[i];
        ucp_firehose_fire_fail_waiters(fire, peer->status);
        if (fire->refs == 0) {
            ucp_firehose_fire_drop_key(peer, fire);
        }
    }
    ucs_list_head_init(&peer->free);
    ucs_list_head_init(&peer->unused);
    ucs_list_head_init(&peer->outbox);
    while (!ucs_list_is_empty(&peer->waiting)) {
        ucp_firehose_piece_end(ucs_list_extract_head(&peer->waiting, piece_t,
                                                     link),
                               peer->status);
    }
}

void ucp_firehose_fires_cleanup(peer_t *peer)
{
    free(peer->fires);
    ucp_firehose_index_cleanup(&peer->index);
}
