/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "schedules_program.h"
#include "schedules_inside.h"
#include "schedules_world.h"

#include <limits.h>
#include <string.h>

#define SIM_MAX_THREADS 4

/* Steps after which a helper that has something to look after for ever has done
 * what it will do */
#define SIM_MAX_DRAIN 400

/* What does not come is given up after four times the longest gap seen, which
 * is no longer than the program, or after as long as the program has run and a
 * second: a matter of time, and of many looks if that is long. The rest is what
 * a use lost takes to be noticed. */
#define SIM_DRAIN_PROGRAMS 4
#define SIM_DRAIN_NS       3000000000ul

#define SIM_US 1000ul

typedef struct sim_range {
    unsigned first, last;     /* pages */
    unsigned before, behind;  /* bytes left out at the ends */
} sim_range_t;

/* They overlap, contain one another, touch; two are small */
static const sim_range_t sim_ranges[] = {
    {0, 4, 0, 0},   {4, 8, 0, 0},    {2, 6, 0, 0},  {0, 8, 0, 0},
    {8, 12, 64, 0}, {10, 13, 0, 96}, {8, 9, 0, 0},  {13, 16, 8, 8},
    {0, 2, 0, 0},   {14, 15, 16, 16}
};
#define SIM_NUM_RANGES (sizeof(sim_ranges) / sizeof(sim_ranges[0]))

/* Of others' reads and writes, and of the program's own */
enum {
    SIM_ACCESS_GET   = 1,
    SIM_ACCESS_PUT   = 2,
    SIM_ACCESS_RMA   = SIM_ACCESS_GET | SIM_ACCESS_PUT,
    SIM_ACCESS_READ  = 4,
    SIM_ACCESS_WRITE = 8
};

static const unsigned sim_accesses[] = {
    SIM_ACCESS_RMA, SIM_ACCESS_RMA, SIM_ACCESS_WRITE,
    SIM_ACCESS_GET | SIM_ACCESS_READ
};

static const uint64_t sim_periods[] = {30 * SIM_US, 500 * SIM_US,
                                       5000 * SIM_US};

typedef struct sim_thread {
    sim_rng_t rng;
    unsigned  number;
    unsigned  ops;
    unsigned  ranges;  /* the first so many are used */
    int       is_leaky; /* keeps a use at its end */
} sim_thread_t;

static sim_thread_t sim_threads[SIM_MAX_THREADS];
static sim_rng_t sim_signal_rng;
static int sim_has_leak;

/*
 * Operations
 */

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

/* A thread that waits takes a step, if it can have it, and wakes the helper for
 * what it leaves (ucs_thread_try_step()) */
static void sim_thread_wait(sim_thread_t *thread)
{
    const ucs_regcache_spare_t spare = {
        .ns       = sim_rng_below(&thread->rng, 2) * 1000 * SIM_US,
        .is_alone = sim_world.is_alone
    };
    uint64_t next;

    if ((sim_world.helper < 0) || !sim_world_try_lock_step()) {
        return;
    }
    sim_trace("idle step", 0, 0);
    sim_world_hear();
    next = ucs_regcache_idle_step(sim_world.cache, sim_now(), &spare);
    sim_trace("idle stepped", next, 0);
    sim_world_unlock_step();
    if (next < sim_world.due) {
        sim_world.due         = next;
        sim_world.is_notified = 1;
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
    switch (sim_rng_below(&thread->rng, 20)) {
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
    default:
        sim_thread_stats();
        break;
    }
}

/*
 * Fibers
 */

static void sim_thread_main(void *arg)
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

/* What the user granted predict and rent make use of, and look after for
 * ever; overlap keeps what there is room for */
static size_t sim_granted(void)
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
    int      was_kept; /* at the last look the floor left all pinned */
} sim_drain_t;

static int sim_drain_is_over(sim_drain_t *drain)
{
    if (drain->steps++ == 0) {
        drain->until_ns = (SIM_DRAIN_PROGRAMS + 1) * sim_now() + SIM_DRAIN_NS;
    }
    if ((sim_granted() == 0) && !sim_has_leak) {
        return sim_now() > drain->until_ns;
    }
    return drain->steps >= SIM_MAX_DRAIN;
}

/* When the program has ended the helper gives up what is idle, and then has
 * nothing to wait for */
static int sim_helper_is_done(uint64_t next, sim_drain_t *drain)
{
    int is_kept;

    if (sim_world.running > 0) {
        return 0;
    }
    if ((next == UCS_REGCACHE_TIME_NEVER) && !sim_world.is_notified) {
        return 1;
    }
    is_kept = !ucs_regcache_needs_helper(sim_world.cache);
    if (drain->was_kept && !is_kept) {
        drain->steps = 0; /* what the floor kept is looked at from now on */
    }
    drain->was_kept = is_kept;
    if (!sim_drain_is_over(drain)) {
        return 0;
    }
    if (!sim_has_leak && (sim_granted() == 0) && !is_kept) {
        sim_violation("idle registrations are never given up");
    }
    return 1;
}

