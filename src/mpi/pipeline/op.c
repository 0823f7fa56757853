/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Operations: what the layer knows of a request of the MPI's, in a table by its
 * handle. The handle stays what it is, so a program may copy it, convert it and
 * hand it to any function. It is complete, as the program sees it, when the
 * MPI's request is and the message of the pipeline as well.
 */

mpi_layer_op_t *mpi_layer_op_new(MPI_Comm comm)
{
    mpi_layer_op_t *op = calloc(1, sizeof(*op));

    if (op != NULL) {
        op->comm           = comm;
        op->request        = MPI_REQUEST_NULL;
        op->herald_request = MPI_REQUEST_NULL;
        op->type           = MPI_DATATYPE_NULL;
        op->error          = MPI_SUCCESS;
        ucs_list_head_init(&op->list);
    }
    return op;
}

void mpi_layer_op_delete(mpi_layer_op_t *op)
{
    if (op->type != MPI_DATATYPE_NULL) {
        PMPI_Type_free(&op->type);
    }
    if (op->taken != NULL) {
        mpi_layer_taken_end(op->taken, MPI_STATUS_IGNORE);
    }
    if (op->owns) {
        free(op->bytes);
    }
    free(op);
}

/* Where bytes do not lie in one piece, others do in their place; the type may
 * be freed by the program before the message is there. @return Nonzero if so */
int mpi_layer_op_stand_in(mpi_layer_op_t *op, void *buffer, int count,
                          MPI_Datatype type)
{
    op->bytes = malloc(op->room);
    if ((op->bytes == NULL) ||
        (PMPI_Type_dup(type, &op->type) != MPI_SUCCESS)) {
        free(op->bytes);
        op->bytes = NULL;
        return 0;
    }
    op->owns   = 1;
    op->buffer = buffer;
    op->count  = count;
    return 1;
}

/* --- The table ------------------------------------------------------------ */

static mpi_layer_op_t **mpi_layer_bucket(MPI_Request request)
{
    uint64_t hash = (uint64_t)(uintptr_t)request *
                    UINT64_C(0x9e3779b97f4a7c15);

    return &mpi_layer.table[(hash >> 32) % MPI_LAYER_BUCKETS];
}

void mpi_layer_op_add(mpi_layer_op_t *op, MPI_Request request)
{
    mpi_layer_op_t **bucket = mpi_layer_bucket(request);

    op->request = request;
    pthread_mutex_lock(&mpi_layer.lock);
    op->next = *bucket;
    *bucket  = op;
    pthread_mutex_unlock(&mpi_layer.lock);
    ucs_add_relaxed(&mpi_layer.num_ops, 1); /* relaxed: see has_ops() */
}

/* One that the MPI is about to free may have its successor already, which
 * another thread was given */
mpi_layer_op_t *mpi_layer_op_find(MPI_Request request)
{
    mpi_layer_op_t *op;

    if (!mpi_layer_has_ops() || (request == MPI_REQUEST_NULL)) {
        return NULL;
    }
    pthread_mutex_lock(&mpi_layer.lock);
    op = *mpi_layer_bucket(request);
    while ((op != NULL) && ((op->request != request) || op->releasing)) {
        op = op->next;
    }
    pthread_mutex_unlock(&mpi_layer.lock);
    return op;
}

static void mpi_layer_op_remove(mpi_layer_op_t *op)
{
    mpi_layer_op_t **place = mpi_layer_bucket(op->request);

    pthread_mutex_lock(&mpi_layer.lock);
    while (*place != op) {
        place = &(*place)->next;
    }
    *place = op->next;
    ucs_list_del(&op->list);
    pthread_mutex_unlock(&mpi_layer.lock);
    ucs_sub_relaxed(&mpi_layer.num_ops, 1); /* relaxed: see has_ops() */
}

void mpi_layer_op_release(mpi_layer_op_t *op, int releasing)
{
    pthread_mutex_lock(&mpi_layer.lock);
    op->releasing = releasing;
    pthread_mutex_unlock(&mpi_layer.lock);
}

/* --- A receive ------------------------------------------------------------ */

void mpi_layer_op_set_busy(mpi_layer_op_t *op, int busy)
{
    if (busy && !op->busy) {
        ucs_add_relaxed(&mpi_layer.num_busy, 1); /* relaxed: see hook() */
    } else if (!busy && op->busy) {
        ucs_sub_relaxed(&mpi_layer.num_busy, 1); /* relaxed: see hook() */
    }
    op->busy = busy;
}

