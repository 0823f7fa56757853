/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef FIREHOSE_MPI_LAYER_H
#define FIREHOSE_MPI_LAYER_H

#include <ucx_firehose.h>

#include <mpi.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/*
 * MPI_Put and MPI_Get on dynamic windows by firehose, for unchanged programs: a
 * preloaded library, built by the compiler of the program's MPI. The MPI still
 * does all but the transfers that are served here:
 *
 * - Transfers between two ranks with basic types at both ends are served; all
 *   else is passed on.
 * - Functions that complete transfers (flush, unlock, fence, complete, free)
 *   complete those here first, and then call the MPI.
 * - Before that call the MPI repeats transfers that firehose refused (a peer
 *   that cannot pin memory, an unmapped range), so nothing fails because of
 *   this layer.
 * - Epochs under an exclusive lock are the MPI's alone: the standard does not
 *   say whether such a lock is held before the first transfer.
 *
 *   window.c    variables of the environment; a window is opened by all of its ranks,
 *               and closed; memory that a program attaches and detaches
 *   transfer.c  what is put and got; what completes that, and who waits for whom
 */

/* Replacements of MPI's functions */
#define FIREHOSE_MPI_API __attribute__((visibility("default")))

typedef struct firehose_mpi_window firehose_mpi_window_t;

/** A transfer under way, with what the MPI needs to repeat it. */
typedef struct firehose_mpi_transfer {
    struct firehose_mpi_transfer *next;
    firehose_mpi_window_t        *window;
    MPI_Win                      win;
    void                         *local;
    int                          count;
    MPI_Datatype                 type;
    int                          target;
    MPI_Aint                     remote;
    int                          target_count;
    MPI_Datatype                 target_type;
    int                          is_put;
} firehose_mpi_transfer_t;

/** Attached memory. */
typedef struct firehose_mpi_attached {
    struct firehose_mpi_attached *next;
    const void                   *base;
    size_t                       length;
} firehose_mpi_attached_t;

/** A served window. */
struct firehose_mpi_window {
    MPI_Comm                comm;       /**< a copy of the window's */
    int                     rank;
    int                     size;
    ucx_firehose_h          firehose;
    uint8_t                 *exclusive; /**< for each rank: such a lock is
                                             held */
    atomic_ulong            pending;    /**< transfers under way */
    atomic_ulong            served;     /**< transfers, since it was made */
    atomic_ulong            passed;
    atomic_ulong            again;
    pthread_mutex_t         lock;       /**< protects what follows; nothing else
                                             is taken under it */
    firehose_mpi_transfer_t *refused;
    firehose_mpi_attached_t *attached;
};

/* --- window.c --- */

/** @return The served window, which MPI_Win_free() releases, or NULL if it is
 *          the MPI's alone. Any thread. */
firehose_mpi_window_t *firehose_mpi_find(MPI_Win win);

/* --- transfer.c --- */

/** Complete all transfers that were begun here; the MPI repeats refused ones.
 *  Any thread that may call the MPI.
 *
 *  @return MPI_SUCCESS or the MPI's error of a repeated one. */
int firehose_mpi_complete(MPI_Win win);

#endif
