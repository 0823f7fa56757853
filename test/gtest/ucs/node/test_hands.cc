/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/node/hands.h>

#include <gtest/gtest.h>

TEST(test_hands, idle_processors_and_the_callers)
{
    EXPECT_EQ(8u, ucs_hands_idle_of(8, "0.20 0.18 0.12 1/80 11206"));
    EXPECT_EQ(6u, ucs_hands_idle_of(8, "0.20 0.18 0.12 3/80 11206"));
    EXPECT_EQ(1u, ucs_hands_idle_of(8, "0.20 0.18 0.12 8/80 11206"));
    EXPECT_EQ(1u, ucs_hands_idle_of(8, "0.20 0.18 0.12 90/800 11206"));
    EXPECT_EQ(1u, ucs_hands_idle_of(1, "0.20 0.18 0.12 1/80 11206"));
}

TEST(test_hands, what_is_not_told_is_busy)
{
    EXPECT_EQ(1u, ucs_hands_idle_of(8, ""));
    EXPECT_EQ(1u, ucs_hands_idle_of(8, "0.20 0.18 0.12"));
    EXPECT_EQ(1u, ucs_hands_idle_of(8, "0.20 0.18 0.12 0/80 1"));
    EXPECT_EQ(1u, ucs_hands_idle_of(0, "0.20 0.18 0.12 1/80 1"));
}

TEST(test_hands, near_is_part_of_what_is_allowed)
{
    cpu_set_t allowed, near;

    ASSERT_EQ(0, sched_getaffinity(0, sizeof(allowed), &allowed));
    unsigned count = ucs_hands_near(&near);
    ASSERT_LT(0u, count);
    EXPECT_EQ(count, unsigned(CPU_COUNT(&near)));
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        EXPECT_TRUE(!CPU_ISSET(cpu, &near) || CPU_ISSET(cpu, &allowed)) << cpu;
    }
    EXPECT_LE(1u, ucs_hands_idle(count));
    EXPECT_GE(count, ucs_hands_idle(count));
}
