/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_LEADER_H_
#define UCT_LEADER_H_

#include <ucs/sys/compiler_def.h>

/*
 * Notices that the process's first thread leaves without ending the process, by
 * pthread_exit(), thrd_exit() or cancellation: by the destructor of a thread's
 * key, which exit() does not run. Needs libc alone, for the first thread comes
 * here long before the helper is loaded, perhaps by another thread.
 */

BEGIN_C_DECLS

typedef void (*uct_leader_func_t)(void);

/** Begin to watch the first thread. Only a call by that thread has an effect;
 *  idempotent. Does not allocate. */
void uct_leader_watch(void);

/**
 * Set the function that the first thread calls as it leaves; if it has left
 * already, this thread calls it at once. Any thread.
 *
 * @param [in] func  May be called more than once. NULL: nothing.
 */
void uct_leader_on_leave(uct_leader_func_t func);

END_C_DECLS

#endif
