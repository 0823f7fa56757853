/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "nas.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * MG: V-cycles of a multigrid method for the Poisson equation on a periodic
 * cube. Each operator is followed by an exchange of the faces of its level, so
 * messages of many sizes leave and enter the same few buffers.
 * RNR-94-007, section 2.2.3.
 */

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

static inline size_t mg_at(const mg_box_t *box, int x, int y, int z)
{
    return z * box->plane + y * box->line + x;
}

/* Share powers of two evenly, z first as it varies slowest. */
static void mg_ranks_init(const nas_t *nas, mg_ranks_t *ranks)
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

/* Box of this rank in a cube of @a n points along each dimension. */
static void mg_box_init(const nas_t *nas, const mg_ranks_t *ranks, int n,
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

static void mg_faces_init(const nas_t *nas, const mg_box_t *largest,
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

/* Fill the layers from the neighbours, one dimension after the other. */
static void mg_exchange(const mg_ranks_t *ranks, const mg_box_t *box,
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

/*
 * The program
 */

typedef struct mg_class {
    int    log_n;
    int    iterations;
    double norm; /* Published */
} mg_class_t;

static const mg_class_t mg_classes[] = {
    {5, 4, 0.5307707005734e-04},
    {7, 4, 0.6467329375339e-05},
    {8, 4, 0.2433365309069e-05},
    {8, 20, 0.1800564401355e-05},
    {9, 20, 0.5706732285740e-06}
};

#define MG_CHARGES    10
#define MG_MAX_LEVELS 10
#define MG_EPSILON    1e-8

typedef struct mg_level {
    mg_box_t box;
    double   *u, *r;
} mg_level_t;

typedef struct mg {
    nas_t        nas;
    mg_ranks_t   ranks;
    mg_faces_t   faces;
    int          top;                  /* log2 of the cube's side */
    mg_level_t   level[MG_MAX_LEVELS]; /* From 1 on */
    double       *v;
    const double *smoother;
} mg_t;

/* Weights of a point, its 6 faces, 12 edges and 8 corners */
static const double mg_operator[4]        = {-8.0 / 3, 0, 1.0 / 6, 1.0 / 12};
static const double mg_smoother_small[4]  = {-3.0 / 8, 1.0 / 32, -1.0 / 64, 0};
static const double mg_smoother_large[4]  = {-3.0 / 17, 1.0 / 33, -1.0 / 61, 0};
static const double mg_restriction[4]     = {0.5, 0.25, 0.125, 0.0625};

/* Sum of the 27 points around @a p */
static inline double mg_stencil(const mg_box_t *box, const double *p,
                                const double *weight)
{
    const double *up = p + box->plane, *down = p - box->plane;
    size_t line      = box->line;
    double faces, edges, corners;

    faces   = p[-1] + p[1] + p[line] + *(p - line) + *up + *down;
    edges   = p[line - 1] + p[line + 1] + *(p - line - 1) + *(p - line + 1) +
              up[-1] + up[1] + up[line] + *(up - line) +
              down[-1] + down[1] + down[line] + *(down - line);
    corners = up[line - 1] + up[line + 1] + *(up - line - 1) +
              *(up - line + 1) + down[line - 1] + down[line + 1] +
              *(down - line - 1) + *(down - line + 1);
    return weight[0] * *p + weight[1] * faces + weight[2] * edges +
           weight[3] * corners;
}

/* r = v - A u */
static void mg_residual(const mg_t *mg, const mg_box_t *box, const double *u,
                        const double *v, double *r)
{
    size_t at;
    int x, y, z;

    for (z = 1; z <= box->n[2]; ++z) {
        for (y = 1; y <= box->n[1]; ++y) {
            at = mg_at(box, 1, y, z);
            for (x = 1; x <= box->n[0]; ++x, ++at) {
                r[at] = v[at] - mg_stencil(box, u + at, mg_operator);
            }
        }
    }
    mg_exchange(&mg->ranks, box, &mg->faces, r);
}

/* u += S r */
static void mg_smooth(const mg_t *mg, const mg_box_t *box, const double *r,
                      double *u)
{
    size_t at;
    int x, y, z;

    for (z = 1; z <= box->n[2]; ++z) {
        for (y = 1; y <= box->n[1]; ++y) {
            at = mg_at(box, 1, y, z);
            for (x = 1; x <= box->n[0]; ++x, ++at) {
                u[at] += mg_stencil(box, r + at, mg->smoother);
            }
        }
    }
    mg_exchange(&mg->ranks, box, &mg->faces, u);
}

/* Coarse point c lies on fine point 2 c */
static void mg_restrict(const mg_t *mg, const mg_level_t *fine,
                        const mg_level_t *coarse)
{
    const mg_box_t *box = &coarse->box;
    int x, y, z;

    for (z = 1; z <= box->n[2]; ++z) {
        for (y = 1; y <= box->n[1]; ++y) {
            for (x = 1; x <= box->n[0]; ++x) {
                coarse->r[mg_at(box, x, y, z)] =
                        mg_stencil(&fine->box,
                                   fine->r + mg_at(&fine->box, 2 * x, 2 * y,
                                                   2 * z),
                                   mg_restriction);
            }
        }
    }
    mg_exchange(&mg->ranks, box, &mg->faces, coarse->r);
}

/* Add the trilinear interpolation, to the layers as well: theirs is exact, for
 * the coarse layers are */
static void mg_prolong(const mg_level_t *coarse, const mg_level_t *fine)
{
    const mg_box_t *box = &fine->box, *from = &coarse->box;
    const double *p;
    int x, y, z, dx, dy, dz;

    for (z = 0; z <= box->n[2] + 1; ++z) {
        for (y = 0; y <= box->n[1] + 1; ++y) {
            for (x = 0; x <= box->n[0] + 1; ++x) {
                p  = coarse->u + mg_at(from, x / 2, y / 2, z / 2);
                dx = x % 2;
                dy = (y % 2) * from->line;
                dz = (z % 2) * from->plane;
                fine->u[mg_at(box, x, y, z)] +=
                        (p[0] + p[dx] + p[dy] + p[dx + dy] + p[dz] +
                         p[dz + dx] + p[dz + dy] + p[dz + dy + dx]) / 8;
            }
        }
    }
}

static void mg_zero(const mg_level_t *level)
{
    memset(level->u, 0, level->box.size * sizeof(*level->u));
}

static void mg_cycle(mg_t *mg)
{
    mg_level_t *top = &mg->level[mg->top];
    mg_level_t *level;
    int k;

    for (k = mg->top; k > 1; --k) {
        mg_restrict(mg, &mg->level[k], &mg->level[k - 1]);
    }
    mg_zero(&mg->level[1]);
    mg_smooth(mg, &mg->level[1].box, mg->level[1].r, mg->level[1].u);
    for (k = 2; k < mg->top; ++k) {
        level = &mg->level[k];
        mg_zero(level);
        mg_prolong(level - 1, level);
        mg_residual(mg, &level->box, level->u, level->r, level->r);
        mg_smooth(mg, &level->box, level->r, level->u);
    }
    mg_prolong(top - 1, top);
    mg_residual(mg, &top->box, top->u, mg->v, top->r);
    mg_smooth(mg, &top->box, top->r, top->u);
}

static double mg_norm(const mg_t *mg)
{
    const mg_level_t *top = &mg->level[mg->top];
    double sum = 0, r;
    int x, y, z;

    for (z = 1; z <= top->box.n[2]; ++z) {
        for (y = 1; y <= top->box.n[1]; ++y) {
            for (x = 1; x <= top->box.n[0]; ++x) {
                r    = top->r[mg_at(&top->box, x, y, z)];
                sum += r * r;
            }
        }
    }
    return sqrt(ldexp(nas_sum(sum), -3 * mg->top));
}

/*
 * Right-hand side: +1 at the points with the ten largest of random numbers, -1
 * at those with the ten smallest
 */

typedef struct mg_candidate {
    double value;
    double rank; /* A double, for one MPI_Allgather */
    double at;
} mg_candidate_t;

static int mg_candidate_compare(const void *a, const void *b)
{
    double first = ((const mg_candidate_t*)a)->value;
    double second = ((const mg_candidate_t*)b)->value;

    return (first > second) - (first < second);
}

static void mg_random(mg_t *mg)
{
    const mg_box_t *box = &mg->level[mg->top].box;
    uint64_t n          = UINT64_C(1) << mg->top;
    const int *position = mg->ranks.position;
    uint64_t seed, index;
    int x, y, z;

    for (z = 1; z <= box->n[2]; ++z) {
        for (y = 1; y <= box->n[1]; ++y) {
            index = ((uint64_t)(position[2] * box->n[2] + z - 1) * n +
                     (uint64_t)(position[1] * box->n[1] + y - 1)) * n +
                    (uint64_t)position[0] * box->n[0];
            seed  = nas_random_next(NAS_RANDOM_SEED,
                                    nas_random_power(NAS_RANDOM_A, index));
            for (x = 1; x <= box->n[0]; ++x) {
                mg->v[mg_at(box, x, y, z)] = nas_random(&seed, NAS_RANDOM_A);
            }
        }
    }
}

/* Keep the ten with the largest value * sign */
static void mg_insert(mg_candidate_t *best, double value, int rank, size_t at)
{
    int i;

    if (value <= best[0].value) {
        return;
    }
    for (i = 0; (i + 1 < MG_CHARGES) && (best[i + 1].value < value); ++i) {
        best[i] = best[i + 1];
    }
    best[i] = (mg_candidate_t){value, rank, at};
}

static void mg_best(const mg_t *mg, double sign, mg_candidate_t *best)
{
    const mg_box_t *box = &mg->level[mg->top].box;
    size_t at;
    int i, x, y, z;

    for (i = 0; i < MG_CHARGES; ++i) {
        best[i] = (mg_candidate_t){-2, -1, 0};
    }
    for (z = 1; z <= box->n[2]; ++z) {
        for (y = 1; y <= box->n[1]; ++y) {
            for (x = 1; x <= box->n[0]; ++x) {
                at = mg_at(box, x, y, z);
                mg_insert(best, sign * mg->v[at], mg->nas.rank, at);
            }
        }
    }
}

static void mg_charge(const mg_t *mg, const mg_candidate_t *mine, double charge)
{
    int count = MG_CHARGES * mg->nas.size, i;
    mg_candidate_t *all;

    all = nas_alloc(&mg->nas, count * sizeof(*all));
    MPI_Allgather(mine, 3 * MG_CHARGES, MPI_DOUBLE, all, 3 * MG_CHARGES,
                  MPI_DOUBLE, MPI_COMM_WORLD);
    qsort(all, count, sizeof(*all), mg_candidate_compare);
    for (i = count - MG_CHARGES; i < count; ++i) {
        if (all[i].rank == mg->nas.rank) {
            mg->v[(size_t)all[i].at] = charge;
        }
    }
}

static void mg_right_hand_side(mg_t *mg)
{
    const mg_box_t *box = &mg->level[mg->top].box;
    mg_candidate_t largest[MG_CHARGES], smallest[MG_CHARGES];

    mg_random(mg);
    mg_best(mg, 1, largest);
    mg_best(mg, -1, smallest);
    memset(mg->v, 0, box->size * sizeof(*mg->v));
    mg_charge(mg, largest, 1);
    mg_charge(mg, smallest, -1);
    mg_exchange(&mg->ranks, box, &mg->faces, mg->v);
}

static void mg_setup(mg_t *mg, const mg_class_t *c)
{
    mg_level_t *level;
    int k;

    mg->top      = c->log_n;
    mg->smoother = (mg->nas.class_id >= 'B') && (mg->nas.class_id <= 'C') ?
                           mg_smoother_large : mg_smoother_small;
    mg_ranks_init(&mg->nas, &mg->ranks);
    for (k = 1; k <= mg->top; ++k) {
        level = &mg->level[k];
        mg_box_init(&mg->nas, &mg->ranks, 1 << k, &level->box);
        level->u = nas_alloc(&mg->nas, level->box.size * sizeof(double));
        level->r = nas_alloc(&mg->nas, level->box.size * sizeof(double));
    }
    mg->v = nas_alloc(&mg->nas, mg->level[mg->top].box.size * sizeof(double));
    mg_faces_init(&mg->nas, &mg->level[mg->top].box, &mg->faces);
    mg_right_hand_side(mg);
}

int main(int argc, char **argv)
{
    const mg_class_t *c;
    int iterations, iteration, is_good;
    double before, norm;
    mg_level_t *top;
    mg_t mg = {};

    c = &mg_classes[nas_init(&mg.nas, "mg", "SWABC", &argc, &argv)];
    mg_setup(&mg, c);
    top        = &mg.level[mg.top];
    iterations = nas_iterations(&mg.nas, c->iterations);

    nas_start(&mg.nas);
    mg_residual(&mg, &top->box, top->u, mg.v, top->r);
    before  = mg_norm(&mg);
    is_good = 1;
    norm    = before;
    for (iteration = 0; iteration < iterations; ++iteration) {
        mg_cycle(&mg);
        mg_residual(&mg, &top->box, top->u, mg.v, top->r);
        norm = mg_norm(&mg);
        if (iteration + 1 == c->iterations) {
            is_good = nas_is_close(norm, c->norm, MG_EPSILON);
        }
    }
    is_good = is_good && (norm < before / 2);
    return nas_finish(&mg.nas, iterations, is_good);
}
