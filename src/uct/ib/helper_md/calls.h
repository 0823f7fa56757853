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
 * The program's own calls that change its memory, as the preloaded stub sees
 * them: what neither UCX's hooks nor the kernel tell of. Any thread, at any
 * time, also inside an allocator or a signal handler: nothing here allocates,
 * logs or waits, but for system calls. Nothing happens before a helper is
 * attached, after the last is gone, and in a child.
 */

BEGIN_C_DECLS

/** Pages of this range are about to be discarded. */
void uct_helper_calls_discard(void *address, size_t length);


/** This range is about to be moved, or to be watched by the program itself; the
 *  kernel shall watch it for us no more. */
void uct_helper_calls_leave(void *address, size_t length);


/** This range has just been mapped. */
void uct_helper_calls_mapped(void *address, size_t length);

END_C_DECLS

#endif
