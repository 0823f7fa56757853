/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "cg_matrix.h"
#include "nas.h"

#include <math.h>
#include <string.h>

/*
 * CG: the smallest eigenvalue of a sparse matrix by inverse iteration, each
 * step of it a conjugate gradient solution. The ranks form a grid of `rows` by
 * `columns`, powers of two, columns == rows or 2 * rows. A rank holds the block
 * of its row's rows and its column's columns, and of each vector the part of
 * its column. A product is summed over the ranks of a row, by exchanges with
 * one rank after the other, and then taken from the rank across the diagonal.
 */

typedef struct cg_class {
    int    n;
    int    nonzero;
    int    iterations;
    double shift;
    double zeta; /* Published */
} cg_class_t;

static const cg_class_t cg_classes[] = {
    {1400, 7, 15, 10, 8.5971775078648},
    {7000, 8, 15, 12, 10.362595087124},
    {14000, 11, 15, 20, 17.130235054029},
    {75000, 13, 75, 60, 22.712745482631},
    {150000, 15, 75, 110, 28.973605592845}
};

#define CG_STEPS   25
#define CG_EPSILON 1e-10

typedef struct cg {
    nas_t       nas;
    int         rows, columns;
    int         row, column;
    cg_matrix_t matrix;
    int         part;    /* Elements of a vector that a rank has */
    double      *x, *z, *p, *q, *r;
    double      *sum;    /* Product of this rank's block, num_rows elements */
    double      *other;  /* What another rank sends */
} cg_t;


