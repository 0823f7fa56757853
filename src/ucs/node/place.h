/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_NODE_PLACE_H_
#define UCS_NODE_PLACE_H_

#include "ledger.h"

#include <sched.h>

/**
 * @file place.h
 *
 * Which ranks of a node have a helper, and on which core (Li et al. 2011,
 * section 5). Pure functions of the ranks' figures: every rank computes the
 * same result.
 */

BEGIN_C_DECLS

/** The ranks that have a helper when there are fewer idle cores than ranks. */
typedef enum ucs_place_policy {
    UCS_PLACE_POLICY_IDLE,         /**< all; they take only idle processor
                                        time */
    UCS_PLACE_POLICY_CONSERVATIVE, /**< one rank for each idle core: those that
                                        need the most memory */
    UCS_PLACE_POLICY_AGGRESSIVE,   /**< all; helpers share cores */
    UCS_PLACE_POLICY_LAST
} ucs_place_policy_t;

/** Names of the policies, in the order of the enumeration, NULL-terminated. */
extern const char *ucs_place_policy_names[];

/** Cost of a switch from one helper to another, nanoseconds; above what present
 *  processors take. */
#define UCS_PLACE_SWITCH_NS 5000

/** No particular processor. */
#define UCS_PLACE_ANY (-1)

/** A rank, as read from the ledger, with its figures bounded. */
typedef struct ucs_place_rank {
    uint64_t   demand; /**< bytes */
    unsigned   slot;
    unsigned   state;  /**< UCS_LEDGER_xx */
    unsigned   cores;  /**< that its application uses */
    int        cpu;    /**< of its helper, or UCS_PLACE_ANY */
    uint64_t   step_ns;
    cpu_set_t cpus;   /**< that its application is bound to */
} ucs_place_rank_t;

/** Why a helper runs, or why not. */
typedef enum ucs_place_why {
    UCS_PLACE_UNASKED, /**< not decided yet */
    UCS_PLACE_SPARE,   /**< runs: in idle processor time */
    UCS_PLACE_IDLE,    /**< runs: a core is idle */
    UCS_PLACE_ALL,     /**< runs: the policy lets all helpers */
    UCS_PLACE_NO_CORE  /**< rests: no core is idle */
} ucs_place_why_t;

/** Each of them in words, for the report. */
extern const char *ucs_place_reasons[];

/** Decision for a rank. */
typedef struct ucs_place {
    int             runs;       /**< its helper makes registrations */
    ucs_place_why_t why;
    int             cpu;        /**< its own core, or UCS_PLACE_ANY */
    uint64_t        shared_ns;  /**< until other helpers on that core have all
                                     had their turn: the paper's
                                     n * (t_slice + t_cs) */
    unsigned        idle_cores; /**< of the node */
    cpu_set_t       idle;       /**< processors that no rank is bound to */
} ucs_place_t;

/** The node's processors, as this process knows them. */
typedef struct ucs_place_topology {
    cpu_set_t allowed;                    /**< the helper may run on these */
    uint8_t   distances[UCS_LEDGER_CPUS]; /**< from the device, any unit; 0:
                                               near */
} ucs_place_topology_t;


/**
 * Decide for one rank.
 *
 * @param [in]  ranks     All of them.
 * @param [in]  self      Index of the rank.
 * @param [in]  topology  Of its helper.
 * @param [out] place     Always filled.
 */
void ucs_place_decide(const ucs_place_rank_t *ranks, unsigned count,
                      unsigned self, ucs_place_policy_t policy,
                      const ucs_place_topology_t *topology,
                      ucs_place_t *place);

END_C_DECLS

#endif
