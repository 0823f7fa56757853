/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "paced_codes.h"

#include <ucs/sys/math.h>

#include <math.h>
#include <string.h>

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)

/* A halo's neighbours, and the buffers of what goes to them and comes */
#define HALO_SIDES 6

static const uint64_t halo_bytes[] = {MIB, 4 * MIB};

/* A march's array and the piece of it that is reduced at a time */
static const uint64_t march_bytes[] = {128 * MIB, 512 * MIB};
static const uint64_t march_chunk[] = {64 * KIB, 256 * KIB};

/* What goes along a chain */
static const uint64_t chain_bytes[] = {16 * MIB, 64 * MIB};

/* Phases: what goes around in each iteration, and what is gathered from new
 * buffers in some of them */
#define PHASES_GATHER_SHARE (1.0 / 6)

enum { PHASES_RING_OUT, PHASES_RING_IN, PHASES_GATHER };

static const uint64_t phases_ring[]   = {4 * MIB, 16 * MIB};
static const uint64_t phases_gather[] = {32 * MIB, 64 * MIB};

/* Messages of one length, between two ranks at least */
static int paced_setup(sim_shape_t *shape, uint64_t bytes)
{
    if (shape->ranks < 2) {
        return -1;
    }
    shape->bytes[0] = bytes;
    shape->flops    = 1;
    shape->phases   = 1;
    return 0;
}

/*
 * Halo: faces to six neighbours
 */

static int halo_setup(sim_shape_t *shape, unsigned class_index, double scale)
{
    return paced_setup(shape, halo_bytes[class_index]);
}

/* Neighbours before and after by one, by about a quarter of the ranks, and by
 * half of them; never the rank itself */
static uint32_t halo_peer(const sim_shape_t *shape, uint32_t rank,
                          unsigned side)
{
    uint32_t stride = 1 + (side / 2) * (shape->ranks / 4);

    return (rank + ((side % 2) ? stride : shape->ranks - stride)) %
           shape->ranks;
}

static int halo_op(const sim_shape_t *shape, uint32_t rank,
                   const sim_cursor_t *at, sim_op_t *op)
{
    unsigned side = (at->index - 1) % HALO_SIDES;

    if (at->index == 0) {
        return sim_op_compute(op, shape->flops);
    }
    if (at->index <= HALO_SIDES) {
        return sim_op_message(op, SIM_OP_RECV, halo_peer(shape, rank, side),
                              side ^ 1, 10 + side, sim_buffer(side),
                              shape->bytes[0]);
    }
    if (at->index <= 2 * HALO_SIDES) {
        return sim_op_message(op, SIM_OP_SEND, halo_peer(shape, rank, side),
                              side, 20 + side, sim_buffer(HALO_SIDES + side),
                              shape->bytes[0]);
    }
    return (at->index == 2 * HALO_SIDES + 1) ? sim_op_wait(op) : 0;
}

/*
 * March: a large array, one piece after the other
 */

/* Of a strided walk every so many pieces come after each other, as a rank's own blocks
 * do where they are dealt out in turn */
#define MARCH_STRIDE 16

static uint64_t march_piece; /* 0: as of the class */
static paced_walk_t march_walk;

const char *const paced_walk_names[] = {"up", "down", "strided"};

void paced_codes_set_march(uint64_t piece, paced_walk_t walk)
{
    march_piece = piece;
    march_walk  = walk;
}

static uint64_t march_offset(const sim_shape_t *shape, uint64_t step)
{
    uint64_t rows = ucs_max(shape->phases / MARCH_STRIDE, 1);

    if (march_walk == PACED_WALK_DOWN) {
        step = shape->phases - 1 - step;
    } else if (march_walk == PACED_WALK_STRIDED) {
        step = (step % rows) * (shape->phases / rows) + step / rows;
    }
    return step * shape->bytes[0];
}

static int march_setup(sim_shape_t *shape, unsigned class_index, double scale)
{
    if (shape->ranks < 2) {
        return -1;
    }
    shape->bytes[0] = (march_piece > 0) ? march_piece :
                                          march_chunk[class_index];
    shape->phases   = march_bytes[class_index] / shape->bytes[0];
    shape->flops    = shape->phases;
    return 0;
}

static int march_op(const sim_shape_t *shape, uint32_t rank,
                    const sim_cursor_t *at, sim_op_t *op)
{
    if (at->index == 0) {
        return sim_op_compute(op, shape->flops / shape->phases);
    }
    return (at->index == 1) &&
           sim_op_message(op, (sim_op_kind_t)PACED_OP_REDUCE, 0, 0, 10,
                          sim_buffer(0) + march_offset(shape, at->phase),
                          shape->bytes[0]);
}

/*
 * Chain: a message goes from rank to rank. Each posts its receive early
 */

static int chain_setup(sim_shape_t *shape, unsigned class_index, double scale)
{
    return paced_setup(shape, chain_bytes[class_index]);
}

static int chain_op(const sim_shape_t *shape, uint32_t rank,
                    const sim_cursor_t *at, sim_op_t *op)
{
    switch (at->index + (rank == 0)) { /* the first one receives nothing */
    case 0:
        return sim_op_message(op, SIM_OP_RECV, rank - 1, 0, 10, sim_buffer(0),
                              shape->bytes[0]);
    case 1:
        return sim_op_compute(op, shape->flops);
    case 3:
        return (rank + 1 < shape->ranks) &&
               sim_op_message(op, SIM_OP_SEND, rank + 1, 0, 11, sim_buffer(0),
                              shape->bytes[0]);
    default:
        return (at->index <= 4) && sim_op_wait(op);
    }
}

