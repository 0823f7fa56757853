/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "layer.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/*
 * Receives. Any may find a herald. One that blocks looks when the MPI is done;
 * one that does not has an operation, as a long message is to begin while the
 * program stands in some other function. What the MPI receives to is
 *  - a landing buffer of the layer's, where the program's has no room for a
 *    herald;
 *  - a landing buffer and behind it the program's from a herald's length on,
 *    where a long message fits: its herald is seen there before the MPI is
 *    asked;
 *  - bytes that stand in for a type with gaps: a landing buffer as well;
 *  - the buffer, for all between: the herald is told by its length.
 */

size_t mpi_layer_receive_room(MPI_Count count, MPI_Datatype type)
{
    MPI_Count size;

    if ((count < 0) || (type == MPI_DATATYPE_NULL) ||
        (PMPI_Type_size_x(type, &size) != MPI_SUCCESS) || (size < 0)) {
        return MPI_LAYER_NO_ROOM;
    }
    return (size_t)size * (size_t)count;
}

/* Where there is no buffer, the MPI has a word for it; a type may have absolute
 * addresses */
static int mpi_layer_receive_may_take(const void *buffer, size_t room,
                                      MPI_Datatype type, int source,
                                      MPI_Comm comm)
{
    return mpi_layer.on && (room != MPI_LAYER_NO_ROOM) &&
           (source != MPI_PROC_NULL) && (mpi_layer_comm_get(comm) != NULL) &&
           ((buffer != NULL) || (room == 0) ||
            !mpi_layer_type_is_contiguous(type));
}

/* Where the bytes of an operation go. @return Zero for want of memory */
static int mpi_layer_receive_aim(mpi_layer_op_t *op, void *buffer,
                                 MPI_Count count, MPI_Datatype type)
{
    op->room = mpi_layer_receive_room(count, type);
    if ((op->room > 0) && !mpi_layer_type_is_contiguous(type)) {
        return mpi_layer_op_stand_in(op, buffer, count, type);
    }
    op->bytes = (op->room > 0) ? mpi_layer_type_start(buffer, type) : NULL;
    return 1;
}

static int mpi_layer_receive_show(mpi_layer_op_t *op, mpi_layer_view_t *view)
{
    if (op->room < MPI_LAYER_HERALD_BYTES) {
        op->landing = op->herald;
        return mpi_layer_view_begin(view, NULL, 0, op->herald,
                                    MPI_LAYER_HERALD_BYTES);
    } else if (op->owns) {
        op->landing = op->bytes;
    } else if (op->room >= mpi_layer.min_bytes) {
        op->landing = op->herald;
        return mpi_layer_view_begin(view, op->herald, MPI_LAYER_HERALD_BYTES,
                                    op->bytes + MPI_LAYER_HERALD_BYTES,
                                    op->room - MPI_LAYER_HERALD_BYTES);
    }
    return mpi_layer_view_begin(view, NULL, 0, op->bytes, op->room);
}

/* A herald is no whole number of a type's elements. Where these have gaps, MPICH takes it
 * for a message that was cut off. */
static int mpi_layer_receive_stands_in(size_t room, MPI_Datatype type)
{
    return (room >= MPI_LAYER_HERALD_BYTES) &&
           !mpi_layer_type_is_contiguous(type);
}

