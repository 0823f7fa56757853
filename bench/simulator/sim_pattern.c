/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "sim_pattern.h"

#include <ucs/sys/hash.h>

#include <math.h>
#include <string.h>

#define SIM_CLASSES "ABCDE"

/* CG: 25 steps, and the residual */
#define SIM_CG_MULTIPLIES 26

static const double sim_cg_rows[]     = {14000, 75000, 150000, 1500000, 9000000};
static const double sim_cg_nonzeros[] = {11, 13, 15, 21, 26};

enum { CG_SUM, CG_OTHER, CG_OUT };

/* MG: 27 points around each, weighed and summed */
#define SIM_MG_FLOPS 60

static const double sim_mg_side[] = {256, 256, 512, 1024, 2048};

/* AMG: a mesh that changes; classes are sizes of one rank */
#define SIM_AMG_LEVELS 6
#define SIM_AMG_REFINE 20
#define SIM_AMG_FLOPS  100

/* Of 32 ranks */
static const double sim_amg_points[] = {
    0x1p20, 0x1p22, 0x1p24, 0x1p25, 0x1p27
};

double sim_hash(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t x = a * UCS_HASH_FACTOR + b;

    x  = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93) + c;
    x  = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    return (x >> 11) * 0x1p-53;
}

int sim_shape_grid(sim_shape_t *shape)
{
    if (!sim_is_power_of_two(shape->ranks)) {
        return -1;
    }
    shape->rows    = 1u << (sim_log2(shape->ranks) / 2);
    shape->columns = shape->ranks / shape->rows;
    return 0;
}

/*
 * CG
 */

static int sim_cg_setup(sim_shape_t *shape, unsigned class_index, double scale)
{
    if (sim_shape_grid(shape) != 0) {
        return -1;
    }
    shape->total    = sim_cg_rows[class_index] * scale;
    shape->points   = shape->total / shape->ranks;
    shape->nonzeros = pow(sim_cg_nonzeros[class_index] + 1, 2);
    shape->flops    = SIM_CG_MULTIPLIES * 2 * shape->nonzeros * shape->points;
    shape->bytes[0] = 8 * (uint64_t)ceil(shape->total / shape->rows);
    shape->bytes[1] = 8 * (uint64_t)ceil(shape->total / shape->columns);
    shape->phases   = SIM_CG_MULTIPLIES;
    return 0;
}

/* The rank that has the sum of the rows which are this rank's columns */
static uint32_t sim_cg_across(const sim_shape_t *shape, uint32_t rank)
{
    uint32_t row = rank / shape->columns, column = rank % shape->columns;
    uint32_t ratio = shape->columns / shape->rows;

    return column / ratio * shape->columns + row * ratio + column % ratio;
}

static int sim_cg_exchange(sim_op_t *op, unsigned which, uint32_t peer,
                           uint32_t site, uint64_t send, uint64_t recv,
                           uint64_t bytes)
{
    switch (which) {
    case 0:
        return sim_op_message(op, SIM_OP_RECV, peer, site, site + 1, recv,
                              bytes);
    case 1:
        return sim_op_message(op, SIM_OP_SEND, peer, site, site, send, bytes);
    default:
        return sim_op_wait(op);
    }
}

/* The sum along the row, by halves first if the grid is not square */
static int sim_cg_sum(const sim_shape_t *shape, uint32_t rank, unsigned stage,
                      unsigned which, sim_op_t *op)
{
    int is_half    = (shape->rows != shape->columns);
    uint64_t bytes = shape->bytes[0] / (is_half ? 2 : 1);
    uint32_t peer  = rank ^ (1u << stage);
    uint32_t side  = (is_half && (stage == 0)) ? peer % 2 : rank % 2;

    return sim_cg_exchange(op, which, peer, 10,
                           sim_buffer(CG_SUM) + is_half * side * bytes,
                           sim_buffer(CG_OTHER), bytes);
}

static int sim_cg_op(const sim_shape_t *shape, uint32_t rank,
                     const sim_cursor_t *at, sim_op_t *op)
{
    unsigned sums   = 3 * sim_log2(shape->columns);
    unsigned index  = at->index;
    uint32_t across = sim_cg_across(shape, rank);

    if (index == 0) {
        return sim_op_compute(op, shape->flops / SIM_CG_MULTIPLIES);
    }
    index -= 1;
    if (index < sums) {
        return sim_cg_sum(shape, rank, index / 3, index % 3, op);
    }
    index -= sums;
    if (index < 3) {
        return (across == rank) ?
                       sim_op_compute(op, 0) :
                       sim_cg_exchange(op, index, across, 14,
                                       sim_buffer(CG_SUM), sim_buffer(CG_OUT),
                                       shape->bytes[1]);
    }
    return (index < 5) &&
           sim_op_sync(op, rank / shape->columns, shape->columns);
}

