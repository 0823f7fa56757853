/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "layer.h"

#include <sched.h>
#include <stdlib.h>

/* @return Bytes of a basic type without holes, else 0. Remembers the last type,
 *         as programs use few. */
static size_t firehose_mpi_type(MPI_Datatype type)
{
    static _Thread_local MPI_Datatype last;
    static _Thread_local size_t last_size;
    int integers, addresses, types, combiner = 0, size = 0;
    MPI_Aint lower = 0, extent = 0;

    if ((last_size > 0) && (type == last)) {
        return last_size;
    }
    if ((PMPI_Type_get_envelope(type, &integers, &addresses, &types,
                                &combiner) != MPI_SUCCESS) ||
        (combiner != MPI_COMBINER_NAMED)) {
        return 0; /* its number may be another type's later */
    }
    PMPI_Type_size(type, &size);
    PMPI_Type_get_extent(type, &lower, &extent);
    if ((size <= 0) || (lower != 0) || (extent != size)) {
        return 0;
    }
    last      = type;
    last_size = size;
    return size;
}

static void firehose_mpi_done(void *arg, ucs_status_t status)
{
    firehose_mpi_transfer_t *transfer = arg;
    firehose_mpi_window_t *window     = transfer->window;

    if (status == UCS_OK) {
        free(transfer);
    } else {
        pthread_mutex_lock(&window->lock);
        transfer->next  = window->refused;
        window->refused = transfer;
        pthread_mutex_unlock(&window->lock);
    }
    /* release: pairs with the load in firehose_mpi_complete() */
    atomic_fetch_sub_explicit(&window->pending, 1, memory_order_release);
}

/* @return Zero if the MPI does it */
static int firehose_mpi_move(const firehose_mpi_transfer_t *wanted)
{
    firehose_mpi_window_t *window = wanted->window;
    size_t length, target_length;
    firehose_mpi_transfer_t *transfer;
    ucs_status_t status;

    if ((wanted->target < 0) || (wanted->target >= window->size) ||
        (wanted->target == window->rank) || (wanted->count <= 0) ||
        window->exclusive[wanted->target]) {
        return 0;
    }
    length        = wanted->count * firehose_mpi_type(wanted->type);
    target_length = wanted->target_count *
                    firehose_mpi_type(wanted->target_type);
    if ((length == 0) || (length != target_length)) {
        return 0;
    }
    transfer = malloc(sizeof(*transfer));
    if (transfer == NULL) {
        return 0;
    }
    *transfer = *wanted;
    atomic_fetch_add_explicit(&window->pending, 1, memory_order_relaxed);
    status = wanted->is_put ?
                     ucx_firehose_put_nb(window->firehose, wanted->target,
                                         wanted->local, wanted->remote, length,
                                         firehose_mpi_done, transfer) :
                     ucx_firehose_get_nb(window->firehose, wanted->target,
                                         wanted->local, wanted->remote, length,
                                         firehose_mpi_done, transfer);
    if (status != UCS_INPROGRESS) {
        atomic_fetch_sub_explicit(&window->pending, 1, memory_order_relaxed);
        free(transfer);
    }
    return (status == UCS_OK) || (status == UCS_INPROGRESS);
}

static int firehose_mpi_again(const firehose_mpi_transfer_t *transfer)
{
    return transfer->is_put ?
                   PMPI_Put(transfer->local, transfer->count, transfer->type,
                            transfer->target, transfer->remote,
                            transfer->target_count, transfer->target_type,
                            transfer->win) :
                   PMPI_Get(transfer->local, transfer->count, transfer->type,
                            transfer->target, transfer->remote,
                            transfer->target_count, transfer->target_type,
                            transfer->win);
}

/* As the MPI's functions of these arguments */
static int
firehose_mpi_do(int is_put, void *local, int count, MPI_Datatype type,
                int target, MPI_Aint remote, int target_count,
                MPI_Datatype target_type, MPI_Win win)
{
    firehose_mpi_window_t *window        = firehose_mpi_find(win);
    const firehose_mpi_transfer_t wanted = {
        .window       = window,
        .win          = win,
        .local        = local,
        .count        = count,
        .type         = type,
        .target       = target,
        .remote       = remote,
        .target_count = target_count,
        .target_type  = target_type,
        .is_put       = is_put
    };
    int is_served;

    if (window == NULL) {
        return firehose_mpi_again(&wanted);
    }
    is_served = firehose_mpi_move(&wanted);
    /* relaxed: counters */
    atomic_fetch_add_explicit(is_served ? &window->served : &window->passed, 1,
                              memory_order_relaxed);
    return is_served ? MPI_SUCCESS : firehose_mpi_again(&wanted);
}

