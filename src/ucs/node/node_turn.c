/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "node_int.h"

#include <ucs/sys/math.h>

#include <string.h>

/* A step's time is measured over this long */
#define UCS_NODE_LOAD_NS UINT64_C(1000000000)

/* Other processes write the length of a step; none takes a second */
#define UCS_NODE_STEP_MAX_NS 1000000000


static void ucs_node_read(ucs_node_h node, unsigned i, ucs_place_rank_t *rank)
{
    ucs_ledger_slot_t *slot = &node->ledger->slots[i];
    unsigned cpu            = ucs_load_relaxed(&slot->cpu);
    unsigned word;

    rank->slot    = i;
    rank->cores   = ucs_min(ucs_load_relaxed(&slot->cores), UCS_LEDGER_CPUS);
    rank->demand  = ucs_ledger_demand(node->ledger, i, node->ram);
    rank->state   = ucs_load_relaxed(&slot->state);
    rank->cpu     = (cpu <= UCS_LEDGER_CPUS) ? (int)cpu - 1 : UCS_PLACE_ANY;
    rank->step_ns = ucs_min(ucs_load_relaxed(&slot->step_ns),
                            UCS_NODE_STEP_MAX_NS);
    for (word = 0; word < UCS_LEDGER_WORDS; ++word) {
        rank->cpus.__bits[word] = ucs_load_relaxed(&slot->cpus[word]);
    }
}

/* @return The number of ranks; this one's index is *self_p */
static unsigned ucs_node_read_all(ucs_node_h node, unsigned *self_p)
{
    unsigned count = 0;
    unsigned i;

    for (i = 0; i < UCS_LEDGER_SLOTS; ++i) {
        if (i == (unsigned)node->slot) {
            *self_p = count;
        } else if (ucs_load_relaxed(&node->ledger->owner[i]) == 0) {
            continue;
        }
        ucs_node_read(node, i, &node->view[count++]);
    }
    return count;
}

/* Measures a step's time, and frees slots of the dead as often */
static void ucs_node_measure(ucs_node_h node, uint64_t now,
                             const ucs_node_work_t *work)
{
    ucs_ledger_slot_t *slot = &node->ledger->slots[node->slot];

    node->work.cpu_ns += work->cpu_ns;
    node->work.steps  += work->steps;
    if ((node->load_since != 0) &&
        (now - node->load_since < UCS_NODE_LOAD_NS)) {
        return;
    }

    if ((node->load_since != 0) && node->place.runs &&
        (node->work.steps > 0)) {
        ucs_store_relaxed(&slot->step_ns,
                          (uint32_t)(node->work.cpu_ns / node->work.steps));
    }
    (void)ucs_ledger_reap(node->ledger);
    node->load_since  = now;
    node->work.cpu_ns = 0;
    node->work.steps  = 0;
}

static void
ucs_node_settle(ucs_node_h node, uint64_t now, const ucs_place_t *place)
{
    if (node->place.runs != place->runs) {
        node->rest_ns += node->place.runs ? 0 : now - node->changed;
        node->rests   += node->place.runs;
        node->changed  = now;
    }
}

static void ucs_node_publish(ucs_node_h node, const ucs_place_t *place)
{
    ucs_ledger_slot_t *slot = &node->ledger->slots[node->slot];

    ucs_store_relaxed(&slot->cpu, place->cpu + 1);
    ucs_lock(&node->lock);
    ucs_node_set_state(node, UCS_LEDGER_RUNS, place->runs);
    ucs_unlock(&node->lock);
}

/* Repairs what another process has overwritten, or freed because it could not
 * see that we are alive */
static int ucs_node_mend(ucs_node_h node)
{
    int has_slot;

    (void)ucs_ledger_reap_slot(node->ledger, node->next_check);
    node->next_check = (node->next_check + 1) % UCS_LEDGER_SLOTS;

    has_slot = ucs_ledger_mend(node->ledger, node->slot, node->owner);
    if (!has_slot && ucs_ledger_detach(node->ledger)) {
        (void)ucs_ledger_mend(node->ledger, node->slot, node->owner);
    }

    ucs_lock(&node->lock);
    ucs_node_note_demand(node, node->pinned);
    ucs_node_reserve(node, 0);
    ucs_node_pin(node, 0, NULL);
    ucs_node_set_state(node, 0, 1);
    ucs_node_show_cpus(node);
    ucs_unlock(&node->lock);
    return has_slot;
}

int ucs_node_turn(ucs_node_h node, uint64_t now, const ucs_node_work_t *work,
                  const ucs_place_topology_t *topology, ucs_place_t *place)
{
    unsigned count, self = 0;
    int has_slot;

    pthread_mutex_lock(&node->turn_lock);
    has_slot = ucs_node_mend(node);
    ucs_node_measure(node, now, work);
    count = ucs_node_read_all(node, &self);
    ucs_place_decide(node->view, count, self, node->policy, topology, place);
    ucs_node_settle(node, now, place);
    ucs_node_publish(node, place);
    node->place = *place;
    pthread_mutex_unlock(&node->turn_lock);
    return !has_slot;
}