/*
 * MG
 */

static int sim_mg_setup(sim_shape_t *shape, unsigned class_index, double scale)
{
    double side  = sim_mg_side[class_index] * cbrt(scale);
    unsigned top = (unsigned)lround(log2(side)), left, dim, level;

    if (!sim_is_power_of_two(shape->ranks)) {
        return -1;
    }
    shape->dims[0] = shape->dims[1] = shape->dims[2] = 1;
    for (left = shape->ranks, dim = SIM_DIMS - 1; left > 1; left /= 2) {
        shape->dims[dim] *= 2;
        dim               = (dim + SIM_DIMS - 1) % SIM_DIMS;
    }
    if (shape->dims[SIM_DIMS - 1] > (1u << top)) {
        return -1;
    }
    shape->total  = ldexp(1, 3 * top);
    shape->points = shape->total / shape->ranks;
    shape->flops  = SIM_MG_FLOPS * shape->points;

    /* Restrict down, then residual and smoother up; coarse levels of which
     * not every rank has a point are left out */
    for (level = top - 1; (1u << level) >= shape->dims[SIM_DIMS - 1] &&
                          (level > 0); --level) {
        shape->level[shape->visits++] = level;
    }
    for (++level; level <= top; ++level) {
        shape->level[shape->visits++] = level;
        shape->level[shape->visits++] = level;
    }
    shape->level[shape->visits++] = top;
    shape->stages                 = top;
    shape->phases                 = shape->visits;
    return 0;
}

static uint64_t sim_mg_face(const sim_shape_t *shape, unsigned level,
                            unsigned dim)
{
    uint64_t points = 1;
    unsigned other;

    for (other = 0; other < SIM_DIMS; ++other) {
        if (other != dim) {
            points *= (1u << level) / shape->dims[other] + 2;
        }
    }
    return 8 * points;
}

static uint32_t sim_mg_peer(const sim_shape_t *shape, uint32_t rank,
                            unsigned dim, int is_after)
{
    uint32_t stride = 1, here, n = shape->dims[dim];
    unsigned i;

    for (i = 0; i < dim; ++i) {
        stride *= shape->dims[i];
    }
    here = rank / stride % n;
    return rank - here * stride + (here + (is_after ? 1 : n - 1)) % n * stride;
}

static int sim_mg_op(const sim_shape_t *shape, uint32_t rank,
                     const sim_cursor_t *at, sim_op_t *op)
{
    unsigned level = shape->level[at->phase];
    unsigned dim = (at->index - 1) / 5, which = (at->index - 1) % 5;
    int is_after = (which == 0) || (which == 3), is_send = (which >= 2);

    if (at->index == 0) {
        return sim_op_compute(op, ldexp(shape->flops,
                                        3 * ((int)level -
                                             (int)shape->stages)));
    }
    if (dim >= SIM_DIMS) {
        return 0;
    }
    if (shape->dims[dim] == 1) {
        return sim_op_compute(op, 0);
    }
    if (which == 4) {
        return sim_op_wait(op);
    }
    return sim_op_message(op, is_send ? SIM_OP_SEND : SIM_OP_RECV,
                          sim_mg_peer(shape, rank, dim, is_after),
                          2 * dim + (is_after == is_send), 10 + 4 * dim + which,
                          sim_buffer(which), sim_mg_face(shape, level, dim));
}

/*
 * AMG: every rank draws the same numbers
 */

static int sim_amg_setup(sim_shape_t *shape, unsigned class_index, double scale)
{
    shape->points = sim_amg_points[class_index] * scale / shape->ranks;
    shape->total  = shape->points * shape->ranks;
    shape->flops  = 4 * SIM_AMG_FLOPS * shape->points;
    shape->phases = 2 * SIM_AMG_LEVELS;
    return 0;
}

