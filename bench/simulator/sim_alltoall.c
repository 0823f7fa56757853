/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "sim_pattern.h"

#include <math.h>

/*
 * FT and IS: everybody sends to everybody.
 */

#define SIM_LINEAR_MAX  64
#define SIM_BRUCK_BYTES 256

/* Beyond, one exchange among all is too many messages to count */
#define SIM_IS_RANKS_MAX 4096

enum { FT_U0, FT_U1, FT_U2, FT_TEMPORARY, FT_TEMPORARY_IN };

static const double sim_ft_points[] = {
    256.0 * 256 * 128, 512.0 * 256 * 256, 512.0 * 512 * 512,
    2048.0 * 1024 * 1024, 4096.0 * 2048 * 2048
};

static const double sim_is_keys[] = {
    0x1p23, 0x1p25, 0x1p27, 0x1p31, 0x1p35
};

/* Operations a key: bucket, copy, count */
#define SIM_IS_FLOPS 20

static uint64_t sim_block(const sim_group_t *group, uint32_t from, uint32_t to)
{
    double share = 1;

    if (group->uneven > 0) {
        share += group->uneven * (2 * sim_hash(1, from, to) - 1);
    }
    return (uint64_t)(group->block * share) & ~UINT64_C(3);
}

/* The block of @a from in an array has room for the largest */
static uint64_t sim_block_at(const sim_group_t *group, uint32_t member)
{
    return member * (uint64_t)ceil(group->block * (1 + group->uneven));
}

static uint32_t sim_member(const sim_group_t *group, uint32_t member)
{
    return group->first + member * group->stride;
}

static int sim_block_op(const sim_group_t *group, sim_op_kind_t kind,
                        uint32_t distance, sim_op_t *op)
{
    uint32_t me = group->me, to = (me + distance) % group->size;
    uint32_t from = (me + group->size - distance) % group->size;

    if (kind == SIM_OP_SEND) {
        return sim_op_message(op, kind, sim_member(group, to), group->site,
                              group->site, group->send + sim_block_at(group, to),
                              sim_block(group, me, to));
    }
    return sim_op_message(op, kind, sim_member(group, from), group->site,
                          group->site + 1,
                          group->recv + sim_block_at(group, from),
                          sim_block(group, from, me));
}

/* Round k carries the blocks whose distance has bit k, half of all */
static int sim_bruck_op(const sim_group_t *group, uint32_t index, sim_op_t *op)
{
    uint32_t distance = 1u << (index / 3);
    uint64_t bytes    = group->block * ((group->size + 1) / 2);
    uint32_t to       = (group->me + distance) % group->size;
    uint32_t from     = (group->me + group->size - distance) % group->size;

    if (distance >= group->size) {
        return 0;
    }
    switch (index % 3) {
    case 0:
        return sim_op_message(op, SIM_OP_RECV, sim_member(group, from),
                              group->site, group->site + 1,
                              sim_buffer(FT_TEMPORARY_IN), bytes);
    case 1:
        return sim_op_message(op, SIM_OP_SEND, sim_member(group, to),
                              group->site, group->site,
                              sim_buffer(FT_TEMPORARY), bytes);
    default:
        return sim_op_wait(op);
    }
}

static int sim_linear_op(const sim_group_t *group, uint32_t index, sim_op_t *op)
{
    uint32_t partners = group->size - 1;

    if (index < partners) {
        return sim_block_op(group, SIM_OP_RECV, index + 1, op);
    }
    if (index < 2 * partners) {
        return sim_block_op(group, SIM_OP_SEND, index - partners + 1, op);
    }
    return (index == 2 * partners) ? sim_op_wait(op) : 0;
}

int sim_alltoall_op(const sim_shape_t *shape, const sim_group_t *group,
                    uint32_t index, sim_op_t *op)
{
    if (group->size == 1) {
        return 0;
    }
    if ((group->uneven == 0) &&
        ((shape->alltoall == SIM_ALLTOALL_BRUCK) ||
         ((shape->alltoall == SIM_ALLTOALL_AUTO) &&
          (group->block < SIM_BRUCK_BYTES)))) {
        return sim_bruck_op(group, index, op);
    }
    if ((shape->alltoall == SIM_ALLTOALL_LINEAR) ||
        ((shape->alltoall != SIM_ALLTOALL_PAIRWISE) &&
         (group->size <= SIM_LINEAR_MAX))) {
        return sim_linear_op(group, index, op);
    }
    if (index / 3 + 1 >= group->size) {
        return 0;
    }
    switch (index % 3) {
    case 0:
        return sim_block_op(group, SIM_OP_RECV, index / 3 + 1, op);
    case 1:
        return sim_block_op(group, SIM_OP_SEND, index / 3 + 1, op);
    default:
        return sim_op_wait(op);
    }
}

