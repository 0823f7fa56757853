/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE /* RUSAGE_THREAD */
#endif
#include "thread.h"
#include "futex.h"
#include "log.h"
#include "spawn.h"

#include <ucs/sys/atomic.h>
#include <ucs/sys/clock.h>
#include <ucs/sys/math.h>

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#define UCS_STACK_SIZE (512ul << 10)

/* Where the kernel cannot wait for two words (before 5.16) the bell is looked
 * at this often */
#define UCS_BELL_NS 5000000ul

/* Times its patience after which the thread takes a step of its own although
 * others take them, for some work is the thread's alone, such as the node's. Half:
 * twice as many switches while ranks wait. Double: where waits end that have
 * lasted for as long, it may be late by 0.16 s, or 0.64 s on crowded cores. */
#define UCS_THREAD_OWN 16u

/* What a wake-up and the thread tell each other, in one word */
enum {
    UCS_THREAD_AWAKE,    /* runs a step, or is about to */
    UCS_THREAD_NOTIFIED, /* must run one more step */
    UCS_THREAD_STIRRED,  /* must look again when it is to come */
    UCS_THREAD_ASLEEP,   /* waits on the word */
    UCS_THREAD_DOZING    /* likewise, for its patience at most: others take its
                            steps meanwhile, and a wake-up can wait */
};

typedef enum ucs_thread_life {
    UCS_THREAD_NEW,
    UCS_THREAD_RUNNING,
    UCS_THREAD_STOPPED
} ucs_thread_life_t;

struct ucs_thread {
    _Atomic(uint32_t) word;
    _Atomic(uint32_t) *bell;  /* NULL: none */
    int               no_waitv;
    _Atomic(int)      stop;
    ucs_step_func_t   step;
    void              *arg;
    /* Protects a step; taken by the thread with nothing held, and by fork
     * before the cache's own locks */
    pthread_mutex_t   step_lock;
    /* Under that lock, nanoseconds */
    uint64_t          next;       /* until then no step is due */
    uint64_t          patience;   /* 0: it leaves its steps to nobody */
    uint64_t          left_until; /* until then it leaves them to others */
    uint64_t          left_since; /* others have taken them without a gap */
    uint64_t          own_at;     /* then it takes one of its own in any case */
    uint64_t          armed;      /* until then it sleeps unless it is woken */
    int               is_called;  /* a wake-up that no step has served */
    uint32_t          bell_seen;
    /* Protects what follows; nothing else is taken while it is held but
     * what pthread_create() takes */
    pthread_mutex_t   life_lock;
    ucs_thread_life_t life;
    ucs_spawned_t     spawned;
    uint64_t          cpu_ns; /* written by the thread at its end */
    uint64_t          switches; /* likewise */
};

static __thread int ucs_thread_self_is_helper;


void ucs_thread_wake(ucs_thread_h thread)
{
    /* release [R-WAKE]: pairs with the acquire in ucs_thread_main(): what was
     * queued before is seen by the step that follows. One that dozes will see
     * it, too, when its time is over. */
    if (ucs_swap_acq_rel(&thread->word, UCS_THREAD_NOTIFIED) ==
        UCS_THREAD_ASLEEP) {
        ucs_futex_wake(&thread->word, 1, UCS_FUTEX_PRIVATE);
    }
}

/* It is to come sooner than it said. Not if it has been woken, or dozes: then
 * it looks by itself. */
static void ucs_thread_stir(ucs_thread_h thread)
{
    uint32_t word = ucs_load_relaxed(&thread->word);

    while ((word == UCS_THREAD_AWAKE) || (word == UCS_THREAD_ASLEEP)) {
        /* release [R-WAKE]: pairs with the acquire in ucs_thread_main() */
        if (ucs_cas_acq_rel(&thread->word, &word, UCS_THREAD_STIRRED)) {
            if (word == UCS_THREAD_ASLEEP) {
                ucs_futex_wake(&thread->word, 1, UCS_FUTEX_PRIVATE);
            }
            return;
        }
    }
}

