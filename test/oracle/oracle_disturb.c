/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE
#endif

#include "oracle_disturb.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_GUARD_INSTALL
#  define MADV_GUARD_INSTALL 102
#  define MADV_GUARD_REMOVE  103
#endif

/*
 * What the stub sees
 */

/* New pages when the guard goes. While it is there the range must be refused:
 * a registration of it would be one of before. */
static void oracle_guard(oracle_worker_t *worker, oracle_slot_t *slot)
{
    size_t length;
    char *address = oracle_part(worker, slot, &length);

    if (madvise(address, length, MADV_GUARD_INSTALL) != 0) {
        return; /* an older kernel */
    }
    if ((oracle_below(worker, 4) == 0) &&
        !oracle_is_refused(worker->world, slot->address, slot->length)) {
        errno = 0;
        oracle_die("a guarded range was registered");
    }
    if (madvise(address, length, MADV_GUARD_REMOVE) != 0) {
        oracle_die("madvise");
    }
}

static const oracle_disturbance_t oracle_stub[] = {
    {"guard", ORACLE_BIT(ORACLE_ANON), 40, oracle_guard}
};

static const oracle_disturbances_t oracle_disturbances_stub = {
    .table   = oracle_stub,
    .count   = sizeof(oracle_stub) / sizeof(oracle_stub[0]),
    .seen_by = ORACLE_SEEN_BY_STUB
};

/*
 * Which one
 */

static const oracle_disturbances_t *const oracle_groups[] = {
    &oracle_disturbances_hooks, &oracle_disturbances_kernel,
    &oracle_disturbances_stub
};

#define ORACLE_NUM_GROUPS (sizeof(oracle_groups) / sizeof(oracle_groups[0]))

/* 0 if a disturbance does not go with this slot */
static unsigned oracle_weight(const oracle_worker_t *worker,
                              const oracle_slot_t *slot, int seen_by,
                              const oracle_disturbance_t *it)
{
    return (!(it->kinds & ORACLE_BIT(slot->kind)) ||
            ((seen_by == ORACLE_SEEN_BY_KERNEL) &&
             worker->options->hooks_only) ||
            ((seen_by == ORACLE_SEEN_BY_STUB) && !worker->options->has_stub) ||
            ((it->kinds & ORACLE_PINS_FILE) &&
             !worker->options->takes_files)) ?
           0 : it->weight;
}

static unsigned oracle_group_weight(const oracle_worker_t *worker,
                                    const oracle_slot_t *slot,
                                    const oracle_disturbances_t *group)
{
    unsigned total = 0;
    unsigned i;

    for (i = 0; i < group->count; ++i) {
        total += oracle_weight(worker, slot, group->seen_by, &group->table[i]);
    }
    return total;
}

static const oracle_disturbance_t *oracle_pick(oracle_worker_t *worker,
                                               const oracle_slot_t *slot)
{
    const oracle_disturbances_t *const *group = oracle_groups;
    const oracle_disturbance_t *it;
    unsigned total = 0;
    unsigned pick, i;

    for (i = 0; i < ORACLE_NUM_GROUPS; ++i) {
        total += oracle_group_weight(worker, slot, oracle_groups[i]);
    }

    pick = oracle_below(worker, total);
    for (; pick >= oracle_group_weight(worker, slot, *group); ++group) {
        pick -= oracle_group_weight(worker, slot, *group);
    }
    it = (*group)->table;
    for (; pick >= oracle_weight(worker, slot, (*group)->seen_by, it); ++it) {
        pick -= oracle_weight(worker, slot, (*group)->seen_by, it);
    }
    return it;
}

void oracle_disturb(oracle_worker_t *worker, oracle_slot_t *slot)
{
    const oracle_disturbance_t *it = oracle_pick(worker, slot);

    memmove(&slot->history[1], &slot->history[0],
            sizeof(slot->history) - sizeof(slot->history[0]));
    slot->history[0] = it->name;
    it->run(worker, slot);
}

/* By a raw system call, which nobody tells of. @return Zero if the kernel has
 * no guard pages. */
static int oracle_guard_unseen(oracle_slot_t *slot)
{
    if (syscall(SYS_madvise, slot->address, slot->length,
                MADV_GUARD_INSTALL) != 0) {
        return 0;
    }
    if (syscall(SYS_madvise, slot->address, slot->length,
                MADV_GUARD_REMOVE) != 0) {
        oracle_die("madvise");
    }
    return 1;
}

void oracle_disturb_unseen(oracle_worker_t *worker, oracle_slot_t *slot)
{
    if ((slot->kind == ORACLE_ANON) && oracle_below(worker, 2) &&
        oracle_guard_unseen(slot)) {
        return;
    }
    /* A private copy instead of what is there, whatever that is */
    if (syscall(SYS_mmap, slot->address, slot->length, ORACLE_PROT,
                ORACLE_ANON_FLAGS | MAP_FIXED, -1, 0L) < 0) {
        oracle_die("mmap");
    }
    oracle_slot_close(slot);
    slot->kind = ORACLE_ANON;
}
