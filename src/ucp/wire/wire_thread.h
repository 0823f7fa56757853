/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCP_WIRE_THREAD_H_
#define UCP_WIRE_THREAD_H_

#include <ucs/sys/proc/spawn.h>

/*
 * Threads of a library above UCP that call it, and forks beside them.
 *
 * UCM holds a read-write lock while memory is mapped or unmapped. A child whose
 * parent's thread was in there finds it taken for ever, and hangs as soon as it opens a
 * UCX context of its own. So fork() waits until no thread of ours is inside UCX.
 */

BEGIN_C_DECLS

/** As @ref ucs_spawn, for a thread that calls UCX. UCX allocates, so the C library makes
 *  an arena for it. */
int ucp_wire_thread_start(ucs_spawned_t *thread, void *(*main_func)(void *arg),
                          void *arg);

/**
 * Around each call of UCX by such a thread, not nested, and without calls of the
 * program's. It does not wait: a fork handler of the program's may wait for who stops the
 * thread.
 *
 * @return Nonzero, then @ref ucp_wire_thread_leave follows; zero while the process forks,
 *         then the thread looks whether it is to stop, and tries again.
 */
int ucp_wire_thread_enter(void);
void ucp_wire_thread_leave(void);

/** @return The number of this process (process.h), for a memory event: a child has
 *          none of our threads, and finds locks closed that its parent's held. */
uint32_t ucp_wire_process(void);

END_C_DECLS

#endif
