/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCX_HELPER_TOOL_LIBRARY_H_
#define UCX_HELPER_TOOL_LIBRARY_H_

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
 *
 * @return What LD_PRELOAD is to hold, which the caller frees; NULL, after a message that says
 *         where it was looked for, when there is none or LD_PRELOAD could not
 *         hold it.
 */
char *tool_library_find(int pipeline);

#endif
