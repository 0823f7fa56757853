/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "replay_process.h"

#include <tools/tool.h>
#include <ucs/trace/trace.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Spread of the lateness, of its logarithm */
#define REPLAY_LATENESS_SIGMA 0.6

/* A step that calls nobody takes this long, so that time goes on */
#define REPLAY_STEP_NS 200

/* A thread that waits takes its first step after so long */
#define REPLAY_IDLE_NS 1000

/* A registration at the lower domain; the handle is its address */
typedef struct replay_memh {
    uint64_t bytes;
} replay_memh_t;

/* --- Time ----------------------------------------------------------------- */

static uint64_t replay_add_time(uint64_t time_ns, uint64_t ns)
{
    return (time_ns > UINT64_MAX - 1 - ns) ? UINT64_MAX - 1 : time_ns + ns;
}

static uint64_t replay_process_lateness(replay_process_t *process)
{
    if (process->params->late_ns != NULL) {
        return process->params->late_ns[ucs_hash_random(&process->random) %
                                        process->params->late_count];
    }
    if (process->params->lateness_ns == 0) {
        return 0;
    }
    return process->params->lateness_ns *
           exp(REPLAY_LATENESS_SIGMA * replay_random_normal(&process->random));
}

static uint64_t *replay_process_clock(replay_process_t *process)
{
    return process->is_helper ? &process->helper_ns : &process->main_ns;
}

/* A call to the lower domain takes its time; the main thread goes on while
 * the helper makes one */
static void replay_process_spend(replay_process_t *process,
                                 const replay_cost_t *cost, uint64_t bytes)
{
    double pages = (double)(bytes / process->page_size);
    uint64_t ns  = cost->base_ns + cost->page_ns * pages;
    uint64_t end = replay_add_time(*replay_process_clock(process), ns);

    if (process->is_helper) {
        process->resume_ns = end;
        replay_fiber_leave(&process->fiber);
    } else {
        process->lost_ns += ns;
    }
    *replay_process_clock(process) = end;
}

/* --- The lower domain ----------------------------------------------------- */

static void replay_process_pin(replay_process_t *process, uint64_t bytes)
{
    process->pinned += bytes; /* wraps for a deregistration */
    if (process->on_pinned != NULL) {
        process->on_pinned(process->pinned_arg, *replay_process_clock(process),
                           process->pinned);
    }
}

static uint64_t replay_process_bytes(const replay_process_t *process,
                                     uint64_t address, uint64_t length)
{
    uint64_t mask = process->page_size - 1;

    return ((address + length + mask) & ~mask) - (address & ~mask);
}

static ucs_status_t replay_process_reg(void *arg, void *address, size_t length,
                                       unsigned flags,
                                       ucs_regcache_memh_t *memh_p)
{
    replay_process_t *process = arg;
    replay_memh_t *memh       = tool_realloc(NULL, sizeof(*memh));

    memh->bytes = replay_process_bytes(process, (uintptr_t)address, length);
    replay_process_pin(process, memh->bytes);
    replay_process_spend(process, &process->params->register_cost, memh->bytes);
    *memh_p = (ucs_regcache_memh_t)memh;
    return UCS_OK;
}

static ucs_status_t replay_process_dereg(void *arg, ucs_regcache_memh_t handle,
                                         ucs_regcache_comp_t comp)
{
    replay_process_t *process = arg;
    replay_memh_t *memh       = (replay_memh_t*)handle;

    replay_process_spend(process, &process->params->deregister_cost,
                         memh->bytes);
    replay_process_pin(process, -memh->bytes);
    free(memh);
    return UCS_OK;
}

/* --- Clock, wake and wait ------------------------------------------------- */

static uint64_t replay_process_now(void *arg)
{
    return *replay_process_clock(arg);
}

static void replay_process_wake(void *arg)
{
    replay_process_t *process = arg;
    uint64_t now              = *replay_process_clock(process);

    if (now < process->woken_ns) {
        process->woken_ns = now;
        /* If a step is under way this is looked at after it */
        now = replay_add_time(now, replay_process_lateness(process));
        process->due_ns = (now < process->due_ns) ? now : process->due_ns;
    }
}