/* From now on a herald may come. Only where a long message fits does the
 * pipeline have anything to do before the herald has been seen. */
void mpi_layer_op_post(mpi_layer_op_t *op)
{
    pthread_mutex_lock(&mpi_layer.lock);
    op->state = MPI_LAYER_POSTED;
    ucs_list_add_tail(&mpi_layer.posted, &op->list);
    mpi_layer_op_set_busy(op, op->room >= mpi_layer.min_bytes);
    pthread_mutex_unlock(&mpi_layer.lock);
}

static void mpi_layer_op_unpost(mpi_layer_op_t *op, mpi_layer_state_t state)
{
    op->state = state;
    ucs_list_del(&op->list);
    ucs_list_head_init(&op->list);
}

static void mpi_layer_op_failed(mpi_layer_op_t *op, ucs_status_t status,
                                unsigned peer, size_t length)
{
    if (status == UCS_ERR_MESSAGE_TRUNCATED) {
        op->error = MPI_ERR_TRUNCATE;
        return;
    }
    op->error = MPI_ERR_OTHER;
    fprintf(stderr, MPI_PIPELINE_LINE "rank %d: a message of %zu bytes %s rank "
                    "%u of MPI_COMM_WORLD is lost: %s\n", mpi_layer.rank,
            length, op->is_send ? "to" : "from", peer,
            ucs_status_string(status));
}

/* The herald is here, so its message is asked for; with the lock held. The
 * herald is wiped out: a buffer that is posted again must not show it. */
void mpi_layer_op_receive(mpi_layer_op_t *op, const mpi_layer_herald_t *herald)
{
    ucs_status_t status;

    memset(op->bytes, 0, sizeof(herald->magic));
    status = ucx_pipeline_recv(mpi_layer.pipeline, herald->source, herald->tag,
                               UINT64_MAX, op->bytes, op->room, &op->moving);
    if (status == UCS_OK) {
        mpi_layer_op_unpost(op, MPI_LAYER_MOVING);
        mpi_layer_op_set_busy(op, 1);
    } else {
        mpi_layer_op_failed(op, status, herald->source, herald->length);
        op->status.length = 0;
        mpi_layer_op_unpost(op, MPI_LAYER_ARRIVED);
        mpi_layer_op_set_busy(op, 0);
    }
}

static void mpi_layer_op_spread(mpi_layer_op_t *op, size_t length)
{
    int result;

    if (op->is_send || (op->buffer == NULL) || (length > op->room)) {
        return;
    }
    result = mpi_layer_type_spread(op->bytes, length, op->buffer, op->count,
                                   op->type);
    if (result != MPI_SUCCESS) {
        op->error = result;
    }
}

static int mpi_layer_op_is_matched(mpi_layer_op_t *op)
{
    mpi_layer_herald_t herald;
    int flag, cancelled, length;
    MPI_Status status;

    if ((REAL_MPI(Request_get_status)(op->request, &flag, &status) !=
         MPI_SUCCESS) || !flag) {
        return 0;
    }
    PMPI_Test_cancelled(&status, &cancelled);
    PMPI_Get_count(&status, MPI_BYTE, &length);

    pthread_mutex_lock(&mpi_layer.lock);
    if (op->state == MPI_LAYER_POSTED) {
        if (!cancelled && (length == MPI_LAYER_HERALD_BYTES) &&
            mpi_layer_herald_read(op->bytes, &herald)) {
            mpi_layer_op_receive(op, &herald);
        } else {
            mpi_layer_op_unpost(op, MPI_LAYER_PLAIN);
            mpi_layer_op_set_busy(op, 0);
        }
    }
    pthread_mutex_unlock(&mpi_layer.lock);
    if ((op->state == MPI_LAYER_PLAIN) && !cancelled && (length > 0)) {
        mpi_layer_op_spread(op, length);
    }
    return 1;
}

/* --- Both ----------------------------------------------------------------- */

/* Is the herald's own request over? */
static int mpi_layer_op_is_announced(mpi_layer_op_t *op)
{
    int flag = 1;

    if (op->is_send) {
        return (REAL_MPI(Test)(&op->herald_request, &flag,
                               MPI_STATUS_IGNORE) == MPI_SUCCESS) && flag;
    }
    return (op->request == MPI_REQUEST_NULL) ||
           ((REAL_MPI(Request_get_status)(op->request, &flag,
                                          MPI_STATUS_IGNORE) == MPI_SUCCESS) &&
            flag);
}

