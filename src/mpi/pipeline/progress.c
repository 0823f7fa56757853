/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#include "layer.h"

#include <sched.h>

/*
 * Progress. A program may stand in any function of its MPI, a barrier for
 * example, while a message of the pipeline is to come or to go, and the MPI
 * knows nothing of it. So the pipeline goes on whenever the MPI calls UCP's
 * progress. From there the MPI itself cannot be called, so whether a posted
 * receive has found a herald is seen by a look into its landing buffer.
 */

static __thread int mpi_layer_is_inside;
static __thread unsigned mpi_layer_idle;
static __thread unsigned mpi_layer_calls;

void mpi_layer_peek(void)
{
    mpi_layer_herald_t herald;
    mpi_layer_op_t *op, *next;

    pthread_mutex_lock(&mpi_layer.lock);
    ucs_list_for_each_safe(op, next, &mpi_layer.posted, list) {
        if (mpi_layer_herald_read(op->landing, &herald)) {
            mpi_layer_op_receive(op, &herald);
        }
    }
    pthread_mutex_unlock(&mpi_layer.lock);
}

static unsigned mpi_layer_step(void)
{
    static unsigned steps; /* protected by step_lock */
    unsigned count;

    if (pthread_mutex_trylock(&mpi_layer.step_lock)) {
        return 0;
    }
    mpi_layer_is_inside = 1;
    count               = ucx_pipeline_progress(mpi_layer.pipeline);
    if (((++steps % MPI_LAYER_PEEK_STEPS) == 0) &&
        ucx_pipeline_probe(mpi_layer.pipeline, UCX_PIPELINE_ANY_SOURCE, 0, 0,
                           NULL)) {
        mpi_layer_peek();
    }
    mpi_layer_is_inside = 0;
    pthread_mutex_unlock(&mpi_layer.step_lock);
    return count;
}

unsigned mpi_layer_hook(void *worker)
{
    unsigned count = mpi_layer.progress(worker);

    if (!mpi_layer.on) {
        ucs_add_relaxed(&mpi_layer.num_progress, 1); /* relaxed: a count */
    } else if (!mpi_layer_is_inside &&
               ((ucs_load_relaxed(&mpi_layer.num_busy) > 0) || /* relaxed: a
                                        hint, looked at again and again */
                (++mpi_layer_calls % MPI_LAYER_IDLE_CALLS == 0))) {
        count += mpi_layer_step();
    }
    return count;
}

void mpi_layer_pump(void)
{
    int found;

    if (mpi_layer_step() > 0) {
        mpi_layer_idle = 0;
    } else if (++mpi_layer_idle >= MPI_LAYER_IDLE_STEPS) {
        mpi_layer_idle = 0;
        sched_yield();
    }
    /* Nothing ever comes there: the MPI's own progress */
    REAL_MPI(Iprobe)(MPI_ANY_SOURCE, MPI_ANY_TAG, mpi_layer.progress_comm,
                     &found, MPI_STATUS_IGNORE);
    (void)mpi_layer_ops_end_freed();
}

void mpi_layer_progress_end(void)
{
    mpi_layer.door->set_progress(NULL);
    pthread_mutex_lock(&mpi_layer.step_lock); /* for ever */
}
