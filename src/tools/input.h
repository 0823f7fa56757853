/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCX_HELPER_TOOL_INPUT_H_
#define UCX_HELPER_TOOL_INPUT_H_

#include <stddef.h>

/**
 * @file input.h
 *
 * The files that the commands read. Not thread safe.
 */

/**
 * Read a regular file or a pipe, such as `<(zcat x)`, gzip'ed or not, to its
 * end. A device, socket or folder is refused without being opened.
 *
 * @param [in]  max     Bytes of its content, at most.
 * @param [out] size_p  Bytes read.
 *
 * @return What is in it and a zero behind, which is the caller's to free; NULL
 *         after a message that names the file.
 */
char *tool_input_read(const char *file, size_t max, size_t *size_p);

#endif
