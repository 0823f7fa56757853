/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "nas.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * CG: the smallest eigenvalue of a sparse matrix by inverse iteration, each
 * step of it a conjugate gradient solution. The ranks form a grid of `rows` by
 * `columns`, powers of two, columns == rows or 2 * rows. A rank holds the block
 * of its row's rows and its column's columns, and of each vector the part of
 * its column. A product is summed over the ranks of a row, by exchanges with
 * one rank after the other, and then taken from the rank across the diagonal.
 */

/** Block of the sparse matrix, rows compressed. */
typedef struct cg_matrix {
    int    first_row, num_rows;
    int    first_column, num_columns;
    size_t *row;    /**< num_rows + 1 positions */
    int    *column; /**< from 0, within the block */
    double *value;
} cg_matrix_t;

#define CG_CONDITION   0.1 /* Reciprocal of the condition number */
#define CG_MAX_NONZERO 32
#define CG_DIAGONAL    0.5 /* Element i of the vector i */

typedef struct cg_vector {
    int    count;
    int    index[CG_MAX_NONZERO + 1];
    double value[CG_MAX_NONZERO + 1];
} cg_vector_t;

typedef struct cg_element {
    int    row, column;
    double value;
} cg_element_t;

typedef struct cg_builder {
    const nas_t  *nas;
    cg_matrix_t  *matrix;
    cg_element_t *elements;
    size_t       count, room;
} cg_builder_t;

static int cg_vector_has(const cg_vector_t *vector, int index)
{
    int i;

    for (i = 0; i < vector->count; ++i) {
        if (vector->index[i] == index) {
            return 1 + i;
        }
    }
    return 0;
}

static void cg_vector_make(cg_vector_t *vector, int n, int nonzero, int number,
                           uint64_t *seed)
{
    int power = 1, index, found;
    double value;

    while (power < n) {
        power *= 2;
    }
    vector->count = 0;
    while (vector->count < nonzero) {
        value = nas_random(seed, NAS_RANDOM_A);
        index = (int)(power * nas_random(seed, NAS_RANDOM_A));
        if ((index < n) && !cg_vector_has(vector, index)) {
            vector->index[vector->count]   = index;
            vector->value[vector->count++] = value;
        }
    }
    found = cg_vector_has(vector, number);
    if (!found) {
        vector->index[vector->count] = number;
        found                        = ++vector->count;
    }
    vector->value[found - 1] = CG_DIAGONAL;
}

static void cg_add(cg_builder_t *builder, int row, int column, double value)
{
    const cg_matrix_t *matrix = builder->matrix;
    cg_element_t *element;

    row    -= matrix->first_row;
    column -= matrix->first_column;
    if ((row < 0) || (row >= matrix->num_rows) || (column < 0) ||
        (column >= matrix->num_columns)) {
        return;
    }
    if (builder->count == builder->room) {
        builder->room     = 2 * builder->room + 4096;
        builder->elements = realloc(builder->elements,
                                    builder->room * sizeof(*element));
        if (builder->elements == NULL) {
            nas_fatal(builder->nas, "no memory for the matrix");
        }
    }
    element         = &builder->elements[builder->count++];
    element->row    = row;
    element->column = column;
    element->value  = value;
}

static void cg_add_product(cg_builder_t *builder, const cg_vector_t *vector,
                           int number, double weight, double shift)
{
    double value;
    int i, j;

    for (i = 0; i < vector->count; ++i) {
        for (j = 0; j < vector->count; ++j) {
            value = vector->value[j] * (weight * vector->value[i]);
            if ((vector->index[i] == number) && (vector->index[j] == number)) {
                value += CG_CONDITION - shift;
            }
            cg_add(builder, vector->index[i], vector->index[j], value);
        }
    }
}

static int cg_element_compare(const void *a, const void *b)
{
    const cg_element_t *first = a, *second = b;

    if (first->row != second->row) {
        return (first->row < second->row) ? -1 : 1;
    }
    return (first->column > second->column) - (first->column < second->column);
}

/* Equal positions become one element */
static void cg_compress(cg_builder_t *builder)
{
    cg_matrix_t *matrix = builder->matrix;
    const cg_element_t *element;
    size_t i, count = 0;
    int row = 0, last = -1;

    qsort(builder->elements, builder->count, sizeof(*builder->elements),
          cg_element_compare);
    matrix->row    = nas_alloc((matrix->num_rows + 1) * sizeof(*matrix->row));
    matrix->column = nas_alloc((builder->count + 1) * sizeof(*matrix->column));
    matrix->value  = nas_alloc((builder->count + 1) * sizeof(*matrix->value));
    for (i = 0; i < builder->count; ++i) {
        element = &builder->elements[i];
        for (; row < element->row; last = -1) {
            matrix->row[++row] = count;
        }
        if (element->column != last) {
            last                  = element->column;
            matrix->column[count] = last;
            ++count;
        }
        matrix->value[count - 1] += element->value;
    }
    while (row < matrix->num_rows) {
        matrix->row[++row] = count;
    }
}

/*
 * Make the block of CG's matrix that the fields of @a matrix name: a sum of @a
 * n weighted outer products of sparse random vectors, its eigenvalues moved
 * down by @a shift (RNR-94-007, section 2.2.2). Lives as long as the process.
 */
static void cg_matrix_make(const nas_t *nas, int n, int nonzero, double shift,
                    cg_matrix_t *matrix)
{
    cg_builder_t builder = {.nas = nas, .matrix = matrix};
    double weight        = 1;
    double ratio         = pow(CG_CONDITION, 1.0 / n);
    uint64_t seed        = NAS_RANDOM_SEED;
    cg_vector_t vector;
    int number;

    /* The first number belongs to the estimate of the eigenvalue */
    (void)nas_random(&seed, NAS_RANDOM_A);
    for (number = 0; number < n; ++number) {
        cg_vector_make(&vector, n, nonzero, number, &seed);
        cg_add_product(&builder, &vector, number, weight, shift);
        weight *= ratio;
    }
    cg_compress(&builder);
    free(builder.elements);
}

/* @a out = block * @a in. */
static void cg_matrix_multiply(const cg_matrix_t *matrix, const double *in,
                        double *out)
{
    double sum;
    size_t i;
    int row;

    for (row = 0; row < matrix->num_rows; ++row) {
        sum = 0;
        for (i = matrix->row[row]; i < matrix->row[row + 1]; ++i) {
            sum += matrix->value[i] * in[matrix->column[i]];
        }
        out[row] = sum;
    }
}

/*
 * The program
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
    cg->x     = nas_alloc(bytes);
    cg->z     = nas_alloc(bytes);
    cg->p     = nas_alloc(bytes);
    cg->q     = nas_alloc(bytes);
    cg->r     = nas_alloc(bytes);
    cg->sum   = nas_alloc(bytes);
    cg->other = nas_alloc(bytes);
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
