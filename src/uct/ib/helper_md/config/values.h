/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_HELPER_VALUES_H_
#define UCT_HELPER_VALUES_H_

#include "helper_config.h"

/*
 * Readers of options for which UCX has none, or one that accepts bad text. Each
 * function returns nonzero and sets its output only if the whole text is valid;
 * none logs. They need libc alone: `ucx-helper`, which is linked without UCX,
 * uses them too.
 */

BEGIN_C_DECLS

/** Bytes in UCX's syntax: 4096, 16k, 2MB, 1g, inf (SIZE_MAX). */
int uct_helper_value_size(const char *text, size_t *value_p);

/** A share from 0.001% to 100%: 0.005, 0.5%, 1. */
int uct_helper_value_share(const char *text, double *value_p);

/** A count, or inf (ULONG_MAX). */
int uct_helper_value_count(const char *text, unsigned long *value_p);

/** Processors such as 0-3,8; not empty, below UCS_CPU_SETSIZE. */
int uct_helper_value_cpus(const char *text, ucs_cpu_set_t *value_p);

/** A UCX time of @a max_ns at most, in nanoseconds: 1.5ms, 2m; a bare number means
 *  seconds. */
int uct_helper_value_time(const char *text, double max_ns, double *ns_p);

/** Two UCX times such as 5us,100ns, in nanoseconds: of a registration, a second
 *  at most, and of each of its pages, a millisecond at most; a bare number
 *  means seconds. Empty text: both 0. */
int uct_helper_value_cost(const char *text, double *base_ns_p,
                          double *per_page_ns_p);

/** A UCX time above 0 and of a second at most, in nanoseconds. Empty text:
 *  0. */
int uct_helper_value_told(const char *text, double *told_ns_p);

/** stderr, FILE, json:FILE, the words in any case; empty: no report. A FILE
 *  that begins with letters and a colon is refused: that is a mistyped form. */
int uct_helper_value_report(const char *text, uct_helper_report_dest_t *dest);

END_C_DECLS

#endif
