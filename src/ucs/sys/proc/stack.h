/* Copyright (c) 2026 the ucx-helper-md authors. See LICENSE. */
#ifndef UCS_STACK_H_
#define UCS_STACK_H_

#include <ucs/sys/sync/lock.h>

#include <ucs/sys/compiler_def.h>

#include <stdint.h>

BEGIN_C_DECLS

/**
 * The stack position of a frame, which names its call path: the frames on a
 * path have their sizes. It replaces the hash of return addresses of Li et al.,
 * CF'11, section 3.1: it costs a subtraction instead of a walk, and reads no
 * memory. Two calls in one function share it; most of them use different
 * buffers.
 *
 * It counts from the thread's control block, which the C library puts at the
 * end of each thread's stack, so a path has the same name in all threads.
 *
 * @param [in] frame  From __builtin_frame_address(0).
 *
 * @return The name, valid in this process only.
 */
static UCS_F_ALWAYS_INLINE uintptr_t ucs_stack_position(const void *frame)
{
    return (uintptr_t)frame - (uintptr_t)ucs_lock_self();
}

END_C_DECLS

#endif
