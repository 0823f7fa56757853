/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "schedules_world.h"

#define SIM_US 1000ul

typedef struct sim_range {
    unsigned first, last;     /* pages */
    unsigned before, behind;  /* bytes left out at the ends */
} sim_range_t;

/* They overlap, contain one another, touch; two are small */
static const sim_range_t sim_ranges[SIM_NUM_RANGES] = {
    {0, 4, 0, 0},   {4, 8, 0, 0},    {2, 6, 0, 0},  {0, 8, 0, 0},
    {8, 12, 64, 0}, {10, 13, 0, 96}, {8, 9, 0, 0},  {13, 16, 8, 8},
    {0, 2, 0, 0},   {14, 15, 16, 16}
};

static const unsigned sim_accesses[] = {
    SIM_ACCESS_RMA, SIM_ACCESS_RMA, SIM_ACCESS_WRITE,
    SIM_ACCESS_GET | SIM_ACCESS_READ
};

static const uint64_t sim_periods[] = {30 * SIM_US, 500 * SIM_US,
                                       5000 * SIM_US};

static int sim_thread_begin(sim_thread_t *thread, unsigned range,
                            sim_use_t *use)
{
    const sim_range_t *r = &sim_ranges[range];

    return sim_world_get(SIM_BASE + r->first * SIM_PAGE + r->before,
                         SIM_BASE + r->last * SIM_PAGE - r->behind,
                         sim_accesses[sim_rng_below(&thread->rng, 4)],
                         range + 1, use);
}

static void sim_thread_hold(sim_thread_t *thread)
{
    switch (sim_rng_below(&thread->rng, 3)) {
    case 0:
        sim_sleep(sim_rng_below(&thread->rng, 20 * SIM_US));
        break;
    case 1:
        sim_point();
        break;
    default:
        break;
    }
}

static void sim_thread_end_use(sim_thread_t *thread, const sim_use_t *use)
{
    if (sim_rng_below(&thread->rng, 8) == 0) {
        sim_world_invalidate(use);
    } else {
        sim_world_put(use);
    }
}

static unsigned sim_thread_range(sim_thread_t *thread)
{
    return sim_rng_below(&thread->rng, thread->ranges);
}

static void sim_thread_use(sim_thread_t *thread, unsigned range)
{
    sim_use_t use;

    if (sim_thread_begin(thread, range, &use)) {
        sim_thread_hold(thread);
        sim_thread_end_use(thread, &use);
    }
}

/* Teaches the helper a period */
static void sim_thread_loop(sim_thread_t *thread)
{
    uint64_t period = sim_periods[sim_rng_below(&thread->rng, 3)];
    unsigned range  = sim_thread_range(thread);
    unsigned count  = 3 + sim_rng_below(&thread->rng, 5);
    const sim_range_t *r = &sim_ranges[range];
    sim_use_t use;

    while (count-- > 0) {
        if (sim_world_get(SIM_BASE + r->first * SIM_PAGE + r->before,
                          SIM_BASE + r->last * SIM_PAGE - r->behind,
                          SIM_ACCESS_RMA, 100 + range, &use)) {
            sim_thread_hold(thread);
            sim_world_put(&use);
        }
        sim_sleep(period);
    }
}

/* Through all pages, two of them at each step, up or down */
static void sim_thread_walk(sim_thread_t *thread)
{
    int is_down     = sim_rng_below(&thread->rng, 2);
    unsigned access = (sim_rng_below(&thread->rng, 2) ? SIM_ACCESS_RMA : 0) |
                      SIM_ACCESS_WRITE;
    unsigned step, first;
    sim_use_t use;

    for (step = 0; step + 1 < SIM_PAGES; ++step) {
        first = is_down ? SIM_PAGES - 2 - step : step;
        if (sim_world_get(SIM_BASE + first * SIM_PAGE,
                          SIM_BASE + (first + 2) * SIM_PAGE, access, 200,
                          &use)) {
            sim_thread_hold(thread);
            sim_thread_end_use(thread, &use);
        }
        if (sim_rng_below(&thread->rng, 2) == 0) {
            sim_sleep(sim_rng_below(&thread->rng, 100 * SIM_US));
        }
    }
}

static void sim_thread_nest(sim_thread_t *thread)
{
    sim_use_t outer, inner;

    if (!sim_thread_begin(thread, sim_thread_range(thread), &outer)) {
        return;
    }
    if (sim_thread_begin(thread, sim_thread_range(thread), &inner)) {
        sim_thread_hold(thread);
        sim_thread_end_use(thread, &inner);
    }
    sim_thread_end_use(thread, &outer);
}

/* Mostly there where uses are: next to one, or as soon as it is over */
static void sim_thread_unmap(sim_thread_t *thread)
{
    unsigned first, last, tries;

    for (tries = 0; tries < 4; ++tries) {
        first = sim_rng_below(&thread->rng, SIM_PAGES);
        if (sim_rng_below(&thread->rng, 2) == 0) {
            first = sim_ranges[sim_thread_range(thread)].first;
            first += sim_rng_below(&thread->rng, 8);
        }
        last = first + 1 + sim_rng_below(&thread->rng, 4);
        if ((last <= SIM_PAGES) && sim_world_unmap(first, last)) {
            break;
        }
    }
}

