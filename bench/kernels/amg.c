/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "nas.h"
#include "pattern.h"

/*
 * An irregular code, like algebraic multigrid on a mesh that is refined as it
 * goes: each iteration has as many levels as it happens to need, each level
 * more or less to send and to compute, and now and then the mesh changes and
 * with it the buffers. Every rank draws the same numbers.
 */

typedef struct amg_class {
    int points;     /* Doubles of the finest level's message */
    int iterations;
} amg_class_t;

static const amg_class_t amg_classes[] = {
    {8192, 50}, {32768, 100}, {131072, 100}, {524288, 100}, {1048576, 200}
};

#define AMG_LEVELS  6
#define AMG_REFINE  20   /* Iterations from one mesh to the next, about */
#define AMG_FLOPS   100  /* A point and iteration, on average */

typedef struct amg {
    nas_t           nas;
    int             points;
    uint64_t        seed;
    double          *out[AMG_LEVELS], *in[AMG_LEVELS];
    int             count[AMG_LEVELS]; /* Of the present mesh */
    pattern_field_t field;
    long            step;
    long            wrong;
} amg_t;


static double amg_random(amg_t *amg)
{
    return nas_random(&amg->seed, NAS_RANDOM_A);
}

/* Between half and all of what the level may have */
static void amg_refine(amg_t *amg)
{
    int level;

    for (level = 0; level < AMG_LEVELS; ++level) {
        amg->count[level] = (int)((amg->points >> level) *
                                  (0.5 + amg_random(amg) / 2));
    }
}

static void amg_exchange(amg_t *amg, int level, int distance)
{
    int size = amg->nas.size, rank = amg->nas.rank;
    int to = (rank + distance) % size, from = (rank + size - distance) % size;
    int count = amg->count[level];

    pattern_fill(amg->out[level], count, rank, amg->step);
    MPI_Sendrecv(amg->out[level], count, MPI_DOUBLE, to, level, amg->in[level],
                 count, MPI_DOUBLE, from, level, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    amg->wrong += pattern_check(amg->in[level], count, from, amg->step);
    ++amg->step;
}

static void amg_level(amg_t *amg, int level)
{
    pattern_field_t part = amg->field;

    part.points >>= level;
    pattern_compute(&part, (unsigned)(AMG_FLOPS * (0.5 + amg_random(amg))));
    amg_exchange(amg, level, 1);
    if (amg_random(amg) < 0.5) {
        amg_exchange(amg, level, amg->nas.size - 1);
    }
}

static void amg_iterate(amg_t *amg)
{
    int levels = 2 + (int)(amg_random(amg) * (AMG_LEVELS - 1)), level;

    if (amg_random(amg) * AMG_REFINE < 1) {
        amg_refine(amg);
    }
    for (level = 0; level < levels; ++level) {
        amg_level(amg, level);
    }
    for (level = levels - 1; level >= 0; --level) {
        amg_level(amg, level);
    }
}

static void amg_setup(amg_t *amg)
{
    size_t bytes;
    int level;

    amg->seed = NAS_RANDOM_SEED;
    for (level = 0; level < AMG_LEVELS; ++level) {
        bytes           = (amg->points >> level) * sizeof(double);
        amg->out[level] = nas_alloc(&amg->nas, bytes);
        amg->in[level]  = nas_alloc(&amg->nas, bytes);
    }
    pattern_field_init(&amg->nas, 4ul * amg->points, &amg->field);
    amg_refine(amg);
}

int main(int argc, char **argv)
{
    const amg_class_t *c;
    int iterations, iteration;
    amg_t amg = {};

    c = &amg_classes[nas_init(&amg.nas, "amg", "SWABC", &argc, &argv)];
    amg.points = c->points;
    amg_setup(&amg);
    iterations = amg.nas.iterations ? amg.nas.iterations : c->iterations;
    nas_start(&amg.nas);
    for (iteration = 0; iteration < iterations; ++iteration) {
        amg_iterate(&amg);
    }
    return nas_finish(&amg.nas, iterations, amg.wrong == 0,
                      "every element of every message");
}
