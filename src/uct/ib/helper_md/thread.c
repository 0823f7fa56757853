/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "thread.h"
#include "log.h"
#include "spawn.h"

#include <ucs/sys/atomic.h>
#include <ucs/sys/clock.h>

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define UCT_HELPER_NSEC_PER_SEC 1000000000ul
#define UCT_HELPER_STACK_SIZE   (512ul << 10)
#define UCT_HELPER_WAIT_SPINS   64

/* Where the kernel cannot wait for two words (before 5.16) the bell is looked
 * at this often */
#define UCT_HELPER_BELL_NS 5000000ul

#define UCT_HELPER_SYS_FUTEX_WAITV 449

/* What a wake-up and the thread tell each other, in one word */
enum {
    UCT_HELPER_THREAD_AWAKE,    /* runs a step, or is about to */
    UCT_HELPER_THREAD_NOTIFIED, /* must run one more step */
    UCT_HELPER_THREAD_ASLEEP    /* waits on the word */
};

typedef enum uct_helper_thread_life {
    UCT_HELPER_THREAD_NEW,
    UCT_HELPER_THREAD_RUNNING,
    UCT_HELPER_THREAD_STOPPED
} uct_helper_thread_life_t;

/* The kernel's struct futex_waitv, which older headers lack */
typedef struct uct_helper_waitv {
    uint64_t value;
    uint64_t address;
    uint32_t flags;
    uint32_t reserved;
} uct_helper_waitv_t;

enum {
    UCT_HELPER_WAITV_SIZE_32 = 2
};

struct uct_helper_thread {
    _Atomic uint32_t         word;
    _Atomic uint32_t         *bell;   /* NULL: none */
    int                      no_waitv;
    _Atomic int              stop;
    uct_helper_step_func_t   step;
    void                     *arg;
    /* Protects a step; taken by the thread with nothing held, and by fork
     * before the engine's own locks */
    pthread_mutex_t          step_lock;
    /* Protects what follows; nothing else is taken while it is held but
     * what pthread_create() takes */
    pthread_mutex_t          life_lock;
    uct_helper_thread_life_t life;
    pthread_t                id;
    uint64_t                 cpu_ns; /* written by the thread at its end */
};


static long uct_helper_futex(void *word, int op, uint32_t value,
                             const struct timespec *timeout)
{
    return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, timeout,
                   NULL, 0);
}

void uct_helper_wait(uint32_t *word, uint32_t value)
{
    _Atomic uint32_t *shared = (_Atomic uint32_t*)word;
    int i;

    /* A registration of some pages is over sooner than a sleep */
    for (i = 0; i < UCT_HELPER_WAIT_SPINS; ++i) {
        if (ucs_load_relaxed(shared) != value) {
            return;
        }
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }

    uct_helper_futex(word, FUTEX_WAIT, value, NULL);
}

void uct_helper_wake_waiters(uint32_t *word)
{
    uct_helper_futex(word, FUTEX_WAKE, INT_MAX, NULL);
}

void uct_helper_thread_wake(uct_helper_thread_h thread)
{
    /* [R-WAKE] what was queued before is seen by the step that follows: pairs
     * with the swap in uct_helper_thread_main() */
    if (ucs_swap_acq_rel(&thread->word, UCT_HELPER_THREAD_NOTIFIED) ==
        UCT_HELPER_THREAD_ASLEEP) {
        uct_helper_futex(&thread->word, FUTEX_WAKE, 1, NULL);
    }
}

static void uct_helper_thread_set_time(struct timespec *ts, uint64_t ns)
{
    ts->tv_sec  = ns / UCT_HELPER_NSEC_PER_SEC;
    ts->tv_nsec = ns % UCT_HELPER_NSEC_PER_SEC;
}

