/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "layer.h"

#include <stdlib.h>

/*
 * Communicators. Those whose members have agreed on an id may have messages in
 * the pipeline; the id tells a probe which message of the pipeline belongs to
 * a herald that the MPI shows. All others stay with the MPI: those between two
 * groups, those with processes of another MPI_COMM_WORLD, and those that
 * MPI_Comm_idup makes, which are not there when it returns.
 */

#define MPI_LAYER_COMM_IDS (1u << 17)

static int mpi_layer_comm_forget(MPI_Comm comm, int keyval, void *value,
                                 void *extra)
{
    mpi_layer_comm_put(value);
    return MPI_SUCCESS;
}

int mpi_layer_comm_setup(void)
{
    return PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, mpi_layer_comm_forget,
                                   &mpi_layer.keyval, NULL);
}

mpi_layer_comm_t *mpi_layer_comm_get(MPI_Comm comm)
{
    void *value = NULL;
    int found   = 0;

    if (!mpi_layer.on || (comm == MPI_COMM_NULL) ||
        (PMPI_Comm_get_attr(comm, mpi_layer.keyval, &value, &found) !=
         MPI_SUCCESS) || !found) {
        return NULL;
    }
    return value;
}

mpi_layer_comm_t *mpi_layer_comm_hold(mpi_layer_comm_t *self)
{
    if (self != NULL) {
        pthread_mutex_lock(&mpi_layer.lock);
        ++self->users;
        pthread_mutex_unlock(&mpi_layer.lock);
    }
    return self;
}

void mpi_layer_comm_put(mpi_layer_comm_t *self)
{
    unsigned left;

    if (self != NULL) {
        pthread_mutex_lock(&mpi_layer.lock);
        left = --self->users;
        pthread_mutex_unlock(&mpi_layer.lock);
        if (left == 0) {
            free(self);
        }
    }
}

/* The members' ranks in MPI_COMM_WORLD; NULL if one is not there: then all
 * members find one that is not in theirs */
static mpi_layer_comm_t *mpi_layer_comm_new(MPI_Comm comm)
{
    mpi_layer_comm_t *self = NULL;
    MPI_Group group, world;
    int *ranks, size, i;

    PMPI_Comm_size(comm, &size);
    PMPI_Comm_group(comm, &group);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    ranks = malloc(size * sizeof(*ranks));
    self  = malloc(sizeof(*self) + size * sizeof(*ranks));
    if ((ranks == NULL) || (self == NULL)) {
        abort(); /* the other members agree, and this one cannot tell them */
    }
    for (i = 0; i < size; ++i) {
        ranks[i] = i;
    }
    PMPI_Group_translate_ranks(group, size, ranks, world, self->world);
    self->size = size;
    self->users = 1;
    ucs_store_relaxed(&self->next, 0); /* relaxed: nobody else has it */
    for (i = 0; i < size; ++i) {
        if (self->world[i] == MPI_UNDEFINED) {
            free(self);
            self = NULL;
            break;
        }
    }
    free(ranks);
    PMPI_Group_free(&world);
    PMPI_Group_free(&group);
    return self;
}

/* The highest of what the members propose. Where another thread has come in
 * between with an id as high, a member says so and all try again. */
static uint32_t mpi_layer_comm_agree_id(MPI_Comm comm)
{
    uint32_t id, next, proposal;
    int good, all_good;

    do {
        /* relaxed: an id is a number and nothing is read by it */
        proposal = ucs_load_relaxed(&mpi_layer.next_comm);
        PMPI_Allreduce(&proposal, &id, 1, MPI_UINT32_T, MPI_MAX, comm);
        next = proposal;
        do {
            good = (id >= next);
        } while (good && !ucs_cas_relaxed(&mpi_layer.next_comm, &next, id + 1));
        PMPI_Allreduce(&good, &all_good, 1, MPI_INT, MPI_MIN, comm);
    } while (!all_good);
    return id;
}