/*
 * Phases: a ring, and now and then a gather of buffers that live as long
 */

static int phases_setup(sim_shape_t *shape, unsigned class_index, double scale)
{
    if (shape->ranks < 2) {
        return -1;
    }
    shape->bytes[0] = phases_ring[class_index];
    shape->bytes[1] = phases_gather[class_index];
    shape->flops    = 1;
    shape->phases   = 2;
    return 0;
}

static int phases_ring_op(const sim_shape_t *shape, uint32_t rank,
                          uint32_t index, sim_op_t *op)
{
    switch (index) {
    case 0:
        return sim_op_compute(op, shape->flops);
    case 1:
        return sim_op_message(op, SIM_OP_RECV,
                              (rank + shape->ranks - 1) % shape->ranks, 0, 10,
                              sim_buffer(PHASES_RING_IN), shape->bytes[0]);
    case 2:
        return sim_op_message(op, SIM_OP_SEND, (rank + 1) % shape->ranks, 0, 11,
                              sim_buffer(PHASES_RING_OUT), shape->bytes[0]);
    default:
        return (index == 3) && sim_op_wait(op);
    }
}

/* Begin, wait, give back; rank 0 a buffer for each of the others */
static int phases_gather_op(const sim_shape_t *shape, uint32_t rank,
                            const sim_cursor_t *at, sim_op_t *op)
{
    uint32_t count = (rank == 0) ? shape->ranks - 1 : 1;
    uint64_t first = PHASES_GATHER + (uint64_t)at->iteration * shape->ranks;
    uint32_t which = at->index % (count + 1);

    if (at->index == count) {
        return sim_op_wait(op);
    }
    if (at->index < count) {
        return sim_op_message(op, (rank == 0) ? SIM_OP_RECV : SIM_OP_SEND,
                              (rank == 0) ? which + 1 : 0, 1,
                              (rank == 0) ? 12 : 13, sim_buffer(first + which),
                              shape->bytes[1]);
    }
    return (at->index <= 2 * count) &&
           sim_op_message(op, (sim_op_kind_t)PACED_OP_UNMAP, 0, 0, 0,
                          sim_buffer(first + which), shape->bytes[1]);
}

static int phases_op(const sim_shape_t *shape, uint32_t rank,
                     const sim_cursor_t *at, sim_op_t *op)
{
    if (at->phase == 0) {
        return phases_ring_op(shape, rank, at->index, op);
    }
    return (sim_hash(7, at->iteration, 0) < PHASES_GATHER_SHARE) &&
           phases_gather_op(shape, rank, at, op);
}

static const sim_pattern_t paced_halo = {
    "halo", "2 or more", "CD", halo_setup, halo_op
};

static const sim_pattern_t paced_march = {
    "march", "2 or more", "CD", march_setup, march_op
};

static const sim_pattern_t paced_chain = {
    "chain", "2 or more", "CD", chain_setup, chain_op
};

static const sim_pattern_t paced_phases = {
    "phases", "2 or more", "CD", phases_setup, phases_op
};

/*
 * All
 */

const paced_code_t paced_codes[] = {
    {"ft", NULL, 0, {{0, 200}, {0, 1300}, {16, 400}, {128, 400}}},
    {"ft2d", NULL, 0, {{0, 110}, {0, 600}, {16, 600}, {128, 600}}},
    {"cg", NULL, 1, {{0, 16}, {0, 200}, {16, 1560}, {64, 1560}}},
    {"mg", NULL, 0, {{0, 600}, {0, 600}, {16, 600}, {64, 600}}},
    {"is", NULL, 0, {{0, 23}, {0, 100}, {16, 400}, {64, 500}}},
    {"bt", NULL, 0, {{0, 100}, {0, 600}, {16, 1400}, {64, 1400}}},
    {"sp", NULL, 0, {{0, 40}, {0, 250}, {16, 700}, {64, 700}}},
    {"lu", NULL, 0, {{0, 120}, {0, 600}, {16, 600}, {64, 600}}},
    {"halo", &paced_halo, 0, {{0}, {0}, {0, 50}, {0, 100}}},
    {"march", &paced_march, 0, {{0}, {0}, {0, 2048}, {0, 2048}}},
    {"chain", &paced_chain, 0, {{0}, {0}, {0, 20}, {0, 50}}},
    {"phases", &paced_phases, 0, {{0}, {0}, {0, 100}, {0, 100}}},
    {NULL}
};

const paced_code_t *paced_code_find(const char *name)
{
    const paced_code_t *code;

    for (code = paced_codes; code->name != NULL; ++code) {
        if (!strcmp(code->name, name)) {
            return code;
        }
    }
    return NULL;
}

int paced_code_shape(const paced_code_t *code, char letter, unsigned ranks,
                     sim_shape_t *shape, const paced_size_t **size_p)
{
    const sim_pattern_t *pattern =
            (code->own != NULL) ? code->own :
                                  sim_pattern_find(code->name,
                                                   strlen(code->name));
    const char *found = (letter != '\0') ? strchr(PACED_CLASSES, letter) : NULL;
    double scale      = 1;

    if ((found == NULL) || (pattern == NULL)) {
        return -1;
    }
    *size_p = &code->size[found - PACED_CLASSES];
    if ((*size_p)->iteration_ms == 0) {
        return -1;
    }
    if ((*size_p)->job_ranks != 0) {
        scale = (double)ranks / (*size_p)->job_ranks;
        scale = code->is_surface ? sqrt(scale) : scale;
    }
    return sim_shape_init(pattern, ranks, letter, scale, SIM_ALLTOALL_LINEAR,
                          shape);
}
