/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_NODE_LEDGER_H_
#define UCS_NODE_LEDGER_H_

#include <ucs/sys/sync/atomic.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The node's ledger: a segment of shared memory in which each process of a user
 * has a slot. It has no lock. A process takes a slot by one compare-and-swap on
 * its owner word, and only the owner writes its figures. A slot whose owner is
 * dead does not count; the first process that notices frees it. So a process
 * can be killed at any point without harm to the others.
 *
 * Nothing in the segment is trusted: any process of the user may have written
 * there. Indices are never read from it, figures are bounded when they are read
 * (@ref ucs_ledger_pinned and the like), and each wait for a word has a limit.
 *
 * A fresh segment is all zeros, so it is never half made.
 *
 * It is a System V segment: no process can shorten it, which with a file would
 * be a SIGBUS for all others; its memory is reserved when it is made; and it
 * needs no descriptor, which the application could close or reuse.
 */

BEGIN_C_DECLS

/** Suffix of the segment's name, for jobs with a ledger of their own. */
#define UCS_NODE_SUFFIX_ENV "HELPER_MD_NODE_LEDGER"

/** Processes of one user on one node that can have a slot. */
#define UCS_LEDGER_SLOTS 256

/** Processors that a slot can name. */
#define UCS_LEDGER_CPUS  1024
#define UCS_LEDGER_WORDS (UCS_LEDGER_CPUS / 64)

#define UCS_LEDGER_VERSION 6

/** In the high 48 bits of the stamp; the version is in the low 16. */
#define UCS_LEDGER_MAGIC UINT64_C(0x756378686c70)

#define UCS_LEDGER_STAMP ((UCS_LEDGER_MAGIC << 16) | UCS_LEDGER_VERSION)

/** Below it: bytes that a rank has taken. Above: how often they rose, modulo
 *  2^16. In one word, so that both are read together, and no bytes are counted
 *  twice as they become pinned. */
#define UCS_LEDGER_RISE (UINT64_C(1) << 48)

/** A process's figures that are not scanned often. Others write the bell and @a
 *  want. */
typedef struct ucs_ledger_slot {
    _Atomic(uint64_t) want;    /**< bytes that it is asked to give back */
    _Atomic(uint32_t) bell;    /**< raised by a rank that asks; it sleeps on
                                    this */
    _Atomic(uint32_t) answer;  /**< the bell that it has served */
    _Atomic(uint32_t) listens; /**< 1: a helper answers the bell */
    _Atomic(uint32_t) runs;    /**< 1: its helper makes registrations */
    _Atomic(uint32_t) cores;   /**< that the application uses, if it is bound to
                                    none */
    _Atomic(uint32_t) spare[9];
    _Atomic(uint64_t) cpus[UCS_LEDGER_WORDS]; /**< that it is bound to; bit 0:
                                                   processor 0 */
} ucs_ledger_slot_t;

/**
 * The segment. Every claim scans the columns. For each owned slot, as long as
 * each word is written by its own process only:
 *
 *     taken[i] % UCS_LEDGER_RISE == bytes that are pinned or reserved
 *     pinned[i] == bytes that are pinned
 *     answer[i] - bell[i] <= 0, modulo 2^32
 *
 * While no rank claims, gives back or asks, nothing is reserved, so that
 *
 *     pinned[i] == taken[i] % UCS_LEDGER_RISE
 *
 * Orders, each between two processes:
 * - [N-OWNER] The release that gives a slot back (@ref ucs_ledger_leave, or
 *   another process once the owner is dead) pairs with the acquire that takes
 *   it: figures of the new owner come after those of the old one.
 * - [N-STAMP] The release that puts the stamp right pairs with the acquire that
 *   reads it when the ledger is opened: the slot's owner was put right before.
 * - [N-SUM] Single order of the writes to @a taken and of the reads of it: of
 *   two ranks that write theirs and then read all, one sees the other.
 * - [N-BELL] The release that raises a bell pairs with the acquire of the rank
 *   that serves: it sees what is wanted.
 * - [N-ANSWER] The release of the answer pairs with the acquire of the rank
 *   that asked: it sees what was given back.
 * The rest is relaxed: figures that are overwritten now and then and say
 * nothing about other words.
 */
typedef struct ucs_ledger {
    _Atomic(uint64_t) stamp;                    /**< UCS_LEDGER_STAMP; 0:
                                                     fresh */
    _Atomic(uint64_t) spaces;                   /**< inode of the users' PID
                                                     namespace */
    _Atomic(uint64_t) name;                     /**< hash of the name, as others
                                                     may have the same key */
    _Atomic(uint64_t) learned;                  /**< what there is for all, as a
                                                     refusal has shown; 0: none
                                                     did */
    _Atomic(uint64_t) learned_at;               /**< ns, when */
    _Atomic(uint64_t) spare[3];
    _Atomic(uint64_t) owner[UCS_LEDGER_SLOTS];  /**< 0: free */
    _Atomic(uint64_t) pinned[UCS_LEDGER_SLOTS]; /**< bytes */
    _Atomic(uint64_t) taken[UCS_LEDGER_SLOTS];  /**< bytes pinned or to be soon,
                                                     and how often they rose */
    _Atomic(uint64_t) demand[UCS_LEDGER_SLOTS]; /**< bytes, lately */
    ucs_ledger_slot_t slots[UCS_LEDGER_SLOTS];
} ucs_ledger_t;

