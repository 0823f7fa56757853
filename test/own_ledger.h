/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef OWN_LEDGER_H_
#define OWN_LEDGER_H_

#include <ucs/node/node.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/shm.h>
#include <unistd.h>

/**
 * @file own_ledger.h
 *
 * A node ledger of the test's own, so that no job that runs beside decides it.
 */

/** Remove a segment for processes that come later; those that have it attached keep it.
 *  @return Zero if there is none. */
static inline int ucs_ledger_remove(const char *name)
{
    int id = shmget(ucs_ledger_key(name), 0, 0);

    return (id >= 0) && (shmctl(id, IPC_RMID, NULL) == 0);
}

/** Take one, for this process and its children. */
static inline void own_ledger_take(const char *test)
{
    char suffix[64];

    snprintf(suffix, sizeof(suffix), "%s-%d", test, (int)getpid());
    setenv(UCS_NODE_SUFFIX_ENV, suffix, 1);
}

/** Its name, in memory of the function's own. */
static inline const char *own_ledger_name(void)
{
    static char name[128];

    ucs_ledger_name(getenv(UCS_NODE_SUFFIX_ENV), name, sizeof(name));
    return name;
}

static inline int own_ledger_slot_is_valid(ucs_ledger_t *ledger, unsigned i,
                                           uint64_t limit)
{
    ucs_ledger_slot_t *slot = &ledger->slots[i];
    uint64_t owner          = ucs_load_relaxed(&ledger->owner[i]);
    /* A bell that was answered is seen as it was then, or later */
    uint32_t answer         = ucs_load_acquire(&slot->answer);

    return (owner == 0) ||
           ((ucs_ledger_pid(owner) > 0) &&
            ((int32_t)(answer - ucs_load_relaxed(&slot->bell)) <= 0) &&
            (ucs_load_relaxed(&slot->listens) <= 1) &&
            (ucs_load_relaxed(&slot->runs) <= 1) &&
            (ucs_load_relaxed(&slot->cores) <= UCS_LEDGER_CPUS) &&
            (ucs_load_relaxed(&ledger->taken[i]) % UCS_LEDGER_RISE <= limit));
}

/** Does each word hold a value that a rank may write there? True at any moment,
 *  unless a process wrote another's words. @param [in] limit  Bytes that a
 *  process can pin at most. */
static inline int ledger_is_valid(ucs_ledger_t *ledger, uint64_t limit)
{
    int is_valid = (ucs_load_relaxed(&ledger->stamp) == UCS_LEDGER_STAMP) &&
                   (ucs_load_relaxed(&ledger->name) != 0) &&
                   (ucs_load_relaxed(&ledger->spaces) != 0);
    unsigned i;

    for (i = 0; i < UCS_LEDGER_SLOTS; ++i) {
        is_valid = is_valid && own_ledger_slot_is_valid(ledger, i, limit);
    }
    return is_valid;
}

/** Do the equations hold that are true while no rank claims, releases or
 *  asks? */
static inline int ledger_is_settled(ucs_ledger_t *ledger)
{
    int is_settled = 1;
    ucs_ledger_slot_t *slot;
    unsigned i;

    for (i = 0; i < UCS_LEDGER_SLOTS; ++i) {
        slot = &ledger->slots[i];
        if (ucs_load_relaxed(&ledger->owner[i]) == 0) {
            continue;
        }
        is_settled = is_settled &&
                     (ucs_load_relaxed(&ledger->pinned[i]) ==
                      ucs_load_relaxed(&ledger->taken[i]) % UCS_LEDGER_RISE) &&
                     (!ucs_load_relaxed(&slot->listens) ||
                      (ucs_load_relaxed(&slot->answer) ==
                       ucs_load_relaxed(&slot->bell)));
    }
    return is_settled;
}

/** @return Nonzero if it is as ledger.h says, at a quiet moment. */
static inline int own_ledger_is_valid(void)
{
    ucs_ledger_t *ledger;
    char error[256];
    int is_valid;

    if (ucs_ledger_open(own_ledger_name(), &ledger, error, sizeof(error)) !=
        UCS_OK) {
        return 0;
    }
    is_valid = ledger_is_valid(ledger, UCS_LEDGER_RISE - 1) &&
               ledger_is_settled(ledger);
    ucs_ledger_close(ledger);
    return is_valid;
}

/** Remove it; by the process that took it, at its end. */
static inline void own_ledger_remove(void)
{
    static const char *const devices[] = {"oracle", "pin", "software-nic"};
    char name[128];
    unsigned i;

    for (i = 0; i < sizeof(devices) / sizeof(devices[0]); ++i) {
        snprintf(name, sizeof(name), "%s", own_ledger_name());
        ucs_ledger_name_device(devices[i], name, sizeof(name));
        (void)ucs_ledger_remove(name);
    }
    (void)ucs_ledger_remove(own_ledger_name());
}

#endif
