/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/sys/proc/thread.h>
#include <ucs/sys/io/log.h>
#include <ucs/sys/proc/scout.h>
#include <ucs/sys/proc/slice.h>
#include <ucs/sys/proc/spawn.h>

#include <ucs/sys/sync/atomic.h>
#include <ucs/sys/sync/exit_mutex.h>
#include <ucs/sys/sync/futex.h>
#include <ucs/sys/clock.h>
#include <ucs/sys/math.h>

#include <fenv.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define UCS_STACK_SIZE (512ul << 10)

#define UCS_THREAD_END_WAIT_NS 5000000000ul
#define UCS_THREAD_PAUSE_NS    100000

/* Units of ucs_thread_steps */
#define UCS_THREAD_STEP UINT32_C(1)
#define UCS_THREAD_FORK (UINT32_C(1) << 16)

/* A fork waits for steps that are under way for so many pauses, a second or a little
 * more. A step takes milliseconds. */
#define UCS_THREAD_HOLD_TRIES 10000

/* A thread that waits for a fork looks so often whether it is to stop */
#define UCS_THREAD_FORK_NS UINT64_C(5000000)

/* The thread's binding is */
enum {
    UCS_THREAD_OWN,   /* its own */
    UCS_THREAD_TAKEN, /* changed right now */
    UCS_THREAD_LENT   /* the processor of a thread that waits for it */
};

typedef enum ucs_thread_life {
    UCS_THREAD_NEW,
    UCS_THREAD_RUNNING,
    UCS_THREAD_STOPPED
} ucs_thread_life_t;

struct ucs_job {
    ucs_thread_h      thread;
    ucs_job_h         next;       /* never changes */
    int               is_taken;   /* under the life lock; if not, it may be had anew */
    ucs_step_func_t   step;
    void              *arg;
    _Atomic(int)      is_called;  /* woken since its last step */
    /* Protects a step, and the following. Taken with no lock held that a step needs */
    pthread_mutex_t   step_lock;
    _Atomic(int)      is_started;
    _Atomic(uint64_t) due;        /* ns: the time of the next step */
};

struct ucs_thread {
    ucs_scout_h        scout;
    _Atomic(uint32_t)  *bell; /* NULL: none */
    _Atomic(int)       stop;
    _Atomic(int)       tid;       /* while it runs; else 0 */
    /* Its binding may be changed and read by who has made this TAKEN */
    _Atomic(uint32_t)  binding;
    cpu_set_t          cpus;      /* while it is LENT: the binding of before */
    _Atomic(ucs_job_h) jobs;  /* a list that grows at its head */
    /* A leaf: what is told the scout is the earliest of all jobs' times */
    pthread_mutex_t    time_lock;
    /* Protects the following; under it only the locks of pthread_create() are taken */
    ucs_exit_mutex_t   life_lock;
    ucs_thread_life_t  life;
    ucs_spawned_t      spawned;
    uint64_t           cpu_ns; /* written by the thread at its end */
};

static __thread int ucs_thread_self_is_helper;

/* Of which this thread takes a step, or is about to; for its own signal handlers. The lock
 * does not tell: it knows its owner some instructions after that has it. */
static __thread volatile ucs_job_h ucs_thread_stepped;

/* Steps and forks that are under way in this process. No lock is held across a fork:
 * the program's fork handlers may wait for a thread that opens or closes a domain. */
static _Atomic(uint32_t) ucs_thread_steps;
static _Atomic(int) ucs_thread_held_in_vain; /* the latest fork has waited so */

/* Of this thread: its step is in ucs_thread_steps, and forks, one within the other if a
 * signal handler interrupts the first */
static __thread volatile int ucs_thread_is_counted;
static __thread unsigned ucs_thread_forks;

/* acquire [T-JOBS]: with the release in ucs_thread_get_job() */
#define ucs_thread_for_each(_job, _thread) \
    for ((_job) = ucs_load_acquire(&(_thread)->jobs); (_job) != NULL; \
         (_job) = (_job)->next)

