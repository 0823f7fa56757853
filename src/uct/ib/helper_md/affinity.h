/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_AFFINITY_H_
#define UCT_HELPER_AFFINITY_H_

#include "config/helper_config.h"

/**
 * @file affinity.h
 *
 * Where the helper thread runs.
 */

BEGIN_C_DECLS

/**
 * Processors of the helper thread.
 *
 * `auto` means: those near the device, without the one that the main thread is
 * bound to if it is bound to a single one (as `mpirun --bind-to hwthread` does
 * it), for there the helper could only run by taking the application's time.
 *
 * @param [in]  config      Options.
 * @param [in]  local_cpus  Processors near the device.
 * @param [out] cpus        Set if the result is nonzero.
 *
 * @return Nonzero if the thread should be bound at all.
 */
int uct_helper_affinity_choose(const uct_helper_config_t *config,
                               const ucs_cpu_set_t *local_cpus,
                               ucs_cpu_set_t *cpus);

END_C_DECLS

#endif
