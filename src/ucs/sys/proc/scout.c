/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include <ucs/sys/proc/scout.h>
#include <ucs/sys/sync/futex.h>
#include <ucs/sys/mem/own_memory.h>
#include <ucs/sys/proc/spawn.h>
#include <ucs/sys/proc/waited.h>

#include <ucs/sys/clock.h>
#include <ucs/sys/math.h>

#include <pthread.h>
#include <sys/prctl.h>

#define UCS_SCOUT_NAME "ucx-scout"

/* The thread only makes system calls */
#define UCS_SCOUT_STACK_SIZE (64ul << 10)

/* Before Linux 5.16, which can wait for two words, the bell is read this
 * often */
#define UCS_SCOUT_BELL_NS UINT64_C(5000000)

/* An offer of the core that took longer was taken up, ns. On an idle core it takes some
 * 1000, and a thread that runs has it for 700000 at least. */
#define UCS_SCOUT_OFFER_NS UINT64_C(50000)

/* State shared by the sleeping helper and those that wake it, in one word */
enum {
    UCS_SCOUT_AWAKE,    /* about to look whether a turn is due */
    UCS_SCOUT_NOTIFIED, /* woken: a turn is due */
    UCS_SCOUT_STIRRED,  /* must read the time of the next turn again */
    UCS_SCOUT_ASLEEP    /* waits on the word */
};

/* Whose turn it is */
enum {
    UCS_SCOUT_LOOKS,  /* the scout's */
    UCS_SCOUT_GIVES,  /* the helper's */
    UCS_SCOUT_STOPPED /* no turns any more */
};

struct ucs_scout {
    _Atomic(uint32_t) word;
    _Atomic(uint32_t) turn;
    _Atomic(uint64_t) at;       /* ns, when the next one is due */
    int               is_idle;  /* there is a thread */
    int               has_turn; /* the helper has it; used by it only */
    int               no_waitv;
    uint64_t          begun;    /* ns of its processor time, as that turn began */
    int               counts;   /* it is to be counted */
    uint64_t          took;     /* ns, the latest turn; 0: it is not counted */
    _Atomic(uint64_t) worked;   /* ns, all of them */
    _Atomic(uint64_t) delayed;  /* ns, what was waited for it */
    uint64_t          cpu_ns;   /* at its stop */
    ucs_spawned_t     spawned;  /* has a stack while it is not joined */
    ucs_scout_h       next;     /* of those that were destroyed */
};

/* Destroyed scouts whose threads are not joined. Without a lock, for a process
 * may fork at any time: the whole list is taken, and the rest put back. */
static _Atomic(ucs_scout_h) ucs_scout_left_over;

static void ucs_scout_leave_over(ucs_scout_h scout)
{
    /* relaxed: compared only */
    ucs_scout_h first = ucs_load_relaxed(&ucs_scout_left_over);

    do {
        scout->next = first;
        /* release [S-LEFT]: pairs with the acquire in ucs_scout_reap() */
    } while (!ucs_cas_acq_rel(&ucs_scout_left_over, &first, scout));
}

/* Release those whose threads have ended */
static void ucs_scout_reap(void)
{
    ucs_scout_h scout, next;

    /* acquire [S-LEFT]: pairs with the release in ucs_scout_leave_over() */
    next = ucs_swap_acq_rel(&ucs_scout_left_over, NULL);
    while ((scout = next) != NULL) {
        next = scout->next;
        if (ucs_spawn_try_join(&scout->spawned)) {
            ucs_own_free(scout);
        } else {
            ucs_scout_leave_over(scout);
        }
    }
}

static int ucs_scout_has_thread(ucs_scout_h scout)
{
    return scout->spawned.stack != NULL;
}

void ucs_scout_wake(ucs_scout_h scout)
{
    /* release [R-WAKE]: pairs with the acquire in ucs_scout_look() and
     * ucs_scout_serve(): what was queued before is seen by the step that
     * follows */
    if (ucs_swap_acq_rel(&scout->word, UCS_SCOUT_NOTIFIED) ==
        UCS_SCOUT_ASLEEP) {
        ucs_futex_wake(&scout->word, 1, UCS_FUTEX_PRIVATE);
    }
}

