/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "schedules_world.h"

/* Steps after which a helper that has something to look after for ever has done
 * what it will do */
#define SIM_MAX_DRAIN 400

/* What does not come is given up after four times the longest gap seen, which
 * is no longer than the program, or after as long as the program has run and a
 * second: a matter of time, and of many looks if that is long. The rest is what
 * a use lost takes to be noticed. */
#define SIM_DRAIN_PROGRAMS 4
#define SIM_DRAIN_NS       3000000000ul

size_t sim_granted(void)
{
    ucs_regcache_policy_t policy = sim_world.params.policy;

    if (policy == UCS_REGCACHE_POLICY_OVERLAP) {
        return sim_world.params.max_pinned;
    }
    return (((policy == UCS_REGCACHE_POLICY_PREDICT) ||
             (policy == UCS_REGCACHE_POLICY_RENT)) &&
            (sim_world.params.max_pinned != SIZE_MAX)) ?
                   sim_world.params.max_pinned :
                   0;
}

typedef struct sim_drain {
    unsigned steps;    /* since the program has ended */
    uint64_t until_ns; /* what is idle has been given up by then */
} sim_drain_t;

static int sim_drain_is_over(sim_drain_t *drain)
{
    if (drain->steps++ == 0) {
        drain->until_ns = (SIM_DRAIN_PROGRAMS + 1) * sim_now() + SIM_DRAIN_NS;
    }
    if ((sim_granted() == 0) && !sim_world.has_leak) {
        return sim_now() > drain->until_ns;
    }
    return drain->steps >= SIM_MAX_DRAIN;
}

/* When the program has ended the helper gives up what is idle, and then has
 * nothing to wait for */
static int sim_helper_is_done(uint64_t next, sim_drain_t *drain)
{
    if (sim_world.running > 0) {
        return 0;
    }
    if ((next == UCS_REGCACHE_TIME_NEVER) && !sim_world.is_notified) {
        return 1;
    }
    if (!sim_drain_is_over(drain)) {
        return 0;
    }
    if (!sim_world.has_leak && (sim_granted() == 0) &&
        ucs_regcache_needs_helper(sim_world.cache)) {
        sim_violation("idle registrations are never given up");
    }
    return 1;
}

/* To a step, or because the program has ended and nothing will be due any more */
static int sim_helper_is_called(void)
{
    return sim_world.is_notified ||
           ((sim_world.due == UCS_REGCACHE_TIME_NEVER) &&
            (sim_world.running == 0));
}

void sim_helper_main(void *arg)
{
    sim_drain_t drain = {0};
    uint64_t next;

    while (sim_world.is_starved && (sim_world.running > 0)) {
        sim_sleep_until(UCS_REGCACHE_TIME_NEVER);
    }
    do {
        sim_world.is_notified = 0;
        sim_world_lock_step();
        ++sim_world.steps;
        sim_trace("step", 0, 0);
        sim_world_hear();
        next = ucs_regcache_step(sim_world.cache, sim_now());
        sim_world.due = next;
        sim_trace("stepped", next, 0);
        sim_world_unlock_step();
        if (sim_helper_is_done(next, &drain)) {
            break;
        }
        while (!sim_helper_is_called() && (sim_now() < sim_world.due)) {
            sim_sleep_until(sim_world.due); /* which others may move meanwhile */
        }
        /* Nobody but the end has woken it: nothing may be left to do */
    } while ((sim_world.due != UCS_REGCACHE_TIME_NEVER) ||
             sim_world.is_notified || (sim_world.running > 0));
}