void ucs_job_wake(ucs_job_h job)
{
    /* release [R-CALL]: pairs with the acquire in ucs_job_turn() and ucs_job_serve():
     * what was queued before is seen by the step that follows. Who finds it called
     * leaves the wake-up to the one before. */
    if (!ucs_swap_acq_rel(&job->is_called, 1)) {
        ucs_scout_wake(job->thread->scout);
    }
}

int ucs_thread_is_helper(void)
{
    return ucs_thread_self_is_helper;
}

uint64_t ucs_thread_spent(void)
{
    uint64_t ns;

    (void)ucs_clock_read(CLOCK_THREAD_CPUTIME_ID, &ns);
    return ns;
}

static int ucs_job_is_due(ucs_job_h job, int is_rung, uint64_t now)
{
    /* relaxed: what is queued with it is acquired before the step */
    return is_rung || ucs_load_relaxed(&job->is_called) ||
           (now >= ucs_load_relaxed(&job->due));
}

/* acquire [T-START]: with the release in ucs_job_start() */
static int ucs_job_is_started(ucs_job_h job)
{
    return ucs_load_acquire(&job->is_started);
}

/* @return Nonzero if a step may be taken, to be ended; zero while the process forks. */
static int ucs_thread_begin_step(void)
{
    /* acq_rel [T-STEPS]: one of the two sees the other, a fork that waits and a step */
    if (ucs_add_acq_rel(&ucs_thread_steps, UCS_THREAD_STEP) >= UCS_THREAD_FORK) {
        ucs_sub_acq_rel(&ucs_thread_steps, UCS_THREAD_STEP); /* [T-STEPS] */
        return 0;
    }
    ucs_thread_is_counted = 1;
    return 1;
}

static void ucs_thread_end_step(void)
{
    /* A child that a signal handler has forked inside of it has forgotten it */
    if (ucs_thread_is_counted) {
        ucs_thread_is_counted = 0;
        /* release [T-STEPS]: the fork that waits sees what the step has done */
        ucs_sub_acq_rel(&ucs_thread_steps, UCS_THREAD_STEP);
    }
}

/* Take the job's lock for a step, after forks. @return Zero: the thread is to stop. */
static int ucs_job_enter(ucs_job_h job)
{
    uint32_t steps;

    pthread_mutex_lock(&job->step_lock);
    while (!ucs_thread_begin_step()) {
        pthread_mutex_unlock(&job->step_lock);
        if (ucs_load_relaxed(&job->thread->stop)) {
            return 0;
        }
        steps = ucs_load_relaxed(&ucs_thread_steps);
        if (steps >= UCS_THREAD_FORK) {
            ucs_futex_wait(&ucs_thread_steps, steps, UCS_THREAD_FORK_NS,
                           UCS_FUTEX_PRIVATE);
        }
        pthread_mutex_lock(&job->step_lock);
    }
    return 1;
}

/* Take a step if one is due. Of what is not, a step of another thread is not waited
 * for. */
static void ucs_job_turn(ucs_job_h job, int is_rung)
{
    uint64_t now = ucs_clock_now();

    if (!ucs_job_is_started(job) || !ucs_job_is_due(job, is_rung, now) ||
        !ucs_job_enter(job)) {
        return;
    }
    now = ucs_clock_now();
    if (ucs_job_is_started(job) && ucs_job_is_due(job, is_rung, now)) {
        /* acquire [R-CALL]: with the release in ucs_job_wake() */
        (void)ucs_swap_acq_rel(&job->is_called, 0);
        ucs_store_relaxed(&job->due, job->step(job->arg, now));
    }
    ucs_thread_end_step();
    pthread_mutex_unlock(&job->step_lock);
}

