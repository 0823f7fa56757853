/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "oracle.h"

/*
 * Buffers that all workers use, several at once: they join each other's
 * registrations and wait for them, and one takes away what the others have
 * registered. As in a correct program nobody does so during a use, and what is
 * compared nobody else writes meanwhile.
 */

void oracle_common_open(oracle_worker_t *worker)
{
    pthread_rwlockattr_t attr;
    oracle_common_t *common;
    unsigned i;

    pthread_rwlockattr_init(&attr);
    pthread_rwlockattr_setkind_np(
            &attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    for (i = 0; i < ORACLE_COMMONS; ++i) {
        common = &worker->world->commons[i];
        pthread_rwlock_init(&common->lock, &attr);
        pthread_mutex_init(&common->content, NULL);
        oracle_slot_map(worker, &common->slot);
    }
    pthread_rwlockattr_destroy(&attr);
}

void oracle_common_close(oracle_world_t *world)
{
    unsigned i;

    for (i = 0; i < ORACLE_COMMONS; ++i) {
        oracle_slot_unmap(&world->commons[i].slot);
        pthread_mutex_destroy(&world->commons[i].content);
        pthread_rwlock_destroy(&world->commons[i].lock);
    }
}

static void oracle_common_use(oracle_worker_t *worker, oracle_common_t *common)
{
    oracle_slot_t *slot = &common->slot;
    size_t offset       = 0;
    size_t length;
    uct_mem_h memh;

    pthread_rwlock_rdlock(&common->lock);
    length = slot->length;
    if (oracle_below(worker, 4) == 0) {
        offset = oracle_below(worker, slot->length);
        length = 1 + oracle_below(worker, slot->length - offset);
    }
    memh = oracle_get(worker->world, slot->address + offset, length);

    pthread_mutex_lock(&common->content);
    oracle_fill(worker, slot->address, slot->length);
    oracle_check(worker, slot, memh, slot->address + offset, length);
    pthread_mutex_unlock(&common->content);

    oracle_put(worker->world, memh);
    pthread_rwlock_unlock(&common->lock);
}

void oracle_common(oracle_worker_t *worker)
{
    oracle_common_t *common =
            &worker->world->commons[oracle_below(worker, ORACLE_COMMONS)];

    oracle_common_use(worker, common);
    if (oracle_below(worker, 4) == 0) {
        pthread_rwlock_wrlock(&common->lock);
        oracle_disturb(worker, &common->slot);
        pthread_rwlock_unlock(&common->lock);
    }
}
