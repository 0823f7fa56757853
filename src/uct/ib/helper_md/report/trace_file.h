/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_TRACE_FILE_H_
#define UCT_HELPER_TRACE_FILE_H_

#include <ucs/sys/compiler_def.h>
#include <ucs/sys/io/own_fd.h>
#include <ucs/type/status.h>

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

/**
 * @file trace_file.h
 *
 * The file of a trace. A program may close descriptors that it does not know
 * and reuse their numbers, so each call checks that the descriptor is still the
 * trace's. One thread at a time.
 */

BEGIN_C_DECLS

typedef struct uct_helper_trace_file {
    ucs_own_fd_t own;            /**< none: no file is open */
    off_t        offset;         /**< where the next write goes */
    char         path[PATH_MAX]; /**< for messages, also when closed */
} uct_helper_trace_file_t;


/**
 * Open the file of @a pattern, see @ref uct_helper_report_expand. Only a
 * regular file is opened.
 *
 * @return UCS_OK, or after one line of warning the reason why not.
 */
ucs_status_t uct_helper_trace_file_open(uct_helper_trace_file_t *file,
                                        const char *pattern);


/**
 * Write @a size bytes; the next call overwrites all but the first @a keep of
 * them. On failure logs one warning and closes the file. Does nothing if none
 * is open.
 */
void uct_helper_trace_file_write(uct_helper_trace_file_t *file,
                                 const void *bytes, size_t size, size_t keep);


/** Close the file, if one is open and the descriptor is still its own. */
void uct_helper_trace_file_close(uct_helper_trace_file_t *file);

END_C_DECLS

#endif
