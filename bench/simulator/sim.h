/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef BENCH_SIM_H_
#define BENCH_SIM_H_

#include "sim_world.h"

#include <stdio.h>

/**
 * @file sim.h
 *
 * What the command's main and its printing share.
 */

#define SIM_LIST_MAX 16

/** The policies that can be asked for, and none. */
#define SIM_ROWS_MAX (UCS_REGCACHE_POLICY_LAST + 1)

typedef struct sim_options {
    sim_params_t          params;
    const sim_pattern_t   *patterns[SIM_LIST_MAX];
    size_t                pattern_count;
    uint32_t              ranks[SIM_LIST_MAX];
    size_t                ranks_count;
    ucs_regcache_policy_t policies[UCS_REGCACHE_POLICY_LAST];
    size_t                policy_count;
    char                  letter;    /* class */
    int                   is_weak;
    sim_alltoall_t        alltoall;
    uint64_t              memory;    /* bytes for engines */
    int                   is_json;
} sim_options_t;

extern const char *const sim_helper_names[];

/** One policy, on one pattern and number of ranks. */
typedef struct sim_row {
    ucs_regcache_policy_t policy; /* SIM_NO_POLICY: registrations are free */
    uint64_t              max_pinned;
    uint64_t              leave_ns; /* what leave pinned's run took */
    sim_result_t          result;
} sim_row_t;

/** Rows begin with SIM_NO_POLICY. */
void sim_print_table(const sim_options_t *options, const sim_shape_t *shape,
                     const sim_row_t *rows, size_t count, FILE *stream);
void sim_print_json(const sim_options_t *options, const sim_shape_t *shape,
                    const sim_row_t *rows, size_t count, FILE *stream);

/** What the parameters are, for the head of a table. */
void sim_print_params(const sim_options_t *options, FILE *stream);

#endif
