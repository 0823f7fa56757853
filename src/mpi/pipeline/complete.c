/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "layer.h"

#include <stdlib.h>
#include <string.h>

/*
 * Completion. The layer waits until the MPI's own function would complete an
 * operation's request at once, has it do so, and puts the status right. Of
 * requests that are not ready yet the MPI's function is shown MPI_REQUEST_NULL.
 */

/* --- One ------------------------------------------------------------------ */

static void mpi_layer_until_ready(mpi_layer_op_t *op)
{
    while (!mpi_layer_op_is_ready(op)) {
        mpi_layer_pump();
    }
}

int mpi_layer_op_wait(mpi_layer_op_t *op, MPI_Status *status)
{
    MPI_Comm comm = op->comm;
    int error;

    mpi_layer_until_ready(op);
    mpi_layer_op_fix_status(op, status);
    error = op->error;
    mpi_layer_op_delete(op);
    return (error == MPI_SUCCESS) ? MPI_SUCCESS : mpi_layer_error(comm, error);
}

int mpi_layer_Wait(MPI_Request *request, MPI_Status *status)
{
    int result, flag;

    if (mpi_layer_op_find(*request) == NULL) {
        return REAL_MPI(Wait)(request, status);
    }
    do {
        result = mpi_layer_Test(request, &flag, status);
    } while ((result == MPI_SUCCESS) && !flag);
    return result;
}

/* One look, and progress if there is nothing to see */
static int mpi_layer_look(mpi_layer_op_t *op)
{
    if (mpi_layer_op_is_ready(op)) {
        return 1;
    }
    mpi_layer_pump();
    return 0;
}

int mpi_layer_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    mpi_layer_op_t *op = mpi_layer_op_find(*request);
    int result, error;
    MPI_Comm comm;

    if (op == NULL) {
        return REAL_MPI(Test)(request, flag, status);
    }
    *flag = 0;
    if (!mpi_layer_look(op)) {
        return MPI_SUCCESS;
    }
    mpi_layer_op_release(op, 1);
    result = REAL_MPI(Test)(request, flag, status);
    if (!*flag && (result == MPI_SUCCESS)) {
        mpi_layer_op_release(op, 0);
        return result;
    }
    comm = op->comm;
    mpi_layer_op_fix_status(op, status);
    error = mpi_layer_op_finish(op, *request);
    return ((result == MPI_SUCCESS) && (error != MPI_SUCCESS)) ?
           mpi_layer_error(comm, error) : result;
}

int mpi_layer_Request_get_status(MPI_Request request, int *flag,
                                 MPI_Status *status)
{
    mpi_layer_op_t *op = mpi_layer_op_find(request);
    int result;

    if ((op != NULL) && !mpi_layer_look(op)) {
        *flag = 0;
        return MPI_SUCCESS;
    }
    result = REAL_MPI(Request_get_status)(request, flag, status);
    if ((op != NULL) && *flag) {
        mpi_layer_op_fix_status(op, status);
    }
    return result;
}

int mpi_layer_Request_free(MPI_Request *request)
{
    mpi_layer_op_t *op = mpi_layer_op_find(*request);
    int result;

    if (op == NULL) {
        return REAL_MPI(Request_free)(request);
    }
    if (op->persistent && (op->state == MPI_LAYER_IDLE)) {
        mpi_layer_op_release(op, 1);
        result = REAL_MPI(Request_free)(request);
        (void)mpi_layer_op_finish(op, MPI_REQUEST_NULL);
        return result;
    }
    mpi_layer_op_set_free(op);
    *request = MPI_REQUEST_NULL;
    mpi_layer_pump();
    return MPI_SUCCESS;
}

/* A send's herald may be matched already, and MPI lets a send that cannot be
 * canceled complete as ever */
int mpi_layer_Cancel(MPI_Request *request)
{
    mpi_layer_op_t *op = mpi_layer_op_find(*request);

    return ((op != NULL) && op->is_send) ? MPI_SUCCESS :
                                           REAL_MPI(Cancel)(request);
}

/* --- Several -------------------------------------------------------------- */

