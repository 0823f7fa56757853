/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_WAITED_H_
#define UCS_WAITED_H_

#include <ucs/sys/sync/atomic.h>
#include <ucs/sys/compiler_def.h>

#include <stdint.h>
#include <sys/types.h>

/*
 * For how long have processes been ready to run and waited for a processor? Of each
 * its first thread counts, which communicates in most programs. The kernel tells in
 * /proc/PID/schedstat when a wait is over.
 */

BEGIN_C_DECLS

/** What was waited up to a moment; see @ref ucs_waited_read. */
typedef struct ucs_waited {
    uint64_t own;    /**< nanoseconds, of this process */
    uint64_t beside; /**< of the one beside it */
    pid_t    pid;    /**< that one; 0: none */
} ucs_waited_t;

/** Keep this process's file open. In a child: forget the parent's. One thread at a
 *  time. */
void ucs_waited_begin(void);

/** Close it. */
void ucs_waited_end(void);

/**
 * Look at another process, too, which stands for all of its kind. Any thread.
 *
 * @param [in] pid     0: none.
 * @param [in] others  There are so many, with that one.
 */
void ucs_waited_beside(pid_t pid, unsigned others);

/** @return Nanoseconds that this process has waited; 0: unknown. Any thread. */
uint64_t ucs_waited_ns(void);

/** Read what both have waited up to now. Any thread. */
void ucs_waited_read(ucs_waited_t *waited);

/** @return Nanoseconds that all have waited since, this process and the others. */
uint64_t ucs_waited_since(const ucs_waited_t *before);

END_C_DECLS

#endif
