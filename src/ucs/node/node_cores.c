/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "node_int.h"

#include <ucs/sys/math.h>

/* A rank with a helper needs less memory because of it, and must not lose it to
 * one that needs a little more */
#define UCS_NODE_INCUMBENT 4 /* a quarter more */

/* Time over which waits for processors are counted, ns: some iterations of most
 * programs, and so little that a job's start is soon forgotten */
#define UCS_NODE_WAITS_NS 2e9

_Static_assert(sizeof(cpu_set_t) * 8 == UCS_LEDGER_CPUS,
               "a slot names the processors that a set holds");

void ucs_node_show(ucs_node_h node)
{
    ucs_ledger_slot_t *slot = &node->ledger->slots[node->slot];
    unsigned word;

    ucs_store_relaxed(&slot->listens, node->listeners > 0);
    ucs_store_relaxed(&slot->runs, !node->is_resting);
    ucs_store_relaxed(&slot->cores, node->params.cores);
    for (word = 0; word < UCS_LEDGER_WORDS; ++word) {
        ucs_store_relaxed(&slot->cpus[word], node->params.cpus.__bits[word]);
    }
}

static int ucs_node_is_rank(ucs_node_h node, unsigned i)
{
    return (i == (unsigned)node->slot) ||
           (ucs_load_relaxed(&node->ledger->owner[i]) != 0);
}

static uint64_t ucs_node_weight(ucs_node_h node, unsigned i)
{
    uint64_t demand = ucs_ledger_demand(node->ledger, i, node->params.ram);

    return ucs_load_relaxed(&node->ledger->slots[i].runs) ?
                   demand + demand / UCS_NODE_INCUMBENT :
                   demand;
}

/* Ties go to the lower slot */
static int ucs_node_is_ahead(ucs_node_h node, unsigned i)
{
    uint64_t weight = ucs_node_weight(node, i);
    uint64_t own    = ucs_node_weight(node, node->slot);

    return ucs_load_relaxed(&node->ledger->slots[i].listens) &&
           ((weight > own) || ((weight == own) && (i < (unsigned)node->slot)));
}

int ucs_node_find_core(ucs_node_h node, cpu_set_t *cpus)
{
    unsigned floating = 0;
    unsigned ahead    = 0;
    ucs_ledger_slot_t *slot;
    unsigned i, word, left, idle;

    for (i = 0; i < UCS_LEDGER_SLOTS; ++i) {
        slot = &node->ledger->slots[i];
        if (ucs_node_is_rank(node, i)) {
            floating += ucs_min(ucs_load_relaxed(&slot->cores),
                                UCS_LEDGER_CPUS);
            ahead    += ucs_node_is_ahead(node, i);
            for (word = 0; word < UCS_LEDGER_WORDS; ++word) {
                cpus->__bits[word] &= ~ucs_load_relaxed(&slot->cpus[word]);
            }
        }
    }

    left = CPU_COUNT(cpus);
    idle = left - ucs_min(left, floating);
    ucs_lock(&node->lock);
    node->figures.idle_cores = idle;
    ucs_unlock(&node->lock);
    return ahead < idle;
}

static unsigned ucs_node_ranks(ucs_node_h node)
{
    unsigned ranks = 0;
    unsigned i;

    for (i = 0; i < UCS_LEDGER_SLOTS; ++i) {
        ranks += ucs_node_is_rank(node, i);
    }
    return ranks;
}

double ucs_node_wanted(ucs_node_h node, uint64_t now, uint64_t waited_ns,
                       unsigned processors)
{
    double elapsed = (double)now - (double)node->waits_at;
    double waited  = (double)waited_ns - (double)node->waited_ns;
    double crowd   = ucs_max((double)ucs_node_ranks(node) / processors, 1);
    double wanted;

    if ((node->waits_at != 0) && (elapsed > 0)) {
        node->waits += (ucs_max(waited, 0) - elapsed * node->waits) /
                       (elapsed + UCS_NODE_WAITS_NS);
    }
    node->waits_at  = now;
    node->waited_ns = waited_ns;

    wanted          = ucs_min(node->waits * crowd, 1);

    ucs_lock(&node->lock);
    node->figures.wanted = wanted;
    ucs_unlock(&node->lock);
    return wanted;
}

void ucs_node_set_runs(ucs_node_h node, int runs)
{
    uint64_t now = node->params.now();

    ucs_lock(&node->lock);
    if (node->is_resting == !!runs) {
        if (runs) {
            node->figures.rest_ns += now - node->rested;
        } else {
            node->rested = now;
            ++node->figures.rests;
        }
        node->is_resting = !runs;
        ucs_node_show(node);
    }
    ucs_unlock(&node->lock);
}
