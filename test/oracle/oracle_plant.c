/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "oracle.h"

/* @a memh has lost its pages; the comparison has to tell */
static void oracle_expect(oracle_worker_t *worker, oracle_slot_t *slot,
                          uct_mem_h memh)
{
    uct_pin_difference_t difference;

    oracle_fill(worker, slot->address, slot->length);
    ++worker->planted;
    if (uct_pin_md_compare(oracle_md(worker->world), memh, &difference)) {
        ++worker->found;
    } else {
        oracle_print(worker, slot, memh, "planted, not found");
    }
}

/* Behind the helper's back altogether */
static void oracle_plant_lower(oracle_worker_t *worker, oracle_slot_t *slot)
{
    uct_mem_h memh = oracle_lower_get(worker->world, slot->address,
                                      slot->length);

    oracle_disturb_unseen(worker, slot);
    oracle_expect(worker, slot, memh);
    oracle_lower_put(worker->world, memh);
}

/* Where the disturbance is unseen indeed the helper hands out the registration
 * that it has; a use in between keeps the policy from dropping it */
static void oracle_plant_hit(oracle_worker_t *worker, oracle_slot_t *slot,
                             int is_in_use)
{
    uct_mem_h memh  = oracle_get(worker->world, slot->address, slot->length);
    uint64_t serial = uct_pin_md_serial(memh);
    uct_mem_h again;

    if (!is_in_use) {
        oracle_put(worker->world, memh);
    }
    oracle_disturb_unseen(worker, slot);
    again = oracle_get(worker->world, slot->address, slot->length);
    if (uct_pin_md_serial(again) == serial) {
        oracle_expect(worker, slot, again);
    }
    oracle_put(worker->world, again);
    if (is_in_use) {
        oracle_put(worker->world, memh);
    }
}

void oracle_plant(oracle_worker_t *worker, oracle_slot_t *slot)
{
    oracle_fill(worker, slot->address, slot->length);
    switch (oracle_below(worker, 3)) {
    case 0:
        oracle_plant_lower(worker, slot);
        break;
    case 1:
        oracle_plant_hit(worker, slot, 1);
        break;
    default:
        oracle_plant_hit(worker, slot, 0);
        break;
    }

    /* Now everybody may know */
    oracle_slot_unmap(slot);
    oracle_slot_map(worker, slot);
}
