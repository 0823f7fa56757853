/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_WATCHED_H_
#define UCT_HELPER_WATCHED_H_

#include <ucs/sys/compiler_def.h>

#include <stdint.h>

/**
 * @file watched.h
 *
 * What the kernel watches for us, as far as we know: the kernel does not tell.
 * It is a note, from which follows what more to watch, and never that something
 * need not be: a mapping that changed by a raw system call may stand here
 * wrongly for the moment until its event has been read, or not at all.
 *
 * Thread-safe. Nothing is allocated.
 */

BEGIN_C_DECLS

/** Room for notes, which are intervals. They are there from the start, for none
 *  can be made where a memory event may come. With none left further memory is
 *  watched without a note, so it may come to lie beside memory that is not. At
 *  half as many that begins with half as many separate mappings; twice as many
 *  cost 40 KB more. */
#define UCT_HELPER_WATCHED_MAX 1024


/** Nothing is watched: before the first note, and after the last. */
void uct_helper_watched_clear(void);


/** In a child: as before the first note. The lock may have been held by a
 *  thread that does not exist there. */
void uct_helper_watched_forget(void);


/** Note that [@a start, @a end), whole pages, is watched. May be called where a
 *  memory event may; does nothing in a signal handler that interrupted the
 *  owner of the lock. */
void uct_helper_watched_add(uintptr_t start, uintptr_t end);


/** The reverse. Does nothing if the lock is not to be had. */
void uct_helper_watched_remove(uintptr_t start, uintptr_t end);


/**
 * For the reader of events. The thread that unmapped goes on as soon as its
 * event is read, and may note what it maps there next: so the reader holds the
 * notes from before it reads until it has removed what the events tell of. A
 * thread that holds them waits for nothing.
 *
 * @return Of @ref uct_helper_watched_try_hold: zero if they are not to be had;
 *         then @ref uct_helper_watched_remove may do it later.
 */
int uct_helper_watched_try_hold(void);
void uct_helper_watched_remove_held(uintptr_t start, uintptr_t end);
void uct_helper_watched_let_go(void);


/** @return Nonzero if any byte of the range is watched, or, with @a beside of
 *  1, one that is next to it. */
int uct_helper_watched_any(uintptr_t start, uintptr_t end, unsigned beside);

END_C_DECLS

#endif
