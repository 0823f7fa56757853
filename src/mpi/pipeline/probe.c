/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "layer.h"

#include <stdlib.h>

/*
 * Probes. The MPI finds a herald, and the program is to be told of the length
 * of the message. That message's first part is in the pipeline already or comes
 * at once, for it leaves before the herald does; which one it is, is known by
 * communicator, tag and order, once all receives that have found their herald
 * have asked for their message.
 */

/* @return Nonzero if the message of a herald is known; taken, with `message` */
static int mpi_layer_probe_find(MPI_Comm comm, int sender,
                                const MPI_Status *status,
                                ucx_pipeline_message_h *message,
                                ucx_pipeline_status_t *found)
{
    uint64_t wanted = mpi_layer_tag(mpi_layer_comm_get(comm), 0,
                                    status->MPI_TAG);
    int is_found;

    pthread_mutex_lock(&mpi_layer.match_lock);
    mpi_layer_ops_ask();
    is_found = ucx_pipeline_mprobe(mpi_layer.pipeline, sender, wanted,
                                   ~MPI_LAYER_TAG_NUMBER_MASK, message, found);
    pthread_mutex_unlock(&mpi_layer.match_lock);
    if (!is_found) {
        mpi_layer_pump();
    }
    return is_found;
}

/* @return Nonzero if the status tells the length of the message */
static int mpi_layer_probe_settle(MPI_Comm comm, MPI_Status *status)
{
    int sender = mpi_layer_herald_sender(mpi_layer_comm_get(comm), status);
    ucx_pipeline_status_t found;

    if (sender < 0) {
        return 1;
    }
    if (!mpi_layer_probe_find(comm, sender, status, NULL, &found)) {
        return 0;
    }
    PMPI_Status_set_elements_x(status, MPI_BYTE, (MPI_Count)found.length);
    return 1;
}

int mpi_layer_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Status own;
    int result;

    if (!mpi_layer.on) {
        return REAL_MPI(Probe)(source, tag, comm, status);
    }
    if (status == MPI_STATUS_IGNORE) {
        status = &own;
    }
    do {
        result = REAL_MPI(Probe)(source, tag, comm, status);
    } while ((result == MPI_SUCCESS) && !mpi_layer_probe_settle(comm, status));
    return result;
}

int mpi_layer_Iprobe(int source, int tag, MPI_Comm comm, int *flag,
                     MPI_Status *status)
{
    MPI_Status own;
    int result;

    if (!mpi_layer.on) {
        return REAL_MPI(Iprobe)(source, tag, comm, flag, status);
    }
    if (status == MPI_STATUS_IGNORE) {
        status = &own;
    }
    result = REAL_MPI(Iprobe)(source, tag, comm, flag, status);
    if ((result == MPI_SUCCESS) && *flag) {
        *flag = mpi_layer_probe_settle(comm, status);
    }
    return result;
}

/* --- Matched probes ------------------------------------------------------- */

/* The message leaves the pipeline's queue as its herald has left the MPI's. The
 * program's handle is the herald's. */
static int mpi_layer_take(MPI_Comm comm, int sender, MPI_Message message,
                          MPI_Status *status)
{
    mpi_layer_taken_t *taken = malloc(sizeof(*taken));
    ucx_pipeline_status_t found;

    if (taken == NULL) {
        return mpi_layer_error(comm, MPI_ERR_NO_MEM);
    }
    taken->message = message;
    taken->comm    = comm;
    taken->sender  = sender;
    while (!mpi_layer_probe_find(comm, sender, status, &taken->moving,
                                 &found)) {
    }
    PMPI_Status_set_elements_x(status, MPI_BYTE, (MPI_Count)found.length);
    pthread_mutex_lock(&mpi_layer.lock);
    taken->next     = mpi_layer.taken;
    mpi_layer.taken = taken;
    pthread_mutex_unlock(&mpi_layer.lock);
    return MPI_SUCCESS;
}

/* What was taken for a matched probe, out of the list and the caller's now; NULL:
 * the message is the MPI's */
