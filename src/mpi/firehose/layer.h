/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef FIREHOSE_MPI_LAYER_H
#define FIREHOSE_MPI_LAYER_H

#include <ucx_firehose.h>

#include <mpi.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/*
 * MPI_Put and MPI_Get on dynamic windows by firehose, for programs as they are:
 * a library that is preloaded, built by the compiler of the program's MPI. All
 * is done by the MPI as well but what is moved here:
 *
 * - Served are transfers between two ranks whose types at both ends are basic
 *   ones. Whatever else a program does is passed on.
 * - What completes transfers (flush, unlock, fence, complete, free) completes
 *   those here first, and then calls the MPI.
 * - What firehose refuses (a peer that cannot pin memory, a range that is not
 *   there) is done again by the MPI, before that call; so nothing fails that
 *   would not fail without this.
 * - Epochs under an exclusive lock are the MPI's alone: whether such a lock is
 *   held before the first transfer, the standard leaves open.
 *
 *   window.c    a window is opened by all of its ranks, and closed
 *   memory.c    memory that a program attaches and detaches
 *   transfer.c  what is put and got
 *   complete.c  what completes transfers, and who waits for whom
 *   options.c   variables of the environment
 */

/* What MPI's function of that name is replaced by */
#define FIREHOSE_MPI_API __attribute__((visibility("default")))

typedef struct firehose_mpi_window firehose_mpi_window_t;

/** A transfer that is under way, as the MPI is to do it if it fails here. */
typedef struct firehose_mpi_transfer {
    struct firehose_mpi_transfer *next;
    firehose_mpi_window_t        *window;
    void                         *local;
    int                          count;
    MPI_Datatype                 type;
    int                          target;
    MPI_Aint                     remote;
    int                          target_count;
    MPI_Datatype                 target_type;
    int                          is_put;
} firehose_mpi_transfer_t;

/** Memory that has been attached. */
typedef struct firehose_mpi_attached {
    struct firehose_mpi_attached *next;
    const void                   *base;
    size_t                       length;
} firehose_mpi_attached_t;

/** A window that is served. */
struct firehose_mpi_window {
    MPI_Win                 win;
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

/* --- options.c --- */

/** @return Nonzero if the variable @a name says yes, or if it is not set and
 *          @a otherwise does. */
int firehose_mpi_option(const char *name, int otherwise);

/** @return Bytes that this rank lends the others of a window, by
 *          FIREHOSE_MPI_MEMORY. */
size_t firehose_mpi_memory(void);

/* --- window.c --- */

/** @return What serves the window, which MPI_Win_free() releases, or NULL if
 *          that is the MPI's alone. By any thread. */
firehose_mpi_window_t *firehose_mpi_find(MPI_Win win);

/* --- transfer.c --- */

/** Do by the MPI what firehose has refused. @return What the MPI says. */
int firehose_mpi_again(const firehose_mpi_transfer_t *transfer);

/* --- complete.c --- */

/** All that was begun here is there, or is the MPI's now. By any thread that
 *  may call the MPI.
 *
 *  @return MPI_SUCCESS or what the MPI said of one that it did again. */
int firehose_mpi_complete(MPI_Win win);

#endif
