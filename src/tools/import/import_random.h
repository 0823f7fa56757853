/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCX_HELPER_TOOL_IMPORT_RANDOM_H_
#define UCX_HELPER_TOOL_IMPORT_RANDOM_H_

#include <ucs/trace/trace.h>

/**
 * @file import_random.h
 *
 * A trace in which nothing can be foreseen.
 */

BEGIN_C_DECLS

/**
 * Each use is of a buffer, at a place of the program, after a gap and for a
 * time that all are drawn anew; some buffers are drawn more often than others,
 * and now and then one is unmapped and another takes its place. The same seed
 * gives the same trace.
 *
 * @param [out] trace  In order of time; @ref ucs_trace_cleanup frees it.
 */
void import_random_make(uint64_t seed, size_t uses, ucs_trace_t *trace);

END_C_DECLS

#endif
