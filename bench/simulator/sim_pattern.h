/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef BENCH_SIM_PATTERN_H_
#define BENCH_SIM_PATTERN_H_

#include <stddef.h>
#include <stdint.h>
#include <sys/cdefs.h>

/**
 * @file sim_pattern.h
 *
 * What a rank of a NAS kernel does, one operation after the other: its messages
 * (lengths, partners, buffers, order), and how many floating
 * point operations lie between them. A program is a function of its position,
 * so that no rank keeps one.
 */

__BEGIN_DECLS

typedef enum sim_op_kind {
    SIM_OP_COMPUTE, /**< flops; 0: nothing at all */
    SIM_OP_SEND,    /**< begin to send bytes at address to peer, with tag */
    SIM_OP_RECV,    /**< begin to receive them from peer */
    SIM_OP_WAIT,    /**< until all that was begun has ended */
    SIM_OP_SYNC     /**< a reduction of a few bytes among `peer`s: group number,
                         with `bytes` members; every rank of it must come */
} sim_op_kind_t;

typedef struct sim_op {
    sim_op_kind_t kind;
    uint32_t      peer;
    uint32_t      tag;
    uint32_t      site;    /**< call site */
    uint64_t      address; /**< of the rank's own memory */
    uint64_t      bytes;
    double        flops;
} sim_op_t;

typedef enum sim_alltoall {
    SIM_ALLTOALL_AUTO,    /**< linear up to 64 members, then pairwise; by
                               Bruck's algorithm below 256 bytes a block */
    SIM_ALLTOALL_LINEAR,   /**< all messages at once */
    SIM_ALLTOALL_PAIRWISE, /**< one partner after the other */
    SIM_ALLTOALL_BRUCK     /**< half of all blocks at once, in as many rounds as
                                the members have bits; of equal blocks only, else
                                as AUTO */
} sim_alltoall_t;

#define SIM_DIMS       3
#define SIM_VISITS_MAX 64

/** A pattern for a number of ranks and a size. */
typedef struct sim_shape {
    const struct sim_pattern *pattern;
    sim_alltoall_t           alltoall;
    uint32_t                 ranks;
    uint32_t                 rows, columns;
    uint32_t                 dims[SIM_DIMS];
    double                   total;      /**< points (keys, rows) of all ranks */
    double                   points;     /**< of one rank */
    double                   nonzeros;   /**< of a matrix's row */
    double                   flops;      /**< of one rank and iteration */
    unsigned                 prologue;   /**< phases of iteration -1 */
    unsigned                 phases;     /**< of the others */
    uint32_t                 stages;     /**< of a sweep */
    uint64_t                 bytes[4];   /**< of messages; the pattern's */
    unsigned                 visits;     /**< of a V-cycle */
    uint8_t                  level[SIM_VISITS_MAX];
} sim_shape_t;

/** Where a program is. */
typedef struct sim_cursor {
    int32_t  iteration; /**< -1: the prologue */
    uint32_t phase;
    uint32_t index;
} sim_cursor_t;

typedef struct sim_pattern {
    const char *name;
    const char *ranks;   /**< numbers of ranks that it takes, for people */
    const char *classes; /**< letters */
    /** Fill in @a shape, whose ranks, alltoall and scale (of the class's
     *  size) are set. @return 0, or -1 if it cannot be. */
    int        (*setup)(sim_shape_t *shape, unsigned class_index, double scale);
    /** @return Zero if the phase has no operation of this index. */
    int        (*op)(const sim_shape_t *shape, uint32_t rank,
                     const sim_cursor_t *at, sim_op_t *op);
} sim_pattern_t;

/** All of them, in the order in which they are run; ended by a name of NULL. */
extern const sim_pattern_t sim_patterns[];

/** @return The pattern of this name, of @a length characters, or NULL. */
const sim_pattern_t *sim_pattern_find(const char *name, size_t length);