/* All jobs, and then the time of the next turn */
static void ucs_thread_turn(ucs_thread_h thread, int is_rung)
{
    uint64_t at = UINT64_MAX;
    ucs_job_h job;

    ucs_thread_for_each(job, thread) {
        ucs_job_turn(job, is_rung);
    }
    pthread_mutex_lock(&thread->time_lock);
    ucs_thread_for_each(job, thread) {
        if (ucs_job_is_started(job)) {
            at = ucs_min(at, ucs_load_relaxed(&job->due));
        }
    }
    ucs_scout_done(thread->scout, at);
    pthread_mutex_unlock(&thread->time_lock);
}

static void *ucs_thread_main(void *arg)
{
    ucs_thread_h thread = arg;
    uint32_t seen       = 0;
    uint32_t bell       = 0;

    ucs_thread_self_is_helper = 1;
    ucs_spawn_enter();
    /* A program's traps of floating-point exceptions, which a thread inherits, are not
     * for our numbers */
    (void)fesetenv(FE_DFL_ENV);
    pthread_setname_np(pthread_self(), UCS_THREAD_NAME);
    prctl(PR_SET_TIMERSLACK, 1ul, 0, 0, 0);
    ucs_slice_lengthen();
    ucs_store_relaxed(&thread->tid, (int)syscall(SYS_gettid));

    for (;;) {
        ucs_scout_await(thread->scout, thread->bell, seen);
        /* relaxed: a request to stop comes before what ends the wait */
        if (ucs_load_relaxed(&thread->stop)) {
            break;
        }

        if (thread->bell != NULL) {
            /* relaxed: the step reads it again, with what goes with it */
            bell = ucs_load_relaxed(thread->bell);
        }
        ucs_thread_turn(thread, bell != seen);
        seen = bell;
    }

    ucs_store_relaxed(&thread->tid, 0);
    thread->cpu_ns = ucs_thread_spent();
    ucs_spawn_leave();
    return NULL;
}

/* The caller's step serves the wake-ups of this job so far, not of others */
static void ucs_job_serve(ucs_job_h job)
{
    ucs_job_h other;

    /* acquire [R-CALL]: with the release in ucs_job_wake() */
    (void)ucs_swap_acq_rel(&job->is_called, 0);
    ucs_scout_serve(job->thread->scout);
    ucs_thread_for_each(other, job->thread) {
        /* relaxed: the scout's word was swapped after it */
        if (ucs_job_is_started(other) && ucs_load_relaxed(&other->is_called)) {
            ucs_scout_wake(job->thread->scout);
            return;
        }
    }
}

/* Under the job's lock */
static void ucs_job_advance(ucs_job_h job, uint64_t next)
{
    if (next >= ucs_load_relaxed(&job->due)) {
        return;
    }
    pthread_mutex_lock(&job->thread->time_lock);
    ucs_store_relaxed(&job->due, next);
    if (ucs_job_is_started(job)) {
        ucs_scout_advance(job->thread->scout, next);
    }
    pthread_mutex_unlock(&job->thread->time_lock);
}

int ucs_job_try_step(ucs_job_h job, ucs_step_func_t step, void *arg)
{
    int is_taken = 0;

    ucs_thread_stepped = job;
    if (pthread_mutex_trylock(&job->step_lock) == 0) {
        is_taken = ucs_thread_begin_step();
        if (is_taken) {
            ucs_job_serve(job);
            ucs_job_advance(job, step(arg, ucs_clock_now()));
            ucs_thread_end_step();
        }
        pthread_mutex_unlock(&job->step_lock);
    }
    ucs_thread_stepped = NULL;
    return is_taken;
}

void ucs_job_run(ucs_job_h job)
{
    pthread_mutex_lock(&job->step_lock);
    (void)job->step(job->arg, ucs_clock_now());
    pthread_mutex_unlock(&job->step_lock);
}

