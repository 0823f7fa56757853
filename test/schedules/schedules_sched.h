/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef SCHEDULES_SCHED_H_
#define SCHEDULES_SCHED_H_

#include "schedules_point.h"

#include <stddef.h>
#include <stdint.h>

/**
 * @file schedules_sched.h
 *
 * Fibers under a seeded scheduler and a virtual clock, injected faults, and a
 * trace. One schedule at a time, in one thread.
 */

#define SIM_MAX_FIBERS 6
#define SIM_MAX_FAULTS 2
#define SIM_NEVER      UINT64_MAX

typedef void (*sim_func_t)(void *arg);

/** Random numbers; the streams of one schedule are independent. */
typedef struct sim_rng {
    uint64_t state;
} sim_rng_t;

void sim_rng_init(sim_rng_t *rng, uint64_t seed, unsigned stream);
uint64_t sim_rng_next(sim_rng_t *rng);

/** @return 0 to @a limit - 1. */
unsigned sim_rng_below(sim_rng_t *rng, unsigned limit);

/** Calls that are to fail: positions in the order of all that can. */
typedef struct sim_faults {
    unsigned count;
    unsigned at[SIM_MAX_FAULTS];
} sim_faults_t;

/** Begin a schedule: no fibers, clock at its start. */
void sim_begin(uint64_t seed, const sim_faults_t *faults);

/** Add a fiber; it starts in sim_run(). @return Its number. */
unsigned sim_add(const char *name, sim_func_t func, void *arg);

/** Run until all fibers have ended or a violation was found. */
void sim_run(void);

/** The invariant that @a format tells of does not hold: prints seed and trace,
 *  ends the schedule. Returns only outside of fibers. */
void sim_violation(const char *format, ...)
        __attribute__((format(printf, 1, 2)));

/** @return Nonzero if this schedule has a violation. */
int sim_is_violated(void);

/** Called at each switch. */
extern void (*sim_check)(void);

/** Called now and then in a fiber that is at a point; a signal handler. */
extern void (*sim_signal)(void);

/** No switches until sim_loud() with the value that this returned. */
long sim_quiet(void);
void sim_loud(long left);

/** @return Number of the running fiber, -1 outside of all. */
int sim_current(void);

/** @return Nonzero if no fiber holds the index lock. */
int sim_is_lock_free(void);

/** @return Nonzero if the running fiber holds it. */
int sim_is_lock_mine(void);

/** @return Nonzero if this call is to fail. */
int sim_fault(const char *what);

/** @return Number of calls so far that could have failed; that did; that did
 *          in the running fiber. */
unsigned sim_fault_sites(void);
unsigned sim_fault_hits(void);
unsigned sim_fault_mine(void);

/** Virtual time, ns. */
uint64_t sim_now(void);
void sim_advance(uint64_t ns);
void sim_sleep(uint64_t ns);

/** Sleep until @a time, SIM_NEVER allowed, or sim_wake(). */
void sim_sleep_until(uint64_t time);
void sim_wake(unsigned fiber);

/** Like a futex: sleep if `*word == value`, until woken on @a word. */
void sim_wait(const uint32_t *word, uint32_t value);
void sim_wake_waiters(const uint32_t *word);

/** Note a step; printed with a violation, or always if tracing. */
void sim_trace(const char *what, uint64_t a, uint64_t b);
void sim_set_tracing(int is_on);

/** Arguments that repeat the present schedule. */
void sim_set_options(const char *options);

/** Allocations of the cache that are not released. */
size_t sim_allocations(void);

/* schedules_trace.c traces, injects faults and reports */

/** Second figure of a step that is a switch; the first is the line. */
#define SIM_TRACE_SWITCH (UINT64_MAX - 1)

void sim_trace_begin(uint64_t seed);
void sim_faults_begin(const sim_faults_t *faults);

/** End the schedule from within a fiber; outside of all it returns. */
void sim_abandon(void);

/** @return Name of a fiber. */
const char *sim_name(int fiber);

#endif
