/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "sim_pattern.h"

#include <math.h>

/*
 * LU, BT and SP: sweeps over a grid, of which each rank waits for those before
 * it (RNR-94-007, section 3). BT and SP are multipartition codes: q * q ranks, each
 * with q cells on a diagonal, which exchange the faces of all cells with six
 * neighbours, then sweep along each dimension forward and backward, in q stages.
 */

#define SIM_SIDE_CLASSES 5

/* More planes than that go several to a message */
#define SIM_LU_STAGES 32

static const double sim_lu_side[SIM_SIDE_CLASSES] = {
    64, 102, 162, 408, 1020
};

#define SIM_LU_FLOPS 1800
#define SIM_BT_FLOPS 3200
#define SIM_SP_FLOPS 970

enum { LU_NORTH, LU_SOUTH, LU_WEST, LU_EAST, LU_SIDES };

#define LU_IN(_side)  sim_buffer(_side)
#define LU_OUT(_side) sim_buffer(LU_SIDES + (_side))

#define ADI_SIDES (2 * SIM_DIMS)

/* bytes[]: of a face, of a message forward and backward */
enum { ADI_FACE, ADI_FORWARD, ADI_BACKWARD };
#define ADI_IN(_side)  sim_buffer(_side)
#define ADI_OUT(_side) sim_buffer(ADI_SIDES + (_side))
#define ADI_SWEEP_IN   sim_buffer(2 * ADI_SIDES)
#define ADI_SWEEP_OUT  sim_buffer(2 * ADI_SIDES + 1)

int sim_lu_setup(sim_shape_t *shape, unsigned class_index, double scale)
{
    double side = sim_lu_side[class_index] * cbrt(scale), layers;

    if (sim_shape_grid(shape) != 0) {
        return -1;
    }
    shape->total    = side * side * side;
    shape->points   = shape->total / shape->ranks;
    shape->flops    = SIM_LU_FLOPS * shape->points;
    shape->stages   = (side < SIM_LU_STAGES) ? (uint32_t)side : SIM_LU_STAGES;
    layers          = side / shape->stages;
    shape->bytes[0] = 40 * (uint64_t)ceil(layers * ceil(side / shape->columns));
    shape->bytes[1] = 40 * (uint64_t)ceil(layers * ceil(side / shape->rows));
    shape->bytes[2] = 80 * (uint64_t)ceil(side * ceil(side / shape->columns));
    shape->bytes[3] = 80 * (uint64_t)ceil(side * ceil(side / shape->rows));
    shape->phases   = 4;
    return 0;
}

/* @return Nonzero if there is a neighbour on that side */
static int sim_lu_peer(const sim_shape_t *shape, uint32_t rank, unsigned side,
                       uint32_t *peer_p)
{
    uint32_t row = rank / shape->columns, column = rank % shape->columns;

    switch (side) {
    case LU_NORTH:
        *peer_p = rank - shape->columns;
        return row > 0;
    case LU_SOUTH:
        *peer_p = rank + shape->columns;
        return row + 1 < shape->rows;
    case LU_WEST:
        *peer_p = rank - 1;
        return column > 0;
    default:
        *peer_p = rank + 1;
        return column + 1 < shape->columns;
    }
}

/* A message to or from a side, or nothing at the border */
static int sim_lu_message(const sim_shape_t *shape, uint32_t rank,
                          sim_op_kind_t kind, unsigned side, int is_face,
                          sim_op_t *op)
{
    unsigned tag = ((kind == SIM_OP_SEND) ? side : side ^ 1) +
                   LU_SIDES * is_face;
    uint64_t bytes = shape->bytes[(side >= LU_WEST) + 2 * is_face];
    uint32_t peer;

    if (!sim_lu_peer(shape, rank, side, &peer)) {
        return sim_op_compute(op, 0);
    }
    return sim_op_message(op, kind, peer, tag,
                          10 + 2 * tag + (kind == SIM_OP_RECV),
                          (kind == SIM_OP_SEND) ? LU_OUT(side) : LU_IN(side),
                          bytes);
}

static int sim_lu_sweep(const sim_shape_t *shape, uint32_t rank,
                        unsigned from_row, unsigned from_column,
                        uint32_t index, sim_op_t *op)
{
    if (index / 7 >= shape->stages) {
        return 0;
    }
    switch (index % 7) {
    case 0:
        return sim_lu_message(shape, rank, SIM_OP_RECV, from_row, 0, op);
    case 1:
        return sim_lu_message(shape, rank, SIM_OP_RECV, from_column, 0, op);
    case 3:
        return sim_op_compute(op, shape->flops / 3 / shape->stages);
    case 4:
        return sim_lu_message(shape, rank, SIM_OP_SEND, from_row ^ 1, 0, op);
    case 5:
        return sim_lu_message(shape, rank, SIM_OP_SEND, from_column ^ 1, 0, op);
    default:
        return sim_op_wait(op);
    }
}

static int sim_lu_faces(const sim_shape_t *shape, uint32_t rank, uint32_t index,
                        sim_op_t *op)
{
    if (index < LU_SIDES) {
        return sim_lu_message(shape, rank, SIM_OP_RECV, index, 1, op);
    }
    if (index < 2 * LU_SIDES) {
        return sim_lu_message(shape, rank, SIM_OP_SEND, index - LU_SIDES, 1,
                              op);
    }
    return (index == 2 * LU_SIDES) ? sim_op_wait(op) : 0;
}

