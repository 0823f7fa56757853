/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/proc/thread.h>
#include <ucs/sys/io/log.h>
#include <ucs/sys/proc/scout.h>
#include <ucs/sys/proc/spawn.h>

#include <ucs/sys/sync/atomic.h>
#include <ucs/sys/sync/fork_mutex.h>
#include <ucs/sys/clock.h>

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define UCS_STACK_SIZE (512ul << 10)

#define UCS_THREAD_END_WAIT_NS  5000000000ul
#define UCS_THREAD_END_PAUSE_NS 100000

typedef enum ucs_thread_life {
    UCS_THREAD_NEW,
    UCS_THREAD_RUNNING,
    UCS_THREAD_STOPPED
} ucs_thread_life_t;

struct ucs_thread {
    ucs_scout_h       scout;
    _Atomic(uint32_t) *bell;  /* NULL: none */
    _Atomic(int)      stop;
    ucs_step_func_t   step;
    void              *arg;
    /* Protects a step. Taken by the thread with no lock held, and by fork
     * before the cache's locks */
    ucs_fork_mutex_t  step_lock;
    /* Under that lock */
    uint64_t          next;       /* ns: until then no step is due */
    uint32_t          bell_seen;
    /* Protects the following; under it only the locks of pthread_create() are
     * taken */
    ucs_fork_mutex_t  life_lock;
    ucs_thread_life_t life;
    ucs_spawned_t     spawned;
    uint64_t          cpu_ns; /* written by the thread at its end */
};

static __thread int ucs_thread_self_is_helper;

/* Of which this thread takes a step, or is about to; for its own signal handlers. The lock
 * does not tell: it knows its owner some instructions after that has it. */
static __thread volatile ucs_thread_h ucs_thread_stepped;


void ucs_thread_wake(ucs_thread_h thread)
{
    ucs_scout_wake(thread->scout);
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

/* Under the step's lock: take a step if one is due. @return The time of the
 * next one, ns. */
static uint64_t
ucs_thread_turn(ucs_thread_h thread, int is_called, uint32_t bell)
{
    uint64_t now = ucs_clock_now();

    if (is_called || (now >= thread->next) || (bell != thread->bell_seen)) {
        thread->bell_seen = bell;
        thread->next      = thread->step(thread->arg, now);
    }
    return thread->next;
}

static void *ucs_thread_main(void *arg)
{
    ucs_thread_h thread = arg;
    uint32_t bell       = 0;
    int is_called;

    ucs_thread_self_is_helper = 1;
    ucs_spawn_enter();
    pthread_setname_np(pthread_self(), UCS_THREAD_NAME);
    prctl(PR_SET_TIMERSLACK, 1ul, 0, 0, 0);

    for (;;) {
        is_called = ucs_scout_await(thread->scout, thread->bell,
                                    thread->bell_seen);
        /* relaxed: a request to stop comes before what ends the wait */
        if (ucs_load_relaxed(&thread->stop)) {
            break;
        }

        if (thread->bell != NULL) {
            /* relaxed: the step reads it again, with what goes with it */
            bell = ucs_load_relaxed(thread->bell);
        }
        pthread_mutex_lock(&thread->step_lock.mutex);
        ucs_scout_done(thread->scout,
                       ucs_thread_turn(thread, is_called, bell));
        pthread_mutex_unlock(&thread->step_lock.mutex);
    }

    thread->cpu_ns = ucs_thread_spent();
    ucs_spawn_leave();
    return NULL;
}

int ucs_thread_try_step(ucs_thread_h thread, ucs_step_func_t step, void *arg)
{
    uint64_t next;

    ucs_thread_stepped = thread;
    if (pthread_mutex_trylock(&thread->step_lock.mutex) != 0) {
        ucs_thread_stepped = NULL;
        return 0;
    }
    ucs_scout_serve(thread->scout);
    next = step(arg, ucs_clock_now());
    if (next < thread->next) {
        thread->next = next;
        ucs_scout_advance(thread->scout, next);
    }
    pthread_mutex_unlock(&thread->step_lock.mutex);
    ucs_thread_stepped = NULL;
    return 1;
}

int ucs_thread_is_stepping(void)
{
    return ucs_thread_stepped != NULL;
}

ucs_status_t ucs_thread_create(ucs_step_func_t step, void *arg, int is_idle,
                               ucs_thread_h *thread_p)
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

    thread->step = step;
    thread->arg  = arg;
    thread->next = UINT64_MAX;
    ucs_fork_mutex_init(&thread->step_lock);
    ucs_fork_mutex_init(&thread->life_lock);
    *thread_p = thread;
    return UCS_OK;
}

