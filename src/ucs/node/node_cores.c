/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "node_int.h"

#include <ucs/sys/math.h>

/* A rank with a helper needs less memory because of it, and must not lose it to
 * one that needs a little more */
#define UCS_NODE_INCUMBENT 4 /* a quarter more */

/* Time over which waits for processors are counted, ns: some iterations of most
 * programs, and so little that a job's start is soon forgotten */
#define UCS_NODE_WAITS_NS 2e9

/* The helper's work over which it is counted how much of it ranks waited for, ns: some
 * seconds of most jobs. At half of this a chance wait is forgotten sooner and half as
 * much of the work may be waited for unseen */
#define UCS_NODE_WORK_NS   2e8

/* Time over which that is forgotten, ns. A helper that does not work learns nothing, so
 * it has to try again. Half of this: it tries twice as often on busy cores, where that
 * costs UCS_NODE_CHANCE_NS each time. */
#define UCS_NODE_FORGET_NS 3e10

/* What ranks may have waited by chance, ns: the longest time slice that went to another
 * thread. One such wait in a job's first work is no reason to stop. At half of this it
 * is, at twice this busy cores are seen later. */
#define UCS_NODE_CHANCE_NS 5e6

/* Before so much of it was done, what ranks wait at any time counts more, ns: some
 * registrations of small buffers */
#define UCS_NODE_TRIED_NS  1e6

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

/* What is told grows from zero again where it was not known for a while */
static double ucs_node_more(uint64_t before, uint64_t now)
{
    return (now > before) ? (double)(now - before) : 0;
}

double ucs_node_waits(ucs_node_h node, uint64_t now, uint64_t waited_ns,
                      unsigned processors)
{
    double crowd   = ucs_max((double)ucs_node_ranks(node) / processors, 1);
    double elapsed = ucs_node_more(node->waits_at, now);

    if (node->waits_at != 0) {
        node->waits += (ucs_node_more(node->waited_ns, waited_ns) -
                        elapsed * node->waits) /
                       (elapsed + UCS_NODE_WAITS_NS);
    }
    node->waits_at  = now;
    node->waited_ns = waited_ns;
    node->any       = ucs_min(node->waits * crowd, 1);
    node->is_shared = (crowd > 1);
    return node->any;
}

double ucs_node_wanted(ucs_node_h node, uint64_t now, uint64_t worked_ns,
                       uint64_t delayed_ns)
{
    double worked = ucs_node_more(node->worked_ns, worked_ns);
    double keep   = UCS_NODE_WORK_NS / (UCS_NODE_WORK_NS + worked) *
                    UCS_NODE_FORGET_NS /
                    (UCS_NODE_FORGET_NS + ucs_node_more(node->worked_at, now));
    double wanted;

    node->worked     = node->worked * keep + worked;
    node->delayed    = node->delayed * keep +
                       ucs_node_more(node->delayed_ns, delayed_ns);
    node->worked_at  = now;
    node->worked_ns  = worked_ns;
    node->delayed_ns = delayed_ns;
    wanted           = (ucs_max(node->delayed - UCS_NODE_CHANCE_NS, 0) +
                        node->any * UCS_NODE_TRIED_NS) /
                       (node->worked + UCS_NODE_TRIED_NS);
    wanted           = ucs_min(wanted, node->is_shared ? node->any : 1);

    ucs_lock(&node->lock);
    node->figures.wanted = wanted;
    ucs_unlock(&node->lock);
    return wanted;
}

pid_t ucs_node_beside(ucs_node_h node, unsigned processors, unsigned *others)
{
    unsigned i = node->beside;

    *others = ucs_node_ranks(node) - 1;
    if (*others < processors) {
        return 0;
    }
    do {
        i = (i + 1) % UCS_LEDGER_SLOTS;
    } while ((i != node->beside) &&
             ((i == (unsigned)node->slot) || !ucs_node_is_rank(node, i)));
    node->beside = i;
    return ucs_ledger_pid(ucs_load_relaxed(&node->ledger->owner[i]));
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
