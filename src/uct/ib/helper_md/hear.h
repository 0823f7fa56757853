/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_HELPER_HEAR_H_
#define UCT_HELPER_HEAR_H_

#include <ucs/predict/operation.h>

#include <ucs/sys/compiler_def.h>

#include <stddef.h>

/*
 * Passes operations from UCP's entry points (the door) to the caches of all
 * open domains, and takes the helper's step in an idle thread of the program.
 *
 * The latest operations are in a log of the process. Each domain's step reads
 * on from where it was. Operations that are overwritten before that are lost,
 * which costs a prediction at most. With no domain open nothing is kept.
 */

BEGIN_C_DECLS

/** Operations that the log holds, a power of two. A domain misses some if more
 *  come between two of its steps. */
#define UCT_HELPER_HEAR_LOG 4096u

typedef struct uct_helper_md uct_helper_md_t;

/**
 * Takes operations out of the door's rings.
 *
 * Called by one thread at a time, in a step, with the log's lock held: it must
 * not wait or call back into this file.
 *
 * @param [out] into  Room for @a max of them; each thread's in the order of
 *                    their times.
 *
 * @return How many; fewer than @a max if there are no more.
 */
typedef unsigned (*uct_helper_drain_func_t)(ucs_operation_t *into,
                                            unsigned max);

/** Returns the number of lost operations. Any thread. */
typedef uint64_t (*uct_helper_lost_func_t)(void);

/**
 * Set the function that each step calls first for operations.
 *
 * @param [in] drain  Valid until it is replaced; NULL: none. When this returns,
 *                    the former function is not running.
 * @param [in] lost   Valid as long; NULL: unknown.
 */
void uct_helper_hear_from(uct_helper_drain_func_t drain,
                          uct_helper_lost_func_t lost);

/** @return Which operations the domains of this process want; all while a trace
 *          is recorded. Lives as long as the process. */
ucs_operation_wants_t *uct_helper_hear_wants(void);

/** @return Operations that were lost for want of room. */
uint64_t uct_helper_hear_lost(void);

/**
 * One step of the caches of all open domains, in a thread that would wait
 * otherwise. Work that takes longer than the wait so far, and than a few
 * microseconds, is left to the helper thread, which is woken.
 *
 * Never waits. Does nothing if a step is under way, in a forked child, or without room
 * on the thread's own stack. Any thread that is not inside a registration, a memory
 * event, a signal handler or a step.
 *
 * @param [in] spare_ns  How long the thread has waited, less the steps it took.
 *
 * @return The largest result of the domains.
 */
ucs_idle_outcome_t uct_helper_idle_step(uint64_t spare_ns);

/**
 * A receive was posted, and its message has not come. Wake the helper of each
 * domain that should register the buffer now and sleeps. Takes no step and
 * never waits; a system call only to wake. Any thread that is not inside a
 * registration, a memory event, a signal handler or a step.
 *
 * @param [in] address  0: nothing is done.
 * @param [in] length   Bytes.
 */
void uct_helper_posted(uintptr_t address, size_t length);

/** A domain is open, with its cache and thread. No lock is held. */
void uct_helper_hear_enter(uct_helper_md_t *md);

/** It closes. Waits for an idle step that is under way; none comes after. No
 *  lock is held. Ignores a domain that did not enter. */
void uct_helper_hear_leave(uct_helper_md_t *md);

/** The process ends. When this returns, there is no idle step any more. */
void uct_helper_hear_stop(void);

/** Pass new operations to the cache of @a md. In a step of that domain. */
void uct_helper_hear_step(uct_helper_md_t *md);

/** In a forked child, in its first thread that gets here: forget the parent's
 *  domains. */
void uct_helper_hear_forget(void);

END_C_DECLS

#endif
