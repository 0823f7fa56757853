/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCX_HELPER_TOOL_LIBRARY_H_
#define UCX_HELPER_TOOL_LIBRARY_H_

#include "launcher.h"

/**
 * @file library.h
 *
 * Where the libraries that are to be preloaded lie, installed or in the build
 * tree.
 */

/**
 * Find libucx_helper.so: in $HELPER_MD_LIBDIR when that is set; in the build
 * tree that this program was built in; beside this program, in ../lib or
 * ../lib64; in the folder that configure was told.
 *
 * $HELPER_MD_LIBDIR is unset afterwards: it is for this program only.
 *
 * @param pipeline  Nonzero: libucx_pipeline_mpi.so as well, in front of it.
 * @param firehose  Nonzero: the libucx_firehose_mpi.so of the launcher's MPI
 *                  as well, in front of both. There is one for Open MPI and
 *                  one for Hydra (MPICH) and none for other launchers.
 * @param launcher  Who starts the job.
 *
 * @return What LD_PRELOAD is to hold, which the caller frees; NULL, after a
 *         message that says what could not be found and where it was looked
 *         for, or that LD_PRELOAD could not hold it.
 */
char *tool_library_find(int pipeline, int firehose, tool_launcher_t launcher);

#endif
