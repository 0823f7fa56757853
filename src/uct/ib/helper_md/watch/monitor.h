/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_HELPER_MONITOR_H_
#define UCT_HELPER_MONITOR_H_

#include "range.h"

#include <ucs/sys/compiler_def.h>

#include <stdint.h>

/*
 * Memory events from the kernel (userfaultfd), for what UCM's hooks do not see.
 * One descriptor and one reader thread serve all domains of the process.
 * Mappings are registered for events only: no page is protected, and no fault
 * waits for the reader.
 *
 * The kernel joins neighbouring mappings only if both are watched or neither
 * is, and mremap() fails with EFAULT at a border. So that the program finds its
 * mappings as without us, adjoining private anonymous memory is watched all or
 * not at all: what touches a mapping (@ref uct_helper_range_t::run_start), and
 * what the program maps beside it (@ref uct_helper_monitor_spread). It stays
 * watched until it is unmapped, leaves (@ref uct_helper_monitor_unwatch), or
 * the last domain closes.
 *
 * A thread that unmaps watched memory sleeps in the kernel until the reader has
 * taken the event. So the reader waits for nothing that such a thread could
 * hold: it does not allocate or log, takes no signal, and only tries locks.
 *
 * The reader has its own table of descriptors, with only the userfaultfd in it.
 * So the events still come if the program closes or replaces a descriptor that
 * it does not know.
 */

BEGIN_C_DECLS

/** Name of the reader thread, as the kernel shows it. */
#define UCT_HELPER_MONITOR_THREAD_NAME "ucx-helper-mem"

/**
 * Start the monitor; the first user creates descriptor and reader.
 *
 * @return NULL, or what was refused, by the kernel, its permissions or a seccomp
 *         filter: a constant string.
 */
const char *uct_helper_monitor_start(void);

/** The counterpart. After the last user nothing is watched, and the reader has
 *  ended. Not from a memory event. */
void uct_helper_monitor_stop(void);

/**
 * Watch the whole mappings that @a range lies in, and what touches them if
 * possible. Any thread between start and stop; idempotent. Takes no lock that a
 * memory event waits for.
 *
 * @param [in,out] range  If what touches it is not watched, kept and kept_end
 *                        exclude that.
 *
 * @return Nonzero if an event will be delivered for whatever unmaps, moves or
 *         discards any page of these mappings.
 */
int uct_helper_monitor_watch(uct_helper_range_t *range);

/**
 * The program has mapped [@a start, @a end). Watch it if it touches watched
 * memory, so that the kernel joins them. Any thread, at any time; does nothing
 * if nothing is watched. Allocates nothing.
 *
 * @param [out] range_p  What is known of it, if it is watched.
 *
 * @return Nonzero if it is watched and all of it may be kept, as after @ref
 *         uct_helper_monitor_watch.
 */
int uct_helper_monitor_spread(uintptr_t start, uintptr_t end,
                              uct_helper_range_t *range_p);

/**
 * The program is about to map [@a start, @a end). If the memory on one side of
 * it is watched, watch that on the other side too; else the kernel would join
 * the new mapping with the upper one instead of the lower one. As above.
 */
void uct_helper_monitor_spread_beside(uintptr_t start, uintptr_t end);

/**
 * Stop watching [@a start, @a end): the program is about to move it, or uses a
 * userfaultfd there itself. None of it may be registered without a use any
 * more. Any thread, at any time; allocates nothing.
 */
void uct_helper_monitor_unwatch(uintptr_t start, uintptr_t end);

/** Stop watching everything, so that neighbours can be joined; the reader does
 *  it soon. Any thread that has started the monitor. */
void uct_helper_monitor_unwatch_all(void);

/** In a child: nothing is watched, and there is no reader. */
void uct_helper_monitor_forget(void);

END_C_DECLS

#endif
