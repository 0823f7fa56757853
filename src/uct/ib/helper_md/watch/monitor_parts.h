/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_HELPER_MONITOR_PARTS_H_
#define UCT_HELPER_MONITOR_PARTS_H_

#include <ucs/sys/compiler_def.h>
#include <ucs/sys/io/own_fd.h>

#include <stdint.h>

/*
 * The parts of the monitor. Calls go down this list only:
 *
 *   monitor.c         what is watched, for the whole process
 *   monitor_reader.c  the thread that reads the kernel's events
 *   watched.c         notes of what the kernel watches
 *   uffd.c            the kernel's side of watching
 */

BEGIN_C_DECLS

/* --- monitor_reader.c: the thread that reads the kernel's memory events and passes
 * them on to all caches; one a process. Start and stop under the monitor's lock. --- */

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

/* --- watched.c: notes of what the kernel watches, which it cannot be asked for. They
 * tell what else to watch, and never that something need not be watched: after a raw
 * system call a note may be wrong until the event has been read, or missing.
 * Thread-safe. Nothing is allocated. --- */

/** Nothing is watched: before the first note, and after the last. */
void uct_helper_watched_clear(void);

/** In a child: forget all notes. A thread that does not exist there may have
 *  held the lock. */
void uct_helper_watched_forget(void);

/** Note that [@a start, @a end), whole pages, is watched. May be called where a
 *  memory event may; does nothing in a signal handler that interrupted the
 *  owner of the lock. */
void uct_helper_watched_add(uintptr_t start, uintptr_t end);

/** The reverse. Does nothing if the lock is taken. */
void uct_helper_watched_remove(uintptr_t start, uintptr_t end);

/**
 * For the reader of events. A thread that unmapped goes on as soon as its event
 * is read, and may note what it maps there next. So the reader holds the notes
 * from before the read until it has removed those of unmapped ranges. A thread
 * that holds them waits for nothing.
 *
 * @return Of @ref uct_helper_watched_try_hold: zero if another thread holds them. Then
 *         the notes stay, for the caller might remove newer ones later.
 */
int uct_helper_watched_try_hold(void);
void uct_helper_watched_remove_held(uintptr_t start, uintptr_t end);
void uct_helper_watched_let_go(void);

/** @return Nonzero if any byte of the range is watched, or, with @a beside of
 *  1, one that is next to it. */
int uct_helper_watched_any(uintptr_t start, uintptr_t end, unsigned beside);

/* --- uffd.c: a userfaultfd for events alone. Stateless; nothing here allocates, logs
 * or takes a lock. Thread-safe. --- */

/**
 * Open one for unmapped, moved and discarded memory.
 *
 * @param [out] reason_p  On failure what was refused, a constant string.
 *
 * @return The descriptor, non-blocking and closed by exec(), or -1.
 */
int uct_helper_uffd_open(const char **reason_p);

/** Watch [@a start, @a end), whole pages. @return Zero if refused, as where
 *  another userfaultfd watches or nothing is mapped. */
int uct_helper_uffd_watch(int fd, uintptr_t start, uintptr_t end);

/** The reverse. @return Zero if refused; what is not watched is no error. */
int uct_helper_uffd_unwatch(int fd, uintptr_t start, uintptr_t end);

/** The reverse for all private anonymous memory of the process. */
void uct_helper_uffd_unwatch_all(int fd);

END_C_DECLS

#endif
