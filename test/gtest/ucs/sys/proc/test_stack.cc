/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/proc/stack.h>

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include <pthread.h>

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

/* All run at once: after one that has ended the next one gets its stack */
TEST(test_stack, a_path_has_one_name_in_all_threads)
{
    uintptr_t at[4] = {};
    std::vector<std::thread> threads;
    pthread_barrier_t all_have;

    ASSERT_EQ(0, pthread_barrier_init(&all_have, nullptr, 4));
    for (uintptr_t &mine : at) {
        threads.emplace_back([&] {
            mine = position(64);
            pthread_barrier_wait(&all_have);
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    pthread_barrier_destroy(&all_have);
    EXPECT_NE(0u, at[0]);
    for (uintptr_t one : at) {
        EXPECT_EQ(at[0], one);
    }
}

TEST(test_stack, a_longer_path_has_another)
{
    EXPECT_NE(in_thread(position, 64), in_thread(deeper, 64));
    EXPECT_NE(in_thread(deeper, 64), in_thread(deeper, 4096));
}
