/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucp/wire/wire_ucp_int.h>

#include <stdlib.h>
#include <string.h>

/* UCP does not promise that messages of different sizes arrive in order, for
 * the pieces of a long one may take several lanes. So each has a number, and
 * one that comes before its turn waits here. So does one that comes while the
 * caller is not in progress, for then it does not expect a handler. */

void ucp_wire_ucp_forget_early(ucp_wire_ucp_peer_t *peer)
{
    ucp_wire_ucp_early_t *early;

    while (!ucs_list_is_empty(&peer->early)) {
        early = ucs_list_extract_head(&peer->early, ucp_wire_ucp_early_t, list);
        free(early);
    }
    peer->num_early = 0;
}

static ucs_status_t
ucp_wire_ucp_keep_early(ucp_wire_ucp_peer_t *peer, uint64_t number,
                        const void *header, size_t header_length,
                        const void *data, size_t length)
{
    ucp_wire_ucp_early_t *early;
    ucs_list_link_t *at;

    early = malloc(sizeof(*early) + header_length + length);
    if (early == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    early->number        = number;
    early->header_length = header_length;
    early->length        = length;
    memcpy(early->bytes, header, header_length);
    if (length > 0) {
        memcpy(early->bytes + header_length, data, length);
    }
    /* Most of those that overtake one come in order, thousands at times: UCP
     * lets short messages pass a long one that waits for room on its lane */
    for (at = peer->early.prev; at != &peer->early; at = at->prev) {
        if (ucs_container_of(at, ucp_wire_ucp_early_t, list)->number <=
            number) {
            break;
        }
    }
    ucs_list_insert_after(at, &early->list);
    ++peer->num_early;
    return UCS_OK;
}

static void ucp_wire_ucp_hand_up(ucp_wire_ucp_t *self, unsigned from,
                                 const void *header, size_t header_length,
                                 const void *data, size_t length)
{
    ++self->peers[from].received;
    ++self->handed_up;
    self->super.handlers.am(self->super.handlers.arg, from, header,
                            header_length, data, length);
}

void ucp_wire_ucp_hand_up_early(ucp_wire_ucp_t *self, unsigned from)
{
    ucp_wire_ucp_peer_t *peer = &self->peers[from];
    ucp_wire_ucp_early_t *early;

    while ((peer->num_early > 0) && (peer->status == UCS_OK)) {
        early = ucs_list_head(&peer->early, ucp_wire_ucp_early_t, list);
        if (early->number > peer->received) {
            break;
        }
        ucs_list_del(&early->list);
        --peer->num_early;
        if (early->number == peer->received) {
            ucp_wire_ucp_hand_up(self, from, early->bytes, early->header_length,
                                 early->bytes + early->header_length,
                                 early->length);
        } /* else the same number twice */
        free(early);
    }
}

/* A message was lost here for want of memory, or by its sender's fault: what
 * comes after it means nothing, so the peer is given up. */
static void ucp_wire_ucp_give_up(ucp_wire_ucp_t *self,
                                 ucp_wire_ucp_peer_t *peer,
                                 ucs_status_t status)
{
    if (peer->ep != NULL) {
        peer->status = status;
        ++self->num_failed;
    }
}

ucs_status_t ucp_wire_ucp_arrived(void *arg, const void *header,
                                  size_t header_length, void *data,
                                  size_t length,
                                  const ucp_am_recv_param_t *param)
{
    ucp_wire_ucp_t *self = arg;
    ucp_wire_ucp_header_t first;
    ucp_wire_ucp_peer_t *peer;
    ucs_status_t status;

    if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) ||
        (header_length < sizeof(first))) {
        return UCS_OK; /* nobody of us sent it */
    }
    memcpy(&first, header, sizeof(first));
    if ((first.magic != UCP_WIRE_MAGIC) ||
        (first.from >= self->super.num_peers) ||
        (length > self->super.max_payload) ||
        (header_length > sizeof(first) + self->super.max_header)) {
        return UCS_OK;
    }
    peer           = &self->peers[first.from];
    header         = (const char*)header + sizeof(first);
    header_length -= sizeof(first);
    if ((peer->status != UCS_OK) || (first.number < peer->received)) {
        return UCS_OK;
    }
    /* what a process sends to itself comes while it sends: it waits */
    self->held |= !self->progressing;
    if ((first.number > peer->received) || !self->progressing) {
        status = ucp_wire_ucp_keep_early(peer, first.number, header,
                                         header_length, data, length);
        if (status != UCS_OK) {
            ucp_wire_ucp_give_up(self, peer, status);
        }
        return UCS_OK;
    }
    ucp_wire_ucp_hand_up(self, first.from, header, header_length, data, length);
    ucp_wire_ucp_hand_up_early(self, first.from);
    return UCS_OK;
}
