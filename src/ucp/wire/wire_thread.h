/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCP_WIRE_THREAD_H_
#define UCP_WIRE_THREAD_H_

#include <ucs/sys/compiler_def.h>

#include <pthread.h>

/*
 * Threads of a library above UCP that call it, and forks and the program's end beside
 * them.
 *
 * UCM holds a read-write lock while memory is mapped or unmapped. A child whose
 * parent's thread was in there finds it taken for ever, and hangs as soon as it opens a
 * UCX context of its own. So fork() waits until no thread of ours is inside UCX.
 */

BEGIN_C_DECLS

/**
 * Start a thread with all signals blocked from its first instruction: the program does
 * not know it, so none of its handlers may run there.
 *
 * @param [in] stack_size  Bytes, enough for UCX; 0: the C library's default, for a thread
 *                         that runs the program's code. Enlarged to the default if the
 *                         program's thread-local variables need it.
 *
 * @return 0, then the caller joins it, or what pthread_create() returned.
 */
int ucp_wire_thread_start(pthread_t *thread, size_t stack_size,
                          void *(*main_func)(void *arg), void *arg);

/**
 * Around each call of UCX by such a thread, not nested. It does not wait: a fork handler of
 * the program's may wait for who stops the thread.
 *
 * @param [in] calls_out  Nonzero, both times: the program may fork in a function of its own
 *                        that is called in between. This takes a thread-local variable,
 *                        which the C library allocates.
 *
 * @return Nonzero, then @ref ucp_wire_thread_leave follows; zero while the process forks,
 *         then the thread looks whether it is to stop, and tries again.
 */
int ucp_wire_thread_enter(int calls_out);
void ucp_wire_thread_leave(int calls_out);

/** Wait until none is inside, @ref UCP_WIRE_FORK_WAIT_SECONDS at most. */
void ucp_wire_thread_await(void);

END_C_DECLS

#endif
