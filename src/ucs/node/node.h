/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_NODE_NODE_H_
#define UCS_NODE_NODE_H_

#include <ucs/sys/claim.h>
#include "ledger.h"

#include <sched.h>

/*
 * This process among the ranks of its node: the bytes that it pins are counted
 * in the ledger before they are pinned, a budget that is set for the node is
 * shared by need, and so are idle cores among the ranks' helpers. With a ledger for
 * each device the same counts registrations of that device: then "bytes" below
 * stands for these, one each.
 *
 * Invariant: what was claimed without force is never more than the budget,
 *
 *     sum(pinned) <= budget + sum(bytes claimed by force)
 *
 * for each claim is announced in the ledger (taken) before the sum is read:
 * of two that do so at once, one at least sees the other. What ranks may have
 * @a unseen is no part of the budget, but is beside it.
 *
 * What a budget should be may show only when the system refuses: it is learned then
 * (@ref ucs_node_learn), for all ranks, and grows again by and by.
 *
 * Any thread may claim and give back; no lock of another process is ever waited
 * for, and no word of one for longer than @a patience_ns.
 */

BEGIN_C_DECLS

typedef struct ucs_node *ucs_node_h;

typedef struct ucs_node_params {
    const char           *name;       /**< of the segment, as by @ref
                                           ucs_ledger_name */
    uint64_t             budget;      /**< bytes, UINT64_MAX: none */
    uint64_t             most;        /**< bytes that this process may have; 0:
                                           no such limit */
    uint64_t             unseen;      /**< bytes that each may have without a
                                           look at those of others */
    uint64_t             ram;         /**< bytes, what a process can pin at
                                           most; 0: the node's memory */
    int                  goes;        /**< the segment goes with the last process
                                           that has it */
    ucs_node_h           bells;       /**< another ledger's, whose bells the
                                           helpers of this one listen to; NULL:
                                           they listen to its own */
    uint64_t             patience_ns; /**< for one answer; 0: default */
    cpu_set_t            cpus;        /**< that the application is bound to; or
                                           none, and then: */
    unsigned             cores;       /**< that it uses */
    uint64_t             (*now)(void); /**< monotonic, nanoseconds */
} ucs_node_params_t;

/** Figures of a node, for the report. */
typedef struct ucs_node_figures {
    unsigned         ranks;       /**< most that were there at once */
    uint64_t         peak_bytes;  /**< most that they had pinned together. With
                                       a budget each rank looks at each of its
                                       changes, so the largest of all ranks' is
                                       exact; without one it looks every
                                       millisecond at most */
    uint64_t         budget;      /**< as set or learned; UINT64_MAX: none */
    uint64_t         forced;      /**< claims that passed the budget */
    uint64_t         given_bytes; /**< given back for others */
    unsigned         idle_cores;  /**< as the helper saw at last */
    double           wanted;      /**< likewise, of the helper's work, by
                                       @ref ucs_node_wanted */
    uint64_t         rests;       /**< times that the helper stood down */
    uint64_t         rest_ns;     /**< how long in all */
} ucs_node_figures_t;

/** Deregisters idle memory, at least @a length bytes if there is as much.
 *  @return Bytes that were deregistered. */
typedef uint64_t (*ucs_node_release_func_t)(void *arg, uint64_t length);

/**
 * Enter the ledger.
 *
 * @param [out] node_p  Set only on success; owned by the caller.
 * @param [out] error   One line, set on failure only.
 */
ucs_status_t ucs_node_open(const ucs_node_params_t *params, ucs_node_h *node_p,
                           char *error, size_t max);

/** Leave it. No other call may be under way. NULL: nothing. */
void ucs_node_close(ucs_node_h node);

/** Set or unset the function that deregisters for others; returns when a call
 *  under way is over. Not from such a call. To unset it of NULL is nothing. */
ucs_status_t ucs_node_join(ucs_node_h node, ucs_node_release_func_t release,
                           void *arg);
void ucs_node_part(ucs_node_h node, void *arg);

/** @return Nonzero if there is a budget by now, and a helper must answer the
 *          bell. */
int ucs_node_has_budget(ucs_node_h node);

/**
 * Claim @a length bytes that are about to be pinned. Does not wait, allocate or
 * call the system.
 *
 * @return Nonzero if they are counted; always by force.
 */
int ucs_node_claim(ucs_node_h node, uint64_t length, ucs_claim_t mode);

/**
 * The system has refused what this process has claimed last, @a length bytes.
 *
 * @return What the ranks together had before that, at least 1. It may be their limit, or
 *         it was refused for something else: see @ref ucs_node_ask_back.
 */
