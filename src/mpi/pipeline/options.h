/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef MPI_PIPELINE_OPTIONS_H_
#define MPI_PIPELINE_OPTIONS_H_

#include <ucp/pipeline/ucx_pipeline.h>

/** What the environment says. */
typedef struct mpi_layer_options {
    size_t                 min_bytes; /**< rank 0's goes for all */
    ucx_pipeline_options_t pipeline;
} mpi_layer_options_t;

/** @return Zero if a value is not allowed: then a line has said which, and what
 *          is. */
int mpi_layer_options_read(mpi_layer_options_t *options);

#endif
