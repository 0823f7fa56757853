/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_PROCESS_H_
#define UCS_PROCESS_H_

#include <ucs/sys/sync/atomic.h>
#include <ucs/sys/compiler_def.h>

#include <stdint.h>

/*
 * Numbers of processes, to notice a fork. A child that was made by a raw system
 * call (syscall(SYS_fork), clone(SIGCHLD)) has run no fork handler, and finds
 * locks held by threads that it does not have. So a page that the kernel wipes
 * in every child holds a number: one load shows whether this is still the same
 * process.
 *
 * A vfork() child, or any other that shares its parent's memory, has the
 * parent's number.
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
 * @param [in] adopt  Called once in each child, by the first thread that asks
 *                    for the number, before any thread gets it. Must not take a
 *                    lock. Called again in the same process only through @ref
 *                    ucs_process_forked.
 */
void ucs_process_init(void (*adopt)(void));

/** @return This process's number; waits for a thread that is adopting. */
uint32_t ucs_process_id(void);

/** In a fork handler of the child: renew the number, also where the kernel
 *  cannot wipe pages (before Linux 4.14). */
void ucs_process_forked(void);

/** @return Nonzero if the process is still the one with this number. */
static inline int ucs_process_is(uint32_t id)
{
    return ucs_load_relaxed(ucs_process_word) == id;
}

/** @return Zero in a child that has not asked for its number yet: all data in
 *          memory is still its parent's. */
static inline int ucs_process_is_known(void)
{
    uint32_t id = ucs_load_relaxed(ucs_process_word);

    return (id != UCS_PROCESS_UNKNOWN) && (id != UCS_PROCESS_ADOPTING);
}

END_C_DECLS

#endif