uint64_t ucs_node_refused(ucs_node_h node, uint64_t length);

/** Have idle memory deregistered, of this rank and others, until all have no more than
 *  @a limit. Waits for the answers. */
void ucs_node_ask_back(ucs_node_h node, uint64_t limit);

/** With no more than @a limit it was not refused again: that is what there is for all
 *  from now on, unless less is known. A minute later twice as much is. */
void ucs_node_learn(ucs_node_h node, uint64_t limit);

/** Release a claim: the bytes are not pinned any more. */
void ucs_node_unclaim(ucs_node_h node, uint64_t length);

/**
 * Ask other ranks for room for @a length bytes, and wait for the answers. The
 * room is reserved meanwhile, so that no other rank takes it.
 *
 * @return Nonzero if they fit now, and are counted as by a claim.
 */
int ucs_node_ask(ucs_node_h node, uint64_t length, ucs_ask_t whom);

/** The word on which an answering helper sleeps; other processes change it to
 *  any value. */
uint32_t *ucs_node_bell(ucs_node_h node);

/** Say that a helper listens to the bell, or no longer. NULL: nothing. */
void ucs_node_listen(ucs_node_h node, int listens);

/** In each step of the helper: deregister what was asked for, and answer. */
void ucs_node_serve(ucs_node_h node);

/** Nanoseconds between two turns of a helper, each of which calls the following:
 *  the ranks' figures change slowly, and a look costs some microseconds. */
#define UCS_NODE_TURN_NS UINT64_C(250000000)

/**
 * Write this process's figures again, which another process may have written
 * over, and free the slots of the dead. Now and then, by a helper.
 *
 * @return Zero if another process has taken its slot: from now on the rank has
 *         a ledger of its own.
 */
int ucs_node_mend(ucs_node_h node, uint64_t now);

/**
 * Find the node's idle cores. They are for the helpers of the ranks that have
 * pinned most lately (Li et al. 2011, section 5, conservative policy).
 *
 * @param [inout] cpus  In: processors that the helper may run on. Out: those of
 *                      them that no rank is bound to.
 *
 * @return Nonzero if one of them is for this rank. All ranks find the same.
 */
int ucs_node_find_core(ucs_node_h node, cpu_set_t *cpus);

/**
 * How much of what the helper may do at any time would ranks wait for? As far as they
 * wait, ready to run, for each processor; all are taken to wait as this one did in the
 * latest seconds. By one thread, now and then.
 *
 * @param [in] waited_ns   What this rank has waited for a processor since it began; 0:
 *                         unknown.
 * @param [in] processors  That the helper may run on, above 0.
 *
 * @return Share of the work, 0 to 1; at the first call 0.
 */
double ucs_node_waits(ucs_node_h node, uint64_t now, uint64_t waited_ns,
                      unsigned processors);

/**
 * How much of the helper's work did ranks wait for? It begins where nothing else is
 * ready to run, but what has begun ends, and a registration may take longer than a
 * message; on a core that is always busy it begins at a tick, and all of it is waited
 * for. The latest work counts, and fades as time passes; one time slice of waiting may
 * be chance and does not count. Until some was done the share is near that of
 * @ref ucs_node_waits. Where there are more ranks than processors they wait for each
 * other as well, and it is at most that. By one thread, before each step.
 *
 * @param [in] now         Nanoseconds.
 * @param [in] worked_ns   What the helper has worked since it began.
 * @param [in] delayed_ns  For how much of that some rank waited.
 *
 * @return Share of the work, 0 to 1.
 */
double ucs_node_wanted(ucs_node_h node, uint64_t now, uint64_t worked_ns,
                       uint64_t delayed_ns);

/**
 * Another rank, each in turn, whose waits stand for those of all others.
 *
 * @param [in]  processors  As above.
 * @param [out] others      How many others there are.
 *
 * @return Its process; 0 where no rank needs to wait, for there is a processor for each.
 */
pid_t ucs_node_beside(ucs_node_h node, unsigned processors, unsigned *others);

/** Say whether the helper makes registrations (as from the start), or rests. */
void ucs_node_set_runs(ucs_node_h node, int runs);

/** Bytes that all living ranks together have pinned now. */
uint64_t ucs_node_sum(ucs_node_h node);

/** Copy this rank's figures of its node. Any thread. */
void ucs_node_figures(ucs_node_h node, ucs_node_figures_t *figures);

/** @return Nonzero if the equations in node_int.h hold, as always, whatever
 *          other processes do. Not while deregistering for others. */
int ucs_node_is_valid(ucs_node_h node);

END_C_DECLS

#endif
