/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "wire_sim_int.h"

#include <stdlib.h>
#include <string.h>

static inline uint64_t ucp_wire_sim_later(uint64_t a, uint64_t b)
{
    return (a > b) ? a : b;
}

/* Every function begins with it: the processor of a node that was idle stands
 * at the time of the network */
static ucp_wire_sim_node_t *ucp_wire_sim_enter(ucp_wire_t *wire)
{
    ucp_wire_sim_node_t *node = (ucp_wire_sim_node_t*)wire;

    node->clock = ucp_wire_sim_later(node->clock, node->sim->now);
    return node;
}

static ucs_status_t ucp_wire_sim_reach(ucp_wire_sim_node_t *node, unsigned peer)
{
    if (peer >= node->super.num_peers) {
        return UCS_ERR_INVALID_PARAM;
    }
    return node->ways[peer].failed ? UCS_ERR_CONNECTION_RESET : UCS_OK;
}

static ucs_status_t
ucp_wire_sim_am_send(ucp_wire_t *wire, unsigned peer, const void *header,
                     size_t header_length, const void *payload, size_t length,
                     ucp_wire_done_func_t done, void *arg)
{
    ucp_wire_sim_node_t *node = ucp_wire_sim_enter(wire);
    ucp_wire_sim_t *sim       = node->sim;
    ucs_status_t status       = ucp_wire_sim_reach(node, peer);
    ucp_wire_sim_event_t *message, *leave;
    uint64_t left;

    if ((header_length > wire->max_header) || (length > wire->max_payload)) {
        return UCS_ERR_INVALID_PARAM;
    }
    if (status != UCS_OK) {
        return status;
    }
    if (ucp_wire_sim_chance(sim, sim->params.send_fails)) {
        return UCS_ERR_NO_MEMORY;
    }
    ++node->stats.messages;
    node->clock += sim->params.send_cost +
                   (uint64_t)(sim->params.copy_per_byte * length);
    message = ucp_wire_sim_event(sim, UCP_WIRE_SIM_MESSAGE, wire->self, peer,
                                 header_length + length);
    left    = ucp_wire_sim_link(node, peer, node->clock, header_length + length,
                                &message->time);
    message->time = ucp_wire_sim_later(message->time,
                                       node->ways[peer].last_message + 1);
    node->ways[peer].last_message = message->time;
    message->header_length        = header_length;
    message->length               = length;
    memcpy(message->bytes, header, header_length);
    if ((done == NULL) || (length == 0) ||
        ucp_wire_sim_chance(sim, sim->params.inline_chance)) {
        if (length > 0) {
            memcpy(message->bytes + header_length, payload, length);
        }
        ucp_wire_sim_push(&sim->nodes[peer].inbox, message);
        return UCS_OK;
    }
    leave         = ucp_wire_sim_event(sim, UCP_WIRE_SIM_LEAVE, wire->self,
                                       peer, 0);
    leave->time   = left;
    leave->then   = message;
    leave->buffer = (char*)payload;
    leave->length = length;
    leave->done   = done;
    leave->arg    = arg;
    ucp_wire_sim_push(&sim->links, leave);
    return UCS_INPROGRESS;
}

static uint32_t ucp_wire_sim_take_slot(ucp_wire_sim_node_t *node)
{
    uint32_t slot = node->free_slot;

    if (slot > 0) {
        node->free_slot = node->slots[slot - 1].next_free;
        return slot - 1;
    }
    if ((node->num_slots & (node->num_slots - 1)) == 0) {
        slot        = (node->num_slots == 0) ? 1 : 2 * node->num_slots;
        node->slots = realloc(node->slots, slot * sizeof(*node->slots));
        if (node->slots == NULL) {
            abort();
        }
    }
    return node->num_slots++;
}

