/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_THREAD_H_
#define UCS_THREAD_H_

#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>

#include <sched.h>
#include <stdint.h>

/**
 * @file thread.h
 *
 * The helper thread: runs a step function whenever its time has come or
 * somebody has woken it, and sleeps on a futex otherwise. It never spins, has
 * all signals blocked, is named "ucx-helper", and asks the kernel for timers
 * without slack. If so wanted its steps take only processor time that nobody
 * else wants (scout.h).
 */

BEGIN_C_DECLS

/** Name of the thread, as in /proc/PID/task/TID/comm. */
#define UCS_THREAD_NAME "ucx-helper"

typedef struct ucs_thread *ucs_thread_h;

/**
 * One step: @return the time (of @ref ucs_clock_now) when the next one is due
 * at the latest, or UINT64_MAX to wait for a wake-up alone.
 */
typedef uint64_t (*ucs_step_func_t)(void *arg, uint64_t now);


/**
 * Prepare a thread without starting it.
 *
 * @param [in]  step      What it runs; only one step at a time.
 * @param [in]  arg       Passed to @a step.
 * @param [in]  is_idle   It steps only where a core has nothing else to do; but
 *                        for its bell, and for what is overdue for a second.
 * @param [out] thread_p  Owned by the caller.
 *
 * @return UCS_OK or UCS_ERR_NO_MEMORY.
 */
ucs_status_t ucs_thread_create(ucs_step_func_t step, void *arg, int is_idle,
                               ucs_thread_h *thread_p);


/** Stop the thread if it runs, and release it. */
void ucs_thread_destroy(ucs_thread_h thread);


/**
 * Wake the thread also when another process changes this word of shared memory
 * and wakes its futex. Before it is started.
 *
 * @param [in] bell  Valid until the thread has stopped. Whatever it holds, the
 *                   thread sleeps and is woken as without it.
 */
void ucs_thread_set_bell(ucs_thread_h thread, uint32_t *bell);


/**
 * Start the thread, once; later calls do nothing. From any thread, with no
 * lock held that a step needs.
 *
 * @return UCS_OK, UCS_ERR_BUSY if the thread has been stopped before, or
 *         UCS_ERR_NO_RESOURCE, after one line of warning, if the system
 *         refuses a thread.
 */
ucs_status_t ucs_thread_start(ucs_thread_h thread);


/**
 * Bind the running thread. Until then it runs where the thread that started it
 * does.
 *
 * @return UCS_OK, or UCS_ERR_NO_ELEM if none of @a cpus can be had or the
 *         thread does not run; its binding is unchanged then.
 */
ucs_status_t ucs_thread_bind(ucs_thread_h thread, const cpu_set_t *cpus);


/** Make the thread run a step soon. Wait-free, does not allocate; a system
 *  call only if the thread is asleep. From any thread. */
void ucs_thread_wake(ucs_thread_h thread);


/**
 * Take a step in the caller's thread, if none is under way and no fork.
 * Does not wait. From any thread that is not in a step; the thread itself need
 * not run, but must not be being destroyed.
 *
 * @param [in] step  What is run in place of the thread's own step. The thread
 *                   comes if this is due before the thread would come.
 *
 * @return Nonzero if a step was taken.
 */
int ucs_thread_try_step(ucs_thread_h thread, ucs_step_func_t step, void *arg);


/** Let the step in progress end and join the thread. Idempotent; not from a
 *  step. */
void ucs_thread_stop(ucs_thread_h thread);


/** @return Nonzero from start to stop. */
int ucs_thread_is_running(ucs_thread_h thread);


/** @return Nanoseconds of processor time, its scout's included, kept after the
 *          thread is joined. */
uint64_t ucs_thread_cpu_ns(ucs_thread_h thread);


/** @return Times that the thread lost or gave up its processor; 0 before it has
 *          been stopped. */
uint64_t ucs_thread_switches(ucs_thread_h thread);


/** @return Nonzero if the caller is a helper thread, not one of the program that
 *          takes a step. */
int ucs_thread_is_helper(void);


/** @return Nanoseconds of processor time that the caller, the thread itself in
 *  a step, has used. */
uint64_t ucs_thread_spent(void);


/** Keep the thread out of steps (for fork) and let it go on. */
void ucs_thread_hold(ucs_thread_h thread);
void ucs_thread_release(ucs_thread_h thread);

END_C_DECLS

#endif
