/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef SCHEDULES_PROGRAM_H_
#define SCHEDULES_PROGRAM_H_

#include "schedules_sched.h"

#include <uct/ib/helper_md/engine.h>

/**
 * Run the program of @a seed under the schedule of @a seed.
 *
 * @param [in] policy  UCT_HELPER_POLICY_LAST: the seed chooses.
 *
 * @return Nonzero if all invariants held.
 */
int sim_program_run(uint64_t seed, uct_helper_policy_t policy,
                    const sim_faults_t *faults);

#endif
