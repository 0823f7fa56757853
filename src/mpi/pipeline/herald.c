/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "layer.h"

#include <ucs/algorithm/crc.h>

#include <stddef.h>
#include <string.h>

/* The herald: what announces a message that goes by the pipeline */

_Static_assert(sizeof(mpi_layer_herald_t) <= MPI_LAYER_HERALD_BYTES,
               "a herald does not fit");

/* A herald that is looked at while it is being written does not pass */
static uint32_t mpi_layer_herald_check(const mpi_layer_herald_t *herald)
{
    return ucs_crc32(0, herald, offsetof(mpi_layer_herald_t, check));
}

void mpi_layer_herald_write(char *to, uint64_t tag)
{
    mpi_layer_herald_t herald;

    memset(&herald, 0, sizeof(herald));
    memcpy(herald.magic, mpi_layer.magic, sizeof(herald.magic));
    herald.tag    = tag;
    herald.source = (uint32_t)mpi_layer.rank;
    herald.check  = mpi_layer_herald_check(&herald);
    memset(to, 0, MPI_LAYER_HERALD_BYTES);
    memcpy(to, &herald, sizeof(herald));
}

int mpi_layer_herald_read(const char *from, mpi_layer_herald_t *herald)
{
    if (memcmp(from, mpi_layer.magic, sizeof(mpi_layer.magic))) {
        return 0;
    }
    memcpy(herald, from, sizeof(*herald));
    return (herald->check == mpi_layer_herald_check(herald)) &&
           (herald->source < (uint32_t)mpi_layer.size);
}

/* Messages to oneself stay with the MPI, and so do those of communicators that
 * are not known: all others of this length were sent by the layer */
int mpi_layer_herald_sender(const mpi_layer_comm_t *members,
                            const MPI_Status *status)
{
    int length, sender;

    if ((members == NULL) || (status->MPI_SOURCE < 0) ||
        (status->MPI_SOURCE >= members->size)) {
        return -1;
    }
    sender = members->world[status->MPI_SOURCE];
    PMPI_Get_count((MPI_Status*)status, MPI_BYTE, &length);
    return ((length == MPI_LAYER_HERALD_BYTES) && (sender != mpi_layer.rank)) ?
           sender : -1;
}

/* 17 bits of the communicator, 16 of the message's number there, 31 of the tag:
 * MPI's are not negative */
uint64_t mpi_layer_tag(const mpi_layer_comm_t *comm, uint32_t number, int tag)
{
    return ((uint64_t)comm->id << 47) | ((uint64_t)(number & 0xffff) << 31) |
           (uint64_t)tag;
}
