/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCT_PRELOAD_MEMORY_H_
#define UCT_PRELOAD_MEMORY_H_

#include <ucs/sys/compiler_def.h>

#include <stddef.h>

/**
 * @file preload_memory.h
 *
 * Functions of the C library by which a program changes its memory and which
 * neither UCX's hooks nor the kernel tell of, or which have to be told of
 * earlier: mmap(), mremap(), madvise(), process_madvise(), and ioctl() of a
 * userfaultfd of the program's own. The stub stands in front of them and does
 * what it is asked for; while nobody listens that is all.
 *
 * Raw system calls, io_uring's, and the C library's own are not seen.
 */

BEGIN_C_DECLS

/** Who listens; all may be called by any thread at any time, also inside an
 *  allocator or a signal handler. errno is preserved around them. */
typedef struct uct_preload_listener {
    /** Pages are about to be discarded. */
    void (*discard)(void *address, size_t length);

    /** The range is about to be moved, or to be given to a userfaultfd of the
     *  program's own. */
    void (*leave)(void *address, size_t length);

    /** The range has just been mapped: private anonymous memory, or what was
     *  moved there. */
    void (*mapped)(void *address, size_t length);
} uct_preload_listener_t;


/** Tell @a listener, which stays for ever, from now on. Found by name: the
 *  helper proper may be there without the stub. */
void uct_preload_listen(const uct_preload_listener_t *listener);

/** Type and name of it. */
typedef void (*uct_preload_listen_func_t)(
        const uct_preload_listener_t *listener);
#define UCT_PRELOAD_LISTEN "uct_preload_listen"

END_C_DECLS

#endif
