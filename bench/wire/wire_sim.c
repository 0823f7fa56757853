/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "wire_sim_int.h"

#include <ucs/sys/hash.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Memory of the network itself: a test machine that has none cannot go on */
static void *ucp_wire_sim_alloc(void *old, size_t size)
{
    void *pointer = realloc(old, size);

    if (pointer == NULL) {
        abort();
    }
    return pointer;
}

void ucp_wire_sim_push(sim_queue_t *queue, ucp_wire_sim_event_t *event)
{
    sim_queue_put(queue, (sim_event_t){event->time, event->number, event, 0});
}

ucp_wire_sim_event_t *ucp_wire_sim_pop(sim_queue_t *queue)
{
    sim_event_t event;

    return sim_queue_pop(queue, &event) ? event.arg : NULL;
}

ucp_wire_sim_event_t *
ucp_wire_sim_event(ucp_wire_sim_t *sim, ucp_wire_sim_kind_t kind,
                   unsigned from, unsigned to, size_t extra)
{
    ucp_wire_sim_event_t *event;

    event = ucp_wire_sim_alloc(NULL, sizeof(*event) + extra);
    memset(event, 0, sizeof(*event));
    event->number = sim->number++;
    event->kind   = kind;
    event->from   = from;
    event->to     = to;
    return event;
}

void ucp_wire_sim_complain(ucp_wire_sim_t *sim, const char *format, ...)
{
    va_list ap;

    if (sim->errors++ == 0) {
        va_start(ap, format);
        vsnprintf(sim->error, sizeof(sim->error), format, ap);
        va_end(ap);
    }
}

uint64_t ucp_wire_sim_random(ucp_wire_sim_t *sim, uint64_t below)
{
    uint64_t number = ucs_hash_random(&sim->random);

    return (below == 0) ? 0 : number % below;
}

unsigned ucp_wire_sim_chance(ucp_wire_sim_t *sim, unsigned of_a_million)
{
    return (of_a_million > 0) &&
           (ucp_wire_sim_random(sim, 1000000) < of_a_million);
}

ucp_wire_sim_t *ucp_wire_sim_create(const ucp_wire_sim_params_t *params)
{
    ucp_wire_sim_t *sim;
    unsigned i;

    sim = calloc(1, sizeof(*sim) + params->num_nodes * sizeof(sim->nodes[0]));
    if (sim == NULL) {
        return NULL;
    }
    sim->params = *params;
    sim->random = params->seed;
    for (i = 0; i < params->num_nodes; ++i) {
        sim->nodes[i].sim  = sim;
        sim->nodes[i].ways = calloc(params->num_nodes,
                                    sizeof(*sim->nodes[i].ways));
        if (sim->nodes[i].ways == NULL) {
            ucp_wire_sim_destroy(sim);
            return NULL;
        }
    }
    return sim;
}

static void ucp_wire_sim_drop(sim_queue_t *queue)
{
    while (queue->count > 0) {
        free(ucp_wire_sim_pop(queue));
    }
    sim_queue_cleanup(queue);
}

void ucp_wire_sim_destroy(ucp_wire_sim_t *sim)
{
    unsigned i;

    for (i = 0; i < sim->params.num_nodes; ++i) {
        ucp_wire_sim_drop(&sim->nodes[i].inbox);
        free(sim->nodes[i].ways);
        free(sim->nodes[i].out.busy);
        free(sim->nodes[i].in.busy);
        free(sim->nodes[i].slots);
        free(sim->nodes[i].holes);
    }
    /* what a read was to be followed by belongs to the read */
    for (i = 0; i < sim->links.count; ++i) {
        free(((ucp_wire_sim_event_t*)sim->links.events[i].arg)->then);
    }
    ucp_wire_sim_drop(&sim->links);
    free(sim);
}