/*
 * FT. Arrays as in the published code: u0 is sent in the forward transforms at
 * the start only, which run twice; each iteration's backward transform works
 * in u1 and u2.
 */

static void sim_ft_setup(sim_shape_t *shape, unsigned class_index, double scale)
{
    shape->total  = sim_ft_points[class_index] * scale;
    shape->points = shape->total / shape->ranks;
    shape->flops  = 5 * log2(shape->total) * shape->points;
}

int sim_ft1_setup(sim_shape_t *shape, unsigned class_index, double scale)
{
    sim_ft_setup(shape, class_index, scale);
    shape->columns  = shape->ranks;
    shape->prologue = 6;
    shape->phases   = 4;
    return 0;
}

int sim_ft2_setup(sim_shape_t *shape, unsigned class_index, double scale)
{
    if (sim_shape_grid(shape) != 0) {
        return -1;
    }
    sim_ft_setup(shape, class_index, scale);
    shape->prologue = 10;
    shape->phases   = 6;
    return 0;
}

static int sim_ft_alltoall(const sim_shape_t *shape, uint32_t rank,
                           int is_along_row, unsigned send, unsigned recv,
                           uint32_t index, sim_op_t *op)
{
    uint32_t row = rank / shape->columns, column = rank % shape->columns;
    uint32_t size     = is_along_row ? shape->columns :
                                       shape->ranks / shape->columns;
    sim_group_t group = {
        .size   = size,
        .me     = is_along_row ? column : row,
        .first  = is_along_row ? row * shape->columns : column,
        .stride = is_along_row ? 1 : shape->columns,
        .send   = sim_buffer(send),
        .recv   = sim_buffer(recv),
        .block  = 16 * (uint64_t)(shape->points / size),
        .site   = 10 + 8 * send + 2 * is_along_row
    };

    return sim_alltoall_op(shape, &group, index, op);
}

int sim_ft1_op(const sim_shape_t *shape, uint32_t rank, const sim_cursor_t *at,
               sim_op_t *op)
{
    int is_forward = (at->iteration < 0);
    unsigned phase = is_forward ? at->phase % 3 : at->phase;

    if (phase == 1) {
        return sim_ft_alltoall(shape, rank, 1, is_forward ? FT_U0 : FT_U2,
                               FT_U1, at->index, op);
    }
    if (at->index > 0) {
        return 0;
    }
    if (phase == 3) {
        return sim_op_sync(op, 0, shape->ranks);
    }
    return sim_op_compute(op, shape->flops *
                                      (((phase == 0) == is_forward) ? 2 : 1) /
                                      3);
}

int sim_ft2_op(const sim_shape_t *shape, uint32_t rank, const sim_cursor_t *at,
               sim_op_t *op)
{
    int is_forward  = (at->iteration < 0);
    unsigned phase  = is_forward ? at->phase % 5 : at->phase;
    unsigned arrays = is_forward ? FT_U0 : FT_U2;

    switch (phase) {
    case 1:
        return sim_ft_alltoall(shape, rank, is_forward, arrays, FT_U1,
                               at->index, op);
    case 3:
        return sim_ft_alltoall(shape, rank, !is_forward, FT_U1, arrays,
                               at->index, op);
    case 5:
        return (at->index == 0) && sim_op_sync(op, 0, shape->ranks);
    default:
        return (at->index == 0) && sim_op_compute(op, shape->flops / 3);
    }
}

/*
 * IS
 */

int sim_is_setup(sim_shape_t *shape, unsigned class_index, double scale)
{
    if (shape->ranks > SIM_IS_RANKS_MAX) {
        return -1;
    }
    shape->total  = sim_is_keys[class_index] * scale;
    shape->points = shape->total / shape->ranks;
    shape->flops  = SIM_IS_FLOPS * shape->points;
    shape->phases = 4;
    return 0;
}

int sim_is_op(const sim_shape_t *shape, uint32_t rank, const sim_cursor_t *at,
              sim_op_t *op)
{
    sim_group_t group = {
        .size   = shape->ranks,
        .me     = rank,
        .stride = 1,
        .send   = sim_buffer(0),
        .recv   = sim_buffer(1),
        .block  = 4 * (uint64_t)(shape->points / shape->ranks),
        .uneven = 0.1,
        .site   = 10
    };

    switch (at->phase) {
    case 1: /* sizes of the buckets, and of the messages */
        return (at->index < 2) && sim_op_sync(op, 0, shape->ranks);
    case 2:
        return sim_alltoall_op(shape, &group, at->index, op);
    default:
        return (at->index == 0) && sim_op_compute(op, shape->flops / 2);
    }
}
