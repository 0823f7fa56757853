/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "layer.h"

#include <limits.h>
#include <stdlib.h>

/*
 * What MPI 4 has added: counts of 64 bits, and a receive and a send in one
 * request. Whatever receives may meet a herald, so all of them are here; a send
 * of more elements than an int counts stays with the MPI.
 */

#if MPI_VERSION >= 4

static int mpi_layer_large_fits(MPI_Count count)
{
    return (count >= 0) && (count <= INT_MAX);
}

/* --- Sends ---------------------------------------------------------------- */

#define MPI_LAYER_LARGE_SENDS(_name) \
    int mpi_layer_##_name##_c(const void *buffer, MPI_Count count, \
                              MPI_Datatype type, int dest, int tag, \
                              MPI_Comm comm) \
    { \
        if (mpi_layer_large_fits(count)) { \
            return mpi_layer_##_name(buffer, (int)count, type, dest, tag, \
                                     comm); \
        } \
        return REAL_MPI(_name##_c)(buffer, count, type, dest, tag, comm); \
    }

MPI_LAYER_LARGE_SENDS(Send)
MPI_LAYER_LARGE_SENDS(Rsend)
MPI_LAYER_LARGE_SENDS(Ssend)
MPI_LAYER_LARGE_SENDS(Bsend)

#define MPI_LAYER_LARGE_ISENDS(_name) \
    int mpi_layer_##_name##_c(const void *buffer, MPI_Count count, \
                              MPI_Datatype type, int dest, int tag, \
                              MPI_Comm comm, MPI_Request *request) \
    { \
        if (mpi_layer_large_fits(count)) { \
            return mpi_layer_##_name(buffer, (int)count, type, dest, tag, \
                                     comm, request); \
        } \
        return REAL_MPI(_name##_c)(buffer, count, type, dest, tag, comm, \
                                   request); \
    }

MPI_LAYER_LARGE_ISENDS(Isend)
MPI_LAYER_LARGE_ISENDS(Irsend)
MPI_LAYER_LARGE_ISENDS(Issend)
MPI_LAYER_LARGE_ISENDS(Ibsend)
MPI_LAYER_LARGE_ISENDS(Send_init)
MPI_LAYER_LARGE_ISENDS(Rsend_init)
MPI_LAYER_LARGE_ISENDS(Ssend_init)
MPI_LAYER_LARGE_ISENDS(Bsend_init)

/* --- Receives ------------------------------------------------------------- */

int mpi_layer_Recv_c(void *buffer, MPI_Count count, MPI_Datatype type,
                     int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Request request;
    int result;

    if (mpi_layer_large_fits(count)) {
        return mpi_layer_Recv(buffer, (int)count, type, source, tag, comm,
                              status);
    }
    result = mpi_layer_Irecv_c(buffer, count, type, source, tag, comm,
                               &request);
    return (result != MPI_SUCCESS) ? result : mpi_layer_Wait(&request, status);
}

int mpi_layer_Irecv_c(void *buffer, MPI_Count count, MPI_Datatype type,
                      int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    mpi_layer_view_t view;
    mpi_layer_op_t *op;
    int result;

    op = mpi_layer_receive_op(buffer, count, type, source, comm, &view);
    if (op == NULL) {
        return REAL_MPI(Irecv_c)(buffer, count, type, source, tag, comm,
                                 request);
    }
    result = REAL_MPI(Irecv)(view.buffer, view.count, view.type, source, tag,
                             comm, request);
    return mpi_layer_receive_begun(op, &view, result, *request);
}

int mpi_layer_Recv_init_c(void *buffer, MPI_Count count, MPI_Datatype type,
                          int source, int tag, MPI_Comm comm,
                          MPI_Request *request)
{
    mpi_layer_view_t view;
    mpi_layer_op_t *op;
    int result;

    op = mpi_layer_receive_op(buffer, count, type, source, comm, &view);
    if (op == NULL) {
        return REAL_MPI(Recv_init_c)(buffer, count, type, source, tag, comm,
                                     request);
    }
    op->persistent = 1;
    result = REAL_MPI(Recv_init)(view.buffer, view.count, view.type, source,
                                 tag, comm, request);
    return mpi_layer_receive_begun(op, &view, result, *request);
}

int mpi_layer_Mrecv_c(void *buffer, MPI_Count count, MPI_Datatype type,
                      MPI_Message *message, MPI_Status *status)
{
    MPI_Request request;
    int result;

    if (mpi_layer_large_fits(count)) {
        return mpi_layer_Mrecv(buffer, (int)count, type, message, status);
    }
    result = mpi_layer_Imrecv_c(buffer, count, type, message, &request);
    return (result != MPI_SUCCESS) ? result : mpi_layer_Wait(&request, status);
}