/* What of an array of requests is the layer's */
typedef struct mpi_layer_set {
    int            count;    /* requests */
    int            waiting;  /* operations that are not ready */
    mpi_layer_op_t **ops;    /* of each request, or NULL */
    MPI_Request    *shown;   /* to the MPI */
} mpi_layer_set_t;

/* @return Nonzero if any of the requests is the layer's */
static int mpi_layer_has(int count, const MPI_Request requests[])
{
    int i = 0;

    if (!mpi_layer_has_ops()) {
        return 0;
    }
    while ((i < count) && (mpi_layer_op_find(requests[i]) == NULL)) {
        ++i;
    }
    return i < count;
}

/* Those that are ready are shown and about to be released */
static void mpi_layer_set_show(mpi_layer_set_t *set, int count,
                               const MPI_Request requests[])
{
    int i;

    set->count   = count;
    set->waiting = 0;
    set->ops     = malloc(count * sizeof(*set->ops));
    set->shown   = malloc(count * sizeof(*set->shown));
    if ((set->ops == NULL) || (set->shown == NULL)) {
        abort(); /* nothing else completes what is the layer's */
    }
    for (i = 0; i < count; ++i) {
        set->ops[i]   = mpi_layer_op_find(requests[i]);
        set->shown[i] = requests[i];
        if (set->ops[i] == NULL) {
            continue;
        }
        if (mpi_layer_op_is_ready(set->ops[i])) {
            mpi_layer_op_release(set->ops[i], 1);
        } else {
            set->shown[i] = MPI_REQUEST_NULL;
            ++set->waiting;
        }
    }
}

/* One request has been completed. @return The layer's error, or success */
static int mpi_layer_set_end(mpi_layer_set_t *set, MPI_Request requests[],
                             int i, MPI_Status *status)
{
    mpi_layer_op_t *op = set->ops[i];

    requests[i] = set->shown[i];
    set->ops[i] = NULL;
    if (op == NULL) {
        return MPI_SUCCESS;
    }
    mpi_layer_op_fix_status(op, status);
    return mpi_layer_op_finish(op, requests[i]);
}

/* Those that were ready and have not been completed are not released after all */
static void mpi_layer_set_hide(mpi_layer_set_t *set)
{
    int i;

    for (i = 0; i < set->count; ++i) {
        if ((set->ops[i] != NULL) && set->ops[i]->releasing) {
            mpi_layer_op_release(set->ops[i], 0);
        }
    }
    free(set->ops);
    free(set->shown);
}

/* Any of the layer's operations, whose communicator an error belongs to */
static MPI_Comm mpi_layer_set_comm(const mpi_layer_set_t *set)
{
    int i;

    for (i = 0; i < set->count; ++i) {
        if (set->ops[i] != NULL) {
            return set->ops[i]->comm;
        }
    }
    return MPI_COMM_WORLD;
}

/* The errors of the layer's operations among `count` that were completed: with
 * statuses, each has its error in its own. At `indices`, or all. */
static int mpi_layer_set_end_all(mpi_layer_set_t *set, MPI_Request requests[],
                                 int count, const int *indices,
                                 MPI_Status statuses[], int result)
{
    MPI_Comm comm = mpi_layer_set_comm(set);
    int error, i, at, failed = MPI_SUCCESS;

    for (i = 0; i < count; ++i) {
        at = (indices == NULL) ? i : indices[i];
        if ((statuses != MPI_STATUSES_IGNORE) && (result == MPI_SUCCESS)) {
            statuses[i].MPI_ERROR = MPI_SUCCESS;
        }
        error = mpi_layer_set_end(set, requests, at,
                                  (statuses == MPI_STATUSES_IGNORE) ?
                                  MPI_STATUS_IGNORE : &statuses[i]);
        if (error != MPI_SUCCESS) {
            failed = error;
            if (statuses != MPI_STATUSES_IGNORE) {
                statuses[i].MPI_ERROR = error;
                failed                = MPI_ERR_IN_STATUS;
            }
        }
    }
    return ((failed == MPI_SUCCESS) || (result != MPI_SUCCESS)) ? result :
           mpi_layer_error(comm, failed);
}

