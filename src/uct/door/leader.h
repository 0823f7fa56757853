/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_LEADER_H_
#define UCT_LEADER_H_

#include <ucs/sys/compiler_def.h>

/**
 * @file leader.h
 *
 * When does the process's first thread leave without ending the process, by
 * pthread_exit(), thrd_exit() or because another thread cancels it? The
 * destructor of a thread's key tells, which exit() does not run. Needs libc
 * alone, for the first thread comes here long before the helper is loaded, if
 * it is loaded at all, and then perhaps by another thread.
 */

BEGIN_C_DECLS

typedef void (*uct_leader_func_t)(void);


/** From now on notice when the first thread leaves. Only a call by that thread
 *  itself has an effect; idempotent. Does not allocate. */
void uct_leader_watch(void);


/**
 * Say what is to be called, in the first thread, as it leaves; if it has left
 * already the call is made at once, in this thread. From any thread.
 *
 * @param [in] func  May be called more than once. NULL: nothing.
 */
void uct_leader_on_leave(uct_leader_func_t func);

END_C_DECLS

#endif
