/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef SCHEDULES_PROGRAM_H_
#define SCHEDULES_PROGRAM_H_

#include "schedules_sched.h"

#include <ucs/regcache/regcache.h>

/**
 * Run the program of @a seed under the schedule of @a seed.
 *
 * @param [in] policy  UCS_REGCACHE_POLICY_LAST: the seed chooses.
 *
 * @return Nonzero if all invariants held.
 */
int sim_program_run(uint64_t seed, ucs_regcache_policy_t policy,
                    const sim_faults_t *faults);

#endif
