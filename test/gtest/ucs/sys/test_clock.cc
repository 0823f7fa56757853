/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/clock.h>

#include <gtest/gtest.h>

#include <ctime>

static uint64_t monotonic()
{
    timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (ts.tv_sec * 1000000000ull) + ts.tv_nsec;
}

TEST(test_clock, does_not_go_backwards)
{
    uint64_t last, now;

    ucs_clock_init();
    last = ucs_clock_now();
    for (int i = 0; i < 1000000; ++i) {
        now = ucs_clock_now();
        ASSERT_GE(now, last);
        last = now;
    }
}

/* The documented drift is 1e-4; a thousand times that is allowed here, plus
 * what the calls take, so that only a wrong scale or offset can fail */
TEST(test_clock, agrees_with_clock_monotonic)
{
    const uint64_t slack = 10000000;
    uint64_t start       = monotonic();
    uint64_t before, now, after, tolerance;

    ucs_clock_init();
    do {
        before    = monotonic();
        now       = ucs_clock_now();
        after     = monotonic();
        tolerance = slack + ((after - start) / 10);
        ASSERT_GE(now + tolerance, before);
        ASSERT_LE(now, after + tolerance);
    } while ((after - start) < 20000000);
}
