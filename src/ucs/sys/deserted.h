/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_DESERTED_H_
#define UCS_DESERTED_H_

#include <ucs/sys/compiler_def.h>

/**
 * @file deserted.h
 *
 * A process whose first thread has left ends when its last thread does, by
 * exit(0) in that one: so says the C library. It counts our threads too, and
 * these end only when their domains are closed, which may be never. So from
 * that moment on a thread of ours looks now and then whether any is left that
 * is not ours, and if none is it calls exit(0) itself.
 */

BEGIN_C_DECLS

/** The first thread leaves, or has left: see to the process's end. Once a
 *  process, later calls do nothing. From any thread. */
void ucs_deserted_watch(void);

END_C_DECLS

#endif