static void cg_exchange(const double *out, double *in, int count, int peer)
{
    MPI_Request request;

    MPI_Irecv(in, count, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, &request);
    MPI_Send(out, count, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Sum over the ranks of the row. On a grid of twice as many columns a vector's
 * part is half of the product: the first exchange is of halves, and the rank
 * goes on with that of its own parity. @return Where the part begins. */
static double *cg_sum_row(cg_t *cg)
{
    double *mine = cg->sum;
    int count    = cg->matrix.num_rows;
    int distance, peer, i;

    for (distance = 1; distance < cg->columns; distance *= 2) {
        peer = cg->row * cg->columns + (cg->column ^ distance);
        if ((distance == 1) && (cg->rows != cg->columns)) {
            count /= 2;
            mine  += (cg->column % 2) * count;
            cg_exchange(cg->sum + (peer % 2) * count, cg->other, count, peer);
        } else {
            cg_exchange(mine, cg->other, count, peer);
        }
        for (i = 0; i < count; ++i) {
            mine[i] += cg->other[i];
        }
    }
    return mine;
}

/* The rank that has the sum of the rows which are this rank's columns */
static int cg_across(const cg_t *cg)
{
    int ratio = cg->columns / cg->rows;

    return (cg->column / ratio) * cg->columns + cg->row * ratio +
           cg->column % ratio;
}

/* out = A * in */
static void cg_multiply(cg_t *cg, const double *in, double *out)
{
    int across = cg_across(cg);
    double *mine;

    cg_matrix_multiply(&cg->matrix, in, cg->sum);
    mine = cg_sum_row(cg);
    if (across == cg->nas.rank) {
        memcpy(out, mine, cg->part * sizeof(*out));
    } else {
        cg_exchange(mine, out, cg->part, across);
    }
}

/* Over the ranks of the row, each of which has another part */
static double cg_dot(const cg_t *cg, const double *a, const double *b)
{
    double sum = 0, other;
    int distance, i;

    for (i = 0; i < cg->part; ++i) {
        sum += a[i] * b[i];
    }
    for (distance = 1; distance < cg->columns; distance *= 2) {
        cg_exchange(&sum, &other, 1,
                    cg->row * cg->columns + (cg->column ^ distance));
        sum += other;
    }
    return sum;
}

/* z = A^-1 x, nearly */
static void cg_solve(cg_t *cg)
{
    double rho, rho_before, alpha, beta;
    int step, i;

    memset(cg->z, 0, cg->part * sizeof(*cg->z));
    memcpy(cg->r, cg->x, cg->part * sizeof(*cg->r));
    memcpy(cg->p, cg->x, cg->part * sizeof(*cg->p));
    rho = cg_dot(cg, cg->r, cg->r);
    for (step = 0; step < CG_STEPS; ++step) {
        cg_multiply(cg, cg->p, cg->q);
        alpha      = rho / cg_dot(cg, cg->p, cg->q);
        rho_before = rho;
        for (i = 0; i < cg->part; ++i) {
            cg->z[i] += alpha * cg->p[i];
            cg->r[i] -= alpha * cg->q[i];
        }
        rho  = cg_dot(cg, cg->r, cg->r);
        beta = rho / rho_before;
        for (i = 0; i < cg->part; ++i) {
            cg->p[i] = cg->r[i] + beta * cg->p[i];
        }
    }
    /* The residual, which the specification wants computed */
    cg_multiply(cg, cg->z, cg->r);
}

static void cg_ones(cg_t *cg)
{
    int i;

    for (i = 0; i < cg->part; ++i) {
        cg->x[i] = 1;
    }
}

/* @return Estimate of the eigenvalue */
static double cg_iterate(cg_t *cg, double shift)
{
    double xz, zz;
    int i;

    cg_solve(cg);
    xz = cg_dot(cg, cg->x, cg->z);
    zz = cg_dot(cg, cg->z, cg->z);
    for (i = 0; i < cg->part; ++i) {
        cg->x[i] = cg->z[i] / sqrt(zz);
    }
    return shift + 1 / xz;
}

static void cg_setup(cg_t *cg, const cg_class_t *c)
{
    size_t bytes;

    cg->rows = 1;
    while (4 * cg->rows * cg->rows <= cg->nas.size) {
        cg->rows *= 2;
    }
    cg->columns = cg->nas.size / cg->rows;
    if ((cg->rows * cg->columns != cg->nas.size) ||
        (cg->columns > 2 * cg->rows) || (c->n % cg->columns)) {
        nas_fatal(&cg->nas, "%d ranks: a power of two is wanted that divides "
                  "%d", cg->nas.size, c->n);
    }
    cg->row                 = cg->nas.rank / cg->columns;
    cg->column              = cg->nas.rank % cg->columns;
    cg->part                = c->n / cg->columns;
    cg->matrix.num_rows     = c->n / cg->rows;
    cg->matrix.first_row    = cg->row * cg->matrix.num_rows;
    cg->matrix.num_columns  = cg->part;
    cg->matrix.first_column = cg->column * cg->part;
    cg_matrix_make(&cg->nas, c->n, c->nonzero, c->shift, &cg->matrix);

    bytes     = cg->matrix.num_rows * sizeof(double);
    cg->x     = nas_alloc(&cg->nas, bytes);
    cg->z     = nas_alloc(&cg->nas, bytes);
    cg->p     = nas_alloc(&cg->nas, bytes);
    cg->q     = nas_alloc(&cg->nas, bytes);
    cg->r     = nas_alloc(&cg->nas, bytes);
    cg->sum   = nas_alloc(&cg->nas, bytes);
    cg->other = nas_alloc(&cg->nas, bytes);
}

int main(int argc, char **argv)
{
    const cg_class_t *c;
    int iterations, iteration;
    double zeta = 0;
    cg_t cg     = {};

    c = &cg_classes[nas_init(&cg.nas, "cg", "SWABC", &argc, &argv)];
    cg_setup(&cg, c);
    iterations = nas_iterations(&cg.nas, c->iterations);

    /* The estimate converges in far fewer iterations than the class has, so
     * that a longer or a somewhat shorter run finds the same */
    cg_ones(&cg);
    nas_start(&cg.nas);
    for (iteration = 0; iteration < iterations; ++iteration) {
        zeta = cg_iterate(&cg, c->shift);
    }
    return nas_finish(&cg.nas, iterations,
                      nas_is_close(zeta, c->zeta, CG_EPSILON));
}
