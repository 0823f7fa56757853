/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef FAR_PLACE_H_
#define FAR_PLACE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

/**
 * @return A hint for mmap(), new each time: far below everything that the
 * kernel and the C library place, and far from each other. So another thread's
 * mapping never lands where a test has unmapped and maps again, and what lies
 * below is never inaccessible, as below a stack.
 */
inline void *far_place(size_t length)
{
    static std::atomic<uintptr_t> next{0x200000000000ul};
    const size_t apart = 1ul << 30;

    return (void*)next.fetch_add((length + 2 * apart - 1) & ~(apart - 1));
}

#endif
