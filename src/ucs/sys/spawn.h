/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_SPAWN_H_
#define UCS_SPAWN_H_

#include <ucs/sys/compiler_def.h>

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

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
 * @param [in]  stack_size  Bytes; 0: the default. More is taken where the
 *                          program's thread-local variables need it.
 *
 * @return 0, or what pthread_create() returned. Does not log.
 */
int ucs_spawn(pthread_t *id_p, size_t stack_size, void *(*main_func)(void *arg),
              void *arg);


/** The calling thread is one of ours, and stays until the process would be
 *  better off without it: its first and last call, each once. Neither allocates
 *  nor blocks. One that does not call them is taken for the application's. */
void ucs_spawn_enter(void);
void ucs_spawn_leave(void);


/** @return How many threads are ours, for @ref ucs_spawn_number; equal
 *          to an earlier value only if none began or ended since. */
uint64_t ucs_spawn_ours(void);


/** @return Number of threads in a value of @ref ucs_spawn_ours. */
static inline uint32_t ucs_spawn_number(uint64_t ours)
{
    return (uint32_t)ours;
}


/** In a forked child: none of them is here. */
void ucs_spawn_forget(void);

END_C_DECLS

#endif