/**
 * Name of this user's segment: "ucx-helper-md-VERSION.UID", with ".SUFFIX" if
 * there is one. With the version, for a segment stays until the node restarts
 * and must not be in another release's way.
 *
 * @param [in] suffix  NULL, or letters, digits, '-' and '_', at most 64.
 *
 * @return UCS_OK, or UCS_ERR_INVALID_PARAM for another suffix.
 */
ucs_status_t ucs_ledger_name(const char *suffix, char *name, size_t max);

/** Make it the name of the segment in which a device's registrations are counted:
 *  "+DEVICE" is added, which may have any characters. What does not fit is left
 *  out. */
void ucs_ledger_name_device(const char *device, char *name, size_t max);

/** The segment's key, as for shmget(): a hash of the name, never 0. */
int ucs_ledger_key(const char *name);

/**
 * Attach the segment; make it if there is none.
 *
 * @param [out] ledger_p  Set only on success.
 * @param [out] error     One line: the option that names the segment, its path,
 *                        why it is not used and what is allowed. Set on failure
 *                        only.
 *
 * @return UCS_OK; UCS_ERR_UNSUPPORTED for one of another user, version or PID
 *         namespace, or that others may write; UCS_ERR_IO_ERROR if the system
 *         refuses, or has a smaller one.
 */
ucs_status_t ucs_ledger_open(const char *name, ucs_ledger_t **ledger_p,
                             char *error, size_t max);

/** Detach it. The segment stays. */
void ucs_ledger_close(ucs_ledger_t *ledger);

/** Remove the segment with this key if no process has it attached. One that is just
 *  about to would have it to itself. */
void ucs_ledger_remove_unused(int key);

/**
 * Take a slot for this process, one for each time that it has the ledger open. Its
 * figures are zero.
 *
 * @return Its index, or -1 if none is free.
 */
int ucs_ledger_enter(ucs_ledger_t *ledger, uint64_t *owner_p);

/** Give a slot back, if it is still this owner's. @return Nonzero if it was. */
int ucs_ledger_leave(ucs_ledger_t *ledger, unsigned slot, uint64_t owner);

/** @return Nonzero if an owner is alive: a process with that number that has the ledger
 *          there, or one that cannot be looked up. Opens nothing, here and below: a
 *          descriptor uses, for a moment, a number that the program may want. */
int ucs_ledger_is_alive(const ucs_ledger_t *ledger, uint64_t owner);

/** Free a slot if its owner is dead. @return Nonzero if so. */
int ucs_ledger_reap_slot(ucs_ledger_t *ledger, unsigned slot);

/** Free all slots whose owners have no process any more. Quicker: does not notice
 *  zombies. */
void ucs_ledger_reap_gone(ucs_ledger_t *ledger);

/** @ref ucs_ledger_reap_slot of all slots. @return How many were freed. */
unsigned ucs_ledger_reap(ucs_ledger_t *ledger);

/**
 * Repair what another process may have overwritten: the head of the segment,
 * and the owner of this process's slot.
 *
 * @return Zero if another process, which is alive, has the slot.
 */
int ucs_ledger_mend(ucs_ledger_t *ledger, unsigned slot, uint64_t owner);

/** Go on with a fresh ledger of this process's own at the same address, so that
 *  pointers stay valid. @return Zero if the system refuses. */
int ucs_ledger_detach(ucs_ledger_t *ledger);

/** The process number in an owner word; any number may stand there. */
pid_t ucs_ledger_pid(uint64_t owner);

/** The word that says whose this process's slot is; never 0. */
uint64_t ucs_ledger_self(const ucs_ledger_t *ledger);

/** Figures of slots that are owned, for no more than @a limit, the bytes that a
 *  process can pin on this node at most. @return @a bytes; 0 beyond the limit,
 *  for then another process has written over them. */
static inline uint64_t ucs_ledger_bounded(uint64_t bytes, uint64_t limit)
{
    return (bytes <= limit) ? bytes : 0;
}

/** @return Bytes that the owner of a slot has pinned, as above. */
static inline uint64_t ucs_ledger_pinned(ucs_ledger_t *ledger, unsigned slot,
                                         uint64_t limit)
{
    return ucs_ledger_bounded(ucs_load_relaxed(&ledger->pinned[slot]), limit);
}

/** @return Bytes that it has pinned or is about to, as above. */
static inline uint64_t ucs_ledger_taken(ucs_ledger_t *ledger, unsigned slot,
                                        uint64_t limit)
{
    /* seq_cst [N-SUM]: with the write in ucs_node_show_taken() */
    return ucs_ledger_bounded(ucs_load_seq_cst(&ledger->taken[slot]) %
                                      UCS_LEDGER_RISE,
                              limit);
}

/** How often it rose, owned or not: a new owner counts on. */
static inline unsigned ucs_ledger_rises(ucs_ledger_t *ledger, unsigned slot)
{
    /* seq_cst [N-SUM]: a rise that was there when a sum was read is seen */
    return ucs_load_seq_cst(&ledger->taken[slot]) / UCS_LEDGER_RISE;
}

/** @return Bytes that it has wanted lately, as above. */
static inline uint64_t ucs_ledger_demand(ucs_ledger_t *ledger, unsigned slot,
                                         uint64_t limit)
{
    return ucs_ledger_bounded(ucs_load_relaxed(&ledger->demand[slot]), limit);
}

END_C_DECLS

#endif
