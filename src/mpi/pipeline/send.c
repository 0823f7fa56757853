/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "layer.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * Sends. What is long and lies in one piece goes by the pipeline, and so does
 * what is as long as a herald, whatever its type: a probe must be able to tell
 * a herald by its length. All else goes by the MPI as it came.
 *
 * The request that the program gets is a generalized one: the MPIs hand out
 * one and the same handle for all sends that were over at once.
 */

int mpi_layer_send_takes(MPI_Count count, MPI_Datatype type, int dest, int tag,
                         MPI_Comm comm)
{
    const mpi_layer_comm_t *members;
    size_t length;

    if (!mpi_layer.on || (dest < 0) || (tag < 0) || (comm == MPI_COMM_NULL)) {
        return 0;
    }
    length = mpi_layer_receive_room(count, type);
    if ((length == MPI_LAYER_NO_ROOM) ||
        ((length < mpi_layer.min_bytes) && (length != MPI_LAYER_HERALD_BYTES))) {
        return 0;
    }
    members = mpi_layer_comm_get(comm);
    return (members != NULL) && (dest < members->size) &&
           (members->world[dest] != mpi_layer.rank) &&
           ((length == MPI_LAYER_HERALD_BYTES) ||
            mpi_layer_type_is_contiguous(type));
}

/* Buffered mode copies, so the layer takes nothing but what it must */
static int mpi_layer_bsend_takes(MPI_Count count, MPI_Datatype type, int dest,
                                 int tag, MPI_Comm comm)
{
    return mpi_layer.on &&
           (mpi_layer_receive_room(count, type) == MPI_LAYER_HERALD_BYTES) &&
           mpi_layer_send_takes(count, type, dest, tag, comm);
}

/* The bytes of the message, or a copy of them */
static char *mpi_layer_send_bytes(mpi_layer_op_t *op, const void *buffer,
                                  MPI_Count count, MPI_Datatype type, int copy)
{
    if (copy || !mpi_layer_type_is_contiguous(type)) {
        op->bytes = malloc(op->room + 1);
        op->owns  = 1;
        if ((op->bytes == NULL) ||
            (mpi_layer_type_gather(buffer, count, type, op->bytes, op->room) !=
             MPI_SUCCESS)) {
            return NULL;
        }
    } else {
        op->bytes = mpi_layer_type_start((void*)buffer, type);
    }
    return op->bytes;
}

/* Message and herald leave in one order to the eyes of all receivers. Of an error an
 * error handler has been told. */
static int mpi_layer_send_both(mpi_layer_op_t *op, int dest, int tag,
                               mpi_layer_isend_func_t isend)
{
    mpi_layer_comm_t *members = op->members;
    int result                = MPI_SUCCESS;
    ucs_status_t status;
    uint64_t number;

    op->moving = NULL;
    pthread_mutex_lock(&mpi_layer.send_lock);
    /* relaxed: send_lock is held */
    number = mpi_layer_tag(members, ucs_add_relaxed(&members->next, 1), tag);
    mpi_layer_herald_write(op->herald, number);
    status = ucx_pipeline_send(mpi_layer.pipeline, members->world[dest], number,
                               op->bytes, op->room, &op->moving);
    if (status == UCS_OK) {
        result = op->persistent ?
                 REAL_MPI(Start)(&op->herald_request) :
                 isend(op->herald, MPI_LAYER_HERALD_BYTES, MPI_BYTE, dest, tag,
                       op->comm, &op->herald_request);
    }
    pthread_mutex_unlock(&mpi_layer.send_lock);
    if (status != UCS_OK) {
        fprintf(stderr, MPI_PIPELINE_LINE "rank %d: a message of %zu bytes to "
                        "rank %d of MPI_COMM_WORLD cannot be sent: %s\n",
                mpi_layer.rank, op->room, members->world[dest],
                ucs_status_string(status));
        result = mpi_layer_error(op->comm, MPI_ERR_OTHER);
    }
    return result;
}

/* The MPI carries what the layer has copied and does not take */
static int mpi_layer_send_plain(mpi_layer_op_t *op, int dest, int tag)
{
    mpi_layer_view_t view;
    int result;

    result = mpi_layer_view_begin(&view, NULL, 0, op->bytes, op->room);
    if (result == MPI_SUCCESS) {
        result = REAL_MPI(Isend)(view.buffer, view.count, view.type, dest, tag,
                                 op->comm, &op->herald_request);
        mpi_layer_view_end(&view);
    }
    return result;
}