/* The main thread lets the helper go on, which then is ahead of it */
static void replay_process_block(replay_process_t *process)
{
    replay_process_help(process);
    if (process->main_ns < process->helper_ns) {
        process->lost_ns += process->helper_ns - process->main_ns;
        process->main_ns  = process->helper_ns;
    }
}

static void replay_process_sleep(void *arg, uint32_t *word, uint32_t value,
                                 uint64_t ns)
{
    replay_process_t *process = arg;

    if (__atomic_load_n(word, __ATOMIC_RELAXED) == value) {
        replay_process_block(process);
    }
}

static void replay_process_yield(void *arg)
{
    replay_process_block(arg);
}

static void replay_process_listen(void *arg, int listens)
{
    replay_process_t *process = arg;

    ucs_operation_listen(&process->wants, listens);
}

static void replay_process_wake_waiters(void *arg, uint32_t *word)
{
}

/* --- The helper ----------------------------------------------------------- */

static void replay_process_hear(replay_process_t *process)
{
    ucs_regcache_tell(process->engine, process->said, process->said_count);
    process->said_count = 0;
}

static void replay_process_step(replay_process_t *process)
{
    uint64_t next;

    replay_process_hear(process);
    next = ucs_regcache_step(process->engine, process->helper_ns);

    process->helper_ns = replay_add_time(process->helper_ns, REPLAY_STEP_NS);
    if (next <= process->helper_ns) {
        next = process->helper_ns;
    } else if (next != UCS_REGCACHE_TIME_NEVER) {
        next = replay_add_time(next, replay_process_lateness(process));
    }
    if (next < process->due_ns) {
        process->due_ns = next;
    }
}

/* The step is a call that cannot be left, and the main thread acts in the middle
 * of it. So steps run on a stack of their own, which they leave while the lower
 * domain is at work. */
static void replay_process_steps(void *arg)
{
    replay_process_t *process = arg;

    for (;;) {
        replay_process_step(process);
        process->is_stepping = 0;
        replay_fiber_leave(&process->fiber);
    }
}

/* Where the policy has no steps, too, the thread deregisters what was unmapped */
uint64_t replay_process_help_time(const replay_process_t *process)
{
    return process->is_stepping ? process->resume_ns : process->due_ns;
}

static void replay_process_begin(replay_process_t *process)
{
    uint64_t due_ns = replay_process_help_time(process);

    if (process->helper_ns < due_ns) {
        process->helper_ns = due_ns;
    }
    process->due_ns      = UCS_REGCACHE_TIME_NEVER;
    process->woken_ns    = UCS_REGCACHE_TIME_NEVER;
    process->is_stepping = 1;
    if (process->fiber.stack == NULL) {
        replay_fiber_init(&process->fiber, replay_process_steps, process);
    }
}

void replay_process_help(replay_process_t *process)
{
    if (!process->is_stepping) {
        replay_process_begin(process);
    }
    process->is_helper = 1;
    replay_fiber_enter(&process->fiber);
    process->is_helper = 0;
}

void replay_process_settle(replay_process_t *process)
{
    while (process->is_stepping) {
        replay_process_help(process);
    }
}

/* --- The main thread ------------------------------------------------------ */

ucs_regcache_memh_t replay_process_get(replay_process_t *process,
                                       uint64_t address, uint64_t length,
                                       unsigned access, uint64_t signature)
{
    ucs_regcache_memh_t memh = NULL;

    (void)ucs_regcache_get(process->engine, (void *)address, length, access,
                           (signature != 0) ? signature : 1, &memh);
    return memh;
}

void replay_process_put(replay_process_t *process, ucs_regcache_memh_t memh)
{
    (void)ucs_regcache_put(process->engine, memh, NULL);
}

void replay_process_say(replay_process_t *process,
                        const ucs_operation_t *operation)
{
    ucs_operation_t *said;

    if (!process->has_helper || process->params->is_deaf ||
        !ucs_operation_is_wanted(&process->wants, operation->kind,
                                 operation->length)) {
        return;
    }
    process->said = tool_grow(process->said, process->said_count,
                              &process->said_capacity, sizeof(*process->said));
    said          = &process->said[process->said_count++];
    *said         = *operation;
    said->time    = process->main_ns;
}

