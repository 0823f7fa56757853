/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "schedules_sched.h"

#include <ucs/sys/hash.h>

#include <limits.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define SIM_STACK_SIZE (128u << 10)

/* A schedule that has not ended by then makes no progress */
#define SIM_MAX_SWITCHES 200000

/* Points for which the index lock may be held: enough for what one use needs
 * among the few regions here, the choice of what to evict for the soft ceiling
 * included, for all that an event strikes (nine regions: 172), and for a lot of a
 * walk, which is short here; not for a walk over all regions, of which a chunk has
 * 64 */
#define SIM_MAX_HELD 190

/* Points that an average schedule passes, for the placing of switches */
#define SIM_TYPICAL_POINTS 3000

typedef enum sim_state {
    SIM_RUNNABLE,
    SIM_ASLEEP,
    SIM_WAITING,
    SIM_DONE
} sim_state_t;

typedef struct sim_fiber {
    const char     *name;
    sim_func_t     func;
    void           *arg;
    sim_state_t    state;
    int            is_started;
    uint64_t       until;    /* ASLEEP */
    const uint32_t *word;    /* WAITING */
    unsigned long  points;   /* passed so far, while it does not run */
    int            priority; /* the greatest runs, when priorities decide */
    jmp_buf        env;
    ucontext_t     context;
    char           *stack;
} sim_fiber_t;

/* What is outside of all fibers is -1 */
#define SIM_OWNER(_fiber) ((_fiber) + 2)

static struct {
    sim_fiber_t  fibers[SIM_MAX_FIBERS];
    unsigned     count;
    sim_fiber_t  *current;   /* NULL: outside of all */
    jmp_buf      outside;
    sim_rng_t    rng;
    uint64_t     clock;
    unsigned     switches;
    unsigned long locked_at; /* the owner's points when it took the lock */
    int          owner;      /* of the index lock; 0: it is free */
    unsigned     mean;       /* points between switches; 0: priorities */
    int          lowest;     /* priority given last */
    int          in_signal;
} sim;

long sim_left = LONG_MAX;
unsigned long sim_points;
void (*sim_check)(void);
void (*sim_signal)(void);

/*
 * Random numbers
 */

uint64_t sim_rng_next(sim_rng_t *rng)
{
    return ucs_hash_random(&rng->state);
}

void sim_rng_init(sim_rng_t *rng, uint64_t seed, unsigned stream)
{
    rng->state = seed * UINT64_C(0xd1342543de82ef95) + stream;
    rng->state = sim_rng_next(rng) + stream;
}

unsigned sim_rng_below(sim_rng_t *rng, unsigned limit)
{
    return (unsigned)(((sim_rng_next(rng) >> 32) * limit) >> 32);
}

/*
 * When to switch: at random, with a mean distance that differs between
 * schedules, or at a few random points between fibers with priorities
 * (Burckhardt et al., ASPLOS'10), which finds what needs one fiber to stand
 * still for long.
 */

static void sim_schedule_next(void)
{
    unsigned mean = (sim.mean > 0) ? sim.mean : SIM_TYPICAL_POINTS / 4;

    sim_left = 1 + sim_rng_below(&sim.rng, 2 * mean);
}

void sim_begin(uint64_t seed, const sim_faults_t *faults)
{
    static const unsigned means[] = {0, 0, 1, 3, 8, 20, 50, 200};

    sim.count     = 0;
    sim.current   = NULL;
    sim.clock     = 1000000;
    sim.switches  = 0;
    sim.owner     = 0;
    sim.lowest    = 0;
    sim.in_signal = 0;
    sim_left      = LONG_MAX;
    sim_rng_init(&sim.rng, seed, 1);
    sim.mean = means[sim_rng_below(&sim.rng,
                                   sizeof(means) / sizeof(means[0]))];
    sim_trace_begin(seed);
    sim_faults_begin(faults);
}

