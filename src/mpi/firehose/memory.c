/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "layer.h"

#include <stdlib.h>

/** Nanoseconds that a detach waits for the peers. Their threads answer in
 *  microseconds; a lost one has been noticed by then. Half: a rank that is
 *  stopped for so long in a debugger keeps its firehose. Double: a detach hangs
 *  twice as long on one. */
#define FIREHOSE_MPI_DETACH_NS UINT64_C(10000000000)

/* Without the MPI: it pins nothing then, and does no transfers */
static int firehose_mpi_attaches(void)
{
    return firehose_mpi_option("FIREHOSE_MPI_ATTACH", 1);
}

FIREHOSE_MPI_API int MPI_Win_attach(MPI_Win win, void *base, MPI_Aint length)
{
    firehose_mpi_window_t *window = firehose_mpi_find(win);
    firehose_mpi_attached_t *attached;
    int status = MPI_SUCCESS;

    if ((window == NULL) || firehose_mpi_attaches()) {
        status = PMPI_Win_attach(win, base, length);
    }
    if ((window == NULL) || (status != MPI_SUCCESS)) {
        return status;
    }
    attached = malloc(sizeof(*attached));
    if (attached != NULL) { /* else the unmapping releases it */
        pthread_mutex_lock(&window->lock);
        attached->next   = window->attached;
        attached->base   = base;
        attached->length = length;
        window->attached = attached;
        pthread_mutex_unlock(&window->lock);
    }
    return status;
}

FIREHOSE_MPI_API int MPI_Win_detach(MPI_Win win, const void *base)
{
    firehose_mpi_window_t *window = firehose_mpi_find(win);
    firehose_mpi_attached_t **at, *attached = NULL;

    if (window != NULL) {
        pthread_mutex_lock(&window->lock);
        for (at = &window->attached; *at != NULL; at = &(*at)->next) {
            if ((*at)->base == base) {
                attached = *at;
                *at      = attached->next;
                break;
            }
        }
        pthread_mutex_unlock(&window->lock);
        if (attached != NULL) {
            (void)ucx_firehose_release(window->firehose, base, attached->length,
                                       FIREHOSE_MPI_DETACH_NS);
            free(attached);
        }
    }
    return ((window == NULL) || firehose_mpi_attaches()) ?
                   PMPI_Win_detach(win, base) :
                   MPI_SUCCESS;
}
