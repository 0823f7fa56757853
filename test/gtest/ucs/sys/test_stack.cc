/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/proc/stack.h>

#include <gtest/gtest.h>

#include <thread>

/* A use, with so many bytes between it and its caller */
static __attribute__((noinline)) uintptr_t position(size_t bytes)
{
    volatile char *between = (volatile char*)__builtin_alloca(bytes + 1);

    between[0] = 0;
    return ucs_stack_position(__builtin_frame_address(0)) +
           (uintptr_t)between[0];
}

static __attribute__((noinline)) uintptr_t deeper(size_t bytes)
{
    volatile char *between = (volatile char*)__builtin_alloca(bytes + 1);
    uintptr_t at;

    between[0] = 0;
    at = position(bytes);
    return at + (uintptr_t)between[0];
}

static uintptr_t in_thread(uintptr_t (*func)(size_t bytes), size_t bytes)
{
    uintptr_t at = 0;

    std::thread([&] { at = func(bytes); }).join();
    return at;
}

TEST(test_stack, a_path_has_one_name_in_all_threads)
{
    const uintptr_t one = in_thread(position, 64);

    EXPECT_NE(0u, one);
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(one, in_thread(position, 64));
    }
}

TEST(test_stack, a_longer_path_has_another)
{
    EXPECT_NE(in_thread(position, 64), in_thread(deeper, 64));
    EXPECT_NE(in_thread(deeper, 64), in_thread(deeper, 4096));
}