/* Memory cannot be trusted, or can be again; or somebody is short of it */
static void sim_thread_trust(sim_thread_t *thread)
{
    switch (sim_rng_below(&thread->rng, 4)) {
    case 0:
        sim_trace("distrusts", 0, 0);
        ucs_regcache_distrust(sim_world.cache, UCS_REGCACHE_DISTRUST_EVENTS);
        break;
    case 1 ... 2:
        sim_trace("trusts", 0, 0);
        ucs_regcache_trust(sim_world.cache, UCS_REGCACHE_DISTRUST_EVENTS);
        break;
    default:
        sim_trace("yields", 0, 0);
        ucs_regcache_yield(sim_world.cache);
        break;
    }
}

/* A thread that waits takes a step, if it can have it, and tells the helper when
 * to come: sooner for what it leaves, and later as well where the helper does not
 * come beside such steps (ucs_job_try_step()) */
static void sim_thread_wait(sim_thread_t *thread)
{
    uint64_t spare_ns = sim_rng_below(&thread->rng, 2) * 1000 * SIM_US;
    uint64_t next;
    int is_sooner;

    if ((sim_world.helper < 0) || !sim_world_try_lock_step()) {
        return;
    }
    sim_trace("idle step", 0, 0);
    sim_world_hear();
    next = ucs_regcache_idle_step(sim_world.cache, sim_now(), spare_ns);
    sim_trace("idle stepped", next, 0);
    is_sooner = (next < sim_world.due);
    if (is_sooner) {
        sim_world.due = next;
    }
    sim_world_unlock_step();
    if (is_sooner) {
        sim_wake(sim_world.helper);
    }
}

static int sim_thread_say(sim_thread_t *thread, ucs_operation_kind_t kind,
                          const sim_range_t *range, unsigned id)
{
    const ucs_operation_t operation = {
        .time    = sim_now(),
        .address = SIM_BASE + range->first * SIM_PAGE + range->before,
        .length  = (range->last - range->first) * SIM_PAGE - range->before -
                  range->behind,
        .label   = 1 + kind,
        .id      = id,
        .kind    = kind,
        .thread  = thread->number
    };

    return sim_world_say(&operation);
}

/* A receive is posted; its use comes, or it ends without one, or its buffer is
 * unmapped before */
static void sim_thread_announce(sim_thread_t *thread)
{
    unsigned range = sim_thread_range(thread);
    unsigned id    = sim_rng_below(&thread->rng, 3); /* 0: nobody tells */

    if (!sim_thread_say(thread, UCS_OPERATION_RECEIVE, &sim_ranges[range],
                        id)) {
        return;
    }
    if (sim_rng_below(&thread->rng, 2) == 0) {
        sim_thread_wait(thread);
    }
    sim_sleep(sim_rng_below(&thread->rng, 100 * SIM_US));
    switch (sim_rng_below(&thread->rng, 4)) {
    case 0:
        break;
    case 1:
        (void)sim_world_unmap(sim_ranges[range].first,
                              sim_ranges[range].first + 1);
        break;
    default:
        sim_thread_use(thread, range);
        break;
    }
    (void)sim_thread_say(thread, UCS_OPERATION_RECEIVED, &sim_ranges[range],
                         id);
}

static void sim_thread_stats(void)
{
    ucs_regcache_stats_t stats;

    ucs_regcache_stats(sim_world.cache, sim_now(), &stats);
    if (stats.uses != stats.on_time + stats.late + stats.missed + stats.cold) {
        sim_violation("uses do not add up");
    }
}

static void sim_thread_op(sim_thread_t *thread)
{
    switch (sim_rng_below(&thread->rng, sim_has_covers ? 24 : 20)) {
    case 0 ... 4:
        sim_thread_use(thread, sim_thread_range(thread));
        break;
    case 5 ... 8:
        sim_thread_loop(thread);
        break;
    case 9 ... 10:
        sim_thread_nest(thread);
        break;
    case 11 ... 13:
        sim_thread_unmap(thread);
        break;
    case 14:
        sim_thread_trust(thread);
        break;
    case 15 ... 16:
        sim_thread_wait(thread);
        break;
    case 17 ... 18:
        sim_thread_announce(thread);
        break;
    case 19:
        sim_thread_stats();
        break;
    default:
        sim_thread_walk(thread);
        break;
    }
}

void sim_thread_main(void *arg)
{
    sim_thread_t *thread = arg;
    sim_use_t use;

    while (thread->ops-- > 0) {
        sim_thread_op(thread);
        if (sim_world.is_refused && (thread->number == 0)) {
            ucs_regcache_helper_refused(sim_world.cache);
        }
    }
    if (thread->is_leaky) {
        (void)sim_thread_begin(thread, sim_thread_range(thread), &use);
    }
    if ((--sim_world.running == 0) && (sim_world.helper >= 0)) {
        sim_wake(sim_world.helper);
    }
}