static mpi_layer_taken_t *mpi_layer_taken_find(MPI_Message message)
{
    mpi_layer_taken_t **place, *taken;

    if (!mpi_layer.on || (message == MPI_MESSAGE_NULL)) {
        return NULL;
    }
    pthread_mutex_lock(&mpi_layer.lock);
    place = &mpi_layer.taken;
    while ((*place != NULL) && ((*place)->message != message)) {
        place = &(*place)->next;
    }
    taken = *place;
    if (taken != NULL) {
        *place = taken->next;
    }
    pthread_mutex_unlock(&mpi_layer.lock);
    return taken;
}

static int mpi_layer_probe_taken(MPI_Comm comm, MPI_Message message,
                                 MPI_Status *status)
{
    int sender = mpi_layer_herald_sender(mpi_layer_comm_get(comm), status);

    return (sender < 0) ? MPI_SUCCESS :
                          mpi_layer_take(comm, sender, message, status);
}

int mpi_layer_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message,
                     MPI_Status *status)
{
    MPI_Status own;
    int result;

    if (status == MPI_STATUS_IGNORE) {
        status = &own;
    }
    result = REAL_MPI(Mprobe)(source, tag, comm, message, status);
    return (result == MPI_SUCCESS) ?
           mpi_layer_probe_taken(comm, *message, status) : result;
}

int mpi_layer_Improbe(int source, int tag, MPI_Comm comm, int *flag,
                      MPI_Message *message, MPI_Status *status)
{
    MPI_Status own;
    int result;

    if (status == MPI_STATUS_IGNORE) {
        status = &own;
    }
    result = REAL_MPI(Improbe)(source, tag, comm, flag, message, status);
    return ((result == MPI_SUCCESS) && *flag) ?
           mpi_layer_probe_taken(comm, *message, status) : result;
}

/* Only what was taken can be a herald: any other message was seen to be none */
static int mpi_layer_taken_mrecv(mpi_layer_taken_t *taken, void *buffer,
                                 MPI_Count count, MPI_Datatype type,
                                 MPI_Message *message, MPI_Status *status)
{
    mpi_layer_op_t *op = mpi_layer_receive_taken(buffer, count, type, taken);
    MPI_Status own;

    if (op == NULL) {
        return MPI_ERR_NO_MEM;
    }
    status = (status == MPI_STATUS_IGNORE) ? &own : status;
    REAL_MPI(Mrecv)(op->herald, MPI_LAYER_HERALD_BYTES, MPI_BYTE, message,
                    status);
    return mpi_layer_op_wait(op, status);
}

static int mpi_layer_taken_imrecv(mpi_layer_taken_t *taken, void *buffer,
                                  MPI_Count count, MPI_Datatype type,
                                  MPI_Message *message, MPI_Request *request)
{
    mpi_layer_op_t *op = mpi_layer_receive_taken(buffer, count, type, taken);

    if (op == NULL) {
        return MPI_ERR_NO_MEM;
    }
    REAL_MPI(Imrecv)(op->herald, MPI_LAYER_HERALD_BYTES, MPI_BYTE, message,
                     request);
    mpi_layer_op_add(op, *request);
    return MPI_SUCCESS;
}

#define MPI_LAYER_MRECVS(_name, _count_t, _end_t, _receive) \
    int mpi_layer_##_name(void *buffer, _count_t count, MPI_Datatype type, \
                          MPI_Message *message, _end_t *end) \
    { \
        mpi_layer_taken_t *taken = mpi_layer_taken_find(*message); \
        \
        return (taken == NULL) ? \
               REAL_MPI(_name)(buffer, count, type, message, end) : \
               _receive(taken, buffer, count, type, message, end); \
    }

MPI_LAYER_BOTH(MPI_LAYER_MRECVS, Mrecv, MPI_Status, mpi_layer_taken_mrecv)
MPI_LAYER_BOTH(MPI_LAYER_MRECVS, Imrecv, MPI_Request, mpi_layer_taken_imrecv)