/* What is taken must go this way, so that a failure is the caller's */
static int mpi_layer_send_begin(const void *buffer, MPI_Count count,
                                MPI_Datatype type, int dest, int tag,
                                MPI_Comm comm, mpi_layer_isend_func_t isend,
                                int copy, mpi_layer_op_t **op_p)
{
    mpi_layer_op_t *op = mpi_layer_op_new(comm, mpi_layer_comm_get(comm));
    int result;

    if (op == NULL) {
        return mpi_layer_error(comm, MPI_ERR_NO_MEM);
    }
    op->is_send = 1;
    op->room    = mpi_layer_receive_room(count, type);
    if (mpi_layer_send_bytes(op, buffer, count, type, copy) == NULL) {
        mpi_layer_op_delete(op);
        return mpi_layer_error(comm, MPI_ERR_NO_MEM);
    }
    result = (!copy || mpi_layer_send_takes(count, type, dest, tag, comm)) ?
             mpi_layer_send_both(op, dest, tag, isend) :
             mpi_layer_send_plain(op, dest, tag);
    if (result != MPI_SUCCESS) {
        if (op->moving == NULL) { /* else the pipeline reads what is there */
            mpi_layer_op_delete(op);
        }
        return result;
    }
    op->state = MPI_LAYER_MOVING;
    mpi_layer_op_set_busy(op, 1);
    *op_p = op;
    return MPI_SUCCESS;
}

/* Those that block, and (below) those that do not, by one signature for each */
static int mpi_layer_send_wait(const void *buffer, MPI_Count count,
                               MPI_Datatype type, int dest, int tag,
                               MPI_Comm comm, mpi_layer_isend_func_t isend)
{
    mpi_layer_op_t *op;
    int result;

    result = mpi_layer_send_begin(buffer, count, type, dest, tag, comm, isend,
                                  0, &op);
    return (result != MPI_SUCCESS) ? result :
           mpi_layer_op_wait(op, MPI_STATUS_IGNORE);
}

