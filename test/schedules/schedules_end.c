/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "schedules_world.h"

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
    int gives_up = ((sim_world.helper >= 0) &&
                    ucs_regcache_needs_helper(sim_world.cache)) ||
                   (sim_world.params.policy == UCS_REGCACHE_POLICY_ON_DEMAND);

    if (sim_world.has_leak) {
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

void sim_end_check(void)
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
    if (!sim_world.has_leak && !sim_is_violated()) {
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
