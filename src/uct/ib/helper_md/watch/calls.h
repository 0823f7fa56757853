/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_HELPER_CALLS_H_
#define UCT_HELPER_CALLS_H_

#include <ucs/sys/compiler_def.h>

#include <stddef.h>

/**
 * @file calls.h
 *
 * The program's own calls that change its memory and that neither UCX's hooks
 * nor the kernel tell of, or that have to be told of earlier. The preloaded
 * stub, which stands in front of them (preload_memory.c), is part of every
 * process and needs libc alone, so it is the helper that goes to it.
 */

BEGIN_C_DECLS

/** What the stub tells. Any thread, at any time, also inside an allocator or a
 *  signal handler: nothing here allocates, logs or waits, but for system calls.
 *  The stub preserves errno. */
typedef struct uct_helper_calls {
    /** Pages of the range are about to be discarded. */
    void (*discard)(void *address, size_t length);

    /** The range is about to be moved, or to be given to a userfaultfd of the
     *  program's own; the kernel shall watch it for us no more. */
    void (*leave)(void *address, size_t length);

    /** The range, which begins at a page, is about to be unmapped. */
    void (*unmap)(void *address, size_t length);

    /** Something is about to be mapped exactly there. */
    void (*place)(void *address, size_t length);

    /** The range has just been mapped: private anonymous memory, or what was
     *  moved there. */
    void (*mapped)(void *address, size_t length);
} uct_helper_calls_t;

/** What the helper does when it is told. It does nothing before a domain is
 *  attached, after the last is gone, and in a child. */
extern const uct_helper_calls_t uct_helper_calls;

/** Type and name of the stub's function that takes them; @a calls stays for
 *  ever. */
typedef void (*uct_helper_calls_listen_func_t)(const uct_helper_calls_t *calls);
#define UCT_HELPER_CALLS_LISTEN "uct_preload_listen"


/** Have the stub tell from now on. @return Zero if there is none. */
int uct_helper_calls_listen(void);

END_C_DECLS

#endif
