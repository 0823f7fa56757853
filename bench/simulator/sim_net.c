/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "sim_int.h"

#include <tools/tool.h>

#include <stdlib.h>
#include <string.h>

#define SIM_POOL_CHUNK 256

/*
 * Lists: singly linked, the link is the first field
 */

typedef struct sim_link {
    struct sim_link *next;
} sim_link_t;

static sim_link_t *sim_list_link(void *item)
{
    return item;
}

void sim_list_add(sim_list_t *list, void *item)
{
    sim_list_link(item)->next = NULL;
    if (list->head == NULL) {
        list->head = item;
    } else {
        sim_list_link(list->tail)->next = item;
    }
    list->tail = item;
}

/* @a before: the item before it, or NULL */
static void sim_list_remove(sim_list_t *list, void *item, void *before)
{
    if (before == NULL) {
        list->head = sim_list_link(item)->next;
    } else {
        sim_list_link(before)->next = sim_list_link(item)->next;
    }
    if (list->tail == item) {
        list->tail = before;
    }
}

/* Packets come nearly in order */
static void sim_inbox_add(sim_list_t *inbox, sim_message_t *message)
{
    sim_message_t *tail = inbox->tail, *before = NULL, *at;

    if ((tail == NULL) || (tail->time_ns <= message->time_ns)) {
        sim_list_add(inbox, message);
        return;
    }
    for (at = inbox->head; at->time_ns <= message->time_ns; at = at->next) {
        before = at;
    }
    message->next = at;
    if (before == NULL) {
        inbox->head = message;
    } else {
        before->next = message;
    }
}

/*
 * Objects
 */

static void *sim_pool_get(sim_pool_t *pool)
{
    sim_link_t *item;
    char *chunk;
    size_t i;

    if (pool->free == NULL) {
        chunk = tool_realloc(NULL, sizeof(sim_link_t) +
                                           SIM_POOL_CHUNK * pool->size);
        sim_list_link(chunk)->next = pool->chunks;
        pool->chunks               = chunk;
        for (i = 0; i < SIM_POOL_CHUNK; ++i) {
            item       = (void*)(chunk + sizeof(sim_link_t) + i * pool->size);
            item->next = pool->free;
            pool->free = item;
        }
    }
    item       = pool->free;
    pool->free = item->next;
    memset(item, 0, pool->size);
    return item;
}

static void sim_pool_put(sim_pool_t *pool, void *item)
{
    sim_list_link(item)->next = pool->free;
    pool->free                = item;
}