unsigned sim_add(const char *name, sim_func_t func, void *arg)
{
    sim_fiber_t *fiber = &sim.fibers[sim.count];

    if (fiber->stack == NULL) {
        fiber->stack = malloc(SIM_STACK_SIZE);
    }
    if (fiber->stack == NULL) {
        abort();
    }
    fiber->name       = name;
    fiber->func       = func;
    fiber->arg        = arg;
    fiber->state      = SIM_RUNNABLE;
    fiber->is_started = 0;
    fiber->points     = 0;
    fiber->priority   = 1 + sim_rng_below(&sim.rng, 1000);
    return sim.count++;
}

/*
 * Switching
 */

static void sim_fiber_end(void);

static void sim_fiber_main(void)
{
    sim.current->func(sim.current->arg);
    sim.current->state = SIM_DONE;
    sim_fiber_end();
}

static void __attribute__((noreturn)) sim_jump(sim_fiber_t *fiber)
{
    sim.current = fiber;
    if (fiber == NULL) {
        sim_left = LONG_MAX;
        _longjmp(sim.outside, 1);
    }
    sim_points = fiber->points;
    if (!fiber->is_started) {
        fiber->is_started = 1;
        getcontext(&fiber->context);
        fiber->context.uc_stack.ss_sp   = fiber->stack;
        fiber->context.uc_stack.ss_size = SIM_STACK_SIZE;
        fiber->context.uc_link          = NULL;
        makecontext(&fiber->context, sim_fiber_main, 0);
        setcontext(&fiber->context);
        abort();
    }
    _longjmp(fiber->env, 1);
}

static void sim_resume(sim_fiber_t *fiber)
{
    unsigned long points = sim_points;

    if ((fiber != sim.current) && (_setjmp(sim.current->env) == 0)) {
        sim.current->points = points;
        sim_jump(fiber);
    }
}

static int sim_is_candidate(sim_fiber_t *fiber, int is_spin)
{
    if ((fiber->state == SIM_ASLEEP) && (fiber->until <= sim.clock)) {
        fiber->state = SIM_RUNNABLE;
    }
    return (fiber->state == SIM_RUNNABLE) &&
           !(is_spin && (fiber == sim.current));
}

/* Let time pass until the first sleeper is due. @return Zero if none is. */
static int sim_pass_time(void)
{
    uint64_t first = SIM_NEVER;
    unsigned i;

    for (i = 0; i < sim.count; ++i) {
        if ((sim.fibers[i].state == SIM_ASLEEP) &&
            (sim.fibers[i].until < first)) {
            first = sim.fibers[i].until;
        }
    }
    if (first == SIM_NEVER) {
        return 0;
    }
    sim.clock = (first > sim.clock) ? first : sim.clock;
    return 1;
}

static sim_fiber_t *sim_choose(int is_spin)
{
    sim_fiber_t *chosen = NULL;
    unsigned count      = 0;
    unsigned i;

    for (i = 0; i < sim.count; ++i) {
        if (!sim_is_candidate(&sim.fibers[i], is_spin)) {
            continue;
        }
        ++count;
        if ((sim.mean == 0) ? ((chosen == NULL) || (sim.fibers[i].priority >
                                                    chosen->priority)) :
                              (sim_rng_below(&sim.rng, count) == 0)) {
            chosen = &sim.fibers[i];
        }
    }
    return chosen;
}

static int sim_is_all_done(void)
{
    unsigned i;

    for (i = 0; i < sim.count; ++i) {
        if (sim.fibers[i].state != SIM_DONE) {
            return 0;
        }
    }
    return 1;
}

static sim_fiber_t *sim_pick(int is_spin)
{
    sim_fiber_t *chosen = sim_choose(is_spin);

    if ((chosen == NULL) && sim_pass_time()) {
        chosen = sim_choose(is_spin);
    }
    if ((chosen == NULL) && is_spin && (sim.current->state == SIM_RUNNABLE)) {
        chosen = sim.current;
    }
    if ((chosen == NULL) && !sim_is_all_done()) {
        sim_violation("no fiber can run: somebody waits who is never woken");
    }
    return chosen;
}

/* Runs no code of the cache but what a signal handler calls */
static void sim_maybe_signal(void)
{
    if ((sim_signal == NULL) || sim.in_signal ||
        (sim_rng_below(&sim.rng, 64) != 0)) {
        return;
    }
    sim.in_signal = 1 + sim_current();
    sim_signal();
    sim.in_signal = 0;
}

