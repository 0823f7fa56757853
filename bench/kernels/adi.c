/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "adi.h"
#include "nas.h"
#include "pattern.h"

#include <stdlib.h>
#include <string.h>

/*
 * The communication of the codes that sweep along each dimension of a cube in
 * multipartition: q * q ranks, each with q cells on a diagonal. An iteration
 * exchanges the faces of all cells with six neighbours, then sweeps along x, y
 * and z, forward and backward, in q stages with a message from stage to stage.
 * RNR-94-007, section 3.
 */

#define ADI_DIMS  3
#define ADI_SIDES (2 * ADI_DIMS) /* Before and after, of each dimension */

/* Solution and its two layers in a face */
#define ADI_FACE_DOUBLES (5 * 2)

typedef struct adi {
    nas_t            nas;
    const adi_code_t *code;
    int              q;
    int              cell;            /* Side of a cell, rounded up */
    int              peer[ADI_SIDES];
    int              face_count;
    double           *face_out[ADI_SIDES], *face_in[ADI_SIDES];
    double           *sweep_out, *sweep_in;
    pattern_field_t  field;
    long             step;            /* Of messages; the same on all ranks */
    long             wrong;
} adi_t;


/* The side from which the other one's message comes */
static int adi_opposite(int side)
{
    return side ^ 1;
}

static void adi_copy_faces(adi_t *adi)
{
    MPI_Request requests[2 * ADI_SIDES];
    MPI_Status statuses[2 * ADI_SIDES];
    int side;

    for (side = 0; side < ADI_SIDES; ++side) {
        MPI_Irecv(adi->face_in[side], adi->face_count, MPI_DOUBLE,
                  adi->peer[side], adi_opposite(side), MPI_COMM_WORLD,
                  &requests[side]);
    }
    for (side = 0; side < ADI_SIDES; ++side) {
        pattern_fill(adi->face_out[side], adi->face_count, adi->nas.rank,
                     adi->step + side);
        MPI_Isend(adi->face_out[side], adi->face_count, MPI_DOUBLE,
                  adi->peer[side], side, MPI_COMM_WORLD,
                  &requests[ADI_SIDES + side]);
    }
    MPI_Waitall(2 * ADI_SIDES, requests, statuses);
    for (side = 0; side < ADI_SIDES; ++side) {
        adi->wrong += pattern_check(adi->face_in[side], adi->face_count,
                                    adi->peer[side],
                                    adi->step + adi_opposite(side));
    }
    adi->step += ADI_SIDES;
}

/* One stage's cell is computed while the next message is on its way */
static void adi_sweep(adi_t *adi, int to, int doubles, unsigned flops)
{
    int from  = adi_opposite(to);
    int count = doubles * adi->cell * adi->cell;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int stage;

    pattern_compute(&adi->field, flops / adi->q);
    for (stage = 1; stage < adi->q; ++stage) {
        pattern_fill(adi->sweep_out, count, adi->nas.rank, adi->step);
        MPI_Irecv(adi->sweep_in, count, MPI_DOUBLE, adi->peer[from], to,
                  MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(adi->sweep_out, count, MPI_DOUBLE, adi->peer[to], to,
                  MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, statuses);
        adi->wrong += pattern_check(adi->sweep_in, count, adi->peer[from],
                                    adi->step);
        pattern_compute(&adi->field, flops / adi->q);
        ++adi->step;
    }
}

static void adi_iterate(adi_t *adi)
{
    unsigned share = adi->code->flops / (1 + ADI_SIDES);
    int dim;

    adi_copy_faces(adi);
    pattern_compute(&adi->field, share);
    for (dim = 0; dim < ADI_DIMS; ++dim) {
        adi_sweep(adi, 2 * dim + 1, adi->code->forward, share);
        adi_sweep(adi, 2 * dim, adi->code->backward, share);
    }
}

static int adi_rank(const adi_t *adi, int i, int j)
{
    return (j + adi->q) % adi->q * adi->q + (i + adi->q) % adi->q;
}

static void adi_peers(adi_t *adi)
{
    int i = adi->nas.rank % adi->q, j = adi->nas.rank / adi->q;

    adi->peer[0] = adi_rank(adi, i - 1, j);
    adi->peer[1] = adi_rank(adi, i + 1, j);
    adi->peer[2] = adi_rank(adi, i, j - 1);
    adi->peer[3] = adi_rank(adi, i, j + 1);
    adi->peer[4] = adi_rank(adi, i - 1, j - 1);
    adi->peer[5] = adi_rank(adi, i + 1, j + 1);
}

static void adi_setup(adi_t *adi, int n)
{
    int widest = (adi->code->forward > adi->code->backward) ?
                         adi->code->forward : adi->code->backward;
    size_t bytes;
    int side;

    for (adi->q = 1; adi->q * adi->q < adi->nas.size; ++adi->q) {
    }
    if (adi->q * adi->q != adi->nas.size) {
        nas_fatal(&adi->nas, "%d ranks: a square is wanted", adi->nas.size);
    }
    adi->cell = (n + adi->q - 1) / adi->q;
    adi_peers(adi);

    adi->face_count = ADI_FACE_DOUBLES * adi->q * adi->cell * adi->cell;
    for (side = 0; side < ADI_SIDES; ++side) {
        bytes               = adi->face_count * sizeof(double);
        adi->face_out[side] = nas_alloc(&adi->nas, bytes);
        adi->face_in[side]  = nas_alloc(&adi->nas, bytes);
    }
    bytes          = (size_t)widest * adi->cell * adi->cell * sizeof(double);
    adi->sweep_out = nas_alloc(&adi->nas, bytes);
    adi->sweep_in  = nas_alloc(&adi->nas, bytes);
    pattern_field_init(&adi->nas, (size_t)adi->q * adi->cell * adi->cell *
                                          adi->cell, &adi->field);
}

int adi_main(const adi_code_t *code, int argc, char **argv)
{
    adi_t adi = {.code = code};
    int index, iterations, iteration;

    index = nas_init(&adi.nas, code->name, ADI_CLASSES, &argc, &argv);
    adi_setup(&adi, code->side[index]);
    iterations = adi.nas.iterations ? adi.nas.iterations :
                                      code->iterations[index];
    nas_start(&adi.nas);
    for (iteration = 0; iteration < iterations; ++iteration) {
        adi_iterate(&adi);
    }
    return nas_finish(&adi.nas, iterations, adi.wrong == 0,
                      "every element of every message");
}
