/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "layer.h"

/* Data types: which describe bytes that lie in one piece and in their order */

static int mpi_layer_type_is_dense(MPI_Datatype type)
{
    MPI_Aint lower, extent;
    int size;

    return (PMPI_Type_size(type, &size) == MPI_SUCCESS) &&
           (PMPI_Type_get_extent(type, &lower, &extent) == MPI_SUCCESS) &&
           (lower == 0) && (extent == size);
}

/* What made a type: integers (at most the four that matter here) and the type
 * that it was made of, which is to be released if it is not a named one */
static int mpi_layer_type_is_made_dense(MPI_Datatype type, int combiner,
                                        int num_ints, int num_addresses)
{
    int ints[4];
    MPI_Aint addresses[1];
    MPI_Datatype inner;
    int result, unused, kind;

    if ((num_ints > 4) || (num_addresses > 1) ||
        (PMPI_Type_get_contents(type, num_ints, num_addresses, 1, ints,
                                addresses, &inner) != MPI_SUCCESS)) {
        return 0;
    }
    result = mpi_layer_type_is_contiguous(inner) &&
             ((combiner != MPI_COMBINER_VECTOR) || (ints[0] <= 1) ||
              (ints[1] == ints[2])); /* count, block length, stride */
    if ((PMPI_Type_get_envelope(inner, &unused, &unused, &unused, &kind) ==
         MPI_SUCCESS) && (kind != MPI_COMBINER_NAMED)) {
        PMPI_Type_free(&inner);
    }
    return result;
}

int mpi_layer_type_is_contiguous(MPI_Datatype type)
{
    int num_ints, num_addresses, num_types, combiner;

    if (!mpi_layer_type_is_dense(type) ||
        (PMPI_Type_get_envelope(type, &num_ints, &num_addresses, &num_types,
                                &combiner) != MPI_SUCCESS)) {
        return 0;
    }
    switch (combiner) {
    case MPI_COMBINER_NAMED:
    case MPI_COMBINER_F90_REAL:
    case MPI_COMBINER_F90_INTEGER:
    case MPI_COMBINER_F90_COMPLEX:
        return 1;
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_CONTIGUOUS:
    case MPI_COMBINER_VECTOR:
        return mpi_layer_type_is_made_dense(type, combiner, num_ints,
                                            num_addresses);
    default:
        return 0;
    }
}

char *mpi_layer_type_start(void *buffer, MPI_Datatype type)
{
    MPI_Aint lower, extent;

    PMPI_Type_get_true_extent(type, &lower, &extent);
    return (char*)buffer + lower;
}

/* --- Bytes of any length, as the MPI sees them ---------------------------- */

#define MPI_LAYER_BLOCK ((size_t)1 << 30)

int mpi_layer_view_begin(mpi_layer_view_t *view, void *first,
                         size_t first_length, void *rest, size_t length)
{
    size_t whole          = length / MPI_LAYER_BLOCK;
    int lengths[]         = {(int)first_length, (int)whole,
                             (int)(length % MPI_LAYER_BLOCK)};
    MPI_Aint at[3]        = {0, 0, 0};
    MPI_Datatype types[3] = {MPI_BYTE, MPI_BYTE, MPI_BYTE};
    int result;

    *view = (mpi_layer_view_t){rest, lengths[2], MPI_BYTE, MPI_DATATYPE_NULL};
    if ((first_length == 0) && (whole == 0)) {
        return MPI_SUCCESS;
    }
    PMPI_Type_contiguous(MPI_LAYER_BLOCK, MPI_BYTE, &types[1]);
    PMPI_Get_address(first, &at[0]);
    PMPI_Get_address(rest, &at[1]);
    at[2]  = at[1] + (MPI_Aint)(whole * MPI_LAYER_BLOCK);
    result = PMPI_Type_create_struct(3, lengths, at, types, &view->made);
    PMPI_Type_free(&types[1]);
    if (result == MPI_SUCCESS) {
        result = PMPI_Type_commit(&view->made);
    }
    view->buffer = MPI_BOTTOM;
    view->count  = 1;
    view->type   = view->made;
    return result;
}

void mpi_layer_view_end(mpi_layer_view_t *view)
{
    if (view->made != MPI_DATATYPE_NULL) {
        PMPI_Type_free(&view->made);
    }
}

/* A message to oneself: the MPI knows how to put any part of a type's bytes
 * where they belong. One at a time, for all have one tag. */
static int mpi_layer_type_copy(const void *from, MPI_Count from_count,
                               MPI_Datatype from_type, void *to,
                               MPI_Count to_count, MPI_Datatype to_type)
{
    int result;

    pthread_mutex_lock(&mpi_layer.send_lock);
#if MPI_VERSION >= 4
    result = REAL_MPI(Sendrecv_c)(from, from_count, from_type, 0, 0, to,
                                  to_count, to_type, 0, 0, mpi_layer.self_comm,
                                  MPI_STATUS_IGNORE);
#else
    result = REAL_MPI(Sendrecv)(from, (int)from_count, from_type, 0, 0, to,
                                (int)to_count, to_type, 0, 0,
                                mpi_layer.self_comm, MPI_STATUS_IGNORE);
#endif
    pthread_mutex_unlock(&mpi_layer.send_lock);
    return result;
}

int mpi_layer_type_spread(const void *bytes, size_t length, void *buffer,
                          MPI_Count count, MPI_Datatype type)
{
    mpi_layer_view_t view;
    int result;

    result = mpi_layer_view_begin(&view, NULL, 0, (void*)bytes, length);
    if (result == MPI_SUCCESS) {
        result = mpi_layer_type_copy(view.buffer, view.count, view.type, buffer,
                                     count, type);
        mpi_layer_view_end(&view);
    }
    return result;
}

int mpi_layer_type_gather(const void *buffer, MPI_Count count,
                          MPI_Datatype type, void *bytes, size_t room)
{
    mpi_layer_view_t view;
    int result;

    result = mpi_layer_view_begin(&view, NULL, 0, bytes, room);
    if (result == MPI_SUCCESS) {
        result = mpi_layer_type_copy(buffer, count, type, view.buffer,
                                     view.count, view.type);
        mpi_layer_view_end(&view);
    }
    return result;
}
