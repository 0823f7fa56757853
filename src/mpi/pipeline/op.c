/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
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

mpi_layer_op_t *mpi_layer_op_new(MPI_Comm comm, mpi_layer_comm_t *members)
{
    mpi_layer_op_t *op = calloc(1, sizeof(*op));

    if (op != NULL) {
        op->comm           = comm;
        op->members        = mpi_layer_comm_hold(members);
        op->request        = MPI_REQUEST_NULL;
        op->herald_request = MPI_REQUEST_NULL;
        op->type           = MPI_DATATYPE_NULL;
        op->error          = MPI_SUCCESS;
        op->sender         = -1;
        ucs_list_head_init(&op->list);
    }
    return op;
}

void mpi_layer_op_delete(mpi_layer_op_t *op)
{
    if (op == NULL) {
        return;
    }
    if (op->type != MPI_DATATYPE_NULL) {
        PMPI_Type_free(&op->type);
    }
    if (op->herald_request != MPI_REQUEST_NULL) {
        REAL_MPI(Request_free)(&op->herald_request);
    }
    if (op->owns) {
        free(op->bytes);
    }
    mpi_layer_comm_put(op->members);
    free(op);
}

int mpi_layer_op_stand_in(mpi_layer_op_t *op, void *buffer, MPI_Count count,
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
    uint64_t hash = (uint64_t)(uintptr_t)request * UINT64_C(0x9e3779b97f4a7c15);

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

/* Only where a long message fits does the pipeline have anything to do before the
 * herald has been seen */
void mpi_layer_op_post(mpi_layer_op_t *op)
{
    pthread_mutex_lock(&mpi_layer.lock);
    op->state  = MPI_LAYER_POSTED;
    op->sender = -1;
    ucs_list_add_tail((op->landing != NULL) ? &mpi_layer.posted :
                                              &mpi_layer.unwatched, &op->list);
    mpi_layer_op_set_busy(op, op->room >= mpi_layer.min_bytes);
    pthread_mutex_unlock(&mpi_layer.lock);
}

static void mpi_layer_op_unpost(mpi_layer_op_t *op, mpi_layer_state_t state)
{
    op->state = state;
    ucs_list_del(&op->list);
    ucs_list_head_init(&op->list);
}

/* As MPI_Request_get_status, which MPICH has call an error handler, of
 * MPI_COMM_WORLD: what the program's own call would not do yet, or not at all.
 * With several threads the handler is not taken away, for others use it. */
static int mpi_layer_request_status(MPI_Request request, int *flag,
                                    MPI_Status *status)
{
    int result;
#ifdef MPICH_NUMVERSION
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;

    if (!mpi_layer.multiple) {
        PMPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
        PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    }
#endif
    result = REAL_MPI(Request_get_status)(request, flag, status);
#ifdef MPICH_NUMVERSION
    if (handler != MPI_ERRHANDLER_NULL) {
        PMPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
        PMPI_Errhandler_free(&handler);
    }
#endif
    return result;
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

/* The message has been asked for, or (`status`) cannot be; with the lock held */
static void mpi_layer_op_asked(mpi_layer_op_t *op, ucs_status_t status,
                               unsigned sender)
{
    if (status == UCS_OK) {
        mpi_layer_op_unpost(op, MPI_LAYER_MOVING);
        mpi_layer_op_set_busy(op, 1);
    } else {
        mpi_layer_op_failed(op, status, sender, 0);
        op->status.length = 0;
        mpi_layer_op_unpost(op, MPI_LAYER_ARRIVED);
        mpi_layer_op_set_busy(op, 0);
    }
}

/* The herald is wiped out: a landing buffer that is posted again must not show
 * it */
void mpi_layer_op_receive(mpi_layer_op_t *op, const mpi_layer_herald_t *herald)
{
    memset(op->landing, 0, sizeof(herald->magic));
    mpi_layer_op_asked(op, ucx_pipeline_recv(mpi_layer.pipeline, herald->source,
                                             herald->tag, UINT64_MAX, op->bytes,
                                             op->room, &op->moving),
                       herald->source);
}

void mpi_layer_op_receive_oldest(mpi_layer_op_t *op, int sender, int tag)
{
    uint64_t wanted = mpi_layer_tag(op->members, 0, tag);

    pthread_mutex_lock(&mpi_layer.lock);
    mpi_layer_op_asked(op, ucx_pipeline_recv(mpi_layer.pipeline, sender, wanted,
                                             ~MPI_LAYER_TAG_NUMBER_MASK,
                                             op->bytes, op->room, &op->moving),
                       sender);
    pthread_mutex_unlock(&mpi_layer.lock);
}

void mpi_layer_op_receive_taken(mpi_layer_op_t *op, mpi_layer_taken_t *taken)
{
    pthread_mutex_lock(&mpi_layer.lock);
    mpi_layer_op_asked(op, ucx_pipeline_mrecv(mpi_layer.pipeline, taken->moving,
                                              op->bytes, op->room, &op->moving),
                       taken->sender);
    pthread_mutex_unlock(&mpi_layer.lock);
    free(taken);
}

static void mpi_layer_op_spread(mpi_layer_op_t *op, size_t length)
{
    int result;

    if (op->is_send || (op->type == MPI_DATATYPE_NULL) || (length == 0) ||
        (length > op->room)) {
        return;
    }
    result = mpi_layer_type_spread(op->bytes, length, op->buffer, op->count,
                                   op->type);
    if (result != MPI_SUCCESS) {
        op->error = result;
    }
}

/* Where bytes do not land in their place, the first of them, or all, do not */
static void mpi_layer_op_place(mpi_layer_op_t *op, size_t length)
{
    size_t fits = (length < op->room) ? length : op->room;

    if ((op->landing == op->herald) && (fits > 0)) {
        memcpy(op->bytes, op->landing, (fits < MPI_LAYER_HERALD_BYTES) ?
                                       fits : MPI_LAYER_HERALD_BYTES);
    }
    mpi_layer_op_spread(op, fits);
    if (length > op->room) {
        op->error = MPI_ERR_TRUNCATE;
    }
}

/* @return Nonzero if the MPI has completed a receive */
static int mpi_layer_op_is_received(mpi_layer_op_t *op, MPI_Status *status,
                                    int *is_ordinary, int *is_good)
{
    int flag, cancelled, result;

    result = mpi_layer_request_status(op->request, &flag, status);
    if ((result == MPI_SUCCESS) && !flag) {
        return 0;
    }
    cancelled = 0;
    if (result == MPI_SUCCESS) {
        PMPI_Test_cancelled(status, &cancelled);
    }
    *is_good     = (result == MPI_SUCCESS) && !cancelled;
    *is_ordinary = !*is_good ||
                   (mpi_layer_herald_sender(op->members, status) < 0);
    return 1;
}

/* An ordinary message, an error, or the receive was cancelled: the MPI's.
 * @return Nonzero if it was not so before */
static int mpi_layer_op_set_plain(mpi_layer_op_t *op)
{
    int is_new;

    pthread_mutex_lock(&mpi_layer.lock);
    is_new = (op->state == MPI_LAYER_POSTED);
    if (is_new) {
        mpi_layer_op_unpost(op, MPI_LAYER_PLAIN);
        mpi_layer_op_set_busy(op, 0);
    }
    pthread_mutex_unlock(&mpi_layer.lock);
    return is_new;
}

/* --- Unwatched receives --------------------------------------------------- */

/* The MPI matches messages of one sender, communicator and tag with receives in
 * the order in which these were posted, so in this order they ask. One that was
 * matched was so before a later one was; so they are looked at from the last to
 * the first, and what is seen of one has come true for those before it. */
static void mpi_layer_ops_look(void)
{
    ucs_list_link_t *link;
    mpi_layer_op_t *op;
    MPI_Status status;
    int is_ordinary, is_good;

    for (link = mpi_layer.unwatched.prev; link != &mpi_layer.unwatched;) {
        op   = ucs_container_of(link, mpi_layer_op_t, list);
        link = link->prev;
        if ((op->sender >= 0) ||
            !mpi_layer_op_is_received(op, &status, &is_ordinary, &is_good)) {
            continue;
        }
        if (is_ordinary) {
            (void)mpi_layer_op_set_plain(op);
        } else {
            op->sender = mpi_layer_herald_sender(op->members, &status);
            op->tag    = status.MPI_TAG;
        }
    }
}

void mpi_layer_ops_ask(void)
{
    mpi_layer_op_t *op, *next;

    mpi_layer_ops_look();
    mpi_layer_peek();
    ucs_list_for_each_safe(op, next, &mpi_layer.unwatched, list) {
        if (op->sender >= 0) {
            mpi_layer_op_receive_oldest(op, op->sender, op->tag);
        }
    }
}

/* --- All ------------------------------------------------------------------ */

static void mpi_layer_op_landed(mpi_layer_op_t *op)
{
    mpi_layer_herald_t herald;

    pthread_mutex_lock(&mpi_layer.lock);
    if ((op->state == MPI_LAYER_POSTED) &&
        mpi_layer_herald_read(op->landing, &herald)) {
        mpi_layer_op_receive(op, &herald);
    }
    pthread_mutex_unlock(&mpi_layer.lock);
}

static int mpi_layer_op_is_matched(mpi_layer_op_t *op)
{
    int is_ordinary, is_good, is_new;
    MPI_Status status;
    MPI_Count length;

    if (!mpi_layer_op_is_received(op, &status, &is_ordinary, &is_good)) {
        return 0;
    }
    if (!is_ordinary && (op->landing != NULL)) {
        mpi_layer_op_landed(op);
        return 1;
    }
    pthread_mutex_lock(&mpi_layer.match_lock);
    if (is_ordinary) {
        is_new = mpi_layer_op_set_plain(op);
    } else {
        mpi_layer_ops_ask();
        is_new = 0;
    }
    pthread_mutex_unlock(&mpi_layer.match_lock);
    if (is_new && is_good && (op->landing != NULL)) {
        PMPI_Get_elements_x(&status, MPI_BYTE, &length);
        mpi_layer_op_place(op, (size_t)length);
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
    if (op->is_send && !op->persistent && (op->request != MPI_REQUEST_NULL)) {
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
    if ((status != MPI_STATUS_IGNORE) && !op->is_send &&
        (op->state == MPI_LAYER_ARRIVED)) {
        PMPI_Status_set_elements_x(status, MPI_BYTE,
                                   (MPI_Count)op->status.length);
    }
}

int mpi_layer_op_finish(mpi_layer_op_t *op, MPI_Request request)
{
    int error = op->error;

    /* Open MPI frees a persistent request that has failed */
    if (op->persistent && (request != MPI_REQUEST_NULL)) {
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
    ucs_list_add_tail(&mpi_layer.freed, &op->freed);
    pthread_mutex_unlock(&mpi_layer.lock);
}

/* A receive that nothing has come for and a send may never be over, and are not
 * counted */
int mpi_layer_ops_end_freed(void)
{
    mpi_layer_op_t *op, *next;
    ucs_list_link_t freed; /* this thread's meanwhile */
    MPI_Request request;
    int count = 0;

    if (ucs_list_is_empty(&mpi_layer.freed)) {
        return 0;
    }
    ucs_list_head_init(&freed);
    pthread_mutex_lock(&mpi_layer.lock);
    ucs_list_splice_tail(&freed, &mpi_layer.freed);
    ucs_list_head_init(&mpi_layer.freed);
    pthread_mutex_unlock(&mpi_layer.lock);
    ucs_list_for_each_safe(op, next, &freed, freed) {
        if (mpi_layer_op_is_ready(op)) {
            ucs_list_del(&op->freed);
            request = op->request;
            mpi_layer_op_release(op, 1);
            REAL_MPI(Wait)(&request, MPI_STATUS_IGNORE);
            if (op->persistent && (request != MPI_REQUEST_NULL)) {
                REAL_MPI(Request_free)(&request);
            }
            (void)mpi_layer_op_finish(op, MPI_REQUEST_NULL);
        } else {
            count += !op->is_send &&
                     (mpi_layer_op_state(op) == MPI_LAYER_MOVING);
        }
    }
    pthread_mutex_lock(&mpi_layer.lock);
    ucs_list_splice_tail(&mpi_layer.freed, &freed);
    pthread_mutex_unlock(&mpi_layer.lock);
    return count;
}
