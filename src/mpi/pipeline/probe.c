/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "layer.h"

#include <stdlib.h>

/*
 * Probes. The MPI finds a herald, and the program is to be told of the length
 * of the message. That message's first part is in the pipeline already or comes
 * at once, for it leaves before the herald does; which one it is, is known by
 * communicator, tag and order, once all receives that have found their herald
 * have asked for their message.
 */

/* The sender as the pipeline knows it; -1: this is no herald */
static int mpi_layer_probe_sender(MPI_Comm comm, const MPI_Status *status,
                                  mpi_layer_comm_t **members_p)
{
    mpi_layer_comm_t *members = mpi_layer_comm_get(comm);
    int length;

    if ((members == NULL) || (status->MPI_SOURCE < 0) ||
        (status->MPI_SOURCE >= members->size) ||
        (members->world[status->MPI_SOURCE] == mpi_layer.rank)) {
        return -1;
    }
    PMPI_Get_count((MPI_Status*)status, MPI_BYTE, &length);
    *members_p = members;
    return (length == MPI_LAYER_HERALD_BYTES) ?
           members->world[status->MPI_SOURCE] : -1;
}

/* @return Nonzero if the status tells the length of the message */
static int mpi_layer_probe_settle(MPI_Comm comm, MPI_Status *status)
{
    mpi_layer_comm_t *members;
    ucx_pipeline_status_t found;
    int sender;

    sender = mpi_layer_probe_sender(comm, status, &members);
    if (sender < 0) {
        return 1;
    }
    mpi_layer_peek();
    if (!ucx_pipeline_probe(mpi_layer.pipeline, sender,
                            mpi_layer_tag(members, 0, status->MPI_TAG),
                            ~MPI_LAYER_TAG_NUMBER_MASK, &found)) {
        mpi_layer_pump();
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

/* The message is out of the MPI's queue: read it, send it to this process
 * itself and take it out there, so that the program has a handle again */
static int mpi_layer_take(MPI_Message *message, MPI_Status *status)
{
    mpi_layer_taken_t *taken = calloc(1, sizeof(*taken));
    mpi_layer_herald_t herald;
    int result;

    if (taken == NULL) {
        return MPI_ERR_NO_MEM;
    }
    taken->source = status->MPI_SOURCE;
    taken->tag    = status->MPI_TAG;
    result = REAL_MPI(Mrecv)(taken->bytes, MPI_LAYER_HERALD_BYTES, MPI_BYTE,
                             message, MPI_STATUS_IGNORE);
    if (result != MPI_SUCCESS) {
        free(taken);
        return result;
    }
    pthread_mutex_lock(&mpi_layer.send_lock);
    REAL_MPI(Isend)(taken->bytes, MPI_LAYER_HERALD_BYTES, MPI_BYTE, 0, 1,
                    mpi_layer.alone, &taken->request);
    result = REAL_MPI(Mprobe)(0, 1, mpi_layer.alone, message,
                              MPI_STATUS_IGNORE);
    pthread_mutex_unlock(&mpi_layer.send_lock);
    if (mpi_layer_herald_read(taken->bytes, &herald)) {
        PMPI_Status_set_elements_x(status, MPI_BYTE, (MPI_Count)herald.length);
    }
    taken->message = *message;
    pthread_mutex_lock(&mpi_layer.lock);
    taken->next     = mpi_layer.taken;
    mpi_layer.taken = taken;
    pthread_mutex_unlock(&mpi_layer.lock);
    return result;
}

/* Out of the list */
mpi_layer_taken_t *mpi_layer_taken_find(MPI_Message message)
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

void mpi_layer_taken_end(mpi_layer_taken_t *taken, MPI_Status *status)
{
    REAL_MPI(Wait)(&taken->request, MPI_STATUS_IGNORE);
    if (status != MPI_STATUS_IGNORE) {
        status->MPI_SOURCE = taken->source;
        status->MPI_TAG    = taken->tag;
    }
    free(taken);
}

static int mpi_layer_probe_taken(MPI_Comm comm, MPI_Message *message,
                                 MPI_Status *status, int result)
{
    mpi_layer_comm_t *members;

    if ((result == MPI_SUCCESS) &&
        (mpi_layer_probe_sender(comm, status, &members) >= 0)) {
        result = mpi_layer_take(message, status);
        if (result != MPI_SUCCESS) {
            result = mpi_layer_error(comm, result);
        }
    }
    return result;
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
    return mpi_layer_probe_taken(comm, message, status, result);
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
    return *flag ? mpi_layer_probe_taken(comm, message, status, result) :
                   result;
}

/* Only what was taken can be a herald: any other message was seen to be none */
int mpi_layer_Mrecv(void *buffer, int count, MPI_Datatype type,
                    MPI_Message *message, MPI_Status *status)
{
    mpi_layer_taken_t *taken = mpi_layer_taken_find(*message);
    MPI_Status own;
    int result;

    if (taken == NULL) {
        return REAL_MPI(Mrecv)(buffer, count, type, message, status);
    }
    if (status == MPI_STATUS_IGNORE) {
        status = &own;
    }
    result = REAL_MPI(Mrecv)(buffer, count, type, message, status);
    mpi_layer_taken_end(taken, status);
    return (result != MPI_SUCCESS) ? result :
           mpi_layer_receive_settle(buffer, count, type, MPI_COMM_WORLD,
                                    status);
}

int mpi_layer_Imrecv(void *buffer, int count, MPI_Datatype type,
                     MPI_Message *message, MPI_Request *request)
{
    mpi_layer_taken_t *taken = mpi_layer_taken_find(*message);
    mpi_layer_op_t *op       = NULL;
    int result;

    if (taken != NULL) {
        op = mpi_layer_receive_op(buffer, count, type, taken->source,
                                  MPI_COMM_WORLD);
    }
    if (op == NULL) {
        return REAL_MPI(Imrecv)(buffer, count, type, message, request);
    }
    op->taken = taken;
    result    = REAL_MPI(Imrecv)(MPI_LAYER_RECEIVES(op, buffer, count, type),
                                 message, request);
    return mpi_layer_receive_begun(op, result, *request);
}
