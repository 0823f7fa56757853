/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_SPAWN_H_
#define UCS_SPAWN_H_

#include <ucs/sys/compiler_def.h>

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Starts our threads. The application does not know them, so its signal
 * handlers must never run on them.
 */

BEGIN_C_DECLS

/** A thread of ours; written by @ref ucs_spawn alone. */
typedef struct ucs_spawned {
    pthread_t id;
    void      *stack; /* own memory, or NULL: the C library's */
    size_t    length; /* bytes of it, with its guard */
} ucs_spawned_t;

/**
 * Start a thread with all signals blocked from its first instruction. Its stack
 * is own memory (own_memory.h). It must not call malloc() or free(), also not
 * indirectly: the C library would make an arena for it.
 *
 * @param [out] thread      Valid only on success; to be joined by the caller.
 * @param [in]  stack_size  Bytes; 0: the C library's default, for a thread that
 *                          runs the program's code. Enlarged if the program's
 *                          thread-local variables need it.
 *
 * @return 0, or what pthread_create() returned, or ENOMEM. Does not log.
 */
int ucs_spawn(ucs_spawned_t *thread, size_t stack_size,
              void *(*main_func)(void *arg), void *arg);

/** Wait for its end, once, and release its stack. @return What it returned. */
void *ucs_spawn_join(ucs_spawned_t *thread);

/** The same without waiting.
 *
 *  @return Nonzero if it has ended, and is joined. */
int ucs_spawn_try_join(ucs_spawned_t *thread);

/** First and last call of a thread of ours that lives long, once each. Neither
 *  allocates nor blocks. A thread that does not call them counts as the
 *  application's. */
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

/** In a forked child: there are no threads of ours. */
void ucs_spawn_forget(void);

END_C_DECLS

#endif
