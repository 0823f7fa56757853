/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_MONITOR_H_
#define UCT_HELPER_MONITOR_H_

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
 * Whole mappings are watched, and stay so until they are unmapped or the last
 * domain closes: a part would split its mapping, after which mremap() of the
 * whole fails with EFAULT, and the number of mappings would grow under churn.
 *
 * A thread that unmaps watched memory sleeps inside the kernel until the reader
 * has taken the event. So the reader waits for nothing that such a thread
 * could hold: it allocates nothing, logs nothing, takes no signal, and of the
 * index lock it only asks whether it is free.
 */

BEGIN_C_DECLS

/** What tells of memory that goes away (UCX_MD_HELPER_MONITOR). */
typedef enum uct_helper_monitor {
    UCT_HELPER_MONITOR_AUTO,        /**< both, or what can be had of them */
    UCT_HELPER_MONITOR_UCM,         /**< UCX's hooks of mmap() and the like */
    UCT_HELPER_MONITOR_USERFAULTFD, /**< the kernel */
    UCT_HELPER_MONITOR_BOTH,
    UCT_HELPER_MONITOR_LAST
} uct_helper_monitor_t;

/** Names of the monitors, in the order of the enumeration, NULL-terminated. */
extern const char *uct_helper_monitor_names[];

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
 * Watch [@a start, @a end), whole mappings. Any thread that has started the
 * monitor and not stopped it; idempotent. Takes no lock of ours.
 *
 * @return Nonzero if an event will be delivered for whatever unmaps, moves or
 *         discards any page of it.
 */
int uct_helper_monitor_watch(uintptr_t start, uintptr_t end);

END_C_DECLS

#endif