int sim_lu_op(const sim_shape_t *shape, uint32_t rank, const sim_cursor_t *at,
              sim_op_t *op)
{
    switch (at->phase) {
    case 0:
        return sim_lu_sweep(shape, rank, LU_NORTH, LU_WEST, at->index, op);
    case 1:
        return sim_lu_sweep(shape, rank, LU_SOUTH, LU_EAST, at->index, op);
    case 2:
        return sim_lu_faces(shape, rank, at->index, op);
    default:
        return (at->index == 0) && sim_op_compute(op, shape->flops / 3);
    }
}

/*
 * BT and SP: q * q ranks, q cells each
 */

static int sim_adi_setup(sim_shape_t *shape, double side, double flops,
                         unsigned forward, unsigned backward)
{
    uint32_t q = (uint32_t)lround(sqrt(shape->ranks));
    double cell;

    if (q * q != shape->ranks) {
        return -1;
    }
    cell                       = ceil(side / q);
    shape->rows                = q;
    shape->columns             = q;
    shape->stages              = q;
    shape->total               = side * side * side;
    shape->points              = shape->total / shape->ranks;
    shape->flops               = flops * shape->points;
    shape->bytes[ADI_FACE]     = 80 * q * (uint64_t)(cell * cell);
    shape->bytes[ADI_FORWARD]  = 8 * forward * (uint64_t)(cell * cell);
    shape->bytes[ADI_BACKWARD] = 8 * backward * (uint64_t)(cell * cell);
    shape->phases              = 2 + ADI_SIDES;
    return 0;
}

int sim_bt_setup(sim_shape_t *shape, unsigned class_index, double scale)
{
    return sim_adi_setup(shape, sim_lu_side[class_index] * cbrt(scale),
                         SIM_BT_FLOPS, 30, 5);
}

int sim_sp_setup(sim_shape_t *shape, unsigned class_index, double scale)
{
    return sim_adi_setup(shape, sim_lu_side[class_index] * cbrt(scale),
                         SIM_SP_FLOPS, 22, 10);
}

static uint32_t sim_adi_peer(const sim_shape_t *shape, uint32_t rank,
                             unsigned side)
{
    static const int step[ADI_SIDES][2] = {
        {-1, 0}, {1, 0}, {0, -1}, {0, 1}, {-1, -1}, {1, 1}
    };
    uint32_t q = shape->columns;
    uint32_t i = (rank % q + q + step[side][0]) % q;
    uint32_t j = (rank / q + q + step[side][1]) % q;

    return j * q + i;
}

static int sim_adi_faces(const sim_shape_t *shape, uint32_t rank,
                         uint32_t index, sim_op_t *op)
{
    unsigned side = index % ADI_SIDES;

    if (index < ADI_SIDES) {
        return sim_op_message(op, SIM_OP_RECV, sim_adi_peer(shape, rank, side),
                              side ^ 1, 11, ADI_IN(side),
                              shape->bytes[ADI_FACE]);
    }
    if (index < 2 * ADI_SIDES) {
        return sim_op_message(op, SIM_OP_SEND, sim_adi_peer(shape, rank, side),
                              side, 12, ADI_OUT(side), shape->bytes[ADI_FACE]);
    }
    return (index == 2 * ADI_SIDES) ? sim_op_wait(op) : 0;
}

/* To side 1, then to side 0, of each dimension */
static int sim_adi_sweep(const sim_shape_t *shape, uint32_t rank,
                         unsigned sweep, uint32_t index, sim_op_t *op)
{
    unsigned to    = sweep ^ 1;
    uint64_t bytes = shape->bytes[(sweep % 2) ? ADI_BACKWARD : ADI_FORWARD];

    if (index / 4 >= shape->stages) {
        return 0;
    }
    switch (index % 4) {
    case 0:
        return sim_op_compute(op, shape->flops / (1 + ADI_SIDES) /
                                          shape->stages);
    case 1:
        if (index / 4 + 1 == shape->stages) {
            return 0;
        }
        return sim_op_message(op, SIM_OP_RECV,
                              sim_adi_peer(shape, rank, to ^ 1), 8 + to,
                              20 + 2 * to, ADI_SWEEP_IN, bytes);
    case 2:
        return sim_op_message(op, SIM_OP_SEND, sim_adi_peer(shape, rank, to),
                              8 + to, 21 + 2 * to, ADI_SWEEP_OUT, bytes);
    default:
        return sim_op_wait(op);
    }
}

int sim_adi_op(const sim_shape_t *shape, uint32_t rank, const sim_cursor_t *at,
               sim_op_t *op)
{
    switch (at->phase) {
    case 0:
        return (shape->ranks > 1) && sim_adi_faces(shape, rank, at->index, op);
    case 1:
        return (at->index == 0) &&
               sim_op_compute(op, shape->flops / (1 + ADI_SIDES));
    default:
        return sim_adi_sweep(shape, rank, at->phase - 2, at->index, op);
    }
}
