/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_MONITOR_H_
#define UCT_HELPER_MONITOR_H_

#include "range.h"

#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>

#include <stdint.h>

/**
 * @file monitor.h
 *
 * Memory events from the kernel (userfaultfd): for what UCM's hooks of symbols
 * do not see. One descriptor and one reader thread serve all domains of the
 * process. Mappings are registered for events only; no page is ever protected
 * and no fault ever waits for the reader.
 *
 * The kernel joins neighbouring mappings only if both are watched or neither
 * is, and mremap() fails with EFAULT where it meets a border. So that a program
 * finds its mappings as they would be without us, private anonymous memory that
 * touches is watched all or not at all: with a mapping what touches it
 * (@ref uct_helper_range_t::run_start), and what the program maps beside it
 * (@ref uct_helper_monitor_spread). It stays so until it is unmapped, leaves
 * (@ref uct_helper_monitor_unwatch), or the last domain closes.
 *
 * A thread that unmaps watched memory sleeps inside the kernel until the reader
 * has taken the event. So the reader waits for nothing that such a thread
 * could hold: it allocates nothing, logs nothing, takes no signal, and of the
 * locks that it needs it only asks whether they are free.
 *
 * The reader has a table of descriptors of its own, with nothing but the
 * userfaultfd in it: what the program closes, or puts in place of a descriptor
 * that it does not know, is never read, and the events still come.
 */

BEGIN_C_DECLS

/** Name of the reader thread, as the kernel shows it. */
#define UCT_HELPER_MONITOR_THREAD_NAME "ucx-helper-mem"


/**
 * Begin to watch; the first user creates descriptor and reader.
 *
 * @param [out] reason_p  On failure what was refused, a constant string.
 *
 * @return UCS_OK; UCS_ERR_UNSUPPORTED if the kernel, its permissions or a
 *         seccomp filter refuse; UCS_ERR_NO_RESOURCE if the reader cannot be
 *         had.
 */
ucs_status_t uct_helper_monitor_start(const char **reason_p);


/** The counterpart. After the last user nothing is watched, and the reader has
 *  ended. Not from a memory event. */
void uct_helper_monitor_stop(void);


/**
 * Watch the mappings that @a range lies in, whole, and what touches them if it
 * can be had. Any thread that has started the monitor and not stopped it;
 * idempotent. Takes no lock that a memory event waits for.
 *
 * @param [in,out] range  If what touches it is not watched, its kept and kept_end
 *                        are made to leave that out.
 *
 * @return Nonzero if an event will be delivered for whatever unmaps, moves or
 *         discards any page of these mappings.
 */
int uct_helper_monitor_watch(uct_helper_range_t *range);


/**
 * The program has mapped [@a start, @a end): watched if it touches what is, or
 * it would not be joined with that. Any thread, at any time; does nothing if
 * nothing is watched. Allocates nothing.
 *
 * @param [out] range_p  What is known of it, if so.
 *
 * @return Nonzero if it is watched and all of it may be kept, as if it had been
 *         asked about and @ref uct_helper_monitor_watch called.
 */
int uct_helper_monitor_spread(uintptr_t start, uintptr_t end,
                              uct_helper_range_t *range_p);


/**
 * The program is about to map something at [@a start, @a end), which comes to
 * lie between what touches it on either side: if one of them is watched the
 * other must be, or the kernel joins what comes with that one where it would
 * join it with the one below. As above.
 */
void uct_helper_monitor_spread_beside(uintptr_t start, uintptr_t end);


/**
 * Watch [@a start, @a end) no more: the program is about to move it, or has its
 * own use for a userfaultfd there. Nothing of it may be registered without a
 * use any more. Any thread, at any time; allocates nothing.
 */
void uct_helper_monitor_unwatch(uintptr_t start, uintptr_t end);


/** Stop watching all that is watched now, so that neighbours can be joined; the
 *  reader does it soon. Any thread that has started the monitor. */
void uct_helper_monitor_unwatch_all(void);


/** In a child that no fork handler saw, or after them: nothing is watched, and
 *  the parent's reader is not ours. */
void uct_helper_monitor_forget(void);

END_C_DECLS

#endif
