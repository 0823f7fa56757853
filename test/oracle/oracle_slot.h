/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef TEST_ORACLE_SLOT_H_
#define TEST_ORACLE_SLOT_H_

#include "oracle.h"

/**
 * @file oracle_slot.h
 *
 * What disturbances are made of. All die if the kernel says no.
 */

#define ORACLE_PROT       (PROT_READ | PROT_WRITE)
#define ORACLE_ANON_FLAGS (MAP_PRIVATE | MAP_ANONYMOUS)

/** Close the file behind a slot, if there is one. */
void oracle_slot_close(oracle_slot_t *slot);

/** Fill the slot's address range, which is reserved, with memory of a kind. */
void oracle_slot_place(oracle_slot_t *slot, oracle_kind_t kind);

/** Room for the slot and a page without access, which makes a growing mremap()
 *  move; at @a where if that is not NULL and still free. */
void oracle_slot_reserve(oracle_slot_t *slot, void *where);

oracle_kind_t oracle_random_kind(oracle_worker_t *worker);

/** @return A random part of the slot: a page boundary.
 *  @param length_p  Need not be whole pages, as the kernel rounds it up. */
char *oracle_part(oracle_worker_t *worker, const oracle_slot_t *slot,
                  size_t *length_p);

#endif
