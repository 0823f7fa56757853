/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef TEST_ORACLE_DISTURB_H_
#define TEST_ORACLE_DISTURB_H_

#include "oracle.h"

/**
 * @file oracle_disturb.h
 *
 * What disturbances are made of. Nobody but their files includes it.
 */

#define ORACLE_PROT       (PROT_READ | PROT_WRITE)
#define ORACLE_ANON_FLAGS (MAP_PRIVATE | MAP_ANONYMOUS)
#define ORACLE_BIT(_kind) (1u << (_kind))
#define ORACLE_ALL_KINDS  (ORACLE_BIT(ORACLE_KIND_LAST) - 1)

/** Pages of a file have to be pinned afterwards, which not every kernel
 *  does. */
#define ORACLE_PINS_FILE ORACLE_BIT(ORACLE_KIND_LAST)

/** Who sees disturbances that the hooks of UCX 1.13 do not. */
enum {
    ORACLE_SEEN_BY_HOOKS,
    ORACLE_SEEN_BY_KERNEL,
    ORACLE_SEEN_BY_STUB
};

/** One way to take pages away from under a registration. */
typedef struct oracle_disturbance {
    const char *name;
    unsigned   kinds;  /* of oracle_kind_t, bits, and ORACLE_PINS_FILE */
    unsigned   weight; /* how often, beside the others */
    void       (*run)(oracle_worker_t *worker, oracle_slot_t *slot);
} oracle_disturbance_t;

/** Those that the same one sees. */
typedef struct oracle_disturbances {
    const oracle_disturbance_t *table;
    unsigned                   count;
    int                        seen_by; /* ORACLE_SEEN_BY_xx */
} oracle_disturbances_t;


/* --- oracle_disturb_hooks.c --- */

extern const oracle_disturbances_t oracle_disturbances_hooks;

/* --- oracle_disturb_kernel.c --- */

extern const oracle_disturbances_t oracle_disturbances_kernel;

/* --- oracle_slot.c: all die if the kernel says no --- */

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
