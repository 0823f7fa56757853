/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef SCHEDULES_INSIDE_H_
#define SCHEDULES_INSIDE_H_

#include "../inside/regcache_inside.h"

/**
 * @file schedules_inside.h
 *
 * The cache's equations, whenever the index lock is free.
 */

/** Cache that is looked at, NULL: none. */
void sim_inside_bind(ucs_regcache_h cache);

/** Check the equations; sim_violation() if one does not hold. */
void sim_inside_check(void);

/** No fiber is inside the cache: the equations are exact, and the helper's
 *  queues are looked at as well. */
void sim_inside_check_quiet(ucs_regcache_census_t *census);

#endif