/* By the function that the count needs; there is none where it cannot come */
#if MPI_VERSION >= 4
#  define MPI_LAYER_BY_COUNT(_name, _count, ...) \
    (((_count) > INT_MAX) ? mpi_layer_##_name##_c(__VA_ARGS__) : \
                            mpi_layer_##_name(__VA_ARGS__))
#else
#  define MPI_LAYER_BY_COUNT(_name, _count, ...) mpi_layer_##_name(__VA_ARGS__)
#endif

static int mpi_layer_receive_begin(void *buffer, MPI_Count count,
                                   MPI_Datatype type, int source, int tag,
                                   MPI_Comm comm, MPI_Request *request)
{
    return MPI_LAYER_BY_COUNT(Irecv, count, buffer, count, type, source, tag,
                              comm, request);
}

/* --- Those that block ----------------------------------------------------- */

/* An ordinary message is in a landing buffer */
static int mpi_layer_receive_place(void *buffer, MPI_Count count,
                                   MPI_Datatype type, MPI_Comm comm,
                                   const char *landing,
                                   const MPI_Status *status)
{
    size_t room = mpi_layer_receive_room(count, type), fits;
    int result  = MPI_SUCCESS, length;

    PMPI_Get_count((MPI_Status*)status, MPI_BYTE, &length);
    fits = ((size_t)length < room) ? (size_t)length : room;
    if (fits == 0) {
        ; /* there may be no buffer */
    } else if (mpi_layer_type_is_contiguous(type)) {
        memcpy(mpi_layer_type_start(buffer, type), landing, fits);
    } else {
        result = mpi_layer_type_spread(landing, fits, buffer, count, type);
    }
    if ((size_t)length > room) {
        result = mpi_layer_error(comm, MPI_ERR_TRUNCATE);
    }
    return result;
}

/* The MPI has received, to `landing` if there was no room for a herald. If it
 * is one, receive its message. */
static int mpi_layer_receive_settle(void *buffer, MPI_Count count,
                                    MPI_Datatype type, MPI_Comm comm,
                                    const char *landing, MPI_Status *status)
{
    mpi_layer_comm_t *members = mpi_layer_comm_get(comm);
    int sender                = mpi_layer_herald_sender(members, status);
    mpi_layer_op_t *op;

    if (sender < 0) {
        return (landing == NULL) ? MPI_SUCCESS :
               mpi_layer_receive_place(buffer, count, type, comm, landing,
                                       status);
    }
    op = mpi_layer_op_new(comm, members);
    if ((op == NULL) || !mpi_layer_receive_aim(op, buffer, count, type)) {
        mpi_layer_op_delete(op);
        return mpi_layer_error(comm, MPI_ERR_NO_MEM);
    }
    pthread_mutex_lock(&mpi_layer.match_lock);
    mpi_layer_ops_ask();
    mpi_layer_op_receive_oldest(op, sender, status->MPI_TAG);
    pthread_mutex_unlock(&mpi_layer.match_lock);
    return mpi_layer_op_wait(op, status);
}

/* With several threads another one may probe meanwhile, and must not take this
 * one's message for what it sees: an operation is found by its look around */
static int mpi_layer_receive(void *buffer, size_t room, MPI_Count count,
                             MPI_Datatype type, int source, int tag,
                             MPI_Comm comm, MPI_Status *status)
{
    char bytes[MPI_LAYER_HERALD_BYTES];
    int result, has_landing = (room < MPI_LAYER_HERALD_BYTES);
    MPI_Request request;
    MPI_Status own;

    if (mpi_layer.multiple || (count > INT_MAX) ||
        mpi_layer_receive_stands_in(room, type)) {
        result = mpi_layer_receive_begin(buffer, count, type, source, tag, comm,
                                         &request);
        return (result != MPI_SUCCESS) ? result :
               mpi_layer_Wait(&request, status);
    }
    if (status == MPI_STATUS_IGNORE) {
        status = &own;
    }
    result = has_landing ?
             REAL_MPI(Recv)(bytes, sizeof(bytes), MPI_BYTE, source, tag, comm,
                            status) :
             REAL_MPI(Recv)(buffer, (int)count, type, source, tag, comm,
                            status);
    return (result != MPI_SUCCESS) ? result :
           mpi_layer_receive_settle(buffer, count, type, comm,
                                    has_landing ? bytes : NULL, status);
}

#define MPI_LAYER_RECVS(_name, _count_t) \
    int mpi_layer_##_name(void *buffer, _count_t count, MPI_Datatype type, \
                          int source, int tag, MPI_Comm comm, \
                          MPI_Status *status) \
    { \
        size_t room = mpi_layer_receive_room(count, type); \
        \
        return mpi_layer_receive_may_take(buffer, room, type, source, comm) ? \
               mpi_layer_receive(buffer, room, count, type, source, tag, comm, \
                                 status) : \
               REAL_MPI(_name)(buffer, count, type, source, tag, comm, \
                               status); \
    }

MPI_LAYER_BOTH(MPI_LAYER_RECVS, Recv)

/* --- Those that do not ---------------------------------------------------- */

