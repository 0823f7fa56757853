/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "schedules_world.h"

#include <limits.h>
#include <string.h>

#define SIM_MAX_THREADS 4

static sim_thread_t sim_threads[SIM_MAX_THREADS];
static sim_rng_t sim_signal_rng;

static void sim_handler(void)
{
    unsigned first;

    if (sim_current() == sim_world.helper) {
        return; /* has all signals blocked */
    }
    first = sim_rng_below(&sim_signal_rng, SIM_PAGES - 2);
    sim_trace("signal", 0, 0);
    (void)sim_world_unmap(first, first + 1 + sim_rng_below(&sim_signal_rng, 2));
}

static void sim_program_params(sim_rng_t *rng, ucs_regcache_policy_t policy)
{
    static const size_t pinned[]         = {SIZE_MAX, SIZE_MAX, 8, 5, 2};
    static const unsigned long regions[] = {ULONG_MAX, ULONG_MAX, 3, 2, 1};
    ucs_regcache_params_t *params        = &sim_world.params;
    unsigned i                           = sim_rng_below(rng, 5);

    if (policy == UCS_REGCACHE_POLICY_LAST) {
        policy = (sim_rng_below(rng, 2) == 0) ?
                         UCS_REGCACHE_POLICY_PAPER :
                         (ucs_regcache_policy_t)sim_rng_below(
                                 rng, UCS_REGCACHE_POLICY_LAST);
    }
    params->policy       = policy;
    params->min_size     = 2 * SIM_PAGE;
    params->max_pinned   = (pinned[i] == SIZE_MAX) ? SIZE_MAX :
                                                     pinned[i] * SIM_PAGE;
    params->max_regions  = regions[sim_rng_below(rng, 5)];
    params->dq_length    = 2u << sim_rng_below(rng, 4);
    params->max_contexts = 4u << sim_rng_below(rng, 4);
    params->page_size    = SIM_PAGE;
    /* Few regions make a lot here, so that a walk that takes no break is told
     * from one that does; and what lies idle has no room that it has not paid
     * for, or nothing would ever give way under the soft ceiling */
    sim_world.tuning            = ucs_regcache_tuning_default;
    sim_world.tuning.lot        = 4;
    sim_world.tuning.soft_least = 1;
    params->tuning              = &sim_world.tuning;
    if (sim_has_covers) {
        /* Of the program's own two kinds of access one is a message's */
        params->max_pinned = SIZE_MAX;
        params->cover      = (ucs_regcache_cover_t){
                     .kind        = UCS_REGCACHE_COVER_LOCAL + (i & 1),
                     .remote_mask = SIM_ACCESS_RMA,
                     .own_set     = SIM_ACCESS_RMA,
                     .own_clear   = SIM_ACCESS_READ | SIM_ACCESS_WRITE};
    }
}

/* What is idle is rented for longer than a program takes, or for a while of
 * it */
static double sim_program_slowdown(uint64_t seed)
{
    static const double slowdowns[] = {0.005, 0.05, 1};
    sim_rng_t rng;

    sim_rng_init(&rng, seed, 7);
    return slowdowns[sim_rng_below(&rng, 3)];
}

static void sim_program_world(uint64_t seed, ucs_regcache_policy_t policy)
{
    sim_rng_t rng;
    unsigned i;

    sim_rng_init(&rng, seed, 2);
    memset(&sim_world, 0, sizeof(sim_world));
    sim_rng_init(&sim_world.rng, seed, 3);
    for (i = 0; i < SIM_PAGES; ++i) {
        sim_world.pages[i].mapping = 1;
    }
    sim_program_params(&rng, policy);
    sim_world.params.max_slowdown = sim_program_slowdown(seed);
    sim_world.is_refused   = (sim_rng_below(&rng, 16) == 0);
    sim_world.device_limit = (sim_rng_below(&rng, 6) == 0) ? 3 : 0;
    sim_world.is_instant   = (sim_rng_below(&rng, 2) == 0);
    sim_world.step_owner   = -1;
    sim_world.is_starved   = ((seed & 3) == 3);
    sim_world.due          = UCS_REGCACHE_TIME_NEVER;
    sim_world.helper       = -1;
    sim_signal = (sim_rng_below(&rng, 8) == 0) ? sim_handler : NULL;
    sim_rng_init(&sim_signal_rng, seed, 4);
}

static void sim_program_fibers(uint64_t seed)
{
    static const char *names[] = {"main0", "main1", "main2", "main3"};
    unsigned ranges, i;
    sim_rng_t rng;

    sim_rng_init(&rng, seed, 5);
    ranges            = 1 + sim_rng_below(&rng, SIM_NUM_RANGES);
    sim_world.running = 1 + sim_rng_below(&rng, SIM_MAX_THREADS);
    for (i = 0; i < sim_world.running; ++i) {
        sim_rng_init(&sim_threads[i].rng, seed, 16 + i);
        sim_threads[i].number   = i;
        sim_threads[i].ranges   = ranges;
        sim_threads[i].ops      = 1 + sim_rng_below(&rng, 4);
        sim_threads[i].is_leaky = (sim_rng_below(&rng, 32) == 0);
        sim_world.has_leak     |= sim_threads[i].is_leaky;
        sim_add(names[i], sim_thread_main, &sim_threads[i]);
    }
    if (ucs_regcache_needs_helper(sim_world.cache) && !sim_world.is_refused) {
        sim_world.helper = sim_add("helper", sim_helper_main, NULL);
    }
}

int sim_program_run(uint64_t seed, ucs_regcache_policy_t policy,
                    const sim_faults_t *faults)
{
    ucs_regcache_env_t env = {0};
    ucs_status_t status;

    sim_begin(seed, faults);
    sim_program_world(seed, policy);
    sim_world_env(&env);
    sim_inside_bind(NULL);
    status = ucs_regcache_create(&sim_world.params, &env, &sim_world.cache);
    if (status != UCS_OK) {
        if ((sim_fault_hits() == 0) || (sim_allocations() > 0)) {
            sim_violation("create fails or leaks: %d", status);
        }
        return !sim_is_violated();
    }
    sim_inside_bind(sim_world.cache);
    /* In half of the programs ranks wait for processors */
    ucs_regcache_set_wanted(sim_world.cache, 0, (seed & 4) ? 1 : 0);
    sim_check = sim_inside_check;
    sim_program_fibers(seed);
    sim_run();
    if (!sim_is_violated()) {
        sim_end_check();
    }
    sim_inside_bind(NULL);
    return !sim_is_violated();
}
