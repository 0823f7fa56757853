/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef UCS_STACK_H_
#define UCS_STACK_H_

#include <ucs/sys/lock.h>

#include <ucs/sys/compiler_def.h>

#include <stdint.h>

BEGIN_C_DECLS

/**
 * The stack position of a frame, which names the path of calls that led to it:
 * the frames on a path have their sizes. It takes the place of the hash of
 * return addresses in Li et al., CF'11, section 3.1, for it costs a subtraction
 * and not a walk, and reads no memory. Two calls in one function share it; the
 * buffer tells most of those apart.
 *
 * It counts from the thread's control block, which the C library puts at the end
 * of the stack of each thread that it creates: so the same path has one name in
 * all of them.
 *
 * @param [in] frame  From __builtin_frame_address(0).
 *
 * @return The name, which means something in this process alone.
 */
static UCS_F_ALWAYS_INLINE uintptr_t ucs_stack_position(const void *frame)
{
    return (uintptr_t)frame - (uintptr_t)ucs_lock_self();
}

END_C_DECLS

#endif