/* @return Zero if the kernel cannot */
static int ucs_thread_wait_both(ucs_thread_h thread, uint32_t word,
                                uint32_t bell, uint64_t left)
{
    const ucs_futex_word_t words[] = {
        {&thread->word, word, UCS_FUTEX_PRIVATE},
        {thread->bell, bell, UCS_FUTEX_SHARED}
    };

    return ucs_futex_wait_both(words, left);
}

static void ucs_thread_wait(ucs_thread_h thread, uint32_t word, uint32_t bell,
                            uint64_t left)
{
    if (thread->bell != NULL) {
        if (!thread->no_waitv) {
            if (ucs_thread_wait_both(thread, word, bell, left)) {
                return;
            }
            thread->no_waitv = 1;
        }
        left = (left < UCS_BELL_NS) ? left : UCS_BELL_NS;
    }

    ucs_futex_wait(&thread->word, word, left, UCS_FUTEX_PRIVATE);
}

/* @a bell was read before the step: a change since keeps the thread awake */
static void ucs_thread_sleep(ucs_thread_h thread, uint32_t word, uint64_t until,
                             uint32_t bell)
{
    uint32_t awake = UCS_THREAD_AWAKE;
    uint64_t now;

    now = ucs_clock_now();
    if (until <= now) {
        return;
    }

    /* acquire [R-WAKE]: pairs with the release in ucs_thread_wake(); fails if
     * a wake-up came since the step began, whose queue entry that step may
     * have missed */
    if (!ucs_cas_acq_rel(&thread->word, &awake, word)) {
        return;
    }

    ucs_thread_wait(thread, word, bell,
                    (until == UINT64_MAX) ? until : until - now);
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

/* Others take its steps. To look whether they still do costs two switches, so it
 * looks after as long as they have come: steps that have come for so long go on
 * (the bound of ski rental), and if they do not, the thread is late for no longer
 * than it was spared. */
static uint64_t ucs_thread_doze(const struct ucs_thread *thread, uint64_t now)
{
    uint64_t until = now + (now - ucs_min(now, thread->left_since));

    return ucs_min(ucs_max(until, thread->left_until), thread->own_at);
}

/* Stirred, or at a time that others have put off since, it has nothing to do but
 * to sleep until another: a step would come in the midst of what a rank waits
 * for, on cores that ranks want. */
static int ucs_thread_is_due(const struct ucs_thread *thread, uint64_t now)
{
    return thread->is_called || (now >= thread->next);
}

/* Under the step's lock: a step if one is due, unless others take them. A wake-up
 * that came before one of theirs is served by it; any other one by a step of its
 * own, as soon as it finds that they have not come for its patience, or at the
 * time of its own.
 *
 * @return How it sleeps, until thread->armed. */
static uint32_t
ucs_thread_turn(ucs_thread_h thread, int is_called, uint32_t bell)
{
    uint64_t now = ucs_clock_now();
    uint64_t until;

    thread->is_called |= is_called;
    if ((ucs_thread_is_due(thread, now) &&
         (now >= ucs_min(thread->left_until, thread->own_at))) ||
        (bell != thread->bell_seen)) {
        thread->is_called = 0;
        thread->bell_seen = bell;
        thread->next      = thread->step(thread->arg, now);
        thread->own_at    = now + UCS_THREAD_OWN * thread->patience;
    }

    until = ucs_thread_doze(thread, now);
    if ((now < thread->left_until) &&
        (thread->is_called || (thread->next <= until))) {
        thread->armed = until;
        return UCS_THREAD_DOZING;
    }
    thread->armed = thread->next;
    return UCS_THREAD_ASLEEP;
}

static uint64_t ucs_thread_count_switches(void)
{
    struct rusage usage;

    return (getrusage(RUSAGE_THREAD, &usage) == 0) ?
                   (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw) : 0;
}

static void *ucs_thread_main(void *arg)
{
    ucs_thread_h thread = arg;
    uint32_t bell       = 0;
    uint32_t word;
    uint64_t until;
    int is_called;

    ucs_thread_self_is_helper = 1;
    ucs_spawn_enter();
    pthread_setname_np(pthread_self(), UCS_THREAD_NAME);
    prctl(PR_SET_TIMERSLACK, 1ul, 0, 0, 0);

    for (;;) {
        /* acquire [R-WAKE]: pairs with the release in ucs_thread_wake(). A
         * request to stop comes before its wake-up, so it is looked at after
         * this */
        is_called = (ucs_swap_acq_rel(&thread->word, UCS_THREAD_AWAKE) ==
                     UCS_THREAD_NOTIFIED);
        if (ucs_load_relaxed(&thread->stop)) {
            break;
        }

        if (thread->bell != NULL) {
            /* relaxed: the step reads it again, with what goes with it */
            bell = ucs_load_relaxed(thread->bell);
        }
        pthread_mutex_lock(&thread->step_lock);
        word  = ucs_thread_turn(thread, is_called, bell);
        until = thread->armed;
        pthread_mutex_unlock(&thread->step_lock);

        ucs_clock_refine();
        ucs_thread_sleep(thread, word, until, bell);
    }

    thread->cpu_ns   = ucs_thread_spent();
    thread->switches = ucs_thread_count_switches();
    ucs_spawn_leave();
    return NULL;
}

int ucs_thread_try_step(ucs_thread_h thread, ucs_step_func_t step, void *arg)
{
    uint64_t next, now;
    int is_sooner;

    if (pthread_mutex_trylock(&thread->step_lock) != 0) {
        return 0;
    }
    thread->is_called = 0;
    next              = step(arg, ucs_clock_now());
    if (thread->patience != 0) {
        now = ucs_clock_now();
        if (now >= thread->left_until) {
            thread->left_since = now; /* the first for a while */
        }
        thread->left_until = now + thread->patience;
        thread->next       = next;
        is_sooner = (ucs_max(next, thread->left_until) < thread->armed);
    } else {
        is_sooner    = (next < thread->next);
        thread->next = is_sooner ? next : thread->next;
    }
    pthread_mutex_unlock(&thread->step_lock);
    if (is_sooner) {
        ucs_thread_stir(thread);
    }
    return 1;
}

void ucs_thread_set_patience(ucs_thread_h thread, uint64_t ns)
{
    thread->patience   = ns;
    thread->left_until = (ns != 0) ? thread->left_until : 0;
}

ucs_status_t ucs_thread_create(ucs_step_func_t step, void *arg,
                               ucs_thread_h *thread_p)
{
    ucs_thread_h thread;

    thread = calloc(1, sizeof(*thread));
    if (thread == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    thread->step  = step;
    thread->arg   = arg;
    thread->next  = UINT64_MAX;
    thread->armed = UINT64_MAX;
    thread->is_called = 1; /* by its start */
    pthread_mutex_init(&thread->step_lock, NULL);
    pthread_mutex_init(&thread->life_lock, NULL);
    *thread_p = thread;
    return UCS_OK;
}

void ucs_thread_destroy(ucs_thread_h thread)
{
    ucs_thread_stop(thread);
    pthread_mutex_destroy(&thread->life_lock);
    pthread_mutex_destroy(&thread->step_lock);
    free(thread);
}

ucs_status_t ucs_thread_start(ucs_thread_h thread)
{
    ucs_status_t status = UCS_OK;
    int ret;

    pthread_mutex_lock(&thread->life_lock);
    if (thread->life == UCS_THREAD_RUNNING) {
        goto out;
    }

    if (thread->life == UCS_THREAD_STOPPED) {
        status = UCS_ERR_BUSY;
        goto out;
    }

    ret = ucs_spawn(&thread->spawned, UCS_STACK_SIZE, ucs_thread_main, thread);
    if (ret != 0) {
        thread->life = UCS_THREAD_STOPPED;
        ucs_helper_warn("the system refuses a helper thread: %s; registrations "
                        "are kept as without the helper",
                        strerror(ret));
        status = UCS_ERR_NO_RESOURCE;
        goto out;
    }

    thread->life = UCS_THREAD_RUNNING;

out:
    pthread_mutex_unlock(&thread->life_lock);
    return status;
}

void ucs_thread_set_bell(ucs_thread_h thread, uint32_t *bell)
{
    thread->bell = (_Atomic(uint32_t)*)bell;
}

ucs_status_t ucs_thread_bind(ucs_thread_h thread, const cpu_set_t *cpus)
{
    ucs_status_t status = UCS_ERR_NO_ELEM;

    pthread_mutex_lock(&thread->life_lock);
    if ((thread->life == UCS_THREAD_RUNNING) &&
        (pthread_setaffinity_np(thread->spawned.id, sizeof(*cpus), cpus) == 0)) {
        status = UCS_OK;
    }
    pthread_mutex_unlock(&thread->life_lock);
    return status;
}

void ucs_thread_set_batch(ucs_thread_h thread)
{
    struct sched_param param;
    int policy;

    pthread_mutex_lock(&thread->life_lock);
    if ((thread->life == UCS_THREAD_RUNNING) &&
        (pthread_getschedparam(thread->spawned.id, &policy, &param) == 0) &&
        (policy == SCHED_OTHER)) {
        /* Where that fails it is as before: nothing is wrong */
        (void)pthread_setschedparam(thread->spawned.id, SCHED_BATCH, &param);
    }
    pthread_mutex_unlock(&thread->life_lock);
}

void ucs_thread_stop(ucs_thread_h thread)
{
    pthread_mutex_lock(&thread->life_lock);
    if (thread->life == UCS_THREAD_RUNNING) {
        ucs_store_relaxed(&thread->stop, 1);
        ucs_thread_wake(thread);
        /* Also one that dozes */
        ucs_futex_wake(&thread->word, 1, UCS_FUTEX_PRIVATE);
        (void)ucs_spawn_join(&thread->spawned);
    }
    thread->life = UCS_THREAD_STOPPED;
    pthread_mutex_unlock(&thread->life_lock);
}

int ucs_thread_is_running(ucs_thread_h thread)
{
    int running;

    pthread_mutex_lock(&thread->life_lock);
    running = (thread->life == UCS_THREAD_RUNNING);
    pthread_mutex_unlock(&thread->life_lock);
    return running;
}

uint64_t ucs_thread_cpu_ns(ucs_thread_h thread)
{
    uint64_t cpu_ns = 0;
    clockid_t clock;

    pthread_mutex_lock(&thread->life_lock);
    if (thread->life != UCS_THREAD_RUNNING) {
        cpu_ns = thread->cpu_ns;
    } else if (pthread_getcpuclockid(thread->spawned.id, &clock) == 0) {
        (void)ucs_clock_read(clock, &cpu_ns);
    }
    pthread_mutex_unlock(&thread->life_lock);
    return cpu_ns;
}

uint64_t ucs_thread_switches(ucs_thread_h thread)
{
    uint64_t switches;

    pthread_mutex_lock(&thread->life_lock);
    switches = (thread->life == UCS_THREAD_STOPPED) ? thread->switches : 0;
    pthread_mutex_unlock(&thread->life_lock);
    return switches;
}

void ucs_thread_hold(ucs_thread_h thread)
{
    pthread_mutex_lock(&thread->life_lock);
    pthread_mutex_lock(&thread->step_lock);
}

void ucs_thread_release(ucs_thread_h thread)
{
    pthread_mutex_unlock(&thread->step_lock);
    pthread_mutex_unlock(&thread->life_lock);
}
