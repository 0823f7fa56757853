/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_SITE_H_
#define UCT_SITE_H_

/*
 * A site's settings for all jobs, in lines as of UCX's ucx.conf: `NAME=VALUE`, where
 * NAME begins with UCX_MD_HELPER or UCX_MD_PIN; empty lines, and comments that begin
 * with # or ;. libc only; not thread-safe.
 */

#ifdef __cplusplus
extern "C" {
#endif

/** Read unless the variable names another one. Need not be there. */
#define UCT_SITE_FILE "/etc/ucx-helper.conf"
#define UCT_SITE_ENV  "HELPER_MD_SITE_FILE"

/** Bytes of a line that says what is wrong. */
#define UCT_SITE_ERROR_MAX 512

/**
 * Set what a site file says and the environment does not. Before main(), as it changes
 * the environment.
 *
 * @param [in]  file   Its name.
 * @param [in]  must   Nonzero: it is an error if there is none.
 * @param [in]  is_on  Says whether anything is switched on then. If not, as for a job that
 *                     opts out, nothing is set.
 * @param [out] error  What is wrong, with file and line.
 *
 * @return 0, or -1: nothing is set.
 */
int uct_site_read(const char *file, int must, int (*is_on)(void),
                  char error[UCT_SITE_ERROR_MAX]);

#ifdef __cplusplus
}
#endif

#endif