static mpi_layer_op_t *
mpi_layer_receive_op(void *buffer, MPI_Count count, MPI_Datatype type,
                     int source, MPI_Comm comm, mpi_layer_view_t *view)
{
    size_t room = mpi_layer_receive_room(count, type);
    mpi_layer_op_t *op;

    if (!mpi_layer_receive_may_take(buffer, room, type, source, comm)) {
        return NULL;
    }
    op = mpi_layer_op_new(comm, mpi_layer_comm_get(comm));
    if (op == NULL) {
        return NULL;
    }
    if (!mpi_layer_receive_aim(op, buffer, count, type) ||
        (mpi_layer_receive_show(op, view) != MPI_SUCCESS)) {
        mpi_layer_op_delete(op);
        return NULL;
    }
    return op;
}

mpi_layer_op_t *mpi_layer_receive_taken(void *buffer, MPI_Count count,
                                        MPI_Datatype type,
                                        mpi_layer_taken_t *taken)
{
    mpi_layer_op_t *op = mpi_layer_op_new(taken->comm, NULL);

    if ((op == NULL) || !mpi_layer_receive_aim(op, buffer, count, type)) {
        mpi_layer_op_delete(op);
        (void)mpi_layer_error(taken->comm, MPI_ERR_NO_MEM);
        return NULL;
    }
    op->state = MPI_LAYER_POSTED;
    mpi_layer_op_receive_taken(op, taken);
    return op;
}

/* The MPI has begun a receive, or not: end the view, and add the operation or
 * release it. @return `result`, which is the MPI's */
static int mpi_layer_receive_begun(mpi_layer_op_t *op, mpi_layer_view_t *view,
                                   int result, MPI_Request request)
{
    mpi_layer_view_end(view);
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

#define MPI_LAYER_IRECVS(_name, _count_t, _real, _persistent) \
    int mpi_layer_##_name(void *buffer, _count_t count, MPI_Datatype type, \
                          int source, int tag, MPI_Comm comm, \
                          MPI_Request *request) \
    { \
        mpi_layer_view_t view; \
        mpi_layer_op_t *op; \
        int result; \
        \
        op = mpi_layer_receive_op(buffer, count, type, source, comm, &view); \
        if (op == NULL) { \
            return REAL_MPI(_name)(buffer, count, type, source, tag, comm, \
                                   request); \
        } \
        op->persistent = _persistent; \
        pthread_mutex_lock(&mpi_layer.match_lock); \
        result = REAL_MPI(_real)(view.buffer, view.count, view.type, source, \
                                 tag, comm, request); \
        result = mpi_layer_receive_begun(op, &view, result, *request); \
        pthread_mutex_unlock(&mpi_layer.match_lock); \
        return result; \
    }

MPI_LAYER_BOTH(MPI_LAYER_IRECVS, Irecv, Irecv, 0)
MPI_LAYER_BOTH(MPI_LAYER_IRECVS, Recv_init, Recv_init, 1)

/* The MPI's request of a send says nothing, so it starts when the send has */
int mpi_layer_Start(MPI_Request *request)
{
    mpi_layer_op_t *op = mpi_layer_op_find(*request);
    int result         = MPI_SUCCESS;

    if ((op == NULL) || op->is_send) {
        result = (op == NULL) ? MPI_SUCCESS : mpi_layer_send_start(op);
        return (result == MPI_SUCCESS) ? REAL_MPI(Start)(request) : result;
    }
    pthread_mutex_lock(&mpi_layer.match_lock);
    result = REAL_MPI(Start)(request);
    if (result == MPI_SUCCESS) {
        mpi_layer_op_post(op);
    }
    pthread_mutex_unlock(&mpi_layer.match_lock);
    return result;
}

