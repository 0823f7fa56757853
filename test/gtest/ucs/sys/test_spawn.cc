/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/spawn.h>

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
    void *answer = nullptr;
    pthread_t id;

    ASSERT_EQ(0, ucs_spawn(&id, 32 << 10, touch, &answer));
    ASSERT_EQ(0, pthread_join(id, &answer));
    EXPECT_EQ(&answer, answer);
}

TEST(test_spawn, refusal_is_told)
{
    pthread_t id;

    /* More than the address space has */
    EXPECT_NE(0, ucs_spawn(&id, SIZE_MAX / 4096 * 4096, touch, nullptr));
}
