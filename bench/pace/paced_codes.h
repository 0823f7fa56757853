/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef BENCH_PACED_CODES_H_
#define BENCH_PACED_CODES_H_

#include "../simulator/sim_pattern.h"

/**
 * @file paced_codes.h
 *
 * The codes that `paced` runs: those of the simulator's patterns that the
 * helper-thread paper measures (Li et al., CF'11), and three more. A code is a
 * pattern, and for each class how many ranks the job has of which this run is
 * a part, and how long a rank computes in an iteration.
 */

/** Kinds of operations that only the patterns of this file have; any other is
 *  one of @ref sim_op_kind_t. */
typedef enum paced_op_kind {
    PACED_OP_REDUCE = 16, /**< sum of `bytes` at `address`, in doubles, over
                               all ranks, in place */
    PACED_OP_UNMAP        /**< the buffer at `address` is given back */
} paced_op_kind_t;

/** A and B are those of the kernels: the class is this run's. */
#define PACED_CLASSES "ABCD"

/** Call sites and tags of all patterns are below. */
#define PACED_SITES 64
#define PACED_TAGS  64

/** Requests that a pattern has open at most. */
#define PACED_REQUESTS 128

typedef struct paced_size {
    unsigned job_ranks;    /**< Ranks of the job whose rank this is; 0: the
                                pattern says itself what a rank has, or the
                                job is this run */
    double   iteration_ms; /**< Computation of a rank, in each iteration; 0:
                                the code has no such class */
} paced_size_t;

typedef struct paced_code {
    const char          *name;
    const sim_pattern_t *own;       /**< NULL: the simulator's, of this name */
    int                 is_surface; /**< Messages go with the root of a rank's
                                         points, not with them */
    paced_size_t        size[sizeof(PACED_CLASSES) - 1];
} paced_code_t;

/** Ended by a name of NULL. */
extern const paced_code_t paced_codes[];

/** Bytes of a march's piece, a power of two from a page to its array; 0: as of the
 *  class. Before shapes are made. */
void paced_codes_set_piece(uint64_t bytes);

/** @return The code of this name, or NULL. */
const paced_code_t *paced_code_find(const char *name);

/**
 * Make the shape of a code.
 *
 * @param [in]  letter   One of @ref PACED_CLASSES.
 * @param [in]  ranks    Of this run. The class's points are cut down such that
 *                       a rank has about what one of `job_ranks` has.
 * @param [out] shape    The shape.
 * @param [out] size_p   The size that belongs to the class.
 *
 * @return 0; -1 if there is no such class, or the code does not take that
 *         number of ranks.
 */
int paced_code_shape(const paced_code_t *code, char letter, unsigned ranks,
                     sim_shape_t *shape, const paced_size_t **size_p);

#endif