static ucs_status_t ucp_wire_sim_mem_reg(ucp_wire_t *wire, void *address,
                                         size_t length, ucp_wire_mem_t **mem_p)
{
    ucp_wire_sim_node_t *node   = ucp_wire_sim_enter(wire);
    ucp_wire_sim_t *sim         = node->sim;
    ucp_wire_sim_stats_t *stats = &node->stats;
    ucp_wire_sim_slot_t *slot;
    ucp_wire_mem_t *mem;
    uint64_t pages;

    pages = (((uintptr_t)address + length + 4095) / 4096) -
            (uintptr_t)address / 4096;
    node->clock += sim->params.reg_base +
                   (uint64_t)(sim->params.reg_per_page * pages);
    if ((length == 0) || ucp_wire_sim_chance(sim, sim->params.reg_fails) ||
        ((node->fail_reg > 0) && (--node->fail_reg == 0))) {
        return (length == 0) ? UCS_ERR_INVALID_PARAM : UCS_ERR_NO_MEMORY;
    }
    mem = calloc(1, sizeof(*mem));
    if (mem == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    mem->ref.magic      = UCP_WIRE_SIM_MAGIC;
    mem->ref.node       = wire->self;
    mem->ref.slot       = ucp_wire_sim_take_slot(node);
    mem->ref.generation = ++sim->generation;
    slot                = &node->slots[mem->ref.slot];
    slot->start         = (uintptr_t)address;
    slot->length        = length;
    slot->generation    = mem->ref.generation;

    ++stats->registrations;
    stats->bytes += length;
    if (++stats->registered > stats->registered_peak) {
        stats->registered_peak = stats->registered;
    }
    if (stats->bytes > stats->bytes_peak) {
        stats->bytes_peak = stats->bytes;
    }
    *mem_p = mem;
    return UCS_OK;
}

static void ucp_wire_sim_mem_dereg(ucp_wire_t *wire, ucp_wire_mem_t *mem)
{
    ucp_wire_sim_node_t *node = ucp_wire_sim_enter(wire);
    ucp_wire_sim_slot_t *slot = &node->slots[mem->ref.slot];
    uint64_t pages;

    if ((slot->length == 0) || (slot->generation != mem->ref.generation)) {
        ucp_wire_sim_complain(node->sim, "node %u deregisters twice",
                              wire->self);
        return;
    }
    pages = ((slot->start + slot->length + 4095) / 4096) - slot->start / 4096;
    node->clock += node->sim->params.dereg_base +
                   (uint64_t)(node->sim->params.dereg_per_page * pages);
    node->stats.bytes -= slot->length;
    --node->stats.registered;
    slot->length    = 0;
    slot->next_free = node->free_slot;
    node->free_slot = mem->ref.slot + 1;
    free(mem);
}

static ucs_status_t ucp_wire_sim_mem_pack(ucp_wire_t *wire, ucp_wire_mem_t *mem,
                                          const void **packed_p,
                                          size_t *length_p)
{
    ucp_wire_sim_enter(wire);
    *packed_p = &mem->ref;
    *length_p = sizeof(mem->ref);
    return UCS_OK;
}

static ucs_status_t ucp_wire_sim_key_unpack(ucp_wire_t *wire, unsigned peer,
                                            const void *packed, size_t length,
                                            ucp_wire_key_t **key_p)
{
    ucp_wire_sim_node_t *node = ucp_wire_sim_enter(wire);
    ucs_status_t status       = ucp_wire_sim_reach(node, peer);
    ucp_wire_key_t *key;

    if (status != UCS_OK) {
        return status;
    }
    if (length != sizeof(key->ref)) {
        return UCS_ERR_INVALID_PARAM;
    }
    key = malloc(sizeof(*key));
    if (key == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    memcpy(&key->ref, packed, length);
    if ((key->ref.magic != UCP_WIRE_SIM_MAGIC) || (key->ref.node != peer)) {
        free(key);
        return UCS_ERR_INVALID_PARAM;
    }
    ++node->stats.keys;
    *key_p = key;
    return UCS_OK;
}

static void ucp_wire_sim_key_release(ucp_wire_t *wire, ucp_wire_key_t *key)
{
    --((ucp_wire_sim_node_t*)wire)->stats.keys;
    free(key);
}

/* The event that reads, and the one that writes behind it */
static ucp_wire_sim_event_t *
ucp_wire_sim_pair(ucp_wire_sim_node_t *node, unsigned peer, int is_put,
                  ucp_wire_mem_t *mem, void *buffer, size_t length,
                  uint64_t remote, ucp_wire_key_t *key,
                  ucp_wire_done_func_t done, void *arg)
{
    ucp_wire_sim_kind_t kind = is_put ? UCP_WIRE_SIM_PUT_READ :
                                        UCP_WIRE_SIM_GET_READ;
    ucp_wire_sim_event_t *read, *then;

    read          = ucp_wire_sim_event(node->sim, kind, node->super.self, peer,
                                       0);
    read->local   = mem->ref;
    read->remote  = key->ref;
    read->buffer  = buffer;
    read->address = remote;
    read->length  = length;
    read->done    = done;
    read->arg     = arg;
    then          = ucp_wire_sim_event(node->sim, kind + 1, node->super.self,
                                       peer, length);
    then->local   = read->local;
    then->remote  = read->remote;
    then->buffer  = read->buffer;
    then->address = read->address;
    then->length  = read->length;
    then->done    = read->done;
    then->arg     = read->arg;
    read->then    = then;
    return read;
}

/* @return UCS_OK: the bytes are on their way already */
static ucs_status_t ucp_wire_sim_put(ucp_wire_sim_node_t *node, unsigned peer,
                                     ucp_wire_sim_event_t *read)
{
    ucp_wire_sim_t *sim = node->sim;

    ++node->stats.puts;
    read->time = ucp_wire_sim_link(node, peer, node->clock, read->length,
                                   &read->then->time);
    node->ways[peer].last_land = ucp_wire_sim_later(node->ways[peer].last_land,
                                                    read->then->time);
    if (!ucp_wire_sim_chance(sim, sim->params.inline_chance) ||
        !ucp_wire_sim_covers(sim, &read->local, (uintptr_t)read->buffer,
                             read->length, "source of a put")) {
        return UCS_INPROGRESS;
    }
    memcpy(read->then->bytes, read->buffer, read->length);
    ucp_wire_sim_push(&sim->links, read->then);
    free(read);
    return UCS_OK;
}

/* A NIC sends a request between the packets of what others read here and of what
 * it writes: it waits for neither */
static void ucp_wire_sim_get(ucp_wire_sim_node_t *node, unsigned peer,
                             ucp_wire_sim_event_t *read)
{
    ucp_wire_sim_t *sim = node->sim;

    ++node->stats.gets;
    read->time = node->clock + sim->params.latency +
                 ucp_wire_sim_random(sim, sim->params.jitter + 1);
    (void)ucp_wire_sim_link(&sim->nodes[peer], node->super.self, read->time,
                            read->length, &read->then->time);
}

static ucs_status_t
ucp_wire_sim_rma(ucp_wire_t *wire, unsigned peer, int is_put,
                 ucp_wire_mem_t *mem, void *buffer, size_t length,
                 uint64_t remote, ucp_wire_key_t *key,
                 ucp_wire_done_func_t done, void *arg)
{
    ucp_wire_sim_node_t *node = ucp_wire_sim_enter(wire);
    ucs_status_t status       = ucp_wire_sim_reach(node, peer);
    ucp_wire_sim_event_t *read;

    if (status != UCS_OK) {
        return status;
    }
    if ((key->ref.node != peer) || (length == 0)) {
        ucp_wire_sim_complain(node->sim, "node %u uses the key of another",
                              wire->self);
        return UCS_ERR_INVALID_PARAM;
    }
    node->clock += node->sim->params.send_cost;
    read         = ucp_wire_sim_pair(node, peer, is_put, mem, buffer, length,
                                     remote, key, done, arg);
    if (!is_put) {
        ucp_wire_sim_get(node, peer, read);
    } else if (ucp_wire_sim_put(node, peer, read) == UCS_OK) {
        return UCS_OK;
    }
    ucp_wire_sim_push(&node->sim->links, read);
    return UCS_INPROGRESS;
}

static ucs_status_t ucp_wire_sim_flush(ucp_wire_t *wire, unsigned peer,
                                       ucp_wire_done_func_t done, void *arg)
{
    ucp_wire_sim_node_t *node = ucp_wire_sim_enter(wire);
    ucs_status_t status       = ucp_wire_sim_reach(node, peer);
    ucp_wire_sim_event_t *event;

    if (status != UCS_OK) {
        return status;
    }
    if ((node->ways[peer].last_land == 0) ||
        (node->ways[peer].last_land + node->sim->params.latency <
         node->sim->now)) {
        return node->sim->nodes[peer].dead ? UCS_ERR_CONNECTION_RESET : UCS_OK;
    }
    event       = ucp_wire_sim_event(node->sim, UCP_WIRE_SIM_DONE, peer,
                                     wire->self, 0);
    event->time = ucp_wire_sim_later(node->ways[peer].last_land, node->clock) +
                  node->sim->params.latency + 1;
    event->done = done;
    event->arg  = arg;
    ucp_wire_sim_push(&node->inbox, event);
    return UCS_INPROGRESS;
}

/* What is done of an event by the node that it is for. A message from a peer
 * that is known to be dead does not arrive any more. */
static void ucp_wire_sim_deliver(ucp_wire_sim_node_t *node,
                                 ucp_wire_sim_event_t *event)
{
    const ucp_wire_handlers_t *handlers = &node->super.handlers;
    unsigned peer                       = event->from;

    switch (event->kind) {
    case UCP_WIRE_SIM_MESSAGE:
        if (node->ways[peer].failed) {
            break;
        }
        node->clock += (uint64_t)(node->sim->params.copy_per_byte *
                                  event->length);
        handlers->am(handlers->arg, peer, event->bytes, event->header_length,
                     event->bytes + event->header_length, event->length);
        break;
    case UCP_WIRE_SIM_DONE:
        if ((event->status == UCS_OK) &&
            (node->ways[peer].failed || node->sim->nodes[peer].dead)) {
            event->status = UCS_ERR_CONNECTION_RESET;
        }
        event->done(event->arg, event->status);
        break;
    default:
        node->ways[peer].failed = 1;
        handlers->failed(handlers->arg, peer, UCS_ERR_CONNECTION_RESET);
        break;
    }
}

/* The processor may be ahead of the links: what is still on one may come
 * before what is first in the inbox by now */
static int ucp_wire_sim_has_come(const ucp_wire_sim_node_t *node)
{
    uint64_t first = sim_queue_next(&node->inbox);

    return (node->inbox.count > 0) && (first <= node->clock) &&
           (sim_queue_next(&node->sim->links) > first);
}

static unsigned ucp_wire_sim_progress(ucp_wire_t *wire)
{
    ucp_wire_sim_node_t *node = ucp_wire_sim_enter(wire);
    ucp_wire_sim_event_t *event;

    if (node->dead || !ucp_wire_sim_has_come(node)) {
        return 0;
    }
    event = ucp_wire_sim_pop(&node->inbox);
    ucp_wire_sim_deliver(node, event);
    free(event);
    return 1;
}

static uint64_t ucp_wire_sim_clock(ucp_wire_t *wire)
{
    return ((ucp_wire_sim_node_t*)wire)->clock;
}

/* End the operations that are still on the links */
static void ucp_wire_sim_cut(ucp_wire_sim_t *sim, unsigned from)
{
    sim_queue_t rest = {0};
    ucp_wire_sim_event_t *event;

    while (sim->links.count > 0) {
        event = ucp_wire_sim_pop(&sim->links);
        if ((event->from != from) ||
            (event->kind == UCP_WIRE_SIM_PUT_LAND)) {
            ucp_wire_sim_push(&rest, event);
            continue;
        }
        event->done(event->arg, UCS_ERR_CANCELED);
        free(event->then);
        free(event);
    }
    sim_queue_cleanup(&sim->links);
    sim->links = rest;
}

static void ucp_wire_sim_close(ucp_wire_t *wire)
{
    ucp_wire_sim_node_t *node = (ucp_wire_sim_node_t*)wire;
    ucp_wire_sim_event_t *event;

    while (node->inbox.count > 0) {
        event = ucp_wire_sim_pop(&node->inbox);
        if (event->kind == UCP_WIRE_SIM_DONE) {
            event->done(event->arg, UCS_ERR_CANCELED);
        }
        free(event);
    }
    ucp_wire_sim_cut(node->sim, wire->self);
    if (!node->dead && ((node->stats.registered > 0) ||
                        (node->stats.keys > 0))) {
        ucp_wire_sim_complain(node->sim, "node %u leaves %u registrations and "
                              "%lu keys behind", wire->self,
                              node->stats.registered,
                              (unsigned long)node->stats.keys);
    }
    node->open = 0;
    node->dead = 1;
}

const ucp_wire_ops_t ucp_wire_sim_ops = {
    .am_send     = ucp_wire_sim_am_send,
    .mem_reg     = ucp_wire_sim_mem_reg,
    .mem_dereg   = ucp_wire_sim_mem_dereg,
    .mem_pack    = ucp_wire_sim_mem_pack,
    .key_unpack  = ucp_wire_sim_key_unpack,
    .key_release = ucp_wire_sim_key_release,
    .move        = ucp_wire_sim_rma,
    .flush       = ucp_wire_sim_flush,
    .progress    = ucp_wire_sim_progress,
    .time        = ucp_wire_sim_clock,
    .destroy     = ucp_wire_sim_close
};
