/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "wire_sim_int.h"

#include <stdlib.h>
#include <string.h>

/* What the links do when the time has come, with nobody's processor */

static int ucp_wire_sim_in_hole(const ucp_wire_sim_node_t *node,
                                uint64_t address, size_t length)
{
    unsigned i;

    for (i = 0; i < node->num_holes; ++i) {
        if ((address < node->holes[i].end) &&
            (node->holes[i].start < address + length)) {
            return 1;
        }
    }
    return 0;
}

int ucp_wire_sim_covers(ucp_wire_sim_t *sim, const ucp_wire_sim_ref_t *ref,
                        uint64_t address, size_t length, const char *what)
{
    ucp_wire_sim_node_t *node = &sim->nodes[ref->node];
    ucp_wire_sim_slot_t *slot;

    slot = (ref->slot < node->num_slots) ? &node->slots[ref->slot] : NULL;
    if ((slot == NULL) || (slot->length == 0) ||
        (slot->generation != ref->generation)) {
        ucp_wire_sim_complain(sim, "%s of node %u: registration is gone", what,
                              ref->node);
        return 0;
    }
    if ((address < slot->start) || (length > slot->length) ||
        (address - slot->start > slot->length - length)) {
        ucp_wire_sim_complain(sim, "%s of node %u: outside its registration",
                              what, ref->node);
        return 0;
    }
    if (ucp_wire_sim_in_hole(node, address, length)) {
        ucp_wire_sim_complain(sim, "%s of node %u: the memory is unmapped",
                              what, ref->node);
        return 0;
    }
    return 1;
}

/* The operation that `event` began is over for its beginner */
static void ucp_wire_sim_end(ucp_wire_sim_t *sim,
                             const ucp_wire_sim_event_t *event,
                             ucs_status_t status)
{
    ucp_wire_sim_event_t *done;

    done         = ucp_wire_sim_event(sim, UCP_WIRE_SIM_DONE, event->to,
                                      event->from, 0);
    done->time   = sim->now;
    done->done   = event->done;
    done->arg    = event->arg;
    done->status = status;
    ucp_wire_sim_push(&sim->nodes[event->from].inbox, done);
}

static void ucp_wire_sim_put_read(ucp_wire_sim_t *sim,
                                  ucp_wire_sim_event_t *event)
{
    ucp_wire_sim_event_t *land = event->then;

    if (sim->nodes[event->from].dead) {
        free(land);
        return;
    }
    if (ucp_wire_sim_covers(sim, &event->local, (uintptr_t)event->buffer,
                            event->length, "source of a put")) {
        memcpy(land->bytes, event->buffer, event->length);
        ucp_wire_sim_push(&sim->links, land);
    } else {
        free(land);
    }
    ucp_wire_sim_end(sim, event, UCS_OK);
}

static void ucp_wire_sim_put_land(ucp_wire_sim_t *sim,
                                  ucp_wire_sim_event_t *event)
{
    int dead = sim->nodes[event->from].dead;
    unsigned errors = sim->errors;

    if (sim->nodes[event->to].dead) {
        return;
    }
    /* a write that its dead sender left behind is refused by the adapter if
     * the target is gone, and harms nobody */
    if (ucp_wire_sim_covers(sim, &event->remote, event->address, event->length,
                            "target of a put")) {
        memcpy((void*)(uintptr_t)event->address, event->bytes, event->length);
    } else if (dead) {
        sim->errors = errors;
    }
}

/* A key that nobody ever gave is refused by the adapter; one of a registration
 * that is gone is an error of the protocol */
static int ucp_wire_sim_was_given(const ucp_wire_sim_t *sim,
                                  const ucp_wire_sim_ref_t *ref)
{
    const ucp_wire_sim_node_t *node = &sim->nodes[ref->node];

    return (ref->slot < node->num_slots) && (ref->generation > 0) &&
           (ref->generation <= node->slots[ref->slot].generation);
}

static void ucp_wire_sim_get_read(ucp_wire_sim_t *sim,
                                  ucp_wire_sim_event_t *event)
{
    ucp_wire_sim_event_t *land = event->then;

    if (sim->nodes[event->from].dead || sim->nodes[event->to].dead) {
        free(land);
        if (!sim->nodes[event->from].dead) {
            ucp_wire_sim_end(sim, event, UCS_ERR_CONNECTION_RESET);
        }
        return;
    }
    if (!ucp_wire_sim_was_given(sim, &event->remote)) {
        free(land);
        ucp_wire_sim_end(sim, event, UCS_ERR_IO_ERROR);
        return;
    }
    if (ucp_wire_sim_covers(sim, &event->remote, event->address, event->length,
                            "source of a get")) {
        memcpy(land->bytes, (void*)(uintptr_t)event->address, event->length);
    }
    ucp_wire_sim_push(&sim->links, land);
}

static void ucp_wire_sim_get_land(ucp_wire_sim_t *sim,
                                  ucp_wire_sim_event_t *event)
{
    if (sim->nodes[event->from].dead) {
        return;
    }
    if (ucp_wire_sim_covers(sim, &event->local, (uintptr_t)event->buffer,
                            event->length, "target of a get")) {
        memcpy(event->buffer, event->bytes, event->length);
    }
    ucp_wire_sim_end(sim, event, UCS_OK);
}

/* The payload is read now, so that a sender that changed it is found out */
static void ucp_wire_sim_leave(ucp_wire_sim_t *sim, ucp_wire_sim_event_t *event)
{
    ucp_wire_sim_event_t *message = event->then;

    if (sim->nodes[event->from].dead) {
        free(message);
        return;
    }
    memcpy(message->bytes + message->header_length, event->buffer,
           event->length);
    ucp_wire_sim_push(&sim->nodes[event->to].inbox, message);
    ucp_wire_sim_end(sim, event, UCS_OK);
}

void ucp_wire_sim_move(ucp_wire_sim_t *sim, ucp_wire_sim_event_t *event)
{
    switch (event->kind) {
    case UCP_WIRE_SIM_PUT_READ:
        ucp_wire_sim_put_read(sim, event);
        break;
    case UCP_WIRE_SIM_PUT_LAND:
        ucp_wire_sim_put_land(sim, event);
        break;
    case UCP_WIRE_SIM_GET_READ:
        ucp_wire_sim_get_read(sim, event);
        break;
    case UCP_WIRE_SIM_GET_LAND:
        ucp_wire_sim_get_land(sim, event);
        break;
    case UCP_WIRE_SIM_LEAVE:
        ucp_wire_sim_leave(sim, event);
        break;
    default:
        break;
    }
    free(event);
}