void ucs_thread_destroy(ucs_thread_h thread)
{
    ucs_thread_stop(thread);
    ucs_scout_destroy(thread->scout);
    pthread_mutex_destroy(&thread->life_lock.mutex);
    pthread_mutex_destroy(&thread->step_lock.mutex);
    free(thread);
}

ucs_status_t ucs_thread_start(ucs_thread_h thread)
{
    ucs_status_t status = UCS_OK;
    int ret;

    /* A fork holds it, and a handler of the program's may wait for the caller until
     * then */
    if (pthread_mutex_trylock(&thread->life_lock.mutex) != 0) {
        return UCS_INPROGRESS;
    }
    if (thread->life == UCS_THREAD_RUNNING) {
        goto out;
    }

    if (thread->life == UCS_THREAD_STOPPED) {
        status = UCS_ERR_BUSY;
        goto out;
    }

    ucs_scout_start(thread->scout);
    ret = ucs_spawn(&thread->spawned, UCS_STACK_SIZE, ucs_thread_main, thread);
    if (ret != 0) {
        ucs_scout_stop(thread->scout);
        thread->life = UCS_THREAD_STOPPED;
        ucs_helper_warn("the system refuses a helper thread: %s; registrations "
                        "are kept as without the helper",
                        strerror(ret));
        status = UCS_ERR_NO_RESOURCE;
        goto out;
    }

    thread->life = UCS_THREAD_RUNNING;

out:
    pthread_mutex_unlock(&thread->life_lock.mutex);
    return status;
}

void ucs_thread_set_bell(ucs_thread_h thread, uint32_t *bell)
{
    thread->bell = (_Atomic(uint32_t)*)bell;
}

ucs_status_t ucs_thread_bind(ucs_thread_h thread, const cpu_set_t *cpus)
{
    ucs_status_t status = UCS_ERR_NO_ELEM;

    if (pthread_mutex_trylock(&thread->life_lock.mutex) != 0) {
        return UCS_ERR_BUSY; /* as above */
    }
    if ((thread->life == UCS_THREAD_RUNNING) &&
        (pthread_setaffinity_np(thread->spawned.id, sizeof(*cpus), cpus) == 0)) {
        ucs_scout_bind(thread->scout, cpus);
        status = UCS_OK;
    }
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
    const struct timespec pause = {0, UCS_THREAD_END_PAUSE_NS};
    uint64_t end                = ucs_clock_now() + UCS_THREAD_END_WAIT_NS;
    int has_ended               = 1;

    if (!ucs_fork_mutex_hold(&thread->life_lock)) {
        return 0;
    }
    if (thread->life == UCS_THREAD_RUNNING) {
        ucs_store_relaxed(&thread->stop, 1);
        ucs_scout_stop(thread->scout);
        while (!(has_ended = ucs_spawn_try_join(&thread->spawned)) &&
               (ucs_thread_stepped != thread) &&
               (ucs_clock_now() < end)) {
            nanosleep(&pause, NULL);
        }
    }
    if (has_ended) {
        thread->life = UCS_THREAD_STOPPED;
    }
    ucs_fork_mutex_release(&thread->life_lock);
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

int ucs_thread_hold(ucs_thread_h thread)
{
    (void)ucs_fork_mutex_hold(&thread->life_lock);
    return (ucs_thread_stepped == thread) ?
                   ucs_fork_mutex_hold_now(&thread->step_lock) :
                   ucs_fork_mutex_hold(&thread->step_lock);
}

void ucs_thread_release(ucs_thread_h thread)
{
    ucs_fork_mutex_release(&thread->step_lock);
    ucs_fork_mutex_release(&thread->life_lock);
}
