/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/clock.h>

#include <gtest/gtest.h>

#include <ctime>
#include <thread>
#include <vector>

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
        if ((i % 1000) == 0) {
            ucs_clock_refine();
        }
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
        ucs_clock_refine();
    } while ((after - start) < 20000000);
}

TEST(test_clock, refined_while_read)
{
    std::vector<std::thread> threads;

    ucs_clock_init();
    for (int i = 0; i < 2; ++i) {
        threads.emplace_back([] {
            uint64_t last = ucs_clock_now();
            for (int n = 0; n < 300000; ++n) {
                uint64_t now = ucs_clock_now();
                if (now < last) {
                    ADD_FAILURE() << now << " after " << last;
                    return;
                }
                last = now;
                ucs_clock_refine();
            }
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
}
