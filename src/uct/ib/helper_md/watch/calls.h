/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCT_HELPER_CALLS_H_
#define UCT_HELPER_CALLS_H_

#include <ucs/sys/compiler_def.h>

#include <stddef.h>

/*
 * The program's calls that change memory and that UCX's hooks and the kernel
 * report not at all or too late. The preloaded stub stands in front of them
 * (preload_memory.c). It is part of every process and needs libc alone, so the
 * helper connects to it.
 */

BEGIN_C_DECLS

/** What the stub reports. Any thread, at any time, also inside an allocator or
 *  a signal handler: nothing here allocates, logs or waits, except system
 *  calls. The stub preserves errno. */
typedef struct uct_helper_calls {
    /** Pages of the range are about to be discarded. */
    void (*discard)(void *address, size_t length);

    /** The range is about to be moved, or given to a userfaultfd of the
     *  program's own; our watch of it ends. */
    void (*leave)(void *address, size_t length);

    /** The range, which begins with a page, is about to be unmapped. */
    void (*unmap)(void *address, size_t length);

    /** A mapping is about to be made at exactly this range. */
    void (*place)(void *address, size_t length);

    /** The range has just been mapped: private anonymous memory, or what was
     *  moved there. */
    void (*mapped)(void *address, size_t length);
} uct_helper_calls_t;

/** What the helper does then. Nothing before a domain is attached, after the
 *  last has gone, and in a child. */
extern const uct_helper_calls_t uct_helper_calls;

/** Type and name of the stub's function that sets them; @a calls must stay
 *  valid for ever. */
typedef void (*uct_helper_calls_listen_func_t)(const uct_helper_calls_t *calls);
#define UCT_HELPER_CALLS_LISTEN "uct_preload_listen"

/** Connect to the stub. @return Zero if there is none. */
int uct_helper_calls_listen(void);

END_C_DECLS

#endif
