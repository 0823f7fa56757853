/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE
#endif
#include "replay_world.h"
#include "replay_fiber.h"
#include "replay_random.h"
#include "tool.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A step that calls nobody takes this long, so that time goes on */
#define REPLAY_STEP_NS 200

/* Who runs */
typedef enum replay_actor {
    REPLAY_MAIN,
    REPLAY_HELPER
} replay_actor_t;

/* A registration at the lower domain; the handle is its address */
typedef struct replay_memh {
    uint64_t           bytes;
    struct replay_memh *next; /* free ones */
} replay_memh_t;

/*
 * The helper's step is a call that cannot be left, and the main thread may act
 * in the middle of it, even block there until the step has gone on. So what
 * the main thread does during the helper's lower calls runs on a stack of its
 * own; all else runs on the caller's.
 */
typedef struct replay_world {
    const replay_trace_t  *trace;
    const replay_params_t *params;
    uct_helper_engine_h   engine;
    replay_actor_t        actor;
    uint64_t              main_ns;
    uint64_t              helper_ns;
    uint64_t              due_ns;     /* when the helper runs its next step */
    uint64_t              woken_ns;   /* NEVER, or since when it is asked to */
    uint64_t              random;
    size_t                next;       /* event of the trace */
    uct_mem_h             *memhs;     /* by use, NULL when not open */
    replay_memh_t         *free_memhs;
    uint64_t              pinned;     /* bytes at the lower domain */
    replay_curve_t        *curve;

    uint64_t              until_ns;   /* the stack's main thread runs to here */
    int                   is_blocked; /* in wait, on the stack */
    replay_fiber_t        fiber;
} replay_world_t;


void replay_curve_add(replay_curve_t *curve, uint64_t time_ns, uint64_t bytes)
{
    replay_sample_t *last = (curve->count > 0) ?
                                    &curve->samples[curve->count - 1] :
                                    NULL;

    if ((last != NULL) && (time_ns <= last->time_ns)) {
        last->bytes = bytes; /* the two threads are a little out of order */
        return;
    }
    if (curve->count == curve->capacity) {
        curve->capacity = (curve->capacity > 0) ? 2 * curve->capacity : 1024;
        curve->samples  = tool_realloc(curve->samples,
                                       curve->capacity *
                                               sizeof(*curve->samples));
    }
    curve->samples[curve->count].time_ns = time_ns;
    curve->samples[curve->count].bytes   = bytes;
    ++curve->count;
}

static uint64_t replay_world_lateness(replay_world_t *world)
{
    if (world->params->lateness_ns == 0) {
        return 0;
    }
    return world->params->lateness_ns *
           exp(REPLAY_LATENESS_SIGMA * replay_random_normal(&world->random));
}

static uint64_t replay_add_time(uint64_t time_ns, uint64_t ns)
{
    return (time_ns > UINT64_MAX - 1 - ns) ? UINT64_MAX - 1 : time_ns + ns;
}

/*
 * The lower domain
 */

static void replay_world_run_main(replay_world_t *world, uint64_t until_ns);

static uint64_t *replay_world_clock(replay_world_t *world)
{
    return (world->actor == REPLAY_MAIN) ? &world->main_ns :
                                           &world->helper_ns;
}

/* A call to the lower domain takes its time; the main thread goes on while
 * the helper makes one */
static void replay_world_spend(replay_world_t *world,
                               const replay_cost_t *cost, uint64_t bytes)
{
    double pages = (double)(bytes / world->trace->page_size);
    uint64_t ns  = cost->base_ns + cost->page_ns * pages;
    uint64_t end = replay_add_time(*replay_world_clock(world), ns);

    if (world->actor == REPLAY_HELPER) {
        replay_world_run_main(world, end);
    }
    *replay_world_clock(world) = end;
}

static void replay_world_pin(replay_world_t *world, uint64_t bytes)
{
    world->pinned += bytes; /* wraps for a deregistration */
    if (world->curve != NULL) {
        replay_curve_add(world->curve, *replay_world_clock(world),
                         world->pinned);
    }
}

static uint64_t replay_world_bytes(const replay_world_t *world,
                                   uint64_t address, uint64_t length)
{
    uint64_t mask = world->trace->page_size - 1;

    return ((address + length + mask) & ~mask) - (address & ~mask);
}