/* @return Zero if the kernel cannot */
static int uct_helper_thread_wait_both(uct_helper_thread_h thread,
                                       uint32_t bell, uint64_t left)
{
    const uct_helper_waitv_t waiters[] = {
        {UCT_HELPER_THREAD_ASLEEP, (uintptr_t)&thread->word,
         UCT_HELPER_WAITV_SIZE_32 | FUTEX_PRIVATE_FLAG, 0},
        {bell, (uintptr_t)thread->bell, UCT_HELPER_WAITV_SIZE_32, 0}
    };
    struct timespec until;
    uint64_t now;

    /* This call takes a time, not a duration */
    clock_gettime(CLOCK_MONOTONIC, &until);
    now = until.tv_sec * UCT_HELPER_NSEC_PER_SEC + until.tv_nsec;
    uct_helper_thread_set_time(&until, now + left);
    return (syscall(UCT_HELPER_SYS_FUTEX_WAITV, waiters, 2, 0,
                    (left == UINT64_MAX) ? NULL : &until,
                    CLOCK_MONOTONIC) >= 0) ||
           ((errno != ENOSYS) && (errno != EPERM) && (errno != EINVAL));
}

static void uct_helper_thread_wait(uct_helper_thread_h thread, uint32_t bell,
                                   uint64_t left)
{
    struct timespec timeout;

    if (thread->bell != NULL) {
        if (!thread->no_waitv) {
            if (uct_helper_thread_wait_both(thread, bell, left)) {
                return;
            }
            thread->no_waitv = 1;
        }
        left = (left < UCT_HELPER_BELL_NS) ? left : UCT_HELPER_BELL_NS;
    }

    uct_helper_thread_set_time(&timeout, left);
    uct_helper_futex(&thread->word, FUTEX_WAIT, UCT_HELPER_THREAD_ASLEEP,
                     (left == UINT64_MAX) ? NULL : &timeout);
}

/* @a bell was read before the step: a change since keeps the thread awake */
static void uct_helper_thread_sleep(uct_helper_thread_h thread, uint64_t until,
                                    uint32_t bell)
{
    uint32_t awake = UCT_HELPER_THREAD_AWAKE;
    uint64_t now;

    now = ucs_clock_now();
    if (until <= now) {
        return;
    }

    /* [R-WAKE] fails if a wake-up came since the step began, whose queue
     * entry that step may have missed */
    if (!ucs_cas_acq_rel(&thread->word, &awake, UCT_HELPER_THREAD_ASLEEP)) {
        return;
    }

    uct_helper_thread_wait(thread, bell,
                           (until == UINT64_MAX) ? until : until - now);
}

static uint64_t uct_helper_thread_read_cpu(clockid_t clock)
{
    struct timespec ts;

    if (clock_gettime(clock, &ts) != 0) {
        return 0;
    }

    return (ts.tv_sec * UCT_HELPER_NSEC_PER_SEC) + ts.tv_nsec;
}

uint64_t uct_helper_thread_spent(void)
{
    return uct_helper_thread_read_cpu(CLOCK_THREAD_CPUTIME_ID);
}

static void *uct_helper_thread_main(void *arg)
{
    uct_helper_thread_h thread = arg;
    uint32_t bell              = 0;
    uint64_t next;

    uct_helper_spawn_enter();
    pthread_setname_np(pthread_self(), UCT_HELPER_THREAD_NAME);
    prctl(PR_SET_TIMERSLACK, 1ul, 0, 0, 0);

    for (;;) {
        /* [R-WAKE] pairs with the swap in uct_helper_thread_wake(). A request
         * to stop comes before its wake-up, so it is looked at after this */
        ucs_swap_acq_rel(&thread->word, UCT_HELPER_THREAD_AWAKE);
        if (ucs_load_relaxed(&thread->stop)) {
            break;
        }

        if (thread->bell != NULL) {
            /* relaxed: the step reads it again, with what goes with it */
            bell = ucs_load_relaxed(thread->bell);
        }
        pthread_mutex_lock(&thread->step_lock);
        next = thread->step(thread->arg, ucs_clock_now());
        pthread_mutex_unlock(&thread->step_lock);

        ucs_clock_refine();
        uct_helper_thread_sleep(thread, next, bell);
    }

    thread->cpu_ns = uct_helper_thread_spent();
    uct_helper_spawn_leave();
    return NULL;
}

