/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCX_HELPER_TOOL_INPUT_H_
#define UCX_HELPER_TOOL_INPUT_H_

#include <zlib.h>

/**
 * @file input.h
 *
 * The files that the commands read. Not thread safe.
 */

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Open a regular file or a pipe, such as `<(zcat x)`, to be read to its end.
 * A device, socket or folder is refused without being opened. A pipe
 * without a writer is given up after a second; a writer that is slow is waited
 * for, after a line that says so.
 *
 * @return A descriptor, which is the caller's, or -1 after a message that names
 *         the file.
 */
int tool_input_open(const char *file);

/**
 * The same, of a file that may be gzip'ed.
 *
 * @return What gzclose() closes, or NULL after a message.
 */
gzFile tool_input_open_gz(const char *file);

#ifdef __cplusplus
}
#endif

#endif
