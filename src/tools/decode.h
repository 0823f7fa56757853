/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCX_HELPER_TOOL_DECODE_H_
#define UCX_HELPER_TOOL_DECODE_H_

#include <ucs/trace/trace.h>

BEGIN_C_DECLS

/** A recording that was read. */
typedef struct tool_trace {
    ucs_trace_header_t header;
    ucs_trace_event_t  *events; /**< as written, nearly in order of time */
    size_t             count;
    int                is_cut;  /**< the end mark is missing: the process was
                                     killed, or the disk was full */
    size_t             cut;     /**< bytes left out then: a part of a record */
} tool_trace_t;

/** What is wrong with a buffer, and where. */
typedef struct tool_trace_error {
    size_t     offset; /**< byte of the buffer */
    const char *text;  /**< static, without a full stop */
} tool_trace_error_t;

/**
 * Decode a whole file, or what is whole of one that is cut short.
 *
 * @param [in]  buffer  Any bytes; need not be aligned.
 * @param [out] trace   Set only on success; @ref tool_trace_cleanup frees it.
 * @param [out] error   Set on failure.
 *
 * @return 0, or -1: no trace, not a valid one, of another version or byte order,
 *         or without the whole of its header.
 */
int tool_trace_decode(const void *buffer, size_t length, tool_trace_t *trace,
                      tool_trace_error_t *error);

/** Free what a decoded trace owns. */
void tool_trace_cleanup(tool_trace_t *trace);

END_C_DECLS

#endif