/**
 * Make a shape.
 *
 * @param [in] letter  Class.
 * @param [in] scale   The class's points times this.
 *
 * @return 0; -1 if the pattern has no such class or does not take that number
 *         of ranks.
 */
int sim_shape_init(const sim_pattern_t *pattern, uint32_t ranks, char letter,
                   double scale, sim_alltoall_t alltoall, sim_shape_t *shape);

void sim_cursor_init(const sim_shape_t *shape, sim_cursor_t *at);

/** The next operation. @return Zero after the last of @a iterations. */
int sim_cursor_next(const sim_shape_t *shape, uint32_t rank,
                    unsigned iterations, sim_cursor_t *at, sim_op_t *op);

/* --- for the patterns --- */

/** Start of buffer @a index of a rank. */
static inline uint64_t sim_buffer(unsigned index)
{
    return UINT64_C(0x10000000000) + index * UINT64_C(0x1000000000);
}

static inline int sim_op_compute(sim_op_t *op, double flops)
{
    op->kind  = SIM_OP_COMPUTE;
    op->flops = flops;
    return 1;
}

static inline int sim_op_wait(sim_op_t *op)
{
    op->kind = SIM_OP_WAIT;
    return 1;
}

static inline int sim_op_sync(sim_op_t *op, uint32_t group, uint32_t members)
{
    op->kind  = SIM_OP_SYNC;
    op->peer  = group;
    op->bytes = members;
    return 1;
}

static inline int sim_op_message(sim_op_t *op, sim_op_kind_t kind,
                                 uint32_t peer, uint32_t tag, uint32_t site,
                                 uint64_t address, uint64_t bytes)
{
    op->kind    = kind;
    op->peer    = peer;
    op->tag     = tag;
    op->site    = site;
    op->address = address;
    op->bytes   = bytes;
    return 1;
}

/** A number in [0, 1) that is a function of the three. */
double sim_hash(uint64_t a, uint64_t b, uint64_t c);

static inline int sim_is_power_of_two(uint32_t n)
{
    return (n > 0) && !(n & (n - 1));
}

static inline unsigned sim_log2(uint32_t n)
{
    return 31 - (unsigned)__builtin_clz(n);
}

/** Rows and columns, powers of two, columns once or twice the rows. */
int sim_shape_grid(sim_shape_t *shape);

/** Members of an all-to-all: ranks first, first + stride, ... */
typedef struct sim_group {
    uint32_t size, me, first, stride;
    uint64_t send, recv; /**< arrays */
    uint64_t block;      /**< bytes */
    double   uneven;     /**< share by which blocks differ */
    uint32_t site;
} sim_group_t;

int sim_alltoall_op(const sim_shape_t *shape, const sim_group_t *group,
                    uint32_t index, sim_op_t *op);

/* sim_alltoall.c */
int sim_ft1_setup(sim_shape_t *shape, unsigned class_index, double scale);
int sim_ft2_setup(sim_shape_t *shape, unsigned class_index, double scale);
int sim_is_setup(sim_shape_t *shape, unsigned class_index, double scale);
int sim_ft1_op(const sim_shape_t *shape, uint32_t rank, const sim_cursor_t *at,
               sim_op_t *op);
int sim_ft2_op(const sim_shape_t *shape, uint32_t rank, const sim_cursor_t *at,
               sim_op_t *op);
int sim_is_op(const sim_shape_t *shape, uint32_t rank, const sim_cursor_t *at,
              sim_op_t *op);

/* sim_sweep.c */
int sim_lu_setup(sim_shape_t *shape, unsigned class_index, double scale);
int sim_bt_setup(sim_shape_t *shape, unsigned class_index, double scale);
int sim_sp_setup(sim_shape_t *shape, unsigned class_index, double scale);
int sim_lu_op(const sim_shape_t *shape, uint32_t rank, const sim_cursor_t *at,
              sim_op_t *op);
int sim_adi_op(const sim_shape_t *shape, uint32_t rank, const sim_cursor_t *at,
               sim_op_t *op);

__END_DECLS

#endif