static ucs_status_t replay_world_reg(void *arg, void *address, size_t length,
                                     unsigned flags UCS_V_UNUSED,
                                     uct_mem_h *memh_p)
{
    replay_world_t *world = arg;
    replay_memh_t *memh   = world->free_memhs;

    if (memh != NULL) {
        world->free_memhs = memh->next;
    } else {
        memh = tool_realloc(NULL, sizeof(*memh));
    }
    memh->bytes = replay_world_bytes(world, (uintptr_t)address, length);
    replay_world_pin(world, memh->bytes);
    replay_world_spend(world, &world->params->register_cost, memh->bytes);
    *memh_p = memh;
    return UCS_OK;
}

static ucs_status_t replay_world_dereg(void *arg, uct_mem_h handle,
                                       uct_completion_t *comp UCS_V_UNUSED)
{
    replay_world_t *world = arg;
    replay_memh_t *memh   = handle;

    replay_world_spend(world, &world->params->deregister_cost, memh->bytes);
    replay_world_pin(world, -memh->bytes);
    memh->next        = world->free_memhs;
    world->free_memhs = memh;
    return UCS_OK;
}

/*
 * Clock, wake and wait
 */

static uint64_t replay_world_now(void *arg)
{
    return *replay_world_clock(arg);
}

static void replay_world_wake(void *arg)
{
    replay_world_t *world = arg;
    uint64_t now          = *replay_world_clock(world);

    if (now < world->woken_ns) {
        world->woken_ns = now;
        /* If a step is under way this is looked at after it */
        now           = replay_add_time(now, replay_world_lateness(world));
        world->due_ns = (now < world->due_ns) ? now : world->due_ns;
    }
}

/* The main thread, on its own stack, lets the helper go on */
static void replay_world_block(replay_world_t *world)
{
    world->is_blocked = 1;
    world->actor      = REPLAY_HELPER;
    replay_fiber_leave(&world->fiber);
    world->actor      = REPLAY_MAIN;
    world->is_blocked = 0;
    if (world->main_ns < world->helper_ns) {
        world->main_ns = world->helper_ns;
    }
}

static void replay_world_wait(void *arg, uint32_t *word, uint32_t value)
{
    replay_world_t *world = arg;

    if (__atomic_load_n(word, __ATOMIC_RELAXED) == value) {
        replay_world_block(world);
    }
}

static void replay_world_yield(void *arg)
{
    replay_world_block(arg);
}

static void replay_world_wake_waiters(void *arg UCS_V_UNUSED,
                                      uint32_t *word UCS_V_UNUSED)
{
}

/* The trace's signature takes the place of the stack position, and the path
 * is what the signature says */
static uint64_t replay_world_path(void *arg UCS_V_UNUSED, uintptr_t sp,
                                  uintptr_t address UCS_V_UNUSED,
                                  size_t length UCS_V_UNUSED)
{
    return sp;
}

/*
 * The main thread
 */

static void replay_world_use(replay_world_t *world, uint32_t index)
{
    const replay_use_t *use = &world->trace->uses[index];

    (void)uct_helper_engine_get(world->engine, (void*)use->address,
                                use->length, use->access,
                                use->signature ? use->signature : 1,
                                &world->memhs[index]);
}

static void replay_world_release(replay_world_t *world, uint32_t index)
{
    (void)uct_helper_engine_put(world->engine, world->memhs[index], NULL);
    world->memhs[index] = NULL;
}

static void replay_world_event(replay_world_t *world)
{
    const replay_event_t *event = &world->trace->events[world->next++];
    const replay_unmap_t *unmap;

    if (world->main_ns < event->time_ns) {
        world->main_ns = event->time_ns;
    }
    switch (event->kind) {
    case REPLAY_USE:
        replay_world_use(world, event->index);
        break;
    case REPLAY_RELEASE:
        replay_world_release(world, event->index);
        break;
    default:
        unmap = &world->trace->unmaps[event->index];
        uct_helper_engine_unmapped(world->engine, unmap->start,
                                   unmap->end - unmap->start);
        break;
    }
}

/* When the main thread does its next thing */
static uint64_t replay_world_main_time(const replay_world_t *world)
{
    uint64_t time_ns;

    if (world->next == world->trace->event_count) {
        return UCT_HELPER_TIME_NEVER;
    }
    time_ns = world->trace->events[world->next].time_ns;
    return (time_ns < world->main_ns) ? world->main_ns : time_ns;
}

