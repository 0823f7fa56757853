/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef CG_MATRIX_H_
#define CG_MATRIX_H_

#include "nas.h"

/** Block of the sparse matrix, rows compressed. */
typedef struct cg_matrix {
    int    first_row, num_rows;
    int    first_column, num_columns;
    size_t *row;    /**< num_rows + 1 positions */
    int    *column; /**< from 0, within the block */
    double *value;
} cg_matrix_t;


/**
 * Make the block of CG's matrix that the fields of @a matrix name: a sum of @a
 * n weighted outer products of sparse random vectors, its eigenvalues moved
 * down by @a shift (RNR-94-007, section 2.2.2). Lives as long as the process.
 */
void cg_matrix_make(const nas_t *nas, int n, int nonzero, double shift,
                    cg_matrix_t *matrix);

/** @a out = block * @a in. */
void cg_matrix_multiply(const cg_matrix_t *matrix, const double *in,
                        double *out);

#endif
