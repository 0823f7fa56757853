/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "oracle.h"

#include <ucs/sys/sync/atomic.h>

#include <time.h>

/* One in so many cycles ... */
#define ORACLE_PLANT     64  /* plants a fault */
#define ORACLE_PAUSE     64  /* pauses, so that the helper comes to act */
#define ORACLE_ELSEWHERE 16  /* uses memory that is no slot */
#define ORACLE_COMMON    8   /* uses memory that others use as well */
#define ORACLE_ROW       8   /* registers neighbours, with --covers */
#define ORACLE_WALK      32  /* walks through an array, likewise */
#define ORACLE_TWIN      256 /* compares mappings with what they would be */

#define ORACLE_PAUSE_NS  300000

static void oracle_pause(oracle_worker_t *worker)
{
    struct timespec pause = {0, oracle_below(worker, ORACLE_PAUSE_NS)};

    nanosleep(&pause, NULL);
}

static void oracle_cycle(oracle_worker_t *worker)
{
    oracle_slot_t *slot = &worker->slots[oracle_below(worker, ORACLE_SLOTS)];
    size_t offset       = 0;
    size_t length       = slot->length;

    if (oracle_below(worker, ORACLE_ELSEWHERE) == 0) {
        oracle_elsewhere(worker);
        return;
    }

    if (worker->options->has_covers &&
        (oracle_below(worker, ORACLE_ROW) == 0)) {
        oracle_row(worker);
        return;
    }

    if (worker->options->has_covers &&
        (oracle_below(worker, ORACLE_WALK) == 0)) {
        oracle_walk(worker);
        return;
    }

    if ((oracle_below(worker, ORACLE_TWIN) == 0) && worker->options->has_rows) {
        oracle_twin(worker);
        return;
    }

    if (oracle_below(worker, ORACLE_COMMON) == 0) {
        oracle_common(worker);
        return;
    }

    if (oracle_below(worker, ORACLE_PLANT) == 0) {
        oracle_plant(worker, slot);
        return;
    }

    if (oracle_below(worker, 2)) {
        offset = oracle_below(worker, slot->length);
        length = 1 + oracle_below(worker, slot->length - offset);
    }
    oracle_use(worker, slot, slot->address + offset, length);

    if (oracle_below(worker, ORACLE_PAUSE) == 0) {
        oracle_pause(worker);
    }
    if (oracle_below(worker, 2)) {
        oracle_disturb(worker, slot);
    }
}

static int oracle_is_over(const oracle_worker_t *worker, uint64_t done)
{
    return (done >= worker->quota) ||
           ((worker->deadline > 0) && ((done & 63) == 0) &&
            (ucs_clock_monotonic() >= worker->deadline));
}

void *oracle_work(void *arg)
{
    oracle_worker_t *worker = arg;
    uint64_t done;
    unsigned i;

    for (i = 0; i < ORACLE_SLOTS; ++i) {
        oracle_slot_map(worker, &worker->slots[i]);
    }
    for (done = 0; !oracle_is_over(worker, done); ++done) {
        oracle_cycle(worker);
        ucs_store_relaxed(&worker->cycles, done + 1);
    }
    for (i = 0; i < ORACLE_SLOTS; ++i) {
        oracle_slot_unmap(&worker->slots[i]);
    }
    oracle_disturb_close(worker);
    return NULL;
}