static void sim_leave(const char *function, int line, int is_spin)
{
    sim_fiber_t *next;

    if (++sim.switches > SIM_MAX_SWITCHES) {
        sim_violation("no progress after %u switches", sim.switches);
    }
    sim_schedule_next();
    sim.clock += sim_rng_below(&sim.rng, 100);
    if (sim_rng_below(&sim.rng, 16) == 0) {
        sim_pass_time();
    }
    if (is_spin || (sim.mean == 0)) {
        sim.current->priority = --sim.lowest;
    }
    if (sim_check != NULL) {
        sim_check();
    }
    next = sim_pick(is_spin);
    if (next != sim.current) {
        sim_trace(function, line, SIM_TRACE_SWITCH);
        sim_resume(next);
    }
}

void sim_switch(const char *function, int line)
{
    if (sim.current == NULL) {
        sim_left = LONG_MAX;
        return;
    }
    sim_maybe_signal();
    sim_leave(function, line, 0);
}

void sim_spin(const char *function, int line)
{
    if ((sim.current != NULL) && (sim_left < LONG_MAX / 2)) {
        sim_leave(function, line, 1);
    }
}

static void sim_fiber_end(void)
{
    sim_jump(sim_pick(0));
}

void sim_run(void)
{
    sim_fiber_t *first;

    if (_setjmp(sim.outside) == 0) {
        first = sim_choose(0);
        sim_schedule_next();
        sim_jump(first);
    }
}

void sim_abandon(void)
{
    if (sim.current != NULL) {
        sim_jump(NULL);
    }
}

long sim_quiet(void)
{
    long left = sim_left;

    sim_left = LONG_MAX;
    return left;
}

void sim_loud(long left)
{
    sim_left = left;
}

int sim_current(void)
{
    return (sim.current == NULL) ? -1 : (int)(sim.current - sim.fibers);
}

const char *sim_name(int fiber)
{
    return (fiber < 0) ? "-" : sim.fibers[fiber].name;
}

/*
 * How long the index lock is held
 */

void sim_locked(void)
{
    sim.locked_at = sim_points;
    sim.owner     = SIM_OWNER(sim_current());
}

void sim_unlocked(void)
{
    sim.owner = 0;
}

int sim_is_lock_free(void)
{
    return sim.owner == 0;
}

int sim_is_lock_mine(void)
{
    return sim.owner == SIM_OWNER(sim_current());
}

void sim_unlocking(void)
{
    unsigned long held = sim_points - sim.locked_at;

    if (held > SIM_MAX_HELD) {
        sim_violation("the index lock is held for %lu points", held);
    }
}

/*
 * Time and waiting
 */

uint64_t sim_now(void)
{
    return sim.clock;
}

void sim_advance(uint64_t ns)
{
    sim.clock += ns;
}

void sim_sleep_until(uint64_t time)
{
    if (sim.current == NULL) {
        return;
    }
    sim.current->until = time;
    sim.current->state = SIM_ASLEEP;
    sim_leave("sleep", 0, 0);
}

void sim_sleep(uint64_t ns)
{
    if (sim.current == NULL) {
        sim.clock += ns;
    } else {
        sim_sleep_until(sim.clock + ns);
    }
}

void sim_wake(unsigned fiber)
{
    if (sim.fibers[fiber].state == SIM_ASLEEP) {
        sim.fibers[fiber].state = SIM_RUNNABLE;
    }
}

void sim_wait(const uint32_t *word, uint32_t value)
{
    if (*word != value) {
        return;
    }
    if (sim.current == NULL) {
        sim_violation("a wait that nobody can end");
        return;
    }
    if (sim_rng_below(&sim.rng, 8) == 0) {
        sim_spin("wait returns early", 0);
        return;
    }
    sim.current->word  = word;
    sim.current->state = SIM_WAITING;
    sim_leave("wait", 0, 0);
}

void sim_wake_waiters(const uint32_t *word)
{
    unsigned i;

    for (i = 0; i < sim.count; ++i) {
        if ((sim.fibers[i].state == SIM_WAITING) &&
            (sim.fibers[i].word == word)) {
            sim.fibers[i].state = SIM_RUNNABLE;
        }
    }
}