static int mpi_layer_send_query(void *arg, MPI_Status *status)
{
    PMPI_Status_set_elements(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG    = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

static int mpi_layer_send_free(void *arg)
{
    /* The operation ends when the layer has seen the request go */
    return MPI_SUCCESS;
}

static int mpi_layer_send_cancel(void *arg, int complete)
{
    return MPI_SUCCESS;
}

static int mpi_layer_send_request(const void *buffer, MPI_Count count,
                                  MPI_Datatype type, int dest, int tag,
                                  MPI_Comm comm, mpi_layer_isend_func_t isend,
                                  MPI_Request *request, int copy)
{
    mpi_layer_op_t *op;
    int result;

    result = mpi_layer_send_begin(buffer, count, type, dest, tag, comm, isend,
                                  copy, &op);
    if (result != MPI_SUCCESS) {
        return result;
    }
    result = PMPI_Grequest_start(mpi_layer_send_query, mpi_layer_send_free,
                                 mpi_layer_send_cancel, op, request);
    if (result != MPI_SUCCESS) {
        return result; /* the message is on its way all the same */
    }
    mpi_layer_op_add(op, *request);
    return MPI_SUCCESS;
}

/* By the pipeline or by the MPI */
int mpi_layer_send_copy(const void *buffer, MPI_Count count, MPI_Datatype type,
                        int dest, int tag, MPI_Comm comm,
                        mpi_layer_isend_func_t isend)
{
    MPI_Request request;
    int result;

    result = mpi_layer_send_request(buffer, count, type, dest, tag, comm, isend,
                                    &request, 1);
    return (result != MPI_SUCCESS) ? result : mpi_layer_Request_free(&request);
}

/* --- Persistent sends ----------------------------------------------------- */

/* The request that the program gets is of a send to nobody. The herald's is persistent
 * as well, so that the MPI keeps a communicator that the program frees. */
static int mpi_layer_send_init(const void *buffer, MPI_Count count,
                               MPI_Datatype type, int dest, int tag,
                               MPI_Comm comm, mpi_layer_isend_func_t init,
                               MPI_Request *request)
{
    mpi_layer_op_t *op = mpi_layer_op_new(comm, mpi_layer_comm_get(comm));
    int result;

    if (op == NULL) {
        return mpi_layer_error(comm, MPI_ERR_NO_MEM);
    }
    op->is_send    = 1;
    op->persistent = 1;
    op->room       = mpi_layer_receive_room(count, type);
    op->dest       = dest;
    op->tag        = tag;
    if (mpi_layer_type_is_contiguous(type)) {
        op->bytes = mpi_layer_type_start((void*)buffer, type);
    } else if (!mpi_layer_op_stand_in(op, (void*)buffer, count, type)) {
        mpi_layer_op_delete(op);
        return mpi_layer_error(comm, MPI_ERR_NO_MEM);
    }
    result = init(op->herald, MPI_LAYER_HERALD_BYTES, MPI_BYTE, dest, tag, comm,
                  &op->herald_request);
    if (result == MPI_SUCCESS) {
        result = REAL_MPI(Send_init)(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, comm,
                                     request);
    }
    if (result != MPI_SUCCESS) {
        mpi_layer_op_delete(op);
        return result;
    }
    mpi_layer_op_add(op, *request);
    return MPI_SUCCESS;
}

int mpi_layer_send_start(mpi_layer_op_t *op)
{
    int result = MPI_SUCCESS;

    if (op->type != MPI_DATATYPE_NULL) {
        result = mpi_layer_type_gather(op->buffer, op->count, op->type,
                                       op->bytes, op->room);
    }
    if (result == MPI_SUCCESS) {
        result = mpi_layer_send_both(op, op->dest, op->tag, NULL);
    }
    if (result == MPI_SUCCESS) {
        op->state = MPI_LAYER_MOVING;
        mpi_layer_op_set_busy(op, 1);
    }
    return result;
}

/* --- What programs call --------------------------------------------------- */

#define MPI_LAYER_SENDS(_name, _count_t, _takes, _send, _isend) \
    int mpi_layer_##_name(const void *buffer, _count_t count, \
                          MPI_Datatype type, int dest, int tag, MPI_Comm comm) \
    { \
        return _takes(count, type, dest, tag, comm) ? \
               _send(buffer, count, type, dest, tag, comm, \
                     REAL_MPI(_isend)) : \
               REAL_MPI(_name)(buffer, count, type, dest, tag, comm); \
    }

#define MPI_LAYER_ISENDS(_name, _count_t, _takes, _send, _isend, ...) \
    int mpi_layer_##_name(const void *buffer, _count_t count, \
                          MPI_Datatype type, int dest, int tag, MPI_Comm comm, \
                          MPI_Request *request) \
    { \
        return _takes(count, type, dest, tag, comm) ? \
               _send(buffer, count, type, dest, tag, comm, REAL_MPI(_isend), \
                     request, ##__VA_ARGS__) : \
               REAL_MPI(_name)(buffer, count, type, dest, tag, comm, request); \
    }

/* Ready mode: where a receive is posted, standard mode does as well */
MPI_LAYER_BOTH(MPI_LAYER_SENDS, Send, mpi_layer_send_takes,
               mpi_layer_send_wait, Isend)
MPI_LAYER_BOTH(MPI_LAYER_SENDS, Rsend, mpi_layer_send_takes,
               mpi_layer_send_wait, Isend)
MPI_LAYER_BOTH(MPI_LAYER_SENDS, Ssend, mpi_layer_send_takes,
               mpi_layer_send_wait, Issend)
MPI_LAYER_BOTH(MPI_LAYER_SENDS, Bsend, mpi_layer_bsend_takes,
               mpi_layer_send_copy, Isend)

MPI_LAYER_BOTH(MPI_LAYER_ISENDS, Isend, mpi_layer_send_takes,
               mpi_layer_send_request, Isend, 0)
MPI_LAYER_BOTH(MPI_LAYER_ISENDS, Irsend, mpi_layer_send_takes,
               mpi_layer_send_request, Isend, 0)
MPI_LAYER_BOTH(MPI_LAYER_ISENDS, Issend, mpi_layer_send_takes,
               mpi_layer_send_request, Issend, 0)
MPI_LAYER_BOTH(MPI_LAYER_ISENDS, Ibsend, mpi_layer_bsend_takes,
               mpi_layer_send_request, Isend, 1)

MPI_LAYER_BOTH(MPI_LAYER_ISENDS, Send_init, mpi_layer_send_takes,
               mpi_layer_send_init, Send_init)
MPI_LAYER_BOTH(MPI_LAYER_ISENDS, Rsend_init, mpi_layer_send_takes,
               mpi_layer_send_init, Send_init)
MPI_LAYER_BOTH(MPI_LAYER_ISENDS, Ssend_init, mpi_layer_send_takes,
               mpi_layer_send_init, Ssend_init)
MPI_LAYER_BOTH(MPI_LAYER_ISENDS, Bsend_init, mpi_layer_bsend_takes,
               mpi_layer_send_init, Send_init)
