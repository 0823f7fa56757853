/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef MG_GRID_H_
#define MG_GRID_H_

#include "nas.h"

#define MG_DIMS 3

/** How the ranks share a periodic cube; x, y, z. */
typedef struct mg_ranks {
    int shape[MG_DIMS];       /**< Ranks along each dimension */
    int position[MG_DIMS];    /**< Of this one */
    int before[MG_DIMS];      /**< Neighbouring ranks */
    int after[MG_DIMS];
} mg_ranks_t;

/** A rank's box of one level, with one layer of its neighbours' points. */
typedef struct mg_box {
    int    n[MG_DIMS];        /**< Own points; index 0 and n + 1: the layers */
    size_t line, plane, size; /**< Points along x, in a plane, in all */
} mg_box_t;

/** Buffers for one face each, as large as the largest. */
typedef struct mg_faces {
    double *send_before, *send_after, *receive_before, *receive_after;
} mg_faces_t;


/** Share powers of two evenly, z first as it varies slowest. */
void mg_ranks_init(const nas_t *nas, mg_ranks_t *ranks);

/** Box of this rank in a cube of @a n points along each dimension. */
void mg_box_init(const nas_t *nas, const mg_ranks_t *ranks, int n,
                 mg_box_t *box);

void mg_faces_init(const nas_t *nas, const mg_box_t *largest,
                   mg_faces_t *faces);

/** Fill the layers from the neighbours, one dimension after the other. */
void mg_exchange(const mg_ranks_t *ranks, const mg_box_t *box,
                 const mg_faces_t *faces, double *u);

static inline size_t mg_at(const mg_box_t *box, int x, int y, int z)
{
    return z * box->plane + y * box->line + x;
}

#endif