static void sim_pool_cleanup(sim_pool_t *pool)
{
    sim_link_t *chunk, *next;

    for (chunk = pool->chunks; chunk != NULL; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
}

void sim_net_init(sim_world_t *world)
{
    world->messages.size = sizeof(sim_message_t);
    world->requests.size = sizeof(sim_request_t);
}

void sim_net_cleanup(sim_world_t *world)
{
    sim_pool_cleanup(&world->messages);
    sim_pool_cleanup(&world->requests);
}

sim_request_t *sim_request_new(sim_world_t *world, sim_rank_t *rank,
                               const sim_op_t *op)
{
    sim_request_t *request = sim_pool_get(&world->requests);

    request->rank    = rank;
    request->peer    = op->peer;
    request->tag     = op->tag;
    request->site    = op->site;
    request->address = op->address;
    request->bytes   = op->bytes;
    return request;
}

static sim_message_t *sim_message_new(sim_world_t *world,
                                      const sim_request_t *send)
{
    sim_message_t *message = sim_pool_get(&world->messages);

    message->tag   = send->tag;
    message->from  = send->rank;
    message->to    = &world->ranks[send->peer];
    message->bytes = send->bytes;
    return message;
}

/*
 * Wire
 */

static uint64_t sim_net_stream(const sim_world_t *world, uint64_t bytes)
{
    return (bytes > 1) ? (bytes - 1) * world->params->network.byte_ns : 0;
}

static void sim_net_arrive(sim_world_t *world, sim_rank_t *rank,
                           sim_message_t *message, uint64_t time_ns)
{
    message->time_ns = time_ns;
    sim_inbox_add(&rank->inbox, message);
    if (rank->state == SIM_WAITING) {
        sim_rank_schedule(world, rank, time_ns);
    }
}

/* The first byte leaves now. As all take the same time to the receiver, they
 * come there in the order of these calls. */
static void sim_net_transmit(sim_world_t *world, sim_message_t *message,
                             uint64_t now_ns)
{
    sim_rank_t *to   = message->to;
    uint64_t first   = now_ns + world->params->network.latency_ns;
    uint64_t stream  = sim_net_stream(world, message->bytes);
    uint64_t arrival = ((first < to->rx_free_ns) ? to->rx_free_ns : first) +
                       stream;

    to->rx_free_ns = arrival + world->params->network.gap_ns;
    sim_net_arrive(world, to, message, arrival);
}

/* The message's bytes are ready to leave; the NIC may not be */
static void sim_net_submit(sim_world_t *world, sim_message_t *message,
                           uint64_t now_ns)
{
    sim_rank_t *from = message->from;
    uint64_t start   = (now_ns < from->tx_free_ns) ? from->tx_free_ns : now_ns;

    from->tx_free_ns = start + sim_net_stream(world, message->bytes) +
                       world->params->network.gap_ns;
    if (start > now_ns) {
        sim_queue_push(&world->queue, start, SIM_EVENT_TRANSMIT, message);
    } else {
        sim_net_transmit(world, message, now_ns);
    }
}

void sim_net_event(sim_world_t *world, const sim_event_t *event)
{
    if (event->kind == SIM_EVENT_SUBMIT) {
        sim_net_submit(world, event->arg, event->time_ns);
    } else {
        sim_net_transmit(world, event->arg, event->time_ns);
    }
}

/*
 * Protocol
 */

static int sim_net_is_eager(const sim_world_t *world, uint64_t bytes)
{
    return bytes < world->params->network.eager_bytes;
}

void sim_net_send(sim_world_t *world, sim_request_t *send)
{
    const sim_network_t *network = &world->params->network;
    sim_message_t *message       = sim_message_new(world, send);
    sim_rank_t *rank             = send->rank;

    sim_engine_say(world, send, UCS_OPERATION_SEND);
    rank->now_ns += network->overhead_ns;
    if (sim_net_is_eager(world, send->bytes)) {
        message->packet = SIM_PACKET_EAGER;
        sim_queue_push(&world->queue, rank->now_ns, SIM_EVENT_SUBMIT, message);
        ++world->result->sends;
        world->result->sent_bytes += send->bytes;
        sim_pool_put(&world->requests, send);
        return;
    }
    ++world->result->rendezvous;
    ++rank->open;
    sim_engine_begin(world, send);
    message->packet = SIM_PACKET_READY;
    message->send   = send;
    sim_net_arrive(world, message->to, message,
                   rank->now_ns + network->latency_ns);
}

/* The receive's end */
static void sim_net_received(sim_world_t *world, sim_request_t *recv,
                             uint64_t bytes)
{
    sim_engine_say(world, recv, UCS_OPERATION_RECEIVED);
    --recv->rank->open;
    ++world->result->receives;
    world->result->received_bytes += bytes;
    sim_pool_put(&world->requests, recv);
}

/* The receiver asks the sender's NIC for the bytes */
static void sim_net_fetch(sim_world_t *world, sim_message_t *message,
                          sim_request_t *recv)
{
    message->recv = recv;
    sim_engine_begin(world, recv);
    message->packet = SIM_PACKET_DATA;
    sim_queue_push(&world->queue,
                   recv->rank->now_ns + world->params->network.latency_ns,
                   SIM_EVENT_SUBMIT, message);
}

static void sim_net_match(sim_world_t *world, sim_message_t *message,
                          sim_request_t *recv)
{
    if (message->packet == SIM_PACKET_READY) {
        sim_net_fetch(world, message, recv);
        return;
    }
    sim_net_received(world, recv, message->bytes);
    sim_pool_put(&world->messages, message);
}

void sim_net_post(sim_world_t *world, sim_request_t *recv)
{
    sim_rank_t *rank = recv->rank;
    sim_message_t *message, *before = NULL;

    sim_engine_say(world, recv, UCS_OPERATION_RECEIVE);
    ++rank->open;
    for (message = rank->unexpected.head; message != NULL;
         before = message, message = message->next) {
        if ((message->from->index == recv->peer) &&
            (message->tag == recv->tag)) {
            sim_list_remove(&rank->unexpected, message, before);
            sim_net_match(world, message, recv);
            return;
        }
    }
    sim_list_add(&rank->posted, recv);
}

static void sim_net_expected(sim_world_t *world, sim_rank_t *rank,
                             sim_message_t *message)
{
    sim_request_t *recv, *before = NULL;

    for (recv = rank->posted.head; recv != NULL;
         before = recv, recv = recv->next) {
        if ((recv->peer == message->from->index) &&
            (recv->tag == message->tag)) {
            sim_list_remove(&rank->posted, recv, before);
            sim_net_match(world, message, recv);
            return;
        }
    }
    sim_list_add(&rank->unexpected, message);
}

/* The bytes have come: tell the sender */
static void sim_net_fetched(sim_world_t *world, sim_rank_t *rank,
                            sim_message_t *message)
{
    sim_engine_end(world, message->recv);
    sim_net_received(world, message->recv, message->bytes);
    message->packet = SIM_PACKET_DONE;
    sim_net_arrive(world, message->from, message,
                   rank->now_ns + world->params->network.latency_ns);
}

static void sim_net_done(sim_world_t *world, sim_message_t *message)
{
    sim_engine_end(world, message->send);
    --message->send->rank->open;
    ++world->result->sends;
    world->result->sent_bytes += message->bytes;
    sim_pool_put(&world->requests, message->send);
    sim_pool_put(&world->messages, message);
}

void sim_net_take(sim_world_t *world, sim_rank_t *rank)
{
    sim_message_t *message = rank->inbox.head;

    sim_list_remove(&rank->inbox, message, NULL);
    rank->now_ns += world->params->network.overhead_ns;
    switch (message->packet) {
    case SIM_PACKET_DATA:
        sim_net_fetched(world, rank, message);
        break;
    case SIM_PACKET_DONE:
        sim_net_done(world, message);
        break;
    default:
        sim_net_expected(world, rank, message);
        break;
    }
}

static uint64_t sim_list_count(const sim_list_t *list)
{
    const sim_link_t *link;
    uint64_t count = 0;

    for (link = list->head; link != NULL; link = link->next) {
        ++count;
    }
    return count;
}

void sim_net_check(sim_world_t *world)
{
    uint32_t i;

    for (i = 0; i < world->shape->ranks; ++i) {
        world->result->unmatched += sim_list_count(&world->ranks[i].posted) +
                                    sim_list_count(&world->ranks[i].inbox) +
                                    sim_list_count(&world->ranks[i].unexpected);
    }
}