int mpi_layer_Imrecv_c(void *buffer, MPI_Count count, MPI_Datatype type,
                       MPI_Message *message, MPI_Request *request)
{
    mpi_layer_taken_t *taken = mpi_layer_taken_find(*message);

    return (taken == NULL) ?
           REAL_MPI(Imrecv_c)(buffer, count, type, message, request) :
           mpi_layer_taken_imrecv(taken, buffer, count, type, message, request);
}

/* --- Both ways ------------------------------------------------------------ */

int mpi_layer_Sendrecv_c(const void *send, MPI_Count send_count,
                         MPI_Datatype send_type, int dest, int send_tag,
                         void *receive, MPI_Count count, MPI_Datatype type,
                         int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Request requests[2];
    int result;

    if (mpi_layer_large_fits(send_count) && mpi_layer_large_fits(count)) {
        return mpi_layer_Sendrecv(send, (int)send_count, send_type, dest,
                                  send_tag, receive, (int)count, type, source,
                                  tag, comm, status);
    }
    result = mpi_layer_Irecv_c(receive, count, type, source, tag, comm,
                               &requests[0]);
    if (result == MPI_SUCCESS) {
        result = mpi_layer_Isend_c(send, send_count, send_type, dest, send_tag,
                                   comm, &requests[1]);
    }
    return (result != MPI_SUCCESS) ? result :
           mpi_layer_receive_both(requests, source, status);
}

int mpi_layer_Sendrecv_replace_c(void *buffer, MPI_Count count,
                                 MPI_Datatype type, int dest, int send_tag,
                                 int source, int tag, MPI_Comm comm,
                                 MPI_Status *status)
{
    return mpi_layer_receive_replaces(buffer, count, type, comm) ?
           mpi_layer_receive_replace(buffer, count, type, dest, send_tag,
                                     source, tag, comm, status) :
           REAL_MPI(Sendrecv_replace_c)(buffer, count, type, dest, send_tag,
                                        source, tag, comm, status);
}

/* A copy is sent and forgotten, so that the receive is a request of its own:
 * MPICH tells no length of what its MPI_Isendrecv has received */
int mpi_layer_Isendrecv(const void *send, int send_count,
                        MPI_Datatype send_type, int dest, int send_tag,
                        void *receive, int count, MPI_Datatype type, int source,
                        int tag, MPI_Comm comm, MPI_Request *request)
{
    int result;

    if ((mpi_layer_comm_get(comm) == NULL) ||
        (mpi_layer_receive_room(send_count, send_type) == MPI_LAYER_NO_ROOM)) {
        return REAL_MPI(Isendrecv)(send, send_count, send_type, dest, send_tag,
                                   receive, count, type, source, tag, comm,
                                   request);
    }
    result = mpi_layer_send_copy(send, send_count, send_type, dest, send_tag,
                                 comm);
    return (result != MPI_SUCCESS) ? result :
           mpi_layer_Irecv(receive, count, type, source, tag, comm, request);
}

int mpi_layer_Isendrecv_c(const void *send, MPI_Count send_count,
                          MPI_Datatype send_type, int dest, int send_tag,
                          void *receive, MPI_Count count, MPI_Datatype type,
                          int source, int tag, MPI_Comm comm,
                          MPI_Request *request)
{
    int result;

    if ((mpi_layer_comm_get(comm) == NULL) ||
        !mpi_layer_large_fits(send_count) ||
        (mpi_layer_receive_room(send_count, send_type) == MPI_LAYER_NO_ROOM)) {
        return REAL_MPI(Isendrecv_c)(send, send_count, send_type, dest,
                                     send_tag, receive, count, type, source,
                                     tag, comm, request);
    }
    result = mpi_layer_send_copy(send, (int)send_count, send_type, dest,
                                 send_tag, comm);
    return (result != MPI_SUCCESS) ? result :
           mpi_layer_Irecv_c(receive, count, type, source, tag, comm, request);
}

int mpi_layer_Isendrecv_replace(void *buffer, int count, MPI_Datatype type,
                                int dest, int send_tag, int source, int tag,
                                MPI_Comm comm, MPI_Request *request)
{
    return ((mpi_layer_comm_get(comm) != NULL) &&
            (mpi_layer_receive_room(count, type) != MPI_LAYER_NO_ROOM)) ?
           mpi_layer_Isendrecv(buffer, count, type, dest, send_tag, buffer,
                               count, type, source, tag, comm, request) :
           REAL_MPI(Isendrecv_replace)(buffer, count, type, dest, send_tag,
                                       source, tag, comm, request);
}

int mpi_layer_Isendrecv_replace_c(void *buffer, MPI_Count count,
                                  MPI_Datatype type, int dest, int send_tag,
                                  int source, int tag, MPI_Comm comm,
                                  MPI_Request *request)
{
    return mpi_layer_large_fits(count) ?
           mpi_layer_Isendrecv_replace(buffer, (int)count, type, dest, send_tag,
                                       source, tag, comm, request) :
           REAL_MPI(Isendrecv_replace_c)(buffer, count, type, dest, send_tag,
                                         source, tag, comm, request);
}

#endif