FIREHOSE_MPI_API int
MPI_Put(const void *local, int count, MPI_Datatype type, int target,
        MPI_Aint remote, int target_count, MPI_Datatype target_type,
        MPI_Win win)
{
    return firehose_mpi_do(1, (void*)local, count, type, target, remote,
                           target_count, target_type, win);
}

FIREHOSE_MPI_API int
MPI_Get(void *local, int count, MPI_Datatype type, int target, MPI_Aint remote,
        int target_count, MPI_Datatype target_type, MPI_Win win)
{
    return firehose_mpi_do(0, local, count, type, target, remote, target_count,
                           target_type, win);
}

/* --- What completes ------------------------------------------------------- */

int firehose_mpi_complete(MPI_Win win)
{
    firehose_mpi_window_t *window = firehose_mpi_find(win);
    int status = MPI_SUCCESS, one;
    firehose_mpi_transfer_t *transfer, *next;

    if (window == NULL) {
        return MPI_SUCCESS;
    }
    (void)ucx_firehose_flush(window->firehose); /* failures are in the list */
    /* acquire: pairs with the release in firehose_mpi_done(); another thread
     * may be about to report the last ones */
    while (atomic_load_explicit(&window->pending, memory_order_acquire) > 0) {
        if (ucx_firehose_progress(window->firehose) == 0) {
            sched_yield();
        }
    }
    pthread_mutex_lock(&window->lock);
    transfer        = window->refused;
    window->refused = NULL;
    pthread_mutex_unlock(&window->lock);
    for (; transfer != NULL; transfer = next) {
        next   = transfer->next;
        one    = firehose_mpi_again(transfer);
        status = (status == MPI_SUCCESS) ? one : status;
        /* relaxed: a counter */
        atomic_fetch_add_explicit(&window->again, 1, memory_order_relaxed);
        free(transfer);
    }
    return status;
}

/* A function of MPI that completes transfers: here, then by the MPI. Returns
 * the first error. */
#define FIREHOSE_MPI_COMPLETES(_function, _params, _args) \
    FIREHOSE_MPI_API int MPI_##_function _params \
    { \
        int here  = firehose_mpi_complete(win); \
        int there = PMPI_##_function _args; \
        return (here == MPI_SUCCESS) ? there : here; \
    }

FIREHOSE_MPI_COMPLETES(Win_flush, (int rank, MPI_Win win), (rank, win))
FIREHOSE_MPI_COMPLETES(Win_flush_all, (MPI_Win win), (win))
FIREHOSE_MPI_COMPLETES(Win_flush_local, (int rank, MPI_Win win), (rank, win))
FIREHOSE_MPI_COMPLETES(Win_flush_local_all, (MPI_Win win), (win))
FIREHOSE_MPI_COMPLETES(Win_unlock_all, (MPI_Win win), (win))
FIREHOSE_MPI_COMPLETES(Win_fence, (int asserted, MPI_Win win), (asserted, win))
FIREHOSE_MPI_COMPLETES(Win_complete, (MPI_Win win), (win))

/* A rank holds one lock of another rank at a time */
static void firehose_mpi_exclude(MPI_Win win, int rank, int is_exclusive)
{
    firehose_mpi_window_t *window = firehose_mpi_find(win);

    if ((window != NULL) && (rank >= 0) && (rank < window->size)) {
        window->exclusive[rank] = is_exclusive;
    }
}

FIREHOSE_MPI_API int
MPI_Win_lock(int type, int rank, int assertion, MPI_Win win)
{
    firehose_mpi_exclude(win, rank, type == MPI_LOCK_EXCLUSIVE);
    return PMPI_Win_lock(type, rank, assertion, win);
}

FIREHOSE_MPI_API int MPI_Win_unlock(int rank, MPI_Win win)
{
    int here, there;

    firehose_mpi_exclude(win, rank, 0); /* refused transfers are repeated */
    here  = firehose_mpi_complete(win);
    there = PMPI_Win_unlock(rank, win);
    return (here == MPI_SUCCESS) ? there : here;
}
