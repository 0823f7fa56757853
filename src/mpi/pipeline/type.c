/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "layer.h"

#include <limits.h>
#include <stdlib.h>

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

/* A message to oneself: the MPI knows how to put any part of a type's bytes
 * where they belong */
int mpi_layer_type_spread(const void *bytes, size_t length, void *buffer,
                          int count, MPI_Datatype type)
{
    if (length > INT_MAX) {
        return MPI_ERR_COUNT;
    }
    return REAL_MPI(Sendrecv)(bytes, (int)length, MPI_BYTE, 0, 0, buffer, count,
                              type, 0, 0, mpi_layer.alone, MPI_STATUS_IGNORE);
}
