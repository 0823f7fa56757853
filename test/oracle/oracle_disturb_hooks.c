/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE
#endif

#include "oracle_disturb.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * What UCX's hooks see
 */

static void oracle_munmap_same(oracle_worker_t *worker, oracle_slot_t *slot)
{
    char *address = slot->address;

    oracle_slot_unmap(slot);
    oracle_slot_reserve(slot, address);
    oracle_slot_place(slot, oracle_random_kind(worker));
}

static void oracle_munmap_other(oracle_worker_t *worker, oracle_slot_t *slot)
{
    oracle_slot_unmap(slot);
    oracle_slot_map(worker, slot);
}

static void oracle_munmap_part(oracle_worker_t *worker, oracle_slot_t *slot)
{
    char *address, *end;
    size_t length;

    address = oracle_part(worker, slot, &length);
    end     = slot->address + slot->length + oracle_page;
    munmap(address, length);
    length = (length + oracle_page - 1) & ~(oracle_page - 1);
    if (mmap(address, length, ORACLE_PROT,
             ORACLE_ANON_FLAGS | MAP_FIXED_NOREPLACE, -1, 0) != MAP_FAILED) {
        return;
    }

    /* Another thread was faster: the hole is its now */
    munmap(slot->address, address - slot->address);
    munmap(address + length, end - (address + length));
    oracle_slot_close(slot);
    oracle_slot_map(worker, slot);
}

static void oracle_map_fixed(oracle_worker_t *worker, oracle_slot_t *slot)
{
    size_t length;
    char *address = oracle_part(worker, slot, &length);

    if (mmap(address, length, ORACLE_PROT, ORACLE_ANON_FLAGS | MAP_FIXED, -1,
             0) == MAP_FAILED) {
        oracle_die("mmap");
    }
}

static void oracle_replace(oracle_worker_t *worker, oracle_slot_t *slot)
{
    oracle_slot_place(slot, oracle_random_kind(worker));
}

static void oracle_advise(oracle_worker_t *worker, oracle_slot_t *slot,
                          int advice)
{
    size_t length;
    char *address = oracle_part(worker, slot, &length);

    madvise(address, length, advice);
}

static void oracle_dontneed(oracle_worker_t *worker, oracle_slot_t *slot)
{
    oracle_advise(worker, slot, MADV_DONTNEED);
}

static void oracle_free(oracle_worker_t *worker, oracle_slot_t *slot)
{
    oracle_advise(worker, slot, MADV_FREE);
}

static void oracle_remove(oracle_worker_t *worker, oracle_slot_t *slot)
{
    oracle_advise(worker, slot, MADV_REMOVE);
}

static void oracle_pageout(oracle_worker_t *worker, oracle_slot_t *slot)
{
    oracle_advise(worker, slot, MADV_PAGEOUT);
}

static void oracle_protect(oracle_worker_t *worker, oracle_slot_t *slot)
{
    (void)worker;
    mprotect(slot->address, slot->length, PROT_NONE);
    mprotect(slot->address, slot->length, ORACLE_PROT);
}

/* The page behind the slot is taken, so growing moves the pages. They go on
 * under their new address; the old one gets others. */
static void oracle_mremap_away(oracle_worker_t *worker, oracle_slot_t *slot)
{
    char *old = slot->address;
    void *address;

    address = mremap(old, slot->length, slot->length + oracle_page,
                     MREMAP_MAYMOVE);
    if (address == MAP_FAILED) {
        /* Earlier disturbances have left several mappings here */
        oracle_munmap_same(worker, slot);
        return;
    }
    munmap(address, slot->length + oracle_page);
    munmap(old + slot->length, oracle_page);
    oracle_slot_reserve(slot, old);
    oracle_slot_place(slot, oracle_random_kind(worker));
}

static int oracle_shm_create(size_t length)
{
    int id = shmget(IPC_PRIVATE, length, IPC_CREAT | 0600);

    if (id < 0) {
        oracle_die("shmget");
    }
    return id;
}

static void oracle_shmat_remap(oracle_worker_t *worker, oracle_slot_t *slot)
{
    int id = oracle_shm_create(slot->length);
    void *address;

    (void)worker;
    address = shmat(id, slot->address, SHM_REMAP);
    shmctl(id, IPC_RMID, NULL);
    if (address == (void*)-1) {
        oracle_die("shmat");
    }
    oracle_slot_close(slot);
    slot->kind = ORACLE_SHM;
}

static void oracle_shmdt(oracle_worker_t *worker, oracle_slot_t *slot)
{
    char *old = slot->address;

    shmdt(old);
    munmap(old + slot->length, oracle_page);
    oracle_slot_reserve(slot, old);
    oracle_slot_place(slot, oracle_random_kind(worker));
}

/* The child of a vfork() has its parent's memory */
static void oracle_vfork_munmap(oracle_worker_t *worker, oracle_slot_t *slot)
{
    char *old = slot->address;
    pid_t pid;

    pid = vfork();
    if (pid == 0) {
        munmap(old, slot->length + oracle_page);
        _exit(0);
    }
    if (pid < 0) {
        return;
    }
    while ((waitpid(pid, NULL, 0) < 0) && (errno == EINTR)) {
    }
    oracle_slot_reserve(slot, old);
    oracle_slot_place(slot, oracle_random_kind(worker));
}

static const oracle_disturbance_t oracle_hooks[] = {
    {"munmap_same", ORACLE_ALL_KINDS, 60, oracle_munmap_same},
    {"munmap_other", ORACLE_ALL_KINDS, 10, oracle_munmap_other},
    {"munmap_part", ORACLE_BIT(ORACLE_ANON), 60, oracle_munmap_part},
    {"map_fixed", ORACLE_BIT(ORACLE_ANON), 60, oracle_map_fixed},
    {"replace", ORACLE_ALL_KINDS, 40, oracle_replace},
    {"dontneed", ORACLE_ALL_KINDS, 60, oracle_dontneed},
    {"free", ORACLE_BIT(ORACLE_ANON), 20, oracle_free},
    {"remove", ORACLE_BIT(ORACLE_SHARED), 60, oracle_remove},
    {"pageout", ORACLE_ALL_KINDS, 4, oracle_pageout},
    {"protect", ORACLE_ALL_KINDS, 10, oracle_protect},
    {"mremap_away", ORACLE_BIT(ORACLE_ANON), 20, oracle_mremap_away},
    {"shmat_remap", ORACLE_ALL_KINDS | ORACLE_PINS_FILE, 4, oracle_shmat_remap},
    {"shmdt", ORACLE_BIT(ORACLE_SHM), 60, oracle_shmdt},
    {"vfork_munmap", ORACLE_ALL_KINDS, 1, oracle_vfork_munmap}
};

const oracle_disturbances_t oracle_disturbances_hooks = {
    .table   = oracle_hooks,
    .count   = sizeof(oracle_hooks) / sizeof(oracle_hooks[0]),
    .seen_by = ORACLE_SEEN_BY_HOOKS
};