void ucs_scout_serve(ucs_scout_h scout)
{
    uint32_t word = UCS_SCOUT_NOTIFIED;

    /* acquire [R-WAKE]: with the release in ucs_scout_wake() */
    (void)ucs_cas_acq_rel(&scout->word, &word, UCS_SCOUT_STIRRED);
}

void ucs_scout_advance(ucs_scout_h scout, uint64_t at)
{
    uint32_t word = UCS_SCOUT_AWAKE;
    uint32_t next;

    if (at >= ucs_load_relaxed(&scout->at)) {
        return;
    }
    ucs_store_relaxed(&scout->at, at);
    do {
        next = (word == UCS_SCOUT_NOTIFIED) ? word : UCS_SCOUT_STIRRED;
        /* release [R-WAKE]: pairs with the acquire in ucs_scout_look(): the time is seen
         * with it. Also where the word stays as it is: who is about to swap it may have
         * the former time still */
    } while (!ucs_cas_acq_rel(&scout->word, &word, next));
    if (word == UCS_SCOUT_ASLEEP) {
        ucs_futex_wake(&scout->word, 1, UCS_FUTEX_PRIVATE);
    }
}

/* Wait while both words are as given. The second one may be NULL. */
static void ucs_scout_wait(ucs_scout_h scout, _Atomic(uint32_t) *word,
                           uint32_t value, _Atomic(uint32_t) *bell,
                           uint32_t seen, uint64_t left)
{
    const ucs_futex_word_t words[] = {{word, value, UCS_FUTEX_PRIVATE},
                                      {bell, seen, UCS_FUTEX_SHARED}};

    if (bell != NULL) {
        if (!scout->no_waitv) {
            if (ucs_futex_wait_both(words, left)) {
                return;
            }
            scout->no_waitv = 1;
        }
        left = ucs_min(left, UCS_SCOUT_BELL_NS);
    }
    ucs_futex_wait(word, value, left, UCS_FUTEX_PRIVATE);
}

/* Wait for the time, a wake-up or the bell. @return Nonzero if it was woken. */
static int ucs_scout_look(ucs_scout_h scout, _Atomic(uint32_t) *bell,
                          uint32_t seen)
{
    uint32_t awake = UCS_SCOUT_AWAKE;
    uint64_t at    = ucs_load_relaxed(&scout->at);
    uint64_t now   = ucs_clock_now();

    /* acq_rel [R-WAKE]: it fails if a wake-up came since the last look, whose
     * queue entry the step before may have missed, or a sooner time */
    if ((at > now) && ucs_cas_acq_rel(&scout->word, &awake, UCS_SCOUT_ASLEEP)) {
        ucs_scout_wait(scout, &scout->word, UCS_SCOUT_ASLEEP, bell, seen,
                       (at == UINT64_MAX) ? UCS_FUTEX_FOREVER : at - now);
    }
    /* acquire [R-WAKE]: pairs with the release in ucs_scout_wake() and
     * ucs_scout_advance() */
    return ucs_swap_acq_rel(&scout->word, UCS_SCOUT_AWAKE) ==
           UCS_SCOUT_NOTIFIED;
}

/* --- The thread ----------------------------------------------------------- */

/* The turn is over and a core is idle again, so the waits that it caused have ended and
 * are told. Those of others after it count for no more than the turn took. */
static void ucs_scout_add_delay(ucs_scout_h scout, const ucs_waited_t *before)
{
    uint64_t took = scout->took;

    if (took > 0) {
        /* relaxed, both: sums, which only this thread changes */
        ucs_add_relaxed(&scout->worked, took);
        ucs_add_relaxed(&scout->delayed, ucs_min(ucs_waited_since(before), took));
    }
}

/* The kernel gives a SCHED_IDLE thread a moment now and then beside another one that
 * goes on. So a core is idle only if nothing else takes it when it is offered. Where none
 * becomes idle the turn comes all the same: how much of it is waited for tells the
 * helper that it is not to plan here. */
