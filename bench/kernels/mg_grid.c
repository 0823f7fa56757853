/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "mg_grid.h"

#include <string.h>


void mg_ranks_init(const nas_t *nas, mg_ranks_t *ranks)
{
    int left = nas->size, stride = 1, dim;

    for (dim = 0; dim < MG_DIMS; ++dim) {
        ranks->shape[dim] = 1;
    }
    for (dim = MG_DIMS - 1; left > 1; dim = (dim + MG_DIMS - 1) % MG_DIMS) {
        if (left % 2) {
            nas_fatal(nas, "%d ranks: a power of two is wanted", nas->size);
        }
        ranks->shape[dim] *= 2;
        left              /= 2;
    }
    for (dim = 0; dim < MG_DIMS; ++dim) {
        int shape = ranks->shape[dim];
        int here  = nas->rank / stride % shape;

        ranks->position[dim] = here;
        ranks->after[dim]    = nas->rank +
                               ((here + 1) % shape - here) * stride;
        ranks->before[dim]   = nas->rank +
                               ((here + shape - 1) % shape - here) * stride;
        stride              *= shape;
    }
}

void mg_box_init(const nas_t *nas, const mg_ranks_t *ranks, int n,
                 mg_box_t *box)
{
    int dim;

    for (dim = 0; dim < MG_DIMS; ++dim) {
        box->n[dim] = n / ranks->shape[dim];
        if (box->n[dim] < 1) {
            nas_fatal(nas, "%d ranks are too many for a grid of %d points",
                      nas->size, n);
        }
    }
    box->line  = box->n[0] + 2;
    box->plane = box->line * (box->n[1] + 2);
    box->size  = box->plane * (box->n[2] + 2);
}

void mg_faces_init(const nas_t *nas, const mg_box_t *largest,
                   mg_faces_t *faces)
{
    size_t side = largest->n[0] + 2, bytes;
    int dim;

    for (dim = 1; dim < MG_DIMS; ++dim) {
        if ((size_t)largest->n[dim] + 2 > side) {
            side = largest->n[dim] + 2;
        }
    }
    bytes                 = side * side * sizeof(double);
    faces->send_before    = nas_alloc(nas, bytes);
    faces->send_after     = nas_alloc(nas, bytes);
    faces->receive_before = nas_alloc(nas, bytes);
    faces->receive_after  = nas_alloc(nas, bytes);
}

/* Where a face lies, and how it is walked */
typedef struct mg_walk {
    size_t start, step[2];
    int    count[2];
} mg_walk_t;

static void mg_walk_init(const mg_box_t *box, int dim, int index,
                         mg_walk_t *walk)
{
    const size_t strides[MG_DIMS] = {1, box->line, box->plane};
    int other[2] = {dim == 0, dim == MG_DIMS - 1 ? 1 : MG_DIMS - 1};
    int i;

    if (dim == 1) {
        other[0] = 0;
    }
    walk->start = index * strides[dim];
    for (i = 0; i < 2; ++i) {
        walk->step[i]  = strides[other[i]];
        walk->count[i] = box->n[other[i]] + 2;
    }
}

static int mg_pack(const mg_box_t *box, int dim, int index, const double *u,
                   double *face)
{
    mg_walk_t walk;
    int i, j, count = 0;

    mg_walk_init(box, dim, index, &walk);
    for (j = 0; j < walk.count[1]; ++j) {
        for (i = 0; i < walk.count[0]; ++i) {
            face[count++] = u[walk.start + j * walk.step[1] +
                              i * walk.step[0]];
        }
    }
    return count;
}

static void mg_unpack(const mg_box_t *box, int dim, int index,
                      const double *face, double *u)
{
    mg_walk_t walk;
    int i, j;

    mg_walk_init(box, dim, index, &walk);
    for (j = 0; j < walk.count[1]; ++j) {
        for (i = 0; i < walk.count[0]; ++i) {
            u[walk.start + j * walk.step[1] + i * walk.step[0]] = *face++;
        }
    }
}

void mg_exchange(const mg_ranks_t *ranks, const mg_box_t *box,
                 const mg_faces_t *faces, double *u)
{
    const double *from_before, *from_after;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int dim, count;

    for (dim = 0; dim < MG_DIMS; ++dim) {
        count = mg_pack(box, dim, 1, u, faces->send_before);
        mg_pack(box, dim, box->n[dim], u, faces->send_after);
        from_before = faces->send_after;
        from_after  = faces->send_before;
        if (ranks->shape[dim] > 1) {
            MPI_Irecv(faces->receive_after, count, MPI_DOUBLE,
                      ranks->after[dim], 2 * dim, MPI_COMM_WORLD, &requests[0]);
            MPI_Irecv(faces->receive_before, count, MPI_DOUBLE,
                      ranks->before[dim], 2 * dim + 1, MPI_COMM_WORLD,
                      &requests[1]);
            MPI_Send(faces->send_before, count, MPI_DOUBLE, ranks->before[dim],
                     2 * dim, MPI_COMM_WORLD);
            MPI_Send(faces->send_after, count, MPI_DOUBLE, ranks->after[dim],
                     2 * dim + 1, MPI_COMM_WORLD);
            MPI_Waitall(2, requests, statuses);
            from_before = faces->receive_before;
            from_after  = faces->receive_after;
        }
        mg_unpack(box, dim, 0, from_before, u);
        mg_unpack(box, dim, box->n[dim] + 1, from_after, u);
    }
}
