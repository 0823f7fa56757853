/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "oracle_slot.h"

#include <sys/mman.h>
#include <unistd.h>

void oracle_slot_close(oracle_slot_t *slot)
{
    if (slot->fd >= 0) {
        close(slot->fd);
        slot->fd = -1;
    }
}

/* The address range is the slot's already, so nothing else can come to lie
 * there */
void oracle_slot_place(oracle_slot_t *slot, oracle_kind_t kind)
{
    int flags = ORACLE_ANON_FLAGS;

    oracle_slot_close(slot);
    slot->kind = kind;
    if (kind == ORACLE_SHARED) {
        flags    = MAP_SHARED;
        slot->fd = memfd_create("oracle", MFD_CLOEXEC);
        if ((slot->fd < 0) || (ftruncate(slot->fd, slot->length) != 0)) {
            oracle_die("memfd_create");
        }
    }
    if (mmap(slot->address, slot->length, ORACLE_PROT, flags | MAP_FIXED,
             slot->fd, 0) == MAP_FAILED) {
        oracle_die("mmap");
    }
}

void oracle_slot_reserve(oracle_slot_t *slot, void *where)
{
    void *address = MAP_FAILED;

    if (where != NULL) {
        address = mmap(where, slot->length + oracle_page, PROT_NONE,
                       ORACLE_ANON_FLAGS | MAP_FIXED_NOREPLACE, -1, 0);
    }
    if (address == MAP_FAILED) {
        address = mmap(NULL, slot->length + oracle_page, PROT_NONE,
                       ORACLE_ANON_FLAGS, -1, 0);
    }
    if (address == MAP_FAILED) {
        oracle_die("mmap");
    }
    slot->address = address;
}

oracle_kind_t oracle_random_kind(oracle_worker_t *worker)
{
    return (oracle_below(worker, 4) == 0) ? ORACLE_SHARED : ORACLE_ANON;
}

void oracle_slot_map(oracle_worker_t *worker, oracle_slot_t *slot)
{
    slot->fd     = -1;
    /* Mostly small, for a cycle costs by the page */
    slot->length = (1 + oracle_below(worker, 1 + oracle_below(worker,
                                             ORACLE_MAX_PAGES))) * oracle_page;
    oracle_slot_reserve(slot, NULL);
    oracle_slot_place(slot, oracle_random_kind(worker));
}

void oracle_slot_unmap(oracle_slot_t *slot)
{
    munmap(slot->address, slot->length + oracle_page);
    oracle_slot_close(slot);
    slot->address = NULL;
}

char *oracle_part(oracle_worker_t *worker, const oracle_slot_t *slot,
                  size_t *length_p)
{
    size_t pages  = slot->length / oracle_page;
    size_t first  = oracle_below(worker, pages);
    size_t length = (1 + oracle_below(worker, pages - first)) * oracle_page;

    *length_p = length - (oracle_below(worker, 2) *
                          oracle_below(worker, oracle_page));
    return slot->address + (first * oracle_page);
}
