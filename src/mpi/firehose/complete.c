/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "layer.h"

#include <sched.h>
#include <stdlib.h>

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
