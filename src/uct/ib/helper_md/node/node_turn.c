/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "node_int.h"

#include <ucs/sys/math.h>

#include <string.h>

/* The share of a core that a helper takes is measured over this long */
#define UCT_HELPER_NODE_LOAD_NS UINT64_C(1000000000)

/* A helper that took too much tries again after this long: phases pass */
#define UCT_HELPER_NODE_REST_NS UINT64_C(10000000000)

/* What others write is bounded: no step takes a second */
#define UCT_HELPER_NODE_STEP_MAX_NS 1000000000

#define UCT_HELPER_NODE_MILLION 1000000


void uct_helper_node_set_cpus(uct_helper_node_h node,
                              const uct_helper_cpus_t *cpus, unsigned cores)
{
    uct_helper_ledger_slot_t *slot = &node->ledger->slots[node->slot];
    unsigned i;

    for (i = 0; i < UCT_HELPER_LEDGER_WORDS; ++i) {
        ucs_store_relaxed(&slot->cpus[i], (cpus != NULL) ? cpus->bits[i] : 0);
    }
    ucs_store_relaxed(&slot->cores, cores);
    if (cpus != NULL) {
        (void)ucs_or_acq_rel(&slot->state, UCT_HELPER_LEDGER_BOUND);
    } else {
        (void)ucs_and_acq_rel(&slot->state, ~(uint32_t)UCT_HELPER_LEDGER_BOUND);
    }
}

static void uct_helper_node_read(uct_helper_node_h node, unsigned i,
                                 uct_helper_rank_t *rank)
{
    uct_helper_ledger_slot_t *slot = &node->ledger->slots[i];
    unsigned cpu                   = ucs_load_relaxed(&slot->cpu);
    unsigned word;

    rank->slot    = i;
    rank->wants   = uct_helper_busy_wants(
            &node->busy[i], ucs_load_relaxed(&node->ledger->owner[i]),
            ucs_min(ucs_load_relaxed(&slot->cores), UCT_HELPER_LEDGER_CPUS));
    rank->demand  = uct_helper_ledger_demand(node->ledger, i, node->ram);
    rank->state   = ucs_load_relaxed(&slot->state);
    rank->cores   = ucs_min(ucs_load_relaxed(&slot->cores),
                            UCT_HELPER_LEDGER_CPUS);
    rank->cpu     = (cpu <= UCT_HELPER_LEDGER_CPUS) ? (int)cpu - 1 :
                                                      UCT_HELPER_PLACE_ANY;
    rank->step_ns = ucs_min(ucs_load_relaxed(&slot->step_ns),
                            UCT_HELPER_NODE_STEP_MAX_NS);
    rank->load    = ucs_min(ucs_load_relaxed(&slot->load),
                            UCT_HELPER_NODE_MILLION);
    for (word = 0; word < UCT_HELPER_LEDGER_WORDS; ++word) {
        rank->cpus.bits[word] = ucs_load_relaxed(&slot->cpus[word]);
    }
}

/* @return The number of ranks; this one's index is *self_p */
static unsigned uct_helper_node_read_all(uct_helper_node_h node,
                                         unsigned *self_p)
{
    unsigned count = 0;
    unsigned i;

    for (i = 0; i < UCT_HELPER_LEDGER_SLOTS; ++i) {
        if (i == (unsigned)node->slot) {
            *self_p = count;
        } else if (ucs_load_relaxed(&node->ledger->owner[i]) == 0) {
            continue;
        }
        uct_helper_node_read(node, i, &node->view[count++]);
    }
    return count;
}

/* How long a step takes, and how much of a core all of them */
static void uct_helper_node_measure(uct_helper_node_h node, uint64_t now,
                                    const uct_helper_work_t *work)
{
    uct_helper_ledger_slot_t *slot = &node->ledger->slots[node->slot];
    uint64_t elapsed               = now - node->load_since;

    node->work.cpu_ns += work->cpu_ns;
    node->work.steps  += work->steps;
    if ((node->load_since != 0) && (elapsed < UCT_HELPER_NODE_LOAD_NS)) {
        return;
    }

    if ((node->load_since != 0) && node->place.runs &&
        (node->work.steps > 0)) {
        node->load = node->work.cpu_ns / (elapsed / UCT_HELPER_NODE_MILLION);
        ucs_store_relaxed(&slot->step_ns,
                          (uint32_t)(node->work.cpu_ns / node->work.steps));
        ucs_store_relaxed(&slot->load, node->load);
    }
    node->load_since  = now;
    node->work.cpu_ns = 0;
    node->work.steps  = 0;
}

