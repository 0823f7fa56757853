/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_DESERTED_H_
#define UCS_DESERTED_H_

#include <ucs/sys/compiler_def.h>

/*
 * A process whose first thread has called pthread_exit() ends with its last
 * thread, which calls exit(0). The C library counts our threads too, which may
 * never end. So from then on a thread of ours looks now and then whether only
 * ours are left, and then calls exit(0) itself.
 */

BEGIN_C_DECLS

/** The first thread leaves or has left: watch for the process's end. Later
 *  calls in a process do nothing. Any thread. */
void ucs_deserted_watch(void);

END_C_DECLS

#endif