/* @return When the next one is due */
static uint64_t replay_process_idle_step(replay_process_t *process,
                                         uint64_t spare_ns)
{
    uint64_t next;

    replay_process_hear(process);
    next = ucs_regcache_idle_step(process->engine, process->main_ns, spare_ns);
    if (next <= process->main_ns) { /* it was left to the helper */
        replay_process_wake(process);
        next = process->due_ns;
    }
    process->main_ns = replay_add_time(process->main_ns, REPLAY_STEP_NS);
    return next;
}

uint64_t replay_process_wait(replay_process_t *process)
{
    if (!process->has_helper || process->params->is_deaf) {
        return UCS_REGCACHE_TIME_NEVER;
    }
    process->wait_ns = process->main_ns;
    return process->main_ns + REPLAY_IDLE_NS;
}

uint64_t replay_process_wait_step(replay_process_t *process)
{
    uint64_t before  = process->main_ns;
    uint64_t lost_ns = process->lost_ns;
    uint64_t next;

    while (replay_process_help_time(process) <= before) {
        replay_process_help(process);
    }
    if (process->is_stepping) {
        return replay_process_help_time(process);
    }
    next = replay_process_idle_step(process, (process->wait_ns < before) ?
                                                     before - process->wait_ns :
                                                     0);
    /* Worked is not waited */
    process->wait_ns += 2 * (process->main_ns - before);
    process->lost_ns  = lost_ns;
    return (next < process->main_ns) ? process->main_ns : next;
}

void replay_process_wait_until(replay_process_t *process, uint64_t until_ns)
{
    uint64_t next = replay_process_wait(process);

    while (next < until_ns) {
        if (process->main_ns < next) {
            process->main_ns = next;
        }
        next = replay_process_wait_step(process);
    }
    if (process->main_ns > until_ns) {
        process->lost_ns += process->main_ns - until_ns;
    }
}

/* --- Life ----------------------------------------------------------------- */

ucs_status_t replay_process_open(replay_process_t *process)
{
    const replay_params_t *params = process->params;
    ucs_regcache_env_t env = {
        .arg          = process,
        .mem_reg      = replay_process_reg,
        .mem_dereg    = replay_process_dereg,
        .now          = replay_process_now,
        .wake         = replay_process_wake,
        .wait         = replay_process_sleep,
        .listen       = replay_process_listen,
        .wake_waiters = replay_process_wake_waiters,
        .yield        = replay_process_yield
    };
    ucs_regcache_params_t engine = {
        .policy       = params->policy,
        .min_size     = process->min_size,
        .max_pinned   = params->max_pinned,
        .max_regions  = ULONG_MAX,
        .dq_length    = process->dq_length,
        .max_contexts = process->max_contexts,
        .max_slowdown = params->max_slowdown,
        .region_bytes = params->region_bytes,
        .page_size    = process->page_size,
        .cover        = {.kind        = params->coalesce,
                         .remote_mask = UCS_TRACE_ACCESS_REMOTE},
        .tuning       = params->tuning
    };
    ucs_status_t status;

    process->helper_ns = process->main_ns;
    process->wait_ns   = process->main_ns;
    process->due_ns    = UCS_REGCACHE_TIME_NEVER;
    process->woken_ns  = UCS_REGCACHE_TIME_NEVER;
    process->resume_ns = UCS_REGCACHE_TIME_NEVER;
    process->random    = params->seed;
    status = ucs_regcache_create(&engine, &env, &process->engine);
    if (status == UCS_OK) {
        process->has_helper = ucs_regcache_needs_helper(process->engine);
        ucs_store_relaxed(&process->wants.least,
                          ucs_regcache_wants_from(process->engine));
    }
    return status;
}

void replay_process_close(replay_process_t *process)
{
    process->on_pinned = NULL;
    ucs_regcache_destroy(process->engine);
    replay_fiber_cleanup(&process->fiber);
    free(process->said);
}
