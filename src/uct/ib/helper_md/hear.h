/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_HEAR_H_
#define UCT_HELPER_HEAR_H_

#include <ucs/predict/operation.h>

#include <ucs/sys/compiler_def.h>

#include <stddef.h>

/**
 * @file hear.h
 *
 * What a program says at UCP's entry points, on its way from the door that
 * hears it to the caches of all open domains; and the helper's step, taken by a
 * thread of the program that has nothing else to do.
 *
 * The latest operations stand in a log of the process. Each domain's step reads
 * on from where it was; what has been overwritten before that is lost, which is
 * harmless. With no domain open nothing is kept.
 */

BEGIN_C_DECLS

/** Operations that the log of the process holds, a power of two: a domain whose
 *  steps are rarer than so many operations misses some. */
#define UCT_HELPER_HEAR_LOG 4096u

typedef struct uct_helper_md uct_helper_md_t;


/**
 * Moves operations that were heard out of where they wait.
 *
 * Called by one thread at a time, in a step of a helper thread or an idle step,
 * with the log's lock held: it must not wait, or call back into this file.
 *
 * @param [out] into  Room for @a max of them; in the order of their times, as
 *                    far as one thread's go.
 *
 * @return How many; fewer than @a max if there are no more.
 */
typedef unsigned (*uct_helper_drain_func_t)(ucs_operation_t *into,
                                            unsigned max);


/** How many operations were lost on the way, in all. Any thread. */
typedef uint64_t (*uct_helper_lost_func_t)(void);


/**
 * Have steps and idle steps ask @a drain for operations before anything else.
 * The domains that are open then and later hear them.
 *
 * @param [in] drain  Valid until it is replaced; NULL: nobody is asked. When
 *                    this returns, what was here before is not running.
 * @param [in] lost   Valid for as long; NULL: it is not known.
 */
void uct_helper_hear_from(uct_helper_drain_func_t drain,
                          uct_helper_lost_func_t lost);


/** @return What the domains of this process want to be told; while something is
 *          recorded, everything. Lives as long as the process. */
ucs_operation_wants_t *uct_helper_hear_wants(void);


/** A domain begins to learn from what is too short to be registered, or ends
 *  it. Any thread; wait-free. */
void uct_helper_hear_listen(int listens);


/** @return Operations of the process that were not heard for want of room. */
uint64_t uct_helper_hear_lost(void);


/**
 * Put operations into the log. Takes the log's lock for the time of a copy; no
 * allocation. Any thread but one in a memory event or a signal handler.
 *
 * @param [in] operations  Copied.
 */
void uct_helper_hear(const ucs_operation_t *operations, unsigned count);


/**
 * One step of the caches of all open domains, by a thread that would wait
 * otherwise. It takes nothing upon itself that is dearer than the wait has
 * been, or than the cache's bound (`idle_work_ns` among its constants): that is
 * left to the helper thread, which is woken.
 *
 * Waits for nothing: where a step is under way, in whatever thread, or the
 * process is a forked child, nothing is done. Any thread but one that is inside
 * a registration, a memory event, a signal handler or a step.
 *
 * @param [in] spare_ns  For how long the thread has waited, less what steps
 *                       meanwhile took.
 *
 * @return What came of it, of all domains the most.
 */
ucs_idle_outcome_t uct_helper_idle_step(uint64_t spare_ns);


/**
 * A receive was posted, and its message has not come: wake the helper of each
 * domain that is to register its buffer now, sleeps, and would be told too late
 * by anything else. Takes no step and waits for nothing; a system call only to
 * wake. Any thread but one that is inside a registration, a memory event, a
 * signal handler or a step.
 *
 * @param [in] address  0: nothing is done.
 * @param [in] length   Bytes.
 */
void uct_helper_posted(uintptr_t address, size_t length);


/** A domain is open, with its cache and thread. Nothing is held. */
void uct_helper_hear_enter(uct_helper_md_t *md);


/** It closes: waits for an idle step that is under way; there is none after.
 *  Nothing is held. Does nothing for one that did not enter. */
void uct_helper_hear_leave(uct_helper_md_t *md);


/** The process ends: no more idle steps, and none is under way. */
void uct_helper_hear_stop(void);


/** Have the cache of @a md hear what it has not yet. In a step of that
 *  domain. */
void uct_helper_hear_step(uct_helper_md_t *md);


/** In a forked child, by its first thread that asks who it is: the domains are
 *  the parent's. */
void uct_helper_hear_forget(void);

END_C_DECLS

#endif
