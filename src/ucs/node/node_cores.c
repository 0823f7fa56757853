/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "node_int.h"

#include <ucs/sys/math.h>

_Static_assert(sizeof(cpu_set_t) * 8 == UCS_LEDGER_CPUS,
               "a slot names the processors that a set holds");


void ucs_node_show(ucs_node_h node)
{
    ucs_ledger_slot_t *slot = &node->ledger->slots[node->slot];
    unsigned word;

    ucs_store_relaxed(&slot->listens, node->listeners > 0);
    ucs_store_relaxed(&slot->cores, node->cores);
    for (word = 0; word < UCS_LEDGER_WORDS; ++word) {
        ucs_store_relaxed(&slot->cpus[word], node->cpus.__bits[word]);
    }
}

/* Take away the processors that a rank is bound to */
static void ucs_node_take_cpus(ucs_ledger_slot_t *slot, cpu_set_t *cpus)
{
    unsigned word;

    for (word = 0; word < UCS_LEDGER_WORDS; ++word) {
        cpus->__bits[word] &= ~ucs_load_relaxed(&slot->cpus[word]);
    }
}

void ucs_node_find_cores(ucs_node_h node, cpu_set_t *cpus)
{
    unsigned floating = 0;
    ucs_ledger_slot_t *slot;
    unsigned i, left;

    for (i = 0; i < UCS_LEDGER_SLOTS; ++i) {
        slot = &node->ledger->slots[i];
        if ((i == (unsigned)node->slot) ||
            (ucs_load_relaxed(&node->ledger->owner[i]) != 0)) {
            floating += ucs_min(ucs_load_relaxed(&slot->cores),
                                UCS_LEDGER_CPUS);
            ucs_node_take_cpus(slot, cpus);
        }
    }

    left = CPU_COUNT(cpus);
    ucs_lock(&node->lock);
    node->idle_cores = left - ucs_min(left, floating);
    ucs_unlock(&node->lock);
}