static int sim_amg_exchange(const sim_shape_t *shape, uint32_t rank,
                            const sim_cursor_t *at, unsigned level,
                            uint32_t distance, unsigned which, sim_op_t *op)
{
    uint32_t mesh  = at->iteration / SIM_AMG_REFINE;
    uint64_t count = (uint64_t)(ldexp(shape->points, -(int)level) *
                                (0.5 + sim_hash(2, mesh, level) / 2));
    uint32_t to    = (rank + distance) % shape->ranks;
    uint32_t from  = (rank + shape->ranks - distance) % shape->ranks;

    switch (which) {
    case 0:
        return sim_op_message(op, SIM_OP_RECV, from, level, 10,
                              sim_buffer(SIM_AMG_LEVELS + level), 8 * count);
    case 1:
        return sim_op_message(op, SIM_OP_SEND, to, level, 11,
                              sim_buffer(level), 8 * count);
    default:
        return sim_op_wait(op);
    }
}

static int sim_amg_op(const sim_shape_t *shape, uint32_t rank,
                      const sim_cursor_t *at, sim_op_t *op)
{
    unsigned level  = (at->phase < SIM_AMG_LEVELS) ?
                              at->phase : shape->phases - 1 - at->phase;
    unsigned levels = 2 + (unsigned)(sim_hash(3, at->iteration, 0) *
                                     (SIM_AMG_LEVELS - 1));

    if (level >= levels) {
        return 0;
    }
    if (at->index == 0) {
        return sim_op_compute(op, ldexp(shape->flops, -(int)level) *
                                          (0.5 + sim_hash(4, at->iteration,
                                                          at->phase)));
    }
    if (shape->ranks == 1) {
        return 0;
    }
    if (at->index < 4) {
        return sim_amg_exchange(shape, rank, at, level, 1, at->index - 1, op);
    }
    return (at->index < 7) &&
           (sim_hash(5, at->iteration, at->phase) < 0.5) &&
           sim_amg_exchange(shape, rank, at, level, shape->ranks - 1,
                            at->index - 4, op);
}

/*
 * All
 */

const sim_pattern_t sim_patterns[] = {
    {"ft", "any", SIM_CLASSES, sim_ft1_setup, sim_ft1_op},
    {"ft2d", "a power of two", SIM_CLASSES, sim_ft2_setup, sim_ft2_op},
    {"cg", "a power of two", SIM_CLASSES, sim_cg_setup, sim_cg_op},
    {"mg", "a power of two, a point of the grid for each", SIM_CLASSES,
     sim_mg_setup, sim_mg_op},
    {"is", "up to 4096", SIM_CLASSES, sim_is_setup, sim_is_op},
    {"lu", "a power of two", SIM_CLASSES, sim_lu_setup, sim_lu_op},
    {"bt", "a square", SIM_CLASSES, sim_bt_setup, sim_adi_op},
    {"sp", "a square", SIM_CLASSES, sim_sp_setup, sim_adi_op},
    {"amg", "any", SIM_CLASSES, sim_amg_setup, sim_amg_op},
    {NULL, NULL, NULL, NULL, NULL}
};

const sim_pattern_t *sim_pattern_find(const char *name, size_t length)
{
    const sim_pattern_t *pattern;

    for (pattern = sim_patterns; pattern->name != NULL; ++pattern) {
        if ((strlen(pattern->name) == length) &&
            !strncmp(pattern->name, name, length)) {
            return pattern;
        }
    }
    return NULL;
}

int sim_shape_init(const sim_pattern_t *pattern, uint32_t ranks, char letter,
                   double scale, sim_alltoall_t alltoall, sim_shape_t *shape)
{
    const char *class = (letter != '\0') ? strchr(pattern->classes, letter) :
                                           NULL;

    if ((class == NULL) || (ranks == 0)) {
        return -1;
    }
    memset(shape, 0, sizeof(*shape));
    shape->pattern  = pattern;
    shape->alltoall = alltoall;
    shape->ranks    = ranks;
    return pattern->setup(shape, class - pattern->classes, scale);
}

void sim_cursor_init(const sim_shape_t *shape, sim_cursor_t *at)
{
    at->iteration = (shape->prologue > 0) ? -1 : 0;
    at->phase     = 0;
    at->index     = 0;
}

int sim_cursor_next(const sim_shape_t *shape, uint32_t rank,
                    unsigned iterations, sim_cursor_t *at, sim_op_t *op)
{
    while (at->iteration < (int32_t)iterations) {
        memset(op, 0, sizeof(*op));
        if (shape->pattern->op(shape, rank, at, op)) {
            ++at->index;
            return 1;
        }
        at->index = 0;
        if (++at->phase >= ((at->iteration < 0) ? shape->prologue :
                                                  shape->phases)) {
            at->phase = 0;
            ++at->iteration;
        }
    }
    return 0;
}
