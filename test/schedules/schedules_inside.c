/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "schedules_world.h"
#include "schedules_sched.h"

static ucs_regcache_h sim_cache;

void sim_inside_bind(ucs_regcache_h cache)
{
    sim_cache = cache;
}

static void sim_inside_require(const char *broken)
{
    if (broken != NULL) {
        sim_violation("not so: %s", broken);
    }
}

void sim_inside_check(void)
{
    const char *broken;
    long left;

    if ((sim_cache == NULL) || !sim_is_lock_free()) {
        return;
    }
    left   = sim_quiet();
    broken = ucs_regcache_find_invalid(sim_cache);
    sim_loud(left);
    sim_inside_require(broken);
}

void sim_inside_check_quiet(ucs_regcache_census_t *census)
{
    long left = sim_quiet();
    const char *broken;

    broken = ucs_regcache_find_invalid_quiet(sim_cache, census);
    sim_loud(left);
    sim_inside_require(broken);
}
