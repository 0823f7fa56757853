/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_OWN_MEMORY_H_
#define UCS_OWN_MEMORY_H_

#include <ucs/sys/compiler_def.h>
#include <ucs/sys/mem/own_map.h>

#include <stddef.h>

/*
 * Memory outside the program's heap:
 *  - a thread of ours that allocates by malloc() has the C library make an
 *    arena for it, 64 to 128 MB of address space, which `ulimit -v` limits;
 *  - mlockall(MCL_FUTURE) locks what is mapped later; this is not locked, and
 *    counts nothing towards RLIMIT_MEMLOCK;
 *  - nothing here lies on a page of a buffer that the program registers.
 *
 * For any thread; not in a signal handler. A child may release what its parent
 * allocated, and finds no lock held.
 */

BEGIN_C_DECLS

/** Alignment of what @ref ucs_own_alloc returns, bytes: a cache line. */
#define UCS_OWN_ALIGN 64

/** @return @a size bytes, zeroed, aligned to @ref UCS_OWN_ALIGN, for
 *          @ref ucs_own_free; or NULL. */
void *ucs_own_alloc(size_t size);

/** Release what @ref ucs_own_alloc returned, from any thread. NULL is
 *  nothing. */
void ucs_own_free(void *memory);

END_C_DECLS

#endif