static void replay_world_inside(void *arg)
{
    replay_world_t *world = arg;

    for (;;) {
        world->actor = REPLAY_MAIN;
        while (replay_world_main_time(world) < world->until_ns) {
            replay_world_event(world);
        }
        world->actor = REPLAY_HELPER;
        replay_fiber_leave(&world->fiber);
    }
}

/* From the helper: let the main thread go on to @a until_ns, or until it
 * blocks again */
static void replay_world_run_main(replay_world_t *world, uint64_t until_ns)
{
    if (!world->is_blocked && (replay_world_main_time(world) >= until_ns)) {
        return;
    }
    world->until_ns = until_ns;
    replay_fiber_enter(&world->fiber);
    world->actor = REPLAY_HELPER;
}

/*
 * The helper
 */

static void replay_world_step(replay_world_t *world)
{
    uint64_t next;

    if (world->helper_ns < world->due_ns) {
        world->helper_ns = world->due_ns;
    }
    world->actor    = REPLAY_HELPER;
    world->due_ns   = UCT_HELPER_TIME_NEVER;
    world->woken_ns = UCT_HELPER_TIME_NEVER;
    next = uct_helper_engine_step(world->engine, world->helper_ns);
    world->helper_ns = replay_add_time(world->helper_ns, REPLAY_STEP_NS);

    /* What the main thread waited for is done */
    while (world->is_blocked) {
        replay_world_run_main(world, 0);
    }
    world->actor = REPLAY_MAIN;

    if (next <= world->helper_ns) {
        next = world->helper_ns;
    } else if (next != UCT_HELPER_TIME_NEVER) {
        next = replay_add_time(next, replay_world_lateness(world));
    }
    if (next < world->due_ns) {
        world->due_ns = next;
    }
}

/*
 * World
 */

static ucs_status_t replay_world_open(replay_world_t *world)
{
    const replay_params_t *params = world->params;
    uct_helper_env_t env          = {
        .arg          = world,
        .mem_reg      = replay_world_reg,
        .mem_dereg    = replay_world_dereg,
        .now          = replay_world_now,
        .wake         = replay_world_wake,
        .wait         = replay_world_wait,
        .wake_waiters = replay_world_wake_waiters,
        .yield        = replay_world_yield,
        .walk         = replay_world_path,
        .recall       = replay_world_path
    };
    uct_helper_engine_params_t engine = {
        .policy      = params->policy,
        .min_size    = 0,
        .max_pinned  = params->max_pinned,
        .max_regions = ULONG_MAX,
        .miss_target = params->miss_target,
        .page_size   = world->trace->page_size
    };

    return uct_helper_engine_create(&engine, &env, &world->engine);
}

static void replay_world_close(replay_world_t *world)
{
    replay_memh_t *memh;

    world->curve = NULL;
    uct_helper_engine_destroy(world->engine);
    while ((memh = world->free_memhs) != NULL) {
        world->free_memhs = memh->next;
        free(memh);
    }
}

static void replay_world_go(replay_world_t *world)
{
    int has_helper = uct_helper_engine_needs_helper(world->engine);
    uint64_t main_ns;

    while (world->next < world->trace->event_count) {
        main_ns = replay_world_main_time(world);
        if (has_helper && (world->due_ns <= main_ns)) {
            replay_world_step(world);
        } else {
            replay_world_event(world);
        }
    }
}

ucs_status_t replay_world_run(const replay_trace_t *trace,
                              const replay_params_t *params,
                              uct_helper_stats_t *stats,
                              replay_curve_t *curve)
{
    replay_world_t world = {
        .trace     = trace,
        .params    = params,
        .actor     = REPLAY_MAIN,
        .main_ns   = trace->start_ns,
        .helper_ns = trace->start_ns,
        .due_ns    = UCT_HELPER_TIME_NEVER,
        .woken_ns  = UCT_HELPER_TIME_NEVER,
        .random    = params->seed,
        .curve     = curve
    };
    ucs_status_t status;

    world.memhs = tool_realloc(NULL, (trace->use_count + 1) *
                                             sizeof(*world.memhs));
    replay_fiber_init(&world.fiber, replay_world_inside, &world);
    status = replay_world_open(&world);
    if (status == UCS_OK) {
        if (curve != NULL) {
            replay_curve_add(curve, trace->start_ns, 0);
        }
        replay_world_go(&world);
        uct_helper_engine_stats(world.engine, trace->end_ns, stats);
        replay_world_close(&world);
    }
    replay_fiber_cleanup(&world.fiber);
    free(world.memhs);
    return status;
}