int mpi_layer_Startall(int count, MPI_Request requests[])
{
    int result = MPI_SUCCESS, i;

    if (!mpi_layer_has_ops()) {
        return REAL_MPI(Startall)(count, requests);
    }
    for (i = 0; (result == MPI_SUCCESS) && (i < count); ++i) {
        result = mpi_layer_Start(&requests[i]);
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

/* One by one: of several, Open MPI does not end if one has failed */
static int mpi_layer_receive_both(MPI_Request requests[2], int source,
                                  MPI_Status *status)
{
    MPI_Status own;
    int result, sent;

    status = (status == MPI_STATUS_IGNORE) ? &own : status;
    result = mpi_layer_Wait(&requests[0], status);
    sent   = mpi_layer_Wait(&requests[1], MPI_STATUS_IGNORE);
    if (source == MPI_PROC_NULL) {
        mpi_layer_receive_nobody(status);
    }
    return (result != MPI_SUCCESS) ? result : sent;
}

/* A short send, which the MPI carries beside its receive */
static int mpi_layer_sendrecv_short(const void *send, int send_count,
                                    MPI_Datatype send_type, int dest,
                                    int send_tag, void *receive, int count,
                                    MPI_Datatype type, int source, int tag,
                                    MPI_Comm comm, MPI_Status *status)
{
    int has_landing = (source != MPI_PROC_NULL) &&
                      (mpi_layer_receive_room(count, type) <
                       MPI_LAYER_HERALD_BYTES);
    char bytes[MPI_LAYER_HERALD_BYTES];
    int result;

    result = has_landing ?
             REAL_MPI(Sendrecv)(send, send_count, send_type, dest, send_tag,
                                bytes, sizeof(bytes), MPI_BYTE, source, tag,
                                comm, status) :
             REAL_MPI(Sendrecv)(send, send_count, send_type, dest, send_tag,
                                receive, count, type, source, tag, comm,
                                status);
    if (source == MPI_PROC_NULL) {
        mpi_layer_receive_nobody(status);
        return result;
    }
    return (result != MPI_SUCCESS) ? result :
           mpi_layer_receive_settle(receive, count, type, comm,
                                    has_landing ? bytes : NULL, status);
}

static int mpi_layer_sendrecv(const void *send, MPI_Count send_count,
                              MPI_Datatype send_type, int dest, int send_tag,
                              void *receive, MPI_Count count, MPI_Datatype type,
                              int source, int tag, MPI_Comm comm,
                              MPI_Status *status)
{
    size_t room = mpi_layer_receive_room(count, type);
    MPI_Request requests[2];
    MPI_Status own;
    int result;

    if (!mpi_layer.multiple && (send_count <= INT_MAX) && (count <= INT_MAX) &&
        ((source == MPI_PROC_NULL) ||
         (mpi_layer_receive_may_take(receive, room, type, source, comm) &&
          !mpi_layer_receive_stands_in(room, type))) &&
        !mpi_layer_send_takes(send_count, send_type, dest, send_tag, comm)) {
        status = (status == MPI_STATUS_IGNORE) ? &own : status;
        return mpi_layer_sendrecv_short(send, (int)send_count, send_type, dest,
                                        send_tag, receive, (int)count, type,
                                        source, tag, comm, status);
    }
    result = mpi_layer_receive_begin(receive, count, type, source, tag, comm,
                                     &requests[0]);
    if (result == MPI_SUCCESS) {
        result = MPI_LAYER_BY_COUNT(Isend, send_count, send, send_count,
                                    send_type, dest, send_tag, comm,
                                    &requests[1]);
    }
    return (result != MPI_SUCCESS) ? result :
           mpi_layer_receive_both(requests, source, status);
}

#define MPI_LAYER_SENDRECVS(_name, _count_t) \
    int mpi_layer_##_name(const void *send, _count_t send_count, \
                          MPI_Datatype send_type, int dest, int send_tag, \
                          void *receive, _count_t count, MPI_Datatype type, \
                          int source, int tag, MPI_Comm comm, \
                          MPI_Status *status) \
    { \
        return (mpi_layer_comm_get(comm) != NULL) ? \
               mpi_layer_sendrecv(send, send_count, send_type, dest, send_tag, \
                                  receive, count, type, source, tag, comm, \
                                  status) : \
               REAL_MPI(_name)(send, send_count, send_type, dest, send_tag, \
                               receive, count, type, source, tag, comm, \
                               status); \
    }

MPI_LAYER_BOTH(MPI_LAYER_SENDRECVS, Sendrecv)

/* A copy is sent */
static int mpi_layer_sendrecv_replace(void *buffer, size_t room,
                                      MPI_Count count, MPI_Datatype type,
                                      int dest, int send_tag, int source,
                                      int tag, MPI_Comm comm,
                                      MPI_Status *status)
{
    char *bytes = malloc(room + 1);
    mpi_layer_view_t view;
    int result;

    if (bytes == NULL) {
        return mpi_layer_error(comm, MPI_ERR_NO_MEM);
    }
    result = mpi_layer_type_gather(buffer, count, type, bytes, room);
    if (result == MPI_SUCCESS) {
        result = mpi_layer_view_begin(&view, NULL, 0, bytes, room);
    }
    if (result == MPI_SUCCESS) {
        result = mpi_layer_sendrecv(view.buffer, view.count, view.type, dest,
                                    send_tag, buffer, count, type, source, tag,
                                    comm, status);
        mpi_layer_view_end(&view);
    }
    free(bytes);
    return result;
}

/* Also if nothing is received: the message that is sent may be as long as a
 * herald */
#define MPI_LAYER_SENDRECV_REPLACES(_name, _count_t) \
    int mpi_layer_##_name(void *buffer, _count_t count, MPI_Datatype type, \
                          int dest, int send_tag, int source, int tag, \
                          MPI_Comm comm, MPI_Status *status) \
    { \
        size_t room = mpi_layer_receive_room(count, type); \
        \
        return mpi_layer_receive_may_take(buffer, room, type, 0, comm) ? \
               mpi_layer_sendrecv_replace(buffer, room, count, type, dest, \
                                          send_tag, source, tag, comm, \
                                          status) : \
               REAL_MPI(_name)(buffer, count, type, dest, send_tag, source, \
                               tag, comm, status); \
    }