static void ucs_scout_until_idle(ucs_scout_h scout)
{
    uint64_t begin = ucs_clock_now();
    uint64_t now   = begin;
    uint64_t offer;

    do {
        offer = now;
        (void)sched_yield();
        now = ucs_clock_now();
    } while ((now - offer > UCS_SCOUT_OFFER_NS) &&
             (now - begin < UCS_SCOUT_PATIENCE_NS));
}

/* The scout's part of a turn */
static void ucs_scout_give(ucs_scout_h scout)
{
    uint32_t turn = UCS_SCOUT_LOOKS;
    ucs_waited_t waited;

    ucs_scout_until_idle(scout);
    ucs_waited_read(&waited);

    /* acq_rel [S-TURN]: with the load in ucs_scout_await() */
    if (ucs_cas_acq_rel(&scout->turn, &turn, UCS_SCOUT_GIVES)) {
        ucs_futex_wake(&scout->turn, 1, UCS_FUTEX_PRIVATE);
    }
    /* acquire [S-TURN]: with the swap in ucs_scout_done() */
    while ((turn = ucs_load_acquire(&scout->turn)) == UCS_SCOUT_GIVES) {
        ucs_futex_wait(&scout->turn, UCS_SCOUT_GIVES, UCS_FUTEX_FOREVER,
                       UCS_FUTEX_PRIVATE);
    }
    if (turn == UCS_SCOUT_LOOKS) {
        ucs_scout_until_idle(scout);
        ucs_scout_add_delay(scout, &waited);
    }
}

static void *ucs_scout_main(void *arg)
{
    const struct sched_param param = {.sched_priority = 0};
    ucs_scout_h scout              = arg;

    ucs_spawn_enter();
    pthread_setname_np(pthread_self(), UCS_SCOUT_NAME);
    prctl(PR_SET_TIMERSLACK, 1ul, 0, 0, 0);
    /* If refused, turns come as without a scout */
    (void)pthread_setschedparam(pthread_self(), SCHED_IDLE, &param);

    /* relaxed: only the end follows */
    while (ucs_load_relaxed(&scout->turn) != UCS_SCOUT_STOPPED) {
        if (ucs_scout_look(scout, NULL, 0) ||
            (ucs_clock_now() >= ucs_load_relaxed(&scout->at))) {
            ucs_scout_give(scout);
        }
    }

    ucs_spawn_leave();
    return NULL;
}

/* --- The helper's side ---------------------------------------------------- */