/* The load of a helper that rests says nothing, so under auto it tries again
 * after a while; with a core of its own at once */
static void uct_helper_node_settle(uct_helper_node_h node, uint64_t now,
                                   uct_helper_place_t *place)
{
    if (node->place.runs != place->runs) {
        node->rest_ns += node->place.runs ? 0 : now - node->changed;
        node->rests   += node->place.runs;
        node->changed  = now;
    }

    if (node->place.runs && !place->runs) {
        node->rest_until = now + UCT_HELPER_NODE_REST_NS;
    } else if (!place->runs && (now >= node->rest_until)) {
        node->load = 0;
    }
}

static void uct_helper_node_publish(uct_helper_node_h node,
                                    const uct_helper_place_t *place)
{
    uct_helper_ledger_slot_t *slot = &node->ledger->slots[node->slot];

    ucs_store_relaxed(&slot->cpu, place->cpu + 1);
    if (place->runs) {
        (void)ucs_or_acq_rel(&slot->state, UCT_HELPER_LEDGER_RUNS);
    } else {
        (void)ucs_and_acq_rel(&slot->state, ~(uint32_t)UCT_HELPER_LEDGER_RUNS);
    }
}

/* What each rank wants of the processors; one that is new, from one turn to the
 * next, for until then it counts with all its cores. The dead are found here as well: one
 * that is not buried yet, or whose number is another's, would be counted. */
static void uct_helper_node_observe(uct_helper_node_h node, uint64_t now)
{
    uct_helper_ledger_t *ledger = node->ledger;
    uct_helper_busy_count_t count;
    uint64_t owner;
    unsigned cores, i;
    pid_t pid;

    for (i = 0; i < UCT_HELPER_LEDGER_SLOTS; ++i) {
        owner = ucs_load_relaxed(&ledger->owner[i]);
        if ((owner == 0) ||
            uct_helper_busy_is_known(&node->busy[i], owner, now,
                                     UCT_HELPER_NODE_LOAD_NS)) {
            continue;
        }
        cores = ucs_min(ucs_load_relaxed(&ledger->slots[i].cores),
                        UCT_HELPER_LEDGER_CPUS);
        pid = uct_helper_ledger_pid(owner);
        if ((pid == 0) || !node->busy_read(pid, &count) ||
            uct_helper_busy_note(&node->busy[i], owner, now, &count, cores)) {
            (void)uct_helper_ledger_reap_slot(ledger, i);
        }
    }
}

/* What another process may have written over, or taken away because it could
 * not tell that we are alive */
static int uct_helper_node_mend(uct_helper_node_h node)
{
    int has_slot;

    (void)uct_helper_ledger_reap_slot(node->ledger, node->next_check);
    node->next_check = (node->next_check + 1) % UCT_HELPER_LEDGER_SLOTS;

    has_slot = uct_helper_ledger_mend(node->ledger, node->slot, node->owner);
    if (!has_slot && uct_helper_ledger_detach(node->ledger)) {
        (void)uct_helper_ledger_mend(node->ledger, node->slot, node->owner);
    }

    uct_helper_lock(&node->lock);
    uct_helper_node_note_demand(node, node->pinned);
    uct_helper_node_reserve(node, 0);
    uct_helper_node_pin(node, 0, NULL);
    uct_helper_unlock(&node->lock);
    return has_slot;
}

int uct_helper_node_turn(uct_helper_node_h node, uint64_t now,
                          const uct_helper_work_t *work,
                          const uct_helper_cpus_t *allowed,
                          const uint8_t *distances, uct_helper_place_t *place)
{
    unsigned count, self = 0;
    int has_slot;

    pthread_mutex_lock(&node->turn_lock);
    has_slot = uct_helper_node_mend(node);
    uct_helper_node_observe(node, now);
    uct_helper_node_measure(node, now, work);
    count                 = uct_helper_node_read_all(node, &self);
    node->view[self].load = node->load;
    uct_helper_place_decide(node->view, count, self, node->policy, allowed,
                            distances, place);
    uct_helper_node_settle(node, now, place);
    uct_helper_node_publish(node, place);
    node->place = *place;
    pthread_mutex_unlock(&node->turn_lock);
    return !has_slot;
}
