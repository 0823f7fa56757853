/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_PROCESS_H_
#define UCS_PROCESS_H_

#include <ucs/sys/atomic.h>
#include <ucs/sys/compiler_def.h>

#include <stdint.h>

/**
 * @file process.h
 *
 * Whose memory is this? A child that was made by the system call itself
 * (syscall(SYS_fork), clone(SIGCHLD)) has run no fork handler, and finds locks
 * held by threads that it does not have. So a number stands in a page that the
 * kernel wipes in every child: one load tells, at any time and without a
 * system call, whether this is still the process that the number was given to.
 *
 * A vfork() child, or any other that shares its parent's memory, is its parent
 * as far as memory goes, and finds the parent's number.
 */

BEGIN_C_DECLS

/** Numbers that no process has. */
#define UCS_PROCESS_UNKNOWN  0u         /**< the page was wiped */
#define UCS_PROCESS_ADOPTING UINT32_MAX /**< a thread is renewing it */

extern __attribute__((visibility("hidden"))) _Atomic(uint32_t)
        *ucs_process_word;

/**
 * Number this process. Idempotent.
 *
 * @param [in] adopt  Called once in each child that asks for its number, by
 *                    the first thread that does, before anybody gets it.
 *                    Must not trust any lock. May be called again later in the
 *                    same process only through
 *                    @ref ucs_process_forked.
 */
void ucs_process_init(void (*adopt)(void));


/** @return This process's number; waits for a thread that is adopting. */
uint32_t ucs_process_id(void);


/** In the child of a fork whose handlers run: renew the number now, whether or
 *  not the kernel can wipe pages (it can from Linux 4.14). */
void ucs_process_forked(void);


/** @return Nonzero if the process is still the one with this number. */
static inline int ucs_process_is(uint32_t id)
{
    return ucs_load_relaxed(ucs_process_word) == id;
}


/** @return Zero in a child that has not asked for its number: nothing that
 *          lies in memory is its own. */
static inline int ucs_process_is_known(void)
{
    uint32_t id = ucs_load_relaxed(ucs_process_word);

    return (id != UCS_PROCESS_UNKNOWN) && (id != UCS_PROCESS_ADOPTING);
}

END_C_DECLS

#endif
