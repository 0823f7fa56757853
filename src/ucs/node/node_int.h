/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_NODE_NODE_INT_H_
#define UCS_NODE_NODE_INT_H_

#include "node.h"

#include <ucs/sys/sync/lock.h>

#include <pthread.h>

/*
 * Inside of a node, for node.c (claims), node_ask.c (asking and answering) and
 * node_cores.c (idle cores).
 */

/** Domains of one process. */
#define UCS_NODE_MEMBERS 64

typedef struct ucs_node_member {
    ucs_node_release_func_t release;
    void               *arg;
} ucs_node_member_t;

/**
 * Invariants:
 *
 *     pinned == sum(bytes of claims that were not given back)
 *     pinned + reserved == what the ledger shows as taken, @a ram at most
 *     pinned <= figures.peak_bytes, if a budget is set of which nothing is unseen:
 *     each change is looked at
 */
struct ucs_node {
    ucs_ledger_t         *ledger;
    int                  slot;
    uint64_t             owner;
    int                  key;                    /* of the segment */
    ucs_node_params_t    params;                 /* defaults filled in */

    /* A leaf, held for one look through the ledger; taken under a cache's lock.
     * Protects the following, of which the ledger has a copy that is not
     * trusted. */
    ucs_lock_t           lock;
    uint64_t             pinned;
    uint64_t             reserved;               /* of those that are asking */
    ucs_node_figures_t   figures;                /* but for @a given, below; of
                                                    rests that are over */
    uint64_t             looked;                 /* ns, when the peak was looked
                                                    at */
    uint64_t             demand[2];              /* most in the present second
                                                    and in the one before */
    uint64_t             second;
    unsigned             listeners;              /* helpers that answer */
    int                  is_resting;             /* the helper */
    uint64_t             rested;                 /* ns, when that began */
    uint64_t             waits_at;               /* ns, when that was counted; 0:
                                                    never */
    uint64_t             waited_ns;              /* likewise, for a processor */
    uint64_t             worked_ns, delayed_ns;  /* by the helper, for it */
    uint64_t             worked_at;              /* ns, when that was counted */
    unsigned             beside;                 /* slot of the rank whose waits
                                                    are looked at */
    double               waits;                  /* share of the latest time */
    double               any;                    /* ucs_node_waits() */
    int                  is_shared;              /* more ranks than processors */
    double               worked, delayed;        /* ns, of the latest work */

    /* Held across releases. Taken with nothing held. */
    pthread_mutex_t      members_lock;
    ucs_node_member_t    members[UCS_NODE_MEMBERS];
    unsigned             num_members;
    uint64_t             given;

    /* One helper serves at a time. Only tried, with no lock held */
    pthread_mutex_t      serve_lock;

    /* One thread asks at a time. Taken with no lock held. */
    pthread_mutex_t      ask_lock;
    uint64_t             buried;                 /* ns, when the dead were
                                                    looked for */
    uint64_t             deaf[UCS_LEDGER_SLOTS]; /* the answer at which it
                                                    stopped, plus one; 0: it
                                                    did not */

    /* One helper mends at a time; the leaf is taken under it */
    pthread_mutex_t      mend_lock;
    uint64_t             reaped;                 /* ns, when the dead were
                                                    looked for by mending */
};

/** Sums over the other ranks. */
typedef struct ucs_node_sum {
    uint64_t pinned; /**< bytes */
    uint64_t taken;  /**< pinned or about to be */
} ucs_node_sum_t;

/** Bytes by which @a length more, and all that is reserved, pass the budget, or a lower
 *  @a limit. Under the lock. */
uint64_t ucs_node_excess(ucs_node_h node, uint64_t length, uint64_t limit,
                         ucs_node_sum_t *others);

/** Change the reservation, before the sum is read. Under the lock. */
void ucs_node_reserve(ucs_node_h node, int64_t length);

/** Turn a reservation into a claim, if all fits. Under the lock. @return Zero
 *  if it stays reserved. */
int ucs_node_pin_reserved(ucs_node_h node, uint64_t length);

/** This rank's share, with a demand of @a mine bytes. */
uint64_t ucs_node_level(ucs_node_h node, uint64_t mine);

/** Write the helper's state and the application's processors into the ledger.
 *  Under the lock. */
void ucs_node_show(ucs_node_h node);

/** This rank's recent demand. Under the lock. */
void ucs_node_note_demand(ucs_node_h node, uint64_t bytes);

#endif
