/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "cg_matrix.h"

#include <math.h>
#include <stdlib.h>

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
    matrix->row    = nas_alloc(builder->nas, (matrix->num_rows + 1) *
                                                     sizeof(*matrix->row));
    matrix->column = nas_alloc(builder->nas, (builder->count + 1) *
                                                     sizeof(*matrix->column));
    matrix->value  = nas_alloc(builder->nas, (builder->count + 1) *
                                                     sizeof(*matrix->value));
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

void cg_matrix_make(const nas_t *nas, int n, int nonzero, double shift,
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

void cg_matrix_multiply(const cg_matrix_t *matrix, const double *in,
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