ucs_status_t ucs_scout_create(int is_idle, ucs_scout_h *scout_p)
{
    ucs_scout_h scout = ucs_own_alloc(sizeof(*scout));

    ucs_scout_reap();
    if (scout == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    scout->word    = UCS_SCOUT_NOTIFIED;
    scout->at      = UINT64_MAX;
    scout->is_idle = is_idle;
    *scout_p       = scout;
    return UCS_OK;
}

void ucs_scout_destroy(ucs_scout_h scout)
{
    if (ucs_scout_has_thread(scout)) {
        ucs_scout_leave_over(scout);
    } else {
        ucs_own_free(scout);
    }
    ucs_scout_reap();
}

void ucs_scout_start(ucs_scout_h scout)
{
    if (scout->is_idle && (ucs_spawn(&scout->spawned, UCS_SCOUT_STACK_SIZE,
                                     ucs_scout_main, scout) != 0)) {
        scout->is_idle = 0;
    }
}

void ucs_scout_bind(ucs_scout_h scout, const cpu_set_t *cpus)
{
    if (ucs_scout_has_thread(scout)) {
        (void)pthread_setaffinity_np(scout->spawned.id, sizeof(*cpus), cpus);
    }
}

/* Nanoseconds for which the helper waits for an idle core, before it looks again: a sooner
 * time may be told meanwhile. @a woken is when it found a wake-up. */
static uint64_t ucs_scout_left(ucs_scout_h scout, uint64_t woken)
{
    uint64_t at  = ucs_min(ucs_load_relaxed(&scout->at), woken);
    uint64_t now = ucs_clock_now();

    if (at >= UINT64_MAX - UCS_SCOUT_OVERDUE_NS) {
        return UCS_SCOUT_OVERDUE_NS;
    }
    at += UCS_SCOUT_OVERDUE_NS;
    return (at > now) ? ucs_min(at - now, UCS_SCOUT_OVERDUE_NS) : 0;
}

/* A helper that has lost its processor, or sleeps, is in nobody's way */
static uint64_t ucs_scout_used_ns(void)
{
    uint64_t ns;

    (void)ucs_clock_read(CLOCK_THREAD_CPUTIME_ID, &ns);
    return ns;
}

void ucs_scout_await(ucs_scout_h scout, _Atomic(uint32_t) *bell, uint32_t seen)
{
    uint64_t woken = UINT64_MAX;
    uint64_t left;

    if (!scout->is_idle) {
        (void)ucs_scout_look(scout, bell, seen);
        return;
    }

    /* acquire [S-TURN]: with the swap in ucs_scout_give() */
    while ((ucs_load_acquire(&scout->turn) == UCS_SCOUT_LOOKS) &&
           ((bell == NULL) || (ucs_load_relaxed(bell) == seen)) &&
           ((left = ucs_scout_left(scout, woken)) > 0)) {
        ucs_scout_wait(scout, &scout->turn, UCS_SCOUT_LOOKS, bell, seen, left);
        /* relaxed: what is queued with it is acquired before the step */
        woken = (ucs_load_relaxed(&scout->word) == UCS_SCOUT_NOTIFIED) ?
                        ucs_min(woken, ucs_clock_now()) :
                        UINT64_MAX;
    }
    /* acquire [S-TURN]: likewise, if it came with the bell */
    scout->has_turn = (ucs_load_acquire(&scout->turn) == UCS_SCOUT_GIVES);
    scout->begun    = ucs_scout_used_ns();
    scout->counts   = 0;
}

void ucs_scout_done(ucs_scout_h scout, uint64_t at)
{
    uint32_t turn = UCS_SCOUT_GIVES;

    if (scout->is_idle && !scout->has_turn) {
        /* The thread sleeps until the former time; a turn that it gave during
         * this one is still to come */
        ucs_scout_advance(scout, at);
    }
    ucs_store_relaxed(&scout->at, at);
    if (scout->has_turn) {
        scout->took = scout->counts ? ucs_scout_used_ns() - scout->begun : 0;
    }
    /* release [S-TURN]: both times are seen with it by ucs_scout_give() */
    if (scout->has_turn &&
        ucs_cas_acq_rel(&scout->turn, &turn, UCS_SCOUT_LOOKS)) {
        ucs_futex_wake(&scout->turn, 1, UCS_FUTEX_PRIVATE);
    }
}

uint64_t ucs_scout_cpu_ns(ucs_scout_h scout)
{
    uint64_t cpu_ns = scout->cpu_ns;
    clockid_t clock;

    if (ucs_scout_has_thread(scout) &&
        (ucs_load_relaxed(&scout->turn) != UCS_SCOUT_STOPPED) &&
        (pthread_getcpuclockid(scout->spawned.id, &clock) == 0)) {
        (void)ucs_clock_read(clock, &cpu_ns);
    }
    return cpu_ns;
}

void ucs_scout_count(ucs_scout_h scout)
{
    scout->counts = 1;
}

void ucs_scout_delays(ucs_scout_h scout, uint64_t *worked_ns,
                      uint64_t *delayed_ns)
{
    /* relaxed: the lesser one first, which is added last */
    *delayed_ns = ucs_load_relaxed(&scout->delayed);
    *worked_ns  = ucs_load_relaxed(&scout->worked);
}

void ucs_scout_stop(ucs_scout_h scout)
{
    scout->cpu_ns = ucs_scout_cpu_ns(scout);
    /* release [S-TURN]: what says that it is over comes before */
    ucs_swap_acq_rel(&scout->turn, UCS_SCOUT_STOPPED);
    ucs_futex_wake_all(&scout->turn, UCS_FUTEX_PRIVATE);
    ucs_scout_wake(scout);
}