int mpi_layer_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    mpi_layer_set_t set;
    mpi_layer_op_t *op;
    int i, result;

    if (!mpi_layer_has(count, requests)) {
        return REAL_MPI(Waitall)(count, requests, statuses);
    }
    for (i = 0; i < count; ++i) {
        op = mpi_layer_op_find(requests[i]);
        if (op != NULL) {
            mpi_layer_until_ready(op);
        }
    }
    mpi_layer_set_show(&set, count, requests);
    result = REAL_MPI(Waitall)(count, set.shown, statuses);
    result = mpi_layer_set_end_all(&set, requests, count, NULL, statuses,
                                   result);
    mpi_layer_set_hide(&set);
    return result;
}

int mpi_layer_Testall(int count, MPI_Request requests[], int *flag,
                      MPI_Status statuses[])
{
    mpi_layer_set_t set;
    int result = MPI_SUCCESS;

    if (!mpi_layer_has(count, requests)) {
        return REAL_MPI(Testall)(count, requests, flag, statuses);
    }
    *flag = 0;
    mpi_layer_set_show(&set, count, requests);
    if (set.waiting == 0) {
        result = REAL_MPI(Testall)(count, set.shown, flag, statuses);
        if (*flag || (result != MPI_SUCCESS)) {
            result = mpi_layer_set_end_all(&set, requests, count, NULL,
                                           statuses, result);
        }
    } else {
        mpi_layer_pump();
    }
    mpi_layer_set_hide(&set);
    return result;
}

int mpi_layer_Testany(int count, MPI_Request requests[], int *index, int *flag,
                      MPI_Status *status)
{
    mpi_layer_set_t set;
    int result, error;
    MPI_Comm comm;

    if (!mpi_layer_has(count, requests)) {
        return REAL_MPI(Testany)(count, requests, index, flag, status);
    }
    mpi_layer_set_show(&set, count, requests);
    result = REAL_MPI(Testany)(count, set.shown, index, flag, status);
    if (*flag && (*index == MPI_UNDEFINED)) {
        *flag = (set.waiting == 0);
    } else if (*index != MPI_UNDEFINED) {
        comm  = (set.ops[*index] != NULL) ? set.ops[*index]->comm :
                                            MPI_COMM_WORLD;
        error = mpi_layer_set_end(&set, requests, *index, status);
        if ((result == MPI_SUCCESS) && (error != MPI_SUCCESS)) {
            result = mpi_layer_error(comm, error);
        }
        *flag = 1;
    }
    mpi_layer_set_hide(&set);
    if (!*flag) {
        *index = MPI_UNDEFINED;
        mpi_layer_pump();
    }
    return result;
}

int mpi_layer_Waitany(int count, MPI_Request requests[], int *index,
                      MPI_Status *status)
{
    int result, flag;

    if (!mpi_layer_has(count, requests)) {
        return REAL_MPI(Waitany)(count, requests, index, status);
    }
    do {
        result = mpi_layer_Testany(count, requests, index, &flag, status);
    } while ((result == MPI_SUCCESS) && !flag);
    return result;
}

int mpi_layer_Testsome(int count, MPI_Request requests[], int *num_done,
                       int indices[], MPI_Status statuses[])
{
    mpi_layer_set_t set;
    int result;

    if (!mpi_layer_has(count, requests)) {
        return REAL_MPI(Testsome)(count, requests, num_done, indices, statuses);
    }
    mpi_layer_set_show(&set, count, requests);
    result = REAL_MPI(Testsome)(count, set.shown, num_done, indices, statuses);
    if (*num_done == MPI_UNDEFINED) {
        *num_done = (set.waiting > 0) ? 0 : MPI_UNDEFINED;
    } else if (*num_done > 0) {
        result = mpi_layer_set_end_all(&set, requests, *num_done, indices,
                                       statuses, result);
    }
    mpi_layer_set_hide(&set);
    if (*num_done == 0) {
        mpi_layer_pump();
    }
    return result;
}

int mpi_layer_Waitsome(int count, MPI_Request requests[], int *num_done,
                       int indices[], MPI_Status statuses[])
{
    int result;

    if (!mpi_layer_has(count, requests)) {
        return REAL_MPI(Waitsome)(count, requests, num_done, indices, statuses);
    }
    do {
        result = mpi_layer_Testsome(count, requests, num_done, indices,
                                    statuses);
    } while ((result == MPI_SUCCESS) && (*num_done == 0));
    return result;
}
