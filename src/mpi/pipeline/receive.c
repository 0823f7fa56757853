/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "layer.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/*
 * Receives. Any with room for a herald may find one. One that blocks looks
 * when the MPI is done; one that does not has an operation, as the message is
 * to begin while the program stands in some other function.
 */

size_t mpi_layer_receive_room(MPI_Count count, MPI_Datatype type)
{
    int size;

    if ((count <= 0) || (type == MPI_DATATYPE_NULL) ||
        (PMPI_Type_size(type, &size) != MPI_SUCCESS) || (size <= 0)) {
        return 0;
    }
    return (size_t)size * count;
}

int mpi_layer_receive_may_take(size_t room, int source, MPI_Comm comm)
{
    return mpi_layer.on && (room >= MPI_LAYER_HERALD_BYTES) &&
           (source != MPI_PROC_NULL) && (comm != MPI_COMM_NULL);
}

static char *mpi_layer_receive_start(void *buffer, MPI_Datatype type)
{
    MPI_Aint lower, extent;

    PMPI_Type_get_true_extent(type, &lower, &extent);
    return (char*)buffer + lower;
}

/* --- Those that block ----------------------------------------------------- */

/* The bytes that the MPI has put where the type says, which are as many as a
 * herald has. @return Nonzero if they are one */
static int mpi_layer_receive_gather(void *buffer, MPI_Count count,
                                    MPI_Datatype type,
                                    mpi_layer_herald_t *herald)
{
    int size, packed, result, position = 0;
    char *bytes;

    if (mpi_layer_type_is_contiguous(type)) {
        return mpi_layer_herald_read(mpi_layer_receive_start(buffer, type),
                                     herald);
    }
    PMPI_Type_size(type, &size);
    if (count > (MPI_LAYER_HERALD_BYTES + size - 1) / size) {
        count = (MPI_LAYER_HERALD_BYTES + size - 1) / size;
    }
    PMPI_Pack_size((int)count, type, MPI_COMM_SELF, &packed);
    bytes = malloc(packed);
    if (bytes == NULL) {
        return 0;
    }
    result = (PMPI_Pack(buffer, (int)count, type, bytes, packed, &position,
                        MPI_COMM_SELF) == MPI_SUCCESS) &&
             mpi_layer_herald_read(bytes, herald);
    free(bytes);
    return result;
}

static int mpi_layer_receive_long(mpi_layer_op_t *op,
                                  const mpi_layer_herald_t *herald,
                                  MPI_Status *status)
{
    int error;

    pthread_mutex_lock(&mpi_layer.lock);
    op->state = MPI_LAYER_POSTED;
    mpi_layer_op_receive(op, herald);
    pthread_mutex_unlock(&mpi_layer.lock);
    while (!mpi_layer_op_is_ready(op)) {
        mpi_layer_pump();
    }
    mpi_layer_op_fix_status(op, status);
    error = op->error;
    return error;
}

/* What the MPI has received: if it is a herald, receive its message. The status
 * is not to be ignored. */
int mpi_layer_receive_settle(void *buffer, MPI_Count count, MPI_Datatype type,
                             MPI_Comm comm, MPI_Status *status)
{
    mpi_layer_herald_t herald;
    mpi_layer_op_t *op;
    int length, error;

    PMPI_Get_count(status, MPI_BYTE, &length);
    if ((length != MPI_LAYER_HERALD_BYTES) ||
        !mpi_layer_receive_gather(buffer, count, type, &herald)) {
        return MPI_SUCCESS;
    }
    op = mpi_layer_op_new(comm);
    if (op == NULL) {
        return mpi_layer_error(comm, MPI_ERR_NO_MEM);
    }
    op->room = mpi_layer_receive_room(count, type);
    if (mpi_layer_type_is_contiguous(type)) {
        op->bytes = mpi_layer_receive_start(buffer, type);
    } else if ((count > INT_MAX) ||
               !mpi_layer_op_stand_in(op, buffer, (int)count, type)) {
        mpi_layer_op_delete(op);
        return mpi_layer_error(comm, MPI_ERR_NO_MEM);
    }
    error = mpi_layer_receive_long(op, &herald, status);
    mpi_layer_op_delete(op);
    return (error == MPI_SUCCESS) ? MPI_SUCCESS : mpi_layer_error(comm, error);
}

