/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef BENCH_PIPELINE_PATTERNS_H_
#define BENCH_PIPELINE_PATTERNS_H_

#include "pipeline_model.h"

/**
 * @file pipeline_patterns.h
 *
 * What the paper measures, as scripts of nodes.
 */

BEGIN_C_DECLS

/**
 * Two nodes send to and fro, out of one buffer and into another, after a few
 * messages with others.
 *
 * @param [in]  uses    Of the same buffers, by a message each way.
 * @param [out] ends    When each pair of messages has ended, in nanoseconds
 *                      since the first began.
 *
 * @return Bytes registered at most, of the node with most.
 */
size_t pipe_pingpong(pipe_system_t system, const pipe_costs_t *costs,
                     size_t size, unsigned uses, uint64_t *ends);

/**
 * Ping-pong with memory that is new for each message and unmapped after it, by a
 * pipeline.
 *
 * @param [in] messages  A way.
 *
 * @return Bandwidth in 10^6 bytes a second.
 */
double pipe_new(pipe_system_t system, const pipe_costs_t *costs,
                size_t size, unsigned messages);

/** Of all nodes together, 10^6 bytes a second. */
typedef struct pipe_beff {
    double beff;    /**< mean over sizes, rings and random orders */
    double at_lmax; /**< the same for the longest messages alone */
} pipe_beff_t;

/**
 * Rabenseifner's b_eff, as far as a model has it: 21 sizes up to @a lmax, rings
 * of 2, 4 and all in natural order and rings in random order, every node to and
 * from both neighbours at once. Each pattern uses its buffers three times, as
 * often as there are methods in b_eff, and then others.
 */
void pipe_beff(pipe_system_t system, const pipe_costs_t *costs,
               unsigned num_nodes, size_t lmax, pipe_beff_t *result);

END_C_DECLS

#endif