ucs_status_t ucp_wire_sim_open(ucp_wire_sim_t *sim, unsigned node,
                               const ucp_wire_handlers_t *handlers,
                               ucp_wire_t **wire_p)
{
    ucp_wire_sim_node_t *self = &sim->nodes[node];

    if ((node >= sim->params.num_nodes) || self->open) {
        return UCS_ERR_INVALID_PARAM;
    }
    self->open              = 1;
    self->super.ops         = &ucp_wire_sim_ops;
    if (handlers != NULL) {
        self->super.handlers = *handlers;
    }
    self->super.self        = node;
    self->super.num_peers   = sim->params.num_nodes;
    self->super.max_header  = UCP_WIRE_MAX_HEADER;
    self->super.max_payload = 65536;
    *wire_p                 = &self->super;
    return UCS_OK;
}

int ucp_wire_sim_next(ucp_wire_sim_t *sim)
{
    ucp_wire_sim_node_t *node;
    uint64_t time, best_time;
    unsigned i;
    int best;

    for (;;) {
        best      = -1;
        best_time = UINT64_MAX;
        for (i = 0; i < sim->params.num_nodes; ++i) {
            node = &sim->nodes[i];
            if (!node->open || node->dead || (node->inbox.count == 0)) {
                continue;
            }
            time = sim_queue_next(&node->inbox);
            time = (time > node->clock) ? time : node->clock;
            if (time < best_time) {
                best      = i;
                best_time = time;
            }
        }
        if ((sim->links.count == 0) ||
            ((best >= 0) && (sim_queue_next(&sim->links) > best_time))) {
            break;
        }
        sim->now = sim_queue_next(&sim->links);
        ucp_wire_sim_move(sim, ucp_wire_sim_pop(&sim->links));
    }
    if (best >= 0) {
        sim->nodes[best].clock = best_time;
        sim->now = (best_time > sim->now) ? best_time : sim->now;
    }
    return best;
}

void ucp_wire_sim_work(ucp_wire_sim_t *sim, unsigned node, uint64_t ns)
{
    sim->nodes[node].clock += ns;
}

uint64_t ucp_wire_sim_time(ucp_wire_sim_t *sim, unsigned node)
{
    return sim->nodes[node].clock;
}

void ucp_wire_sim_kill(ucp_wire_sim_t *sim, unsigned node)
{
    uint64_t latency = sim->params.latency + 1;
    ucp_wire_sim_event_t *event;
    unsigned i;

    if (sim->nodes[node].dead) {
        return;
    }
    sim->nodes[node].dead = 1;
    for (i = 0; i < sim->params.num_nodes; ++i) {
        if (i != node) {
            event       = ucp_wire_sim_event(sim, UCP_WIRE_SIM_FAILED, node, i,
                                             0);
            event->time = sim->now + latency +
                          ucp_wire_sim_random(sim, 7 * latency);
            ucp_wire_sim_push(&sim->nodes[i].inbox, event);
        }
    }
}

void ucp_wire_sim_fail_reg(ucp_wire_sim_t *sim, unsigned node, unsigned skip)
{
    sim->nodes[node].fail_reg = skip + 1;
}

void ucp_wire_sim_unmap(ucp_wire_sim_t *sim, unsigned node, const void *start,
                        size_t length)
{
    ucp_wire_sim_node_t *self = &sim->nodes[node];

    self->holes = ucp_wire_sim_alloc(self->holes, (self->num_holes + 1) *
                                                          sizeof(*self->holes));
    self->holes[self->num_holes].start = (uintptr_t)start;
    self->holes[self->num_holes].end   = (uintptr_t)start + length;
    ++self->num_holes;
}

unsigned ucp_wire_sim_errors(const ucp_wire_sim_t *sim)
{
    return sim->errors;
}

const char *ucp_wire_sim_error(const ucp_wire_sim_t *sim)
{
    return sim->error;
}

void ucp_wire_sim_get_stats(const ucp_wire_sim_t *sim, unsigned node,
                            ucp_wire_sim_stats_t *stats)
{
    *stats = sim->nodes[node].stats;
}
