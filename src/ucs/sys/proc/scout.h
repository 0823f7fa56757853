/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_SCOUT_H_
#define UCS_SCOUT_H_

#include <ucs/sys/sync/atomic.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>

#include <sched.h>
#include <stdint.h>

/*
 * When a helper's turn comes: it is woken or its time has come, and, if it
 * takes only idle processor time, a core is idle.
 *
 * A thread, the scout, finds out the latter. It is of the scheduling class
 * SCHED_IDLE, so it runs only if its core is idle, or at a tick for some
 * microseconds. So it offers its core first, and if nothing takes it, it wakes
 * the helper, which the kernel puts on that core or another idle one, and waits
 * until the helper's step is over. The helper keeps its normal priority. In class
 * SCHED_IDLE it could lose its core in the middle of a step, holding a lock or a
 * registration that a rank waits for, until all others sleep: an ordinary user
 * cannot leave the class, and a waiting thread cannot lend its priority.
 * This way a helper without an idle core has nothing under way.
 *
 * docs/node.md has what was measured of both ways.
 */

BEGIN_C_DECLS

/** Nanoseconds after its time at which a turn comes although no core is idle, and between
 *  two looks of the helper at that time and at wake-ups, for the scout may not run. A
 *  step a second takes a rank some ten microseconds, and bounds how late the
 *  helper learns and serves memory events. */
#define UCS_SCOUT_OVERDUE_NS UINT64_C(1000000000)

/** Nanoseconds for which the scout offers its core to others before a turn comes although
 *  they take it: the length of most communications. Half of it gives more turns that
 *  ranks wait for, twice as much later ones. Without an end a helper on busy cores
 *  would not learn that its work is waited for. */
#define UCS_SCOUT_PATIENCE_NS UINT64_C(10000000)

typedef struct ucs_scout *ucs_scout_h;

/**
 * @param [in]  is_idle   Turns come only where a core is idle.
 * @param [out] scout_p   Owned by the caller; the first turn has come.
 *
 * @return UCS_OK or UCS_ERR_NO_MEMORY.
 */
ucs_status_t ucs_scout_create(int is_idle, ucs_scout_h *scout_p);

/** Release it; stopped before, if it was started. Does not wait for its thread,
 *  which may not run for long: that touches only its own memory, which is
 *  released when the next scout is created or destroyed. */
void ucs_scout_destroy(ucs_scout_h scout);

/** Start its thread, if it has one. If the system refuses it, turns come
 *  whether a core is idle or not. */
void ucs_scout_start(ucs_scout_h scout);

/** Let its thread run on @a cpus, once started. */
void ucs_scout_bind(ucs_scout_h scout, const cpu_set_t *cpus);

/**
 * The helper waits for its turn.
 *
 * @param [in] bell  Also ends the wait when it is not @a seen any more. NULL:
 *                   none.
 */
void ucs_scout_await(ucs_scout_h scout, _Atomic(uint32_t) *bell, uint32_t seen);

/** The helper's turn is over. The next one comes at @a at, ns of
 *  @ref ucs_clock_now, unless it is woken before. */
void ucs_scout_done(ucs_scout_h scout, uint64_t at);

/** Make a turn come soon, which sees what the caller did before. Wait-free,
 *  does not allocate; a system call only if it is the first call and the helper
 *  is not awake. Any thread. */
void ucs_scout_wake(ucs_scout_h scout);

/** Another thread takes the helper's step now, which serves the wake-ups so
 *  far. */
void ucs_scout_serve(ucs_scout_h scout);

/** Make a turn come at @a at, ns, if the next one is later. Not together with
 *  itself or @ref ucs_scout_done. */
void ucs_scout_advance(ucs_scout_h scout, uint64_t at);

/** End all waits for turns, now and later. */
void ucs_scout_stop(ucs_scout_h scout);

/** @return Nanoseconds of processor time of its thread, if any, until its
 *  stop. */
uint64_t ucs_scout_cpu_ns(ucs_scout_h scout);

/** Count the present turn, as follows, if a core was idle as it came. By the helper. */
void ucs_scout_count(ucs_scout_h scout);

/**
 * How much processor time have the turns taken that were counted, and for how much of
 * that has some process waited (waited.h)? That is known when a core is idle again. Any
 * thread.
 *
 * @param [out] worked_ns   Nanoseconds since the start.
 * @param [out] delayed_ns  Likewise, at most @a worked_ns.
 */
void ucs_scout_delays(ucs_scout_h scout, uint64_t *worked_ns,
                      uint64_t *delayed_ns);

END_C_DECLS

#endif
