/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_HELPER_REPORT_PATH_H_
#define UCT_HELPER_REPORT_PATH_H_

#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>

#include <stddef.h>

/*
 * The names of the files of a process: of its report and of its trace. Any
 * thread; nothing is allocated.
 */

BEGIN_C_DECLS

/**
 * Rank of this process, from the environment of Open MPI, PMI, PMIx or Slurm;
 * -1 if there is none.
 */
int uct_helper_report_rank(void);

/**
 * Expand %h (host), %p (process id), %r (rank, "x" if unknown) and %% in a
 * path.
 *
 * @return UCS_OK, or UCS_ERR_EXCEEDS_LIMIT if the result does not fit.
 */
ucs_status_t uct_helper_report_expand(const char *pattern, char *path,
                                      size_t max);

END_C_DECLS

#endif
