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

/** A and B are jobs of a second on two processors: the class is this run's. */
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

/** In which order a march comes to its pieces. */
typedef enum paced_walk {
    PACED_WALK_UP,
    PACED_WALK_DOWN,
    PACED_WALK_STRIDED, /**< With 15 between two, which come in later rounds */
    PACED_WALK_LAST
} paced_walk_t;

/** Of each but the last. */
extern const char *const paced_walk_names[];

/**
 * How a march goes through its array. Before shapes are made.
 *
 * @param piece  Bytes at a time, a power of two from a page to the array; 0: as of the
 *               class.
 */
void paced_codes_set_march(uint64_t piece, paced_walk_t walk);

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

/* A rank's buffers, and what is in them. Patterns speak of modelled addresses
 * (sim_buffer()); each buffer has memory of its own for as far as the pattern
 * reaches into it. A message carries a stamp in its first and its last word, a
 * function of sender, receiver, tag and count, so that one that arrives in
 * part, late, or from an old registration is seen. */

typedef struct paced_buffer {
    uint64_t bytes;    /**< As far as the pattern reaches */
    int      is_brief; /**< Given back before the end */
    char     *address; /**< NULL: not mapped */
} paced_buffer_t;

typedef struct paced_data {
    paced_buffer_t *buffers;
    uint64_t       count;
    uint64_t       next_address; /**< Of what is mapped next, not used yet */
} paced_data_t;

/** Take down that the pattern reaches @a bytes far from @a address. */
void paced_data_reach(paced_data_t *data, uint64_t address, uint64_t bytes);

/** Take down that the buffer at @a address is given back before the end. */
void paced_data_brief(paced_data_t *data, uint64_t address);

/** Map all other buffers, and touch all of their pages. */
void paced_data_map(paced_data_t *data);

/** @return Memory of a modelled address; a brief buffer is mapped, and all of
 *          it touched, if it is not yet. */
void *paced_data_get(paced_data_t *data, uint64_t address);

/** Unmap the buffer at a modelled address. */
void paced_data_unmap(paced_data_t *data, uint64_t address);

/** A stamp of a message, the @a count th of its sender, receiver and tag. */
uint64_t paced_stamp(uint32_t sender, uint32_t receiver, uint32_t tag,
                     uint64_t count);

/** Put @a stamp into the first and, complemented, the last word of a message;
 *  one of under two words has none. */
void paced_stamp_put(void *message, uint64_t bytes, uint64_t stamp);

/** @return Nonzero if both words are those that @ref paced_stamp_put wrote. */
int paced_stamp_is(const void *message, uint64_t bytes, uint64_t stamp);

#endif