void mpi_layer_comm_agree(MPI_Comm comm)
{
    mpi_layer_comm_t *self;
    int is_inter = 0;

    if (!mpi_layer.on || (comm == MPI_COMM_NULL)) {
        return;
    }
    PMPI_Comm_test_inter(comm, &is_inter);
    if (is_inter) {
        mpi_layer_say("a communicator between two groups stays with the MPI");
        return;
    }
    self = mpi_layer_comm_new(comm);
    if (self == NULL) {
        mpi_layer_say("a communicator with processes of another job stays "
                      "with the MPI");
        return;
    }
    self->id = mpi_layer_comm_agree_id(comm);
    if (self->id >= MPI_LAYER_COMM_IDS) {
        mpi_layer_say("communicators from the %uth on stay with the MPI",
                      MPI_LAYER_COMM_IDS);
        free(self);
        return;
    }
    PMPI_Comm_set_attr(comm, mpi_layer.keyval, self);
}

/* --- What makes communicators --------------------------------------------- */

#define MPI_LAYER_MAKES_COMM(_name, _params, _args) \
    int mpi_layer_##_name _params \
    { \
        int result = REAL_MPI(_name) _args; \
        \
        if (result == MPI_SUCCESS) { \
            mpi_layer_comm_agree(*made); \
        } \
        return result; \
    }

MPI_LAYER_MAKES_COMM(Comm_dup, (MPI_Comm comm, MPI_Comm *made), (comm, made))

MPI_LAYER_MAKES_COMM(Comm_dup_with_info,
                     (MPI_Comm comm, MPI_Info info, MPI_Comm *made),
                     (comm, info, made))

MPI_LAYER_MAKES_COMM(Comm_create,
                     (MPI_Comm comm, MPI_Group group, MPI_Comm *made),
                     (comm, group, made))

MPI_LAYER_MAKES_COMM(Comm_create_group,
                     (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made),
                     (comm, group, tag, made))

MPI_LAYER_MAKES_COMM(Comm_split,
                     (MPI_Comm comm, int color, int key, MPI_Comm *made),
                     (comm, color, key, made))

MPI_LAYER_MAKES_COMM(Comm_split_type,
                     (MPI_Comm comm, int split_type, int key, MPI_Info info,
                      MPI_Comm *made),
                     (comm, split_type, key, info, made))

MPI_LAYER_MAKES_COMM(Cart_create,
                     (MPI_Comm comm, int num_dims, const int dims[],
                      const int periods[], int reorder, MPI_Comm *made),
                     (comm, num_dims, dims, periods, reorder, made))

MPI_LAYER_MAKES_COMM(Cart_sub,
                     (MPI_Comm comm, const int remain_dims[], MPI_Comm *made),
                     (comm, remain_dims, made))

MPI_LAYER_MAKES_COMM(Graph_create,
                     (MPI_Comm comm, int num_nodes, const int index[],
                      const int edges[], int reorder, MPI_Comm *made),
                     (comm, num_nodes, index, edges, reorder, made))

MPI_LAYER_MAKES_COMM(Dist_graph_create,
                     (MPI_Comm comm, int n, const int sources[],
                      const int degrees[], const int targets[],
                      const int weights[], MPI_Info info, int reorder,
                      MPI_Comm *made),
                     (comm, n, sources, degrees, targets, weights, info,
                      reorder, made))

MPI_LAYER_MAKES_COMM(Dist_graph_create_adjacent,
                     (MPI_Comm comm, int in_degree, const int sources[],
                      const int in_weights[], int out_degree,
                      const int targets[], const int out_weights[],
                      MPI_Info info, int reorder, MPI_Comm *made),
                     (comm, in_degree, sources, in_weights, out_degree, targets,
                      out_weights, info, reorder, made))

MPI_LAYER_MAKES_COMM(Intercomm_merge,
                     (MPI_Comm comm, int high, MPI_Comm *made),
                     (comm, high, made))