ucs_status_t ucs_thread_create(int is_idle, ucs_thread_h *thread_p)
{
    ucs_thread_h thread;
    ucs_status_t status;

    thread = calloc(1, sizeof(*thread));
    if (thread == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    status = ucs_scout_create(is_idle, &thread->scout);
    if (status != UCS_OK) {
        free(thread);
        return status;
    }

    pthread_mutex_init(&thread->time_lock, NULL);
    ucs_exit_mutex_init(&thread->life_lock);
    *thread_p = thread;
    return UCS_OK;
}

void ucs_thread_destroy(ucs_thread_h thread)
{
    ucs_job_h job, next;

    ucs_thread_stop(thread);
    ucs_scout_destroy(thread->scout);
    /* relaxed: nobody adds any more */
    for (job = ucs_load_relaxed(&thread->jobs); job != NULL; job = next) {
        next = job->next;
        pthread_mutex_destroy(&job->step_lock);
        free(job);
    }
    pthread_mutex_destroy(&thread->life_lock.mutex);
    pthread_mutex_destroy(&thread->time_lock);
    free(thread);
}

/* Under the life lock: one that was removed, or a new one */
static ucs_job_h ucs_thread_get_job(ucs_thread_h thread)
{
    ucs_job_h job;

    ucs_thread_for_each(job, thread) {
        if (!job->is_taken) {
            return job;
        }
    }
    job = calloc(1, sizeof(*job));
    if (job != NULL) {
        job->thread = thread;
        job->next   = ucs_load_relaxed(&thread->jobs);
        pthread_mutex_init(&job->step_lock, NULL);
        /* release [T-JOBS]: with the acquire in ucs_thread_for_each() */
        ucs_store_release(&thread->jobs, job);
    }
    return job;
}

ucs_status_t ucs_thread_add(ucs_thread_h thread, ucs_step_func_t step, void *arg,
                            ucs_job_h *job_p)
{
    ucs_job_h job;

    pthread_mutex_lock(&thread->life_lock.mutex);
    job = ucs_thread_get_job(thread);
    if (job != NULL) {
        job->is_taken = 1;
        job->step     = step;
        job->arg      = arg;
        ucs_store_relaxed(&job->due, UINT64_MAX);
    }
    pthread_mutex_unlock(&thread->life_lock.mutex);
    *job_p = job;
    return (job != NULL) ? UCS_OK : UCS_ERR_NO_MEMORY;
}

void ucs_job_stop(ucs_job_h job)
{
    pthread_mutex_lock(&job->step_lock);
    ucs_store_relaxed(&job->is_started, 0);
    pthread_mutex_unlock(&job->step_lock);
}

void ucs_job_remove(ucs_job_h job)
{
    ucs_job_stop(job);
    pthread_mutex_lock(&job->thread->life_lock.mutex);
    job->is_taken = 0;
    pthread_mutex_unlock(&job->thread->life_lock.mutex);
}

static ucs_status_t ucs_thread_start(ucs_thread_h thread)
{
    ucs_status_t status = UCS_OK;
    int ret;

    pthread_mutex_lock(&thread->life_lock.mutex);
    if (thread->life == UCS_THREAD_STOPPED) {
        status = UCS_ERR_BUSY;
    } else if (thread->life == UCS_THREAD_NEW) {
        ucs_scout_start(thread->scout);
        ret = ucs_spawn(&thread->spawned, UCS_STACK_SIZE, ucs_thread_main,
                        thread);
        thread->life = (ret == 0) ? UCS_THREAD_RUNNING : UCS_THREAD_STOPPED;
        if (ret != 0) {
            ucs_scout_stop(thread->scout);
            ucs_helper_warn("the system refuses a helper thread: %s; "
                            "registrations are kept as without the helper",
                            strerror(ret));
            status = UCS_ERR_NO_RESOURCE;
        }
    }
    pthread_mutex_unlock(&thread->life_lock.mutex);
    return status;
}

ucs_status_t ucs_job_start(ucs_job_h job)
{
    ucs_status_t status = ucs_thread_start(job->thread);

    /* release [T-START]: with the acquire in ucs_job_is_started() */
    if ((status == UCS_OK) && !ucs_swap_acq_rel(&job->is_started, 1)) {
        (void)ucs_swap_acq_rel(&job->is_called, 1); /* [R-CALL] */
        ucs_scout_wake(job->thread->scout);
    }
    return status;
}

void ucs_thread_set_bell(ucs_thread_h thread, uint32_t *bell)
{
    thread->bell = (_Atomic(uint32_t)*)bell;
}

/* acq_rel [T-BIND]: with the release in ucs_thread_release_binding() */
static int ucs_thread_take_binding(ucs_thread_h thread, uint32_t from)
{
    return ucs_cas_acq_rel(&thread->binding, &from, UCS_THREAD_TAKEN);
}

void ucs_thread_release_binding(ucs_thread_h thread)
{
    ucs_store_release(&thread->binding, UCS_THREAD_OWN); /* [T-BIND] */
}

int ucs_thread_borrow(ucs_thread_h thread)
{
    /* relaxed: one that has just ended is not found by its number */
    int tid        = ucs_load_relaxed(&thread->tid);
    int cpu        = sched_getcpu();
    cpu_set_t here = {{0}};

    if ((tid == 0) || !ucs_thread_take_binding(thread, UCS_THREAD_OWN)) {
        return 0;
    }
    CPU_SET(cpu, &here); /* one beyond those of a set is not in it */
    if ((sched_getaffinity(tid, sizeof(here), &thread->cpus) != 0) ||
        !CPU_ISSET(cpu, &thread->cpus) ||
        (sched_setaffinity(tid, sizeof(here), &here) != 0)) {
        ucs_thread_release_binding(thread);
        return 0;
    }
    ucs_store_release(&thread->binding, UCS_THREAD_LENT); /* [T-BIND] */
    return 1;
}

void ucs_thread_give_back(ucs_thread_h thread)
{
    int tid = ucs_load_relaxed(&thread->tid); /* relaxed: likewise */

    if (ucs_thread_take_binding(thread, UCS_THREAD_LENT)) {
        if (tid != 0) {
            (void)sched_setaffinity(tid, sizeof(thread->cpus), &thread->cpus);
        }
        ucs_thread_release_binding(thread);
    }
}

int ucs_thread_hold_binding(ucs_thread_h thread)
{
    ucs_thread_give_back(thread);
    return ucs_thread_take_binding(thread, UCS_THREAD_OWN);
}

int ucs_thread_move(ucs_thread_h thread, const cpu_set_t *cpus)
{
    ucs_scout_bind(thread->scout, cpus);
    return sched_setaffinity(0, sizeof(*cpus), cpus) == 0;
}

ucs_status_t ucs_thread_bind(ucs_thread_h thread, const cpu_set_t *cpus)
{
    ucs_status_t status = UCS_ERR_NO_ELEM;

    pthread_mutex_lock(&thread->life_lock.mutex);
    while (!ucs_thread_hold_binding(thread)) {
        /* for some system calls */
        ucs_futex_wait(&thread->binding, UCS_THREAD_TAKEN, UCS_THREAD_PAUSE_NS,
                       UCS_FUTEX_PRIVATE);
    }
    if ((thread->life == UCS_THREAD_RUNNING) &&
        (pthread_setaffinity_np(thread->spawned.id, sizeof(*cpus), cpus) == 0)) {
        ucs_scout_bind(thread->scout, cpus);
        status = UCS_OK;
    }
    ucs_thread_release_binding(thread);
    pthread_mutex_unlock(&thread->life_lock.mutex);
    return status;
}

void ucs_thread_stop(ucs_thread_h thread)
{
    pthread_mutex_lock(&thread->life_lock.mutex);
    if (thread->life == UCS_THREAD_RUNNING) {
        ucs_store_relaxed(&thread->stop, 1);
        ucs_scout_stop(thread->scout);
        (void)ucs_spawn_join(&thread->spawned);
    }
    thread->life = UCS_THREAD_STOPPED;
    pthread_mutex_unlock(&thread->life_lock.mutex);
}

int ucs_thread_end(ucs_thread_h thread)
{
    const struct timespec pause = {0, UCS_THREAD_PAUSE_NS};
    uint64_t end                = ucs_clock_now() + UCS_THREAD_END_WAIT_NS;
    int has_ended               = 1;

    if (!ucs_exit_mutex_hold(&thread->life_lock)) {
        return 0;
    }
    if (thread->life == UCS_THREAD_RUNNING) {
        ucs_store_relaxed(&thread->stop, 1);
        ucs_scout_stop(thread->scout);
        while (!(has_ended = ucs_spawn_try_join(&thread->spawned)) &&
               !((ucs_thread_stepped != NULL) &&
                 (ucs_thread_stepped->thread == thread)) &&
               (ucs_clock_now() < end)) {
            nanosleep(&pause, NULL);
        }
    }
    if (has_ended) {
        thread->life = UCS_THREAD_STOPPED;
    }
    ucs_exit_mutex_release(&thread->life_lock);
    return has_ended;
}

int ucs_thread_is_running(ucs_thread_h thread)
{
    int running;

    pthread_mutex_lock(&thread->life_lock.mutex);
    running = (thread->life == UCS_THREAD_RUNNING);
    pthread_mutex_unlock(&thread->life_lock.mutex);
    return running;
}

uint64_t ucs_thread_cpu_ns(ucs_thread_h thread)
{
    uint64_t cpu_ns = 0;
    clockid_t clock;

    pthread_mutex_lock(&thread->life_lock.mutex);
    if (thread->life != UCS_THREAD_RUNNING) {
        cpu_ns = thread->cpu_ns;
    } else if (pthread_getcpuclockid(thread->spawned.id, &clock) == 0) {
        (void)ucs_clock_read(clock, &cpu_ns);
    }
    cpu_ns += ucs_scout_cpu_ns(thread->scout);
    pthread_mutex_unlock(&thread->life_lock.mutex);
    return cpu_ns;
}

void ucs_thread_count(ucs_thread_h thread)
{
    if (ucs_thread_is_helper()) {
        ucs_scout_count(thread->scout);
    }
}

void ucs_thread_delays(ucs_thread_h thread, uint64_t *worked_ns,
                       uint64_t *delayed_ns)
{
    ucs_scout_delays(thread->scout, worked_ns, delayed_ns);
}

int ucs_thread_hold(void)
{
    const struct timespec pause = {0, UCS_THREAD_PAUSE_NS};
    int is_first  = (ucs_thread_forks++ == 0);
    uint32_t mine = is_first && ucs_thread_is_counted ? UCS_THREAD_STEP : 0;
    unsigned left = ucs_load_relaxed(&ucs_thread_held_in_vain) ?
                            0 : UCS_THREAD_HOLD_TRIES;
    int is_held;

    /* acq_rel [T-STEPS]: with ucs_thread_begin_step() */
    ucs_add_acq_rel(&ucs_thread_steps, UCS_THREAD_FORK - mine);
    /* acquire [T-STEPS]: with the release in ucs_thread_end_step() */
    while (!(is_held = (ucs_load_acquire(&ucs_thread_steps) % UCS_THREAD_FORK ==
                        0)) &&
           (left-- > 0)) {
        nanosleep(&pause, NULL);
    }
    ucs_store_relaxed(&ucs_thread_held_in_vain, !is_held);
    return is_held;
}

void ucs_thread_release(void)
{
    int is_last   = (--ucs_thread_forks == 0);
    uint32_t mine = is_last && ucs_thread_is_counted ? UCS_THREAD_STEP : 0;

    /* release [T-STEPS]: with ucs_thread_begin_step() */
    if (ucs_sub_acq_rel(&ucs_thread_steps, UCS_THREAD_FORK - mine) <
        2 * UCS_THREAD_FORK) {
        ucs_futex_wake_all(&ucs_thread_steps, UCS_FUTEX_PRIVATE);
    }
}

void ucs_thread_forget(void)
{
    ucs_store_relaxed(&ucs_thread_steps, 0);
    ucs_store_relaxed(&ucs_thread_held_in_vain, 0);
    ucs_thread_is_counted = 0;
    ucs_thread_forks      = 0;
}