static void sim_helper_main(void *arg)
{
    sim_drain_t drain = {0};
    uint64_t next;

    (void)arg;
    do {
        sim_world.is_notified = 0;
        sim_world_lock_step();
        sim_trace("step", 0, 0);
        sim_world_hear();
        next = ucs_regcache_step(sim_world.cache, sim_now());
        sim_world.due = next;
        sim_trace("stepped", next, 0);
        sim_world_unlock_step();
        if (sim_helper_is_done(next, &drain)) {
            break;
        }
        if (!sim_world.is_notified) {
            sim_sleep_until(next);
        }
        /* Nobody but the end has woken it: nothing may be left to do */
    } while ((next != UCS_REGCACHE_TIME_NEVER) || sim_world.is_notified ||
             (sim_world.running > 0));
}

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

/*
 * A program
 */

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
     * from one that does */
    sim_world.tuning     = ucs_regcache_tuning_default;
    sim_world.tuning.lot = 4;
    params->tuning       = &sim_world.tuning;
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
    sim_world.is_alone     = (seed & 1);
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
    sim_has_leak      = 0;
    ranges            = 1 + sim_rng_below(&rng, SIM_NUM_RANGES);
    sim_world.running = 1 + sim_rng_below(&rng, SIM_MAX_THREADS);
    for (i = 0; i < sim_world.running; ++i) {
        sim_rng_init(&sim_threads[i].rng, seed, 16 + i);
        sim_threads[i].number   = i;
        sim_threads[i].ranges   = ranges;
        sim_threads[i].ops      = 1 + sim_rng_below(&rng, 4);
        sim_threads[i].is_leaky = (sim_rng_below(&rng, 32) == 0);
        sim_has_leak           |= sim_threads[i].is_leaky;
        sim_add(names[i], sim_thread_main, &sim_threads[i]);
    }
    if (ucs_regcache_needs_helper(sim_world.cache) && !sim_world.is_refused) {
        sim_world.helper = sim_add("helper", sim_helper_main, NULL);
    }
}

/*
 * The end of a program: no fiber is inside the cache
 */

static void sim_end_check_stats(const ucs_regcache_census_t *sum)
{
    ucs_regcache_stats_t stats;

    ucs_regcache_stats(sim_world.cache, sim_now(), &stats);
    if (sim_world.live != sum->live) {
        sim_violation("%u registrations, %u live regions", sim_world.live,
                      sum->live);
    }
    if ((stats.pinned_bytes != sim_world.live_bytes) ||
        (stats.regions != sim_world.live)) {
        sim_violation("%lu bytes are accounted and %lu pinned",
                      (unsigned long)stats.pinned_bytes,
                      (unsigned long)sim_world.live_bytes);
    }
    if (stats.uses != stats.on_time + stats.late + stats.missed + stats.cold) {
        sim_violation("uses do not add up");
    }
}

static void sim_end_check_refs(void)
{
    unsigned i;

    for (i = 0; i < SIM_MAX_SLOTS; ++i) {
        if (sim_world.slots[i].is_live &&
            (ucs_regcache_count_users(sim_world.cache,
                                      (ucs_regcache_memh_t)(0x7000 +
                                                            i * 64ul)) !=
             sim_world.slots[i].holders)) {
            sim_violation("references and users differ");
        }
    }
}

static void sim_end_check_idle(const ucs_regcache_census_t *sum)
{
    /* All stays pinned where the floor holds (floor.c) */
    int gives_up = ((sim_world.helper >= 0) &&
                    ucs_regcache_needs_helper(sim_world.cache)) ||
                   (sim_world.params.policy == UCS_REGCACHE_POLICY_ON_DEMAND);

    if (sim_has_leak) {
        return;
    }
    if (gives_up && (sum->managed > sim_granted())) {
        sim_violation("%lu bytes stay registered idle",
                      (unsigned long)sum->managed);
    }
    if ((sim_world.helper >= 0) && (sum->dormant + sum->doomed > 0)) {
        sim_violation("%u regions stay dormant, %u doomed", sum->dormant,
                      sum->doomed);
    }
}

static void sim_end_check_comps(void)
{
    unsigned i;

    for (i = 0; i < sim_world.num_comps; ++i) {
        if (!sim_world.comps[i].is_done) {
            sim_violation("a completion is lost");
        }
    }
}

static void sim_program_end(void)
{
    ucs_regcache_census_t sum;

    sim_inside_check_quiet(&sum);
    if (!sim_is_violated() && (sim_fault_hits() == 0)) {
        sim_end_check_stats(&sum);
        sim_end_check_refs();
    }
    if (!sim_is_violated()) {
        sim_end_check_idle(&sum);
    }
    if (!sim_has_leak && !sim_is_violated()) {
        sim_end_check_comps();
    }
    if (sim_is_violated()) {
        return;
    }
    sim_inside_bind(NULL);
    ucs_regcache_destroy(sim_world.cache);
    sim_end_check_comps();
    if (!sim_is_violated() && (sim_world.live > 0)) {
        sim_violation("%u registrations are left at the end", sim_world.live);
    }
    if (!sim_is_violated() && (sim_allocations() > 0)) {
        sim_violation("%zu allocations are left at the end",
                      sim_allocations());
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
    sim_check = sim_inside_check;
    sim_program_fibers(seed);
    sim_run();
    if (!sim_is_violated()) {
        sim_program_end();
    }
    sim_inside_bind(NULL);
    return !sim_is_violated();
}
