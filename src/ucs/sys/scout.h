/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_SCOUT_H_
#define UCS_SCOUT_H_

#include <ucs/sys/atomic.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>

#include <sched.h>
#include <stdint.h>

/**
 * @file scout.h
 *
 * When a helper's turn comes: somebody has woken it, or its time has come, and,
 * if it is to take only processor time that nobody wants, a core has nothing else
 * to do.
 *
 * The last is found out by a thread of its own, the scout, which is of the
 * scheduling class SCHED_IDLE: that it runs at all says that its core is idle.
 * Then it wakes the helper, which the kernel puts on that core or another idle
 * one, and waits until the helper's step is over. The helper itself keeps its
 * normal priority. In that class it could lose its core in the middle of a step,
 * with a lock or a half-made registration that a rank waits for, and would not
 * come back before all others sleep: an ordinary user cannot leave the class, nor
 * can who waits lend its priority. So a helper that finds no idle core has
 * nothing under way, and nobody waits for it.
 *
 * docs/node.md has what was measured of both ways.
 */

BEGIN_C_DECLS

/** So long after its time the turn comes although no core is idle, ns: a step a
 *  second takes a rank some ten microseconds, and bounds how late the helper
 *  learns and looks after memory events. */
#define UCS_SCOUT_OVERDUE_NS UINT64_C(1000000000)

typedef struct ucs_scout *ucs_scout_h;

/**
 * @param [in]  is_idle   Turns come only where a core is idle.
 * @param [out] scout_p   Owned by the caller; the first turn has come.
 *
 * @return UCS_OK or UCS_ERR_NO_MEMORY.
 */
ucs_status_t ucs_scout_create(int is_idle, ucs_scout_h *scout_p);


/** Release it. Its thread is not waited for: it may not be let run for long. It
 *  touches nothing but what is its own, and ends when it is; what it had is released
 *  when the next scout is created or destroyed. Stopped before, if it was started. */
void ucs_scout_destroy(ucs_scout_h scout);


/** Start its thread, if it has one. Where the system refuses it, turns come
 *  whether a core is idle or not. */
void ucs_scout_start(ucs_scout_h scout);


/** Let its thread run on @a cpus, once started. */
void ucs_scout_bind(ucs_scout_h scout, const cpu_set_t *cpus);


/**
 * The helper waits for its turn.
 *
 * @param [in] bell  Ends the wait as well, when it is not @a seen any more;
 *                   whatever the turn depends on. NULL: there is none.
 *
 * @return Nonzero if somebody has woken it since its last turn.
 */
int ucs_scout_await(ucs_scout_h scout, _Atomic(uint32_t) *bell, uint32_t seen);


/** The helper's turn is over. The next one comes at @a at, ns of
 *  @ref ucs_clock_now, unless it is woken before. */
void ucs_scout_done(ucs_scout_h scout, uint64_t at);


/** Have a turn come soon. What the caller did before is seen by the helper in
 *  that turn. Wait-free, does not allocate; a system call only if nobody has
 *  called yet and the helper is not awake. Any thread. */
void ucs_scout_wake(ucs_scout_h scout);


/** Somebody else takes the helper's step now: wake-ups so far are served. With a
 *  turn excluded. */
void ucs_scout_serve(ucs_scout_h scout);


/** Have a turn come at @a at, ns, if the next one comes later. With a turn
 *  excluded. */
void ucs_scout_advance(ucs_scout_h scout, uint64_t at);


/** @return Nonzero if it is the helper's turn: it may have begun it or not. */
int ucs_scout_is_given(ucs_scout_h scout);


/** No turn is waited for any more, and one that is, ends. */
void ucs_scout_stop(ucs_scout_h scout);


/** @return Nanoseconds of processor time of its thread, if it has one, until it was stopped. */
uint64_t ucs_scout_cpu_ns(ucs_scout_h scout);


/** @return Times that its thread has gone to sleep. */
uint64_t ucs_scout_switches(ucs_scout_h scout);

END_C_DECLS

#endif
