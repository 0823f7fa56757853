/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "schedules_sched.h"
#include "schedules_hooks.h"
#include "schedules_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#undef pthread_self

#define SIM_TRACE_LENGTH 256

/* Violations whose trace is printed */
#define SIM_TRACES_PRINTED 3

typedef struct sim_step {
    uint64_t   time;
    const char *what;
    uint64_t   a, b;
    int        fiber;
} sim_step_t;

static struct {
    uint64_t     seed;
    sim_step_t   steps[SIM_TRACE_LENGTH];
    unsigned     count;
    int          is_tracing;
    int          is_violated;
    unsigned     printed;
    sim_faults_t faults;
    unsigned     sites;
    unsigned     hits;
    unsigned     hits_of[SIM_MAX_FIBERS + 1]; /* the first: outside of all */
    size_t       allocations;
    char         options[128];
} sim_log;

void sim_trace_begin(uint64_t seed)
{
    sim_log.seed        = seed;
    sim_log.count       = 0;
    sim_log.is_violated = 0;
    sim_log.allocations = 0;
}

void sim_set_tracing(int is_on)
{
    sim_log.is_tracing = is_on;
}

void sim_set_options(const char *options)
{
    snprintf(sim_log.options, sizeof(sim_log.options), "%s", options);
}

static void sim_print_step(const sim_step_t *step)
{
    if (step->b == SIM_TRACE_SWITCH) {
        printf("  %10lu %-7s   leaves %s:%lu\n", (unsigned long)step->time,
               sim_name(step->fiber), step->what, (unsigned long)step->a);
    } else {
        printf("  %10lu %-7s %s 0x%lx %lu\n", (unsigned long)step->time,
               sim_name(step->fiber), step->what, (unsigned long)step->a,
               (unsigned long)step->b);
    }
}

void sim_trace(const char *what, uint64_t a, uint64_t b)
{
    sim_step_t *step = &sim_log.steps[sim_log.count++ % SIM_TRACE_LENGTH];

    step->time  = sim_now();
    step->what  = what;
    step->a     = a;
    step->b     = b;
    step->fiber = sim_current();
    if (sim_log.is_tracing) {
        sim_print_step(step);
    }
}

static void sim_print_trace(void)
{
    unsigned i = (sim_log.count > SIM_TRACE_LENGTH) ?
                         sim_log.count - SIM_TRACE_LENGTH :
                         0;

    for (; i < sim_log.count; ++i) {
        sim_print_step(&sim_log.steps[i % SIM_TRACE_LENGTH]);
    }
}

static void sim_print_replay(void)
{
    unsigned i;

    printf("  repeat with: --replay %lu%s", (unsigned long)sim_log.seed,
           sim_log.options);
    for (i = 0; i < sim_log.faults.count; ++i) {
        printf("%s%u", (i == 0) ? " --faults " : ",", sim_log.faults.at[i]);
    }
    printf("\n");
}

void sim_violation(const char *format, ...)
{
    va_list args;

    if (!sim_log.is_violated) {
        sim_log.is_violated = 1;
        if (sim_log.printed++ < SIM_TRACES_PRINTED) {
            sim_print_trace();
        }
        printf("VIOLATION seed %lu, %s: ", (unsigned long)sim_log.seed,
               sim_name(sim_current()));
        va_start(args, format);
        vprintf(format, args);
        va_end(args);
        printf("\n");
        sim_print_replay();
        fflush(stdout);
    }
    sim_abandon();
}

int sim_is_violated(void)
{
    return sim_log.is_violated;
}

/*
 * Faults
 */

void sim_faults_begin(const sim_faults_t *faults)
{
    sim_log.faults = *faults;
    sim_log.sites  = 0;
    sim_log.hits   = 0;
    memset(sim_log.hits_of, 0, sizeof(sim_log.hits_of));
}

int sim_fault(const char *what)
{
    unsigned site = sim_log.sites++;
    unsigned i;

    for (i = 0; i < sim_log.faults.count; ++i) {
        if (sim_log.faults.at[i] == site) {
            ++sim_log.hits;
            ++sim_log.hits_of[sim_current() + 1];
            sim_trace(what, site, 0);
            return 1;
        }
    }
    return 0;
}

unsigned sim_fault_sites(void)
{
    return sim_log.sites;
}

unsigned sim_fault_hits(void)
{
    return sim_log.hits;
}

unsigned sim_fault_mine(void)
{
    return sim_log.hits_of[sim_current() + 1];
}

/*
 * What the cache asks of libc
 */

static void *sim_allocated(void *pointer)
{
    if (pointer == NULL) {
        abort();
    }
    ++sim_log.allocations;
    return pointer;
}

static int sim_may_allocate(void)
{
    if (sim_is_lock_mine()) {
        sim_violation("allocation under the index lock");
    }
    sim_point();
    return !sim_fault("allocation fails, site");
}

/* Not the pages that it would map: there are a hundred thousand worlds */
void *sim_alloc(size_t size)
{
    size_t length = (size + UCS_OWN_ALIGN - 1) / UCS_OWN_ALIGN * UCS_OWN_ALIGN;
    void *memory;

    if (!sim_may_allocate()) {
        return NULL;
    }
    memory = sim_allocated(aligned_alloc(UCS_OWN_ALIGN, length));
    if (memory != NULL) {
        memset(memory, 0, length);
    }
    return memory;
}

void sim_free(void *pointer)
{
    if (pointer == NULL) {
        return;
    }
    if (sim_is_lock_mine()) {
        sim_violation("release of memory under the index lock");
    }
    --sim_log.allocations;
    free(pointer);
}

size_t sim_allocations(void)
{
    return sim_log.allocations;
}

pthread_t sim_self(void)
{
    return (pthread_t)(uintptr_t)(100 + sim_current());
}
