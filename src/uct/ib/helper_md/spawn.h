/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_SPAWN_H_
#define UCT_HELPER_SPAWN_H_

#include <ucs/sys/compiler_def.h>

#include <pthread.h>
#include <stddef.h>

/**
 * @file spawn.h
 *
 * How a thread of ours begins: the application does not know of it, so no
 * signal of the application's may ever run a handler on it.
 */

BEGIN_C_DECLS

/**
 * Start a thread in which all signals are blocked from its first instruction
 * on.
 *
 * @param [out] id_p        Set only on success; to be joined by the caller.
 * @param [in]  stack_size  Bytes; 0: the default.
 *
 * @return 0, or what pthread_create() returned. Does not log.
 */
int uct_helper_spawn(pthread_t *id_p, size_t stack_size,
                     void *(*main_func)(void *arg), void *arg);

END_C_DECLS

#endif
