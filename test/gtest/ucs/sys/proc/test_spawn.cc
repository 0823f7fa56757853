/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/mem/own_memory.h>
#include <ucs/sys/proc/spawn.h>

#include "../address_space.h"
#include <sanitized.h>

#include <gtest/gtest.h>

/* As a program's thread-private arrays: each thread's stack has to hold them */
static thread_local volatile char locals[64 << 10];

static void *touch(void *arg)
{
    locals[sizeof(locals) - 1] = 1;
    return arg;
}

TEST(test_spawn, stack_holds_the_threads_locals)
{
    int answer;
    ucs_spawned_t thread;

    ASSERT_EQ(0, ucs_spawn(&thread, 32 << 10, touch, &answer));
    EXPECT_EQ(&answer, ucs_spawn_join(&thread));
}

TEST(test_spawn, refusal_is_told)
{
    ucs_spawned_t thread;

    /* More than the address space has */
    EXPECT_NE(0, ucs_spawn(&thread, SIZE_MAX / 4096 * 4096, touch, nullptr));
}

static void *allocate(void *arg)
{
    void *memory = ucs_own_alloc(100);

    memset(memory, 1, 100);
    ucs_own_free(memory);
    return arg;
}

/* Neither a stack of the default size nor an arena, and nothing stays */
TEST(test_spawn, takes_little_address_space)
{
    SKIP_IF_SANITIZED();
    const size_t before = address_space("VmSize");
    ucs_spawned_t thread;

    for (unsigned i = 0; i < 64; ++i) {
        ASSERT_EQ(0, ucs_spawn(&thread, 32 << 10, allocate, nullptr));
        EXPECT_LE(address_space("VmSize"), before + (1 << 20));
        (void)ucs_spawn_join(&thread);
    }
    EXPECT_LE(address_space("VmSize"), before + (256 << 10));
}
