/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_NODE_PLACE_H_
#define UCT_HELPER_NODE_PLACE_H_

#include "busy.h"
#include "ledger.h"

/**
 * @file place.h
 *
 * Which ranks of a node have a helper, and on which core (Li et al. 2011,
 * section 5). Pure functions of what the ranks say of themselves: all of them
 * compute the same, so nobody has to decide for the others.
 */

BEGIN_C_DECLS

/** Who may have a helper when there are fewer idle cores than ranks. */
typedef enum uct_helper_cpu_policy {
    UCT_HELPER_CPU_POLICY_AUTO,         /**< as conservative, and all others
                                             whose helper hardly runs */
    UCT_HELPER_CPU_POLICY_CONSERVATIVE, /**< one rank for each idle core: those
                                             that need the most memory */
    UCT_HELPER_CPU_POLICY_AGGRESSIVE,   /**< all; helpers share cores */
    UCT_HELPER_CPU_POLICY_LAST
} uct_helper_cpu_policy_t;

/** Names of the policies, in the order of the enumeration, NULL-terminated. */
extern const char *uct_helper_cpu_policy_names[];

/** What a helper may take of a core under auto where none is idle,
 *  millionths. */
#define UCT_HELPER_PLACE_LOAD_MAX 100000

/** What the ranks want beyond the processors that there are before helpers rest
 *  for it, millionths of a core. Half a core: so it is as with whole ranks, one
 *  that spins is too many, and what is left of a rank that mostly sleeps, or of
 *  the helpers themselves, is none. */
#define UCT_HELPER_PLACE_CROWD (UCT_HELPER_BUSY_CORE / 2)

/** A rank that wants less than this is stopped, asleep or at its end, and is
 *  as if it were not there, millionths of a core. The turns of a helper and a
 *  timer of an MPI library take less. */
#define UCT_HELPER_PLACE_ABSENT (UCT_HELPER_BUSY_CORE / 100)

/** Cost of a switch from one helper to another, nanoseconds; on the dear side
 *  of what is measured on present processors. */
#define UCT_HELPER_PLACE_SWITCH_NS 5000

/** Nowhere in particular. */
#define UCT_HELPER_PLACE_ANY (-1)

typedef struct uct_helper_cpus {
    uint64_t bits[UCT_HELPER_LEDGER_WORDS];
} uct_helper_cpus_t;

/** A rank, as read from the ledger, with its figures bounded. */
typedef struct uct_helper_rank {
    uint64_t          demand;   /**< bytes */
    unsigned          slot;
    unsigned          state;    /**< UCT_HELPER_LEDGER_xx */
    unsigned          cores;    /**< that its application uses */
    uint64_t          wants;    /**< as by @ref uct_helper_busy_wants */
    int               cpu;      /**< of its helper, or UCT_HELPER_PLACE_ANY */
    uint64_t          step_ns;
    unsigned          load;     /**< millionths of a core */
    uct_helper_cpus_t cpus;     /**< that its application is bound to */
} uct_helper_rank_t;

/** Why a helper runs, or why not. */
typedef enum uct_helper_place_why {
    UCT_HELPER_PLACE_UNASKED,  /**< nothing had to be decided yet */
    UCT_HELPER_PLACE_IDLE,     /**< runs: a core is idle */
    UCT_HELPER_PLACE_LIGHT,    /**< runs: it takes little */
    UCT_HELPER_PLACE_ALL,      /**< runs: the policy lets all of them */
    UCT_HELPER_PLACE_NO_CORE,  /**< rests: no core is idle */
    UCT_HELPER_PLACE_HEAVY,    /**< rests: it took much, and no core is idle */
    UCT_HELPER_PLACE_CROWDED   /**< rests: the ranks want more than there is */
} uct_helper_place_why_t;

/** Each of them in words, for the report. */
extern const char *uct_helper_place_reasons[];

/** What a rank is to do. */
typedef struct uct_helper_place {
    int               runs;       /**< its helper makes registrations */
    uct_helper_place_why_t why;
    uint64_t          wanted;     /**< by all ranks, millionths of a core */
    unsigned          processors; /**< of all ranks and helpers */
    int               cpu;        /**< its own core, or UCT_HELPER_PLACE_ANY */
    unsigned          sharers;    /**< other helpers on that core */
    uint64_t          shared_ns;  /**< until they have all had their turn: the
                                       paper's n * (t_slice + t_cs) */
    unsigned          idle_cores; /**< of the node */
    uct_helper_cpus_t idle;       /**< processors that no rank is bound to */
} uct_helper_place_t;

static inline int uct_helper_cpus_has(const uct_helper_cpus_t *cpus, int cpu)
{
    return (cpus->bits[cpu / 64] >> (cpu % 64)) & 1;
}

static inline void uct_helper_cpus_add(uct_helper_cpus_t *cpus, int cpu)
{
    cpus->bits[cpu / 64] |= UINT64_C(1) << (cpu % 64);
}

unsigned uct_helper_cpus_count(const uct_helper_cpus_t *cpus);


/**
 * Decide for one rank. What ranks that are absent are bound to is idle.
 *
 * @param [in]  ranks      All of them.
 * @param [in]  self       Index of the one that asks.
 * @param [in]  allowed    Processors that its helper may run on.
 * @param [in]  distances  Of each processor from the device, any unit.
 * @param [out] place      Always filled.
 */
void uct_helper_place_decide(const uct_helper_rank_t *ranks, unsigned count,
                             unsigned self, uct_helper_cpu_policy_t policy,
                             const uct_helper_cpus_t *allowed,
                             const uint8_t *distances,
                             uct_helper_place_t *place);

END_C_DECLS

#endif
