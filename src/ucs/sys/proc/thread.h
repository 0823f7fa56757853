/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_THREAD_H_
#define UCS_THREAD_H_

#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>

#include <sched.h>
#include <stdint.h>

/*
 * The helper thread: runs the step functions of its jobs, one after the other, each when
 * its time has come or it is woken, and sleeps on a futex otherwise. It never spins,
 * blocks all signals, is named "ucx-helper", and uses timers without slack. Optionally
 * its steps take only idle processor time (scout.h).
 */

BEGIN_C_DECLS

/** Name of the thread, as in /proc/PID/task/TID/comm. */
#define UCS_THREAD_NAME "ucx-helper"

typedef struct ucs_thread *ucs_thread_h;
typedef struct ucs_job *ucs_job_h;

/**
 * One step of a job. @return The latest time (of @ref ucs_clock_now) of the next one, or
 * UINT64_MAX: only after a wake-up.
 */
typedef uint64_t (*ucs_step_func_t)(void *arg, uint64_t now);

/**
 * Prepare a thread without starting it.
 *
 * @param [in]  is_idle   It steps only if a core is idle, except for its bell,
 *                        and for steps that are overdue by a second.
 * @param [out] thread_p  Owned by the caller.
 *
 * @return UCS_OK or UCS_ERR_NO_MEMORY.
 */
ucs_status_t ucs_thread_create(int is_idle, ucs_thread_h *thread_p);

/** Stop the thread if it runs, and release it with its jobs. */
void ucs_thread_destroy(ucs_thread_h thread);

/**
 * Also wake the thread when another process changes this word of shared memory
 * and wakes its futex. Before it is started.
 *
 * @param [in] bell  Valid until the thread has stopped; any value.
 */
void ucs_thread_set_bell(ucs_thread_h thread, uint32_t *bell);

/**
 * Add a job, also while the thread runs.
 *
 * @param [in]  step   What it runs; only one step of a job at a time.
 * @param [in]  arg    Passed to @a step.
 * @param [out] job_p  Valid until @ref ucs_job_remove.
 *
 * @return UCS_OK or UCS_ERR_NO_MEMORY.
 */
ucs_status_t ucs_thread_add(ucs_thread_h thread, ucs_step_func_t step, void *arg,
                            ucs_job_h *job_p);

/**
 * Let the thread step for this job, and start it if it does not run; later calls do
 * nothing. From any thread, with no lock held that a step needs.
 *
 * @return UCS_OK; UCS_ERR_BUSY if the thread has been stopped before, or
 *         UCS_ERR_NO_RESOURCE, after one line of warning, if the system
 *         refuses a thread.
 */
ucs_status_t ucs_job_start(ucs_job_h job);

/** The thread steps for this job no more. Waits for a step of it that is in progress,
 *  not for those of others. Not from a step. */
void ucs_job_stop(ucs_job_h job);

/** Stop it, and give it back. Nobody else uses it. */
void ucs_job_remove(ucs_job_h job);

/** Make the thread run a step of this job soon. Wait-free, does not allocate; a system
 *  call only if the thread is asleep. From any thread. */
void ucs_job_wake(ucs_job_h job);

/**
 * Take a step of a job in the caller's thread, if none of it and no fork is under way.
 * Does not wait. From any thread that is not in a step; the job need not be started.
 *
 * @param [in] step  Runs instead of the job's own step. If its next step is
 *                   due earlier, the thread takes that.
 *
 * @return Nonzero if a step was taken.
 */
int ucs_job_try_step(ucs_job_h job, ucs_step_func_t step, void *arg);

/** Take a step of a job in the caller's thread, after one that is under way, also while
 *  the process forks. Not from a step. */
void ucs_job_run(ucs_job_h job);

/**
 * Bind the running thread. At first it has the binding of the thread that
 * started it.
 *
 * @return UCS_OK, or UCS_ERR_NO_ELEM if none of @a cpus is allowed or the thread does
 *         not run; its binding is unchanged then.
 */
ucs_status_t ucs_thread_bind(ucs_thread_h thread, const cpu_set_t *cpus);

/**
 * Bind the running thread to the caller's processor, if that is one of its own. The caller
 * is about to sleep until it has got on: the kernel leaves a thread that waits for a busy
 * processor there for some milliseconds though another one falls idle. Does not wait. From
 * any thread.
 *
 * @return Nonzero if it was. Zero if it is bound to others, does not run, or another
 *         thread has it.
 */
int ucs_thread_borrow(ucs_thread_h thread);

/** Bind a thread that was borrowed as it was before. Does not wait. From any thread. */
void ucs_thread_give_back(ucs_thread_h thread);

/**
 * Give it back, for who has borrowed it may have ended, and keep others from binding it:
 * the thread is to change or read its own binding. Does not wait.
 *
 * @return Zero if another one is about to bind it.
 */
int ucs_thread_hold_binding(ucs_thread_h thread);

/**
 * Bind the calling thread, which is the helper's, and its scout. While it holds its
 * binding.
 *
 * @return Zero if the system refuses it.
 */
int ucs_thread_move(ucs_thread_h thread, const cpu_set_t *cpus);

/** The end of that. */
void ucs_thread_release_binding(ucs_thread_h thread);

/** Let the step in progress end and join the thread. Idempotent; not from a
 *  step. */
void ucs_thread_stop(ucs_thread_h thread);

/**
 * The same for exit(), also in a signal handler, whose thread may take a step or have
 * what a step waits for.
 *
 * @return Zero if the thread has not ended: a step of the caller's own is in progress,
 *         or five seconds have passed.
 */
int ucs_thread_end(ucs_thread_h thread);

/** @return Nonzero from start to stop. */
int ucs_thread_is_running(ucs_thread_h thread);

/** @return Nanoseconds of processor time, its scout's included, kept after the
 *          thread is joined. */
uint64_t ucs_thread_cpu_ns(ucs_thread_h thread);

/** Have @ref ucs_thread_delays count the present turn. From a step; does nothing if
 *  another thread takes it. */
void ucs_thread_count(ucs_thread_h thread);

/** Of turns that were counted, as @ref ucs_scout_delays. */
void ucs_thread_delays(ucs_thread_h thread, uint64_t *worked_ns,
                       uint64_t *delayed_ns);

/** @return Nonzero if the caller is a helper thread, not a thread of the
 *          program that takes a step. */
int ucs_thread_is_helper(void);

/** @return Nanoseconds of processor time that the calling helper thread has
 *  used. */
uint64_t ucs_thread_spent(void);

/**
 * Keep all threads of the process out of steps, until @ref ucs_thread_release: for fork,
 * also in a signal handler, whose thread may take a step or have what a step waits for.
 * Nothing is locked meanwhile. May be called again before it.
 *
 * @return Zero if after a second a step is still in progress, except the caller's own.
 */
int ucs_thread_hold(void);

/** Let them go on, also if the hold was in vain. */
void ucs_thread_release(void);

/** In a forked child: there are no steps. */
void ucs_thread_forget(void);

END_C_DECLS

#endif