static int mpi_layer_op_is_moved(mpi_layer_op_t *op)
{
    if (((op->moving != NULL) && !ucx_pipeline_test(op->moving, &op->status)) ||
        !mpi_layer_op_is_announced(op)) {
        return 0;
    }
    if (op->status.status != UCS_OK) {
        mpi_layer_op_failed(op, op->status.status, op->status.peer,
                            op->status.length);
    } else {
        mpi_layer_op_spread(op, op->status.length);
    }
    if (op->moving != NULL) {
        ucx_pipeline_request_free(op->moving);
    }
    if (op->is_send && (op->request != MPI_REQUEST_NULL)) {
        PMPI_Grequest_complete(op->request);
    }
    pthread_mutex_lock(&mpi_layer.lock);
    op->state = MPI_LAYER_ARRIVED;
    mpi_layer_op_set_busy(op, 0);
    pthread_mutex_unlock(&mpi_layer.lock);
    return 1;
}

static mpi_layer_state_t mpi_layer_op_state(mpi_layer_op_t *op)
{
    mpi_layer_state_t state;

    pthread_mutex_lock(&mpi_layer.lock);
    state = op->state;
    pthread_mutex_unlock(&mpi_layer.lock);
    return state;
}

/* Nonzero: the MPI's own functions complete its request at once */
int mpi_layer_op_is_ready(mpi_layer_op_t *op)
{
    mpi_layer_state_t state = mpi_layer_op_state(op);

    if ((state == MPI_LAYER_POSTED) && mpi_layer_op_is_matched(op)) {
        state = mpi_layer_op_state(op);
    }
    if (state == MPI_LAYER_MOVING) {
        return mpi_layer_op_is_moved(op);
    }
    return state != MPI_LAYER_POSTED;
}

/* The MPI's status is that of the herald: source and tag are right */
void mpi_layer_op_fix_status(const mpi_layer_op_t *op, MPI_Status *status)
{
    if ((status == MPI_STATUS_IGNORE) || op->is_send) {
        return;
    }
    if (op->state == MPI_LAYER_ARRIVED) {
        PMPI_Status_set_elements_x(status, MPI_BYTE,
                                   (MPI_Count)op->status.length);
    }
    if (op->taken != NULL) {
        status->MPI_SOURCE = op->taken->source;
        status->MPI_TAG    = op->taken->tag;
    }
}

/* The MPI has completed the request. @return The layer's error, or success */
int mpi_layer_op_finish(mpi_layer_op_t *op)
{
    int error = op->error;

    if (op->persistent) {
        pthread_mutex_lock(&mpi_layer.lock);
        op->state     = MPI_LAYER_IDLE;
        op->error     = MPI_SUCCESS;
        op->releasing = 0;
        pthread_mutex_unlock(&mpi_layer.lock);
    } else {
        mpi_layer_op_remove(op);
        mpi_layer_op_delete(op);
    }
    return error;
}

/* --- Requests that the program has freed ---------------------------------- */

void mpi_layer_op_set_free(mpi_layer_op_t *op)
{
    pthread_mutex_lock(&mpi_layer.lock);
    op->next_freed  = mpi_layer.freed;
    mpi_layer.freed = op;
    pthread_mutex_unlock(&mpi_layer.lock);
}

/* @return How many are left */
int mpi_layer_ops_end_freed(void)
{
    mpi_layer_op_t *op, *next, *left = NULL;
    MPI_Request request;
    int count = 0;

    if (mpi_layer.freed == NULL) {
        return 0;
    }
    pthread_mutex_lock(&mpi_layer.lock);
    op              = mpi_layer.freed;
    mpi_layer.freed = NULL;
    pthread_mutex_unlock(&mpi_layer.lock);
    for (; op != NULL; op = next) {
        next = op->next_freed;
        if (mpi_layer_op_is_ready(op)) {
            request = op->request;
            mpi_layer_op_release(op, 1);
            REAL_MPI(Wait)(&request, MPI_STATUS_IGNORE);
            if (op->persistent) {
                REAL_MPI(Request_free)(&request);
                op->persistent = 0;
            }
            (void)mpi_layer_op_finish(op);
        } else {
            op->next_freed = left;
            left           = op;
            ++count;
        }
    }
    pthread_mutex_lock(&mpi_layer.lock);
    while (left != NULL) {
        next             = left->next_freed;
        left->next_freed = mpi_layer.freed;
        mpi_layer.freed  = left;
        left             = next;
    }
    pthread_mutex_unlock(&mpi_layer.lock);
    return count;
}
