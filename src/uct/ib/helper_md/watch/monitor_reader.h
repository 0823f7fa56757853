/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_HELPER_MONITOR_READER_H_
#define UCT_HELPER_MONITOR_READER_H_

#include <ucs/sys/io/own_fd.h>

/*
 * The thread that reads the kernel's memory events and passes them on to all
 * caches; one a process. Start and stop under the monitor's lock.
 */

/**
 * Start the thread.
 *
 * @param [in] own  A userfaultfd. The thread has a reference of its own, in a table
 *                  of descriptors of its own; the caller's stays the caller's.
 *
 * @return NULL, or what was refused, a constant string.
 */
const char *uct_helper_reader_start(ucs_own_fd_t *own);

/**
 * Have it unwatch all memory, and end. It ends when all threads that wait for
 * it inside the kernel have gone on.
 */
void uct_helper_reader_stop(void);

/** Have it unwatch all memory soon. Any thread; not from a memory event. */
void uct_helper_reader_unwatch_all(void);

/** In a child: there is no reader. */
void uct_helper_reader_forget(void);

#endif