MPI_LAYER_BOTH(MPI_LAYER_SENDRECV_REPLACES, Sendrecv_replace)

#if MPI_VERSION >= 4

/* A copy is sent and forgotten, so that the receive is a request of its own:
 * MPICH tells no length of what its MPI_Isendrecv has received */
static int mpi_layer_isendrecv(const void *send, MPI_Count send_count,
                               MPI_Datatype send_type, int dest, int send_tag,
                               void *receive, MPI_Count count,
                               MPI_Datatype type, int source, int tag,
                               MPI_Comm comm, MPI_Request *request)
{
    int result = mpi_layer_send_copy(send, send_count, send_type, dest,
                                     send_tag, comm, REAL_MPI(Isend));

    return (result != MPI_SUCCESS) ? result :
           mpi_layer_receive_begin(receive, count, type, source, tag, comm,
                                   request);
}

static int mpi_layer_isendrecv_takes(MPI_Count count, MPI_Datatype type,
                                     MPI_Comm comm)
{
    return (mpi_layer_comm_get(comm) != NULL) &&
           (mpi_layer_receive_room(count, type) != MPI_LAYER_NO_ROOM);
}

#define MPI_LAYER_ISENDRECVS(_name, _count_t) \
    int mpi_layer_##_name(const void *send, _count_t send_count, \
                          MPI_Datatype send_type, int dest, int send_tag, \
                          void *receive, _count_t count, MPI_Datatype type, \
                          int source, int tag, MPI_Comm comm, \
                          MPI_Request *request) \
    { \
        return mpi_layer_isendrecv_takes(send_count, send_type, comm) ? \
               mpi_layer_isendrecv(send, send_count, send_type, dest, \
                                   send_tag, receive, count, type, source, \
                                   tag, comm, request) : \
               REAL_MPI(_name)(send, send_count, send_type, dest, send_tag, \
                               receive, count, type, source, tag, comm, \
                               request); \
    }

MPI_LAYER_BOTH(MPI_LAYER_ISENDRECVS, Isendrecv)

#define MPI_LAYER_ISENDRECV_REPLACES(_name, _count_t) \
    int mpi_layer_##_name(void *buffer, _count_t count, MPI_Datatype type, \
                          int dest, int send_tag, int source, int tag, \
                          MPI_Comm comm, MPI_Request *request) \
    { \
        return mpi_layer_isendrecv_takes(count, type, comm) ? \
               mpi_layer_isendrecv(buffer, count, type, dest, send_tag, \
                                   buffer, count, type, source, tag, comm, \
                                   request) : \
               REAL_MPI(_name)(buffer, count, type, dest, send_tag, source, \
                               tag, comm, request); \
    }

MPI_LAYER_BOTH(MPI_LAYER_ISENDRECV_REPLACES, Isendrecv_replace)

#endif
