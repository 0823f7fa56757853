/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "nas.h"
#include "pattern.h"

/*
 * The communication of LU: pencils along z on a grid of rows by columns. A
 * lower and an upper triangular sweep run as wavefronts, with one small message
 * to each of two neighbours a plane; then the faces of whole pencils are
 * exchanged with all four. RNR-94-007, section 3.
 */

typedef struct lu_class {
    int side;
    int iterations;
} lu_class_t;

static const lu_class_t lu_classes[] = {
    {12, 50}, {33, 300}, {64, 250}, {102, 250}, {162, 250}
};

#define LU_FLOPS     1800
#define LU_VARIABLES 5
#define LU_LAYERS    2

enum { LU_NORTH, LU_SOUTH, LU_WEST, LU_EAST, LU_SIDES };

typedef struct lu {
    nas_t           nas;
    int             rows, columns;
    int             n;               /* Planes */
    int             peer[LU_SIDES];  /* MPI_PROC_NULL at the border */
    int             line[LU_SIDES];  /* Elements of one plane's message */
    double          *out[LU_SIDES], *in[LU_SIDES];
    pattern_field_t plane;
    long            step;
    long            wrong;
} lu_t;


static void lu_receive(lu_t *lu, int side, int count)
{
    if (lu->peer[side] == MPI_PROC_NULL) {
        return;
    }
    MPI_Recv(lu->in[side], count, MPI_DOUBLE, lu->peer[side], side ^ 1,
             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    lu->wrong += pattern_check(lu->in[side], count, lu->peer[side], lu->step);
}

static void lu_send(lu_t *lu, int side, int count)
{
    if (lu->peer[side] == MPI_PROC_NULL) {
        return;
    }
    pattern_fill(lu->out[side], count, lu->nas.rank, lu->step);
    MPI_Send(lu->out[side], count, MPI_DOUBLE, lu->peer[side], side,
             MPI_COMM_WORLD);
}

/* From two sides to the other two, plane by plane */
static void lu_sweep(lu_t *lu, int from_row, int from_column)
{
    int plane;

    for (plane = 1; plane + 1 < lu->n; ++plane) {
        lu_receive(lu, from_row, lu->line[from_row]);
        lu_receive(lu, from_column, lu->line[from_column]);
        pattern_compute(&lu->plane, LU_FLOPS / 3);
        lu_send(lu, from_row ^ 1, lu->line[from_row]);
        lu_send(lu, from_column ^ 1, lu->line[from_column]);
        ++lu->step;
    }
}

static int lu_face(const lu_t *lu, int side)
{
    return lu->line[side] * LU_LAYERS * lu->n;
}

static void lu_exchange_faces(lu_t *lu)
{
    MPI_Request requests[LU_SIDES];
    MPI_Status statuses[LU_SIDES];
    int side;

    for (side = 0; side < LU_SIDES; ++side) {
        MPI_Irecv(lu->in[side], lu_face(lu, side), MPI_DOUBLE, lu->peer[side],
                  side ^ 1, MPI_COMM_WORLD, &requests[side]);
    }
    for (side = 0; side < LU_SIDES; ++side) {
        lu_send(lu, side, lu_face(lu, side));
    }
    MPI_Waitall(LU_SIDES, requests, statuses);
    for (side = 0; side < LU_SIDES; ++side) {
        if (lu->peer[side] != MPI_PROC_NULL) {
            lu->wrong += pattern_check(lu->in[side], lu_face(lu, side),
                                       lu->peer[side], lu->step);
        }
    }
    ++lu->step;
}

static void lu_iterate(lu_t *lu)
{
    int plane;

    lu_sweep(lu, LU_NORTH, LU_WEST);
    lu_sweep(lu, LU_SOUTH, LU_EAST);
    lu_exchange_faces(lu);
    for (plane = 0; plane < lu->n; ++plane) {
        pattern_compute(&lu->plane, LU_FLOPS / 3);
    }
}

static int lu_rank(const lu_t *lu, int row, int column)
{
    return ((row < 0) || (row >= lu->rows) || (column < 0) ||
            (column >= lu->columns)) ? MPI_PROC_NULL :
                                       row * lu->columns + column;
}

static void lu_setup(lu_t *lu)
{
    int row, column, side, my_x, my_y;

    lu->rows = 1;
    while (4 * lu->rows * lu->rows <= lu->nas.size) {
        lu->rows *= 2;
    }
    lu->columns = lu->nas.size / lu->rows;
    if (lu->rows * lu->columns != lu->nas.size) {
        nas_fatal(&lu->nas, "%d ranks: a power of two is wanted",
                  lu->nas.size);
    }
    row                = lu->nas.rank / lu->columns;
    column             = lu->nas.rank % lu->columns;
    lu->peer[LU_NORTH] = lu_rank(lu, row - 1, column);
    lu->peer[LU_SOUTH] = lu_rank(lu, row + 1, column);
    lu->peer[LU_WEST]  = lu_rank(lu, row, column - 1);
    lu->peer[LU_EAST]  = lu_rank(lu, row, column + 1);

    my_x = (lu->n + lu->columns - 1) / lu->columns;
    my_y = (lu->n + lu->rows - 1) / lu->rows;
    for (side = 0; side < LU_SIDES; ++side) {
        lu->line[side] = LU_VARIABLES * ((side <= LU_SOUTH) ? my_x : my_y);
        lu->out[side]  = nas_alloc(&lu->nas,
                                   lu_face(lu, side) * sizeof(double));
        lu->in[side]   = nas_alloc(&lu->nas,
                                   lu_face(lu, side) * sizeof(double));
    }
    pattern_field_init(&lu->nas, (size_t)my_x * my_y, &lu->plane);
}

int main(int argc, char **argv)
{
    const lu_class_t *c;
    int iterations, iteration;
    lu_t lu = {};

    c    = &lu_classes[nas_init(&lu.nas, "lu", "SWABC", &argc, &argv)];
    lu.n = c->side;
    lu_setup(&lu);
    iterations = lu.nas.iterations ? lu.nas.iterations : c->iterations;
    nas_start(&lu.nas);
    for (iteration = 0; iteration < iterations; ++iteration) {
        lu_iterate(&lu);
    }
    return nas_finish(&lu.nas, iterations, lu.wrong == 0,
                      "every element of every message");
}