/* With several threads another one may probe meanwhile, and must not take this
 * one's message for what it sees: an operation is found by its look around */
static int mpi_layer_receive_beside_threads(void *buffer, int count,
                                            MPI_Datatype type, int source,
                                            int tag, MPI_Comm comm,
                                            MPI_Status *status)
{
    MPI_Request request;
    int result;

    result = mpi_layer_Irecv(buffer, count, type, source, tag, comm, &request);
    return (result != MPI_SUCCESS) ? result :
           mpi_layer_Wait(&request, status);
}

int mpi_layer_Recv(void *buffer, int count, MPI_Datatype type, int source,
                   int tag, MPI_Comm comm, MPI_Status *status)
{
    size_t room = mpi_layer_receive_room(count, type);
    MPI_Status own;
    int result;

    if (!mpi_layer_receive_may_take(room, source, comm)) {
        return REAL_MPI(Recv)(buffer, count, type, source, tag, comm, status);
    }
    if (mpi_layer.multiple) {
        return mpi_layer_receive_beside_threads(buffer, count, type, source,
                                                tag, comm, status);
    }
    if (status == MPI_STATUS_IGNORE) {
        status = &own;
    }
    result = REAL_MPI(Recv)(buffer, count, type, source, tag, comm, status);
    return (result != MPI_SUCCESS) ? result :
           mpi_layer_receive_settle(buffer, count, type, comm, status);
}

/* --- Those that do not ---------------------------------------------------- */

/* @return NULL: the MPI's alone */
mpi_layer_op_t *mpi_layer_receive_op(void *buffer, MPI_Count count,
                                     MPI_Datatype type, int source,
                                     MPI_Comm comm)
{
    size_t room = mpi_layer_receive_room(count, type);
    mpi_layer_op_t *op;

    if (!mpi_layer_receive_may_take(room, source, comm)) {
        return NULL;
    }
    op = mpi_layer_op_new(comm);
    if (op == NULL) {
        return NULL;
    }
    op->room = room;
    if (mpi_layer_type_is_contiguous(type)) {
        op->bytes = mpi_layer_receive_start(buffer, type);
    } else if ((room > INT_MAX) ||
               !mpi_layer_op_stand_in(op, buffer, (int)count, type)) {
        mpi_layer_op_delete(op);
        return NULL;
    }
    return op;
}

int mpi_layer_receive_begun(mpi_layer_op_t *op, int result,
                            MPI_Request request)
{
    if (result != MPI_SUCCESS) {
        mpi_layer_op_delete(op);
    } else {
        mpi_layer_op_add(op, request);
        if (!op->persistent) {
            mpi_layer_op_post(op);
        }
    }
    return result;
}

int mpi_layer_Irecv(void *buffer, int count, MPI_Datatype type, int source,
                    int tag, MPI_Comm comm, MPI_Request *request)
{
    mpi_layer_op_t *op = mpi_layer_receive_op(buffer, count, type, source,
                                              comm);
    int result;

    if (op == NULL) {
        return REAL_MPI(Irecv)(buffer, count, type, source, tag, comm, request);
    }
    result = REAL_MPI(Irecv)(MPI_LAYER_RECEIVES(op, buffer, count, type),
                             source, tag, comm, request);
    return mpi_layer_receive_begun(op, result, *request);
}

int mpi_layer_Recv_init(void *buffer, int count, MPI_Datatype type, int source,
                        int tag, MPI_Comm comm, MPI_Request *request)
{
    mpi_layer_op_t *op = mpi_layer_receive_op(buffer, count, type, source,
                                              comm);
    int result;

    if (op == NULL) {
        return REAL_MPI(Recv_init)(buffer, count, type, source, tag, comm,
                                   request);
    }
    op->persistent = 1;
    result = REAL_MPI(Recv_init)(MPI_LAYER_RECEIVES(op, buffer, count, type),
                                 source, tag, comm, request);
    return mpi_layer_receive_begun(op, result, *request);
}

int mpi_layer_Start(MPI_Request *request)
{
    mpi_layer_op_t *op = mpi_layer_op_find(*request);
    int result         = REAL_MPI(Start)(request);

    if ((result == MPI_SUCCESS) && (op != NULL)) {
        mpi_layer_op_post(op);
    }
    return result;
}