ucs_status_t uct_helper_thread_create(uct_helper_step_func_t step, void *arg,
                                      uct_helper_thread_h *thread_p)
{
    uct_helper_thread_h thread;

    thread = calloc(1, sizeof(*thread));
    if (thread == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    thread->step = step;
    thread->arg  = arg;
    pthread_mutex_init(&thread->step_lock, NULL);
    pthread_mutex_init(&thread->life_lock, NULL);
    *thread_p = thread;
    return UCS_OK;
}

void uct_helper_thread_destroy(uct_helper_thread_h thread)
{
    uct_helper_thread_stop(thread);
    pthread_mutex_destroy(&thread->life_lock);
    pthread_mutex_destroy(&thread->step_lock);
    free(thread);
}

ucs_status_t uct_helper_thread_start(uct_helper_thread_h thread)
{
    ucs_status_t status = UCS_OK;
    int ret;

    pthread_mutex_lock(&thread->life_lock);
    if (thread->life == UCT_HELPER_THREAD_RUNNING) {
        goto out;
    }

    if (thread->life == UCT_HELPER_THREAD_STOPPED) {
        status = UCS_ERR_BUSY;
        goto out;
    }

    ret = uct_helper_spawn(&thread->id, UCT_HELPER_STACK_SIZE,
                           uct_helper_thread_main, thread);
    if (ret != 0) {
        thread->life = UCT_HELPER_THREAD_STOPPED;
        uct_helper_warn("the system refuses a helper thread: %s; registrations "
                        "are kept as without the helper", strerror(ret));
        status = UCS_ERR_NO_RESOURCE;
        goto out;
    }

    thread->life = UCT_HELPER_THREAD_RUNNING;

out:
    pthread_mutex_unlock(&thread->life_lock);
    return status;
}

void uct_helper_thread_set_bell(uct_helper_thread_h thread, uint32_t *bell)
{
    thread->bell = (_Atomic uint32_t*)bell;
}

ucs_status_t uct_helper_thread_bind(uct_helper_thread_h thread,
                                    const ucs_cpu_set_t *cpus)
{
    ucs_status_t status = UCS_ERR_NO_ELEM;

    pthread_mutex_lock(&thread->life_lock);
    /* Both are arrays of unsigned long, one bit for each processor */
    if ((thread->life == UCT_HELPER_THREAD_RUNNING) &&
        (pthread_setaffinity_np(thread->id, sizeof(*cpus),
                                (const cpu_set_t*)cpus) == 0)) {
        status = UCS_OK;
    }
    pthread_mutex_unlock(&thread->life_lock);
    return status;
}

void uct_helper_thread_stop(uct_helper_thread_h thread)
{
    pthread_mutex_lock(&thread->life_lock);
    if (thread->life == UCT_HELPER_THREAD_RUNNING) {
        ucs_store_relaxed(&thread->stop, 1);
        uct_helper_thread_wake(thread);
        pthread_join(thread->id, NULL);
    }
    thread->life = UCT_HELPER_THREAD_STOPPED;
    pthread_mutex_unlock(&thread->life_lock);
}

int uct_helper_thread_is_running(uct_helper_thread_h thread)
{
    int running;

    pthread_mutex_lock(&thread->life_lock);
    running = (thread->life == UCT_HELPER_THREAD_RUNNING);
    pthread_mutex_unlock(&thread->life_lock);
    return running;
}

uint64_t uct_helper_thread_cpu_ns(uct_helper_thread_h thread)
{
    uint64_t cpu_ns = 0;
    clockid_t clock;

    pthread_mutex_lock(&thread->life_lock);
    if (thread->life != UCT_HELPER_THREAD_RUNNING) {
        cpu_ns = thread->cpu_ns;
    } else if (pthread_getcpuclockid(thread->id, &clock) == 0) {
        cpu_ns = uct_helper_thread_read_cpu(clock);
    }
    pthread_mutex_unlock(&thread->life_lock);
    return cpu_ns;
}

void uct_helper_thread_hold(uct_helper_thread_h thread)
{
    pthread_mutex_lock(&thread->life_lock);
    pthread_mutex_lock(&thread->step_lock);
}

void uct_helper_thread_release(uct_helper_thread_h thread)
{
    pthread_mutex_unlock(&thread->step_lock);
    pthread_mutex_unlock(&thread->life_lock);
}
