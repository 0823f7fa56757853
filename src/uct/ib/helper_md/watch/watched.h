/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_HELPER_WATCHED_H_
#define UCT_HELPER_WATCHED_H_

#include <ucs/sys/compiler_def.h>

#include <stdint.h>

/*
 * Notes of what the kernel watches, which it cannot be asked for. They tell
 * what else to watch, and never that something need not be watched: after a raw
 * system call a note may be wrong until the event has been read, or missing.
 *
 * Thread-safe. Nothing is allocated.
 */

BEGIN_C_DECLS

/** Number of notes, which are intervals. Allocated at the start, for a memory
 *  event must not allocate. When all are used, further memory is watched
 *  without a note and may lie beside memory that is not watched. Half: that
 *  begins with half as many separate mappings. Double: 40 KB more. */
#define UCT_HELPER_WATCHED_MAX 1024

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

END_C_DECLS

#endif