int mpi_layer_Startall(int count, MPI_Request requests[])
{
    int result = REAL_MPI(Startall)(count, requests);
    mpi_layer_op_t *op;
    int i;

    for (i = 0; (result == MPI_SUCCESS) && (i < count); ++i) {
        op = mpi_layer_op_find(requests[i]);
        if (op != NULL) {
            mpi_layer_op_post(op);
        }
    }
    return result;
}

/* --- Both ways ------------------------------------------------------------ */

static void mpi_layer_receive_nobody(MPI_Status *status)
{
    status->MPI_SOURCE = MPI_PROC_NULL; /* MPICH's Waitall does not say so */
    status->MPI_TAG    = MPI_ANY_TAG;
    PMPI_Status_set_elements(status, MPI_BYTE, 0);
}

/* Wait for a receive and a send, whose status is nobody's */
int mpi_layer_receive_both(MPI_Request requests[2], int source,
                           MPI_Status *status)
{
    MPI_Status statuses[2];
    int result = mpi_layer_Waitall(2, requests, statuses);

    if (result == MPI_ERR_IN_STATUS) {
        result = (statuses[0].MPI_ERROR != MPI_SUCCESS) ?
                 statuses[0].MPI_ERROR : statuses[1].MPI_ERROR;
    }
    if (source == MPI_PROC_NULL) {
        mpi_layer_receive_nobody(&statuses[0]);
    }
    if (status != MPI_STATUS_IGNORE) {
        *status = statuses[0];
    }
    return result;
}

int mpi_layer_Sendrecv(const void *send, int send_count, MPI_Datatype send_type,
                       int dest, int send_tag, void *receive, int count,
                       MPI_Datatype type, int source, int tag, MPI_Comm comm,
                       MPI_Status *status)
{
    MPI_Request requests[2];
    MPI_Status own;
    int result;

    if (!mpi_layer.on) {
        return REAL_MPI(Sendrecv)(send, send_count, send_type, dest, send_tag,
                                  receive, count, type, source, tag, comm,
                                  status);
    }
    if (!mpi_layer.multiple && !mpi_layer_send_takes(send_count, send_type,
                                                     dest, send_tag, comm)) {
        status = (status == MPI_STATUS_IGNORE) ? &own : status;
        result = REAL_MPI(Sendrecv)(send, send_count, send_type, dest, send_tag,
                                    receive, count, type, source, tag, comm,
                                    status);
        if (source == MPI_PROC_NULL) {
            mpi_layer_receive_nobody(status);
        } else if (result == MPI_SUCCESS) {
            result = mpi_layer_receive_settle(receive, count, type, comm,
                                              status);
        }
        return result;
    }
    result = mpi_layer_Irecv(receive, count, type, source, tag, comm,
                             &requests[0]);
    if (result == MPI_SUCCESS) {
        result = mpi_layer_Isend(send, send_count, send_type, dest, send_tag,
                                 comm, &requests[1]);
    }
    return (result != MPI_SUCCESS) ? result :
           mpi_layer_receive_both(requests, source, status);
}

int mpi_layer_Sendrecv_replace(void *buffer, int count, MPI_Datatype type,
                               int dest, int send_tag, int source, int tag,
                               MPI_Comm comm, MPI_Status *status)
{
    size_t room = mpi_layer_receive_room(count, type);
    int result, packed, position = 0;
    char *bytes;

    if (!mpi_layer.on || (room < MPI_LAYER_HERALD_BYTES) || (room > INT_MAX)) {
        return REAL_MPI(Sendrecv_replace)(buffer, count, type, dest, send_tag,
                                          source, tag, comm, status);
    }
    PMPI_Pack_size(count, type, comm, &packed);
    bytes = malloc(packed);
    if (bytes == NULL) {
        return mpi_layer_error(comm, MPI_ERR_NO_MEM);
    }
    result = PMPI_Pack(buffer, count, type, bytes, packed, &position, comm);
    if (result == MPI_SUCCESS) {
        result = mpi_layer_Sendrecv(bytes, position, MPI_BYTE, dest, send_tag,
                                    buffer, count, type, source, tag, comm,
                                    status);
    }
    free(bytes);
    return result;
}
