/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/predict/bound.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

/* Delays are kept as floats */
static constexpr double NEARLY = 1e-6;

static double bound_get(const ucs_predict_bound_t *bound, double share,
                        double caution)
{
    double value = ucs_predict_bound_get(
            bound, ucs_predict_bound_lack(share, bound->count), caution);

    EXPECT_LE(value, ucs_predict_bound_get(bound, 0, caution));
    return value;
}

static ucs_predict_bound_t bound_of(double delay, unsigned count)
{
    ucs_predict_bound_t bound = {};
    for (unsigned i = 0; i < count; ++i) {
        ucs_predict_bound_update(&bound, delay, &ucs_predict_tuning_default);
    }
    return bound;
}

TEST(predict_bound, nothing_is_known_of_no_delay)
{
    ucs_predict_bound_t bound = {};
    EXPECT_EQ(0, bound_get(&bound, 0.01, 0));
    EXPECT_EQ(0, bound_get(&bound, 0.01, -1));
}

TEST(predict_bound, floor_is_the_least_delay_and_creeps_up)
{
    auto bound = bound_of(1e6, 10);
    EXPECT_FLOAT_EQ(1e6f, bound.floor);
    ucs_predict_bound_update(&bound, 5e5, &ucs_predict_tuning_default);
    EXPECT_FLOAT_EQ(5e5f, bound.floor);
    float last = bound.floor;
    for (int i = 0; i < 1000; ++i) {
        ucs_predict_bound_update(&bound, 1e6, &ucs_predict_tuning_default);
        ASSERT_GT(bound.floor, last);
        last = bound.floor;
    }
    EXPECT_NEAR(1e6 - 5e5 * exp(-1), bound.floor, 1e3);
}

TEST(predict_bound, one_long_delay_lifts_the_floor_by_its_share_only)
{
    auto bound = bound_of(1e6, 10);
    ucs_predict_bound_update(&bound, 1e12, &ucs_predict_tuning_default);
    EXPECT_NEAR(1e6 * (1 + 1 / ucs_predict_tuning_default.bound_memory), bound.floor, 1);
    EXPECT_NEAR(1e6 * (1 + 1 / ucs_predict_tuning_default.bound_recent), bound.typical, 1);
}

TEST(predict_bound, typical_follows_soon_and_is_not_below_the_floor)
{
    auto bound = bound_of(1e6, 10);
    for (int i = 0; i < 64; ++i) {
        ucs_predict_bound_update(&bound, 2e6, &ucs_predict_tuning_default);
    }
    EXPECT_GT(bound.typical, 1.95e6);
    EXPECT_LT(bound.floor, 1.1e6);
    bound.typical = 0;
    ucs_predict_bound_update(&bound, 1e6, &ucs_predict_tuning_default);
    EXPECT_GE(bound.typical, bound.floor);
}

TEST(predict_bound, with_few_delays_much_is_missing)
{
    /* all alike: what so few may have hidden */
    for (unsigned count : {1, 10, 50}) {
        auto bound   = bound_of(1e6, count);
        double known = cbrt(0.01 * count);
        EXPECT_NEAR(1e6 * (1 - (1 - known) / (count + 1)),
                    bound_get(&bound, 0.01, 0), 1e6 * NEARLY);
    }
    for (unsigned count : {100, 1000}) {
        auto bound = bound_of(1e6, count);
        EXPECT_EQ(1e6, bound_get(&bound, 0.01, 0));
    }
    /* the rarer, the lower */
    auto bound = bound_of(1e6, 50);
    EXPECT_LT(bound_get(&bound, 0.001, 0), bound_get(&bound, 0.01, 0));
    /* wide apart: as much as there is */
    ucs_predict_bound_t wide = {};
    for (int i = 0; i < 10; ++i) {
        ucs_predict_bound_update(&wide, (i & 1) ? 1e6 : 5e6, &ucs_predict_tuning_default);
    }
    EXPECT_NEAR(wide.floor * cbrt(0.1), bound_get(&wide, 0.01, 0),
                1e6 * NEARLY);
}

TEST(predict_bound, caution_lowers_it_and_its_absence_raises_it)
{
    ucs_predict_bound_t bound = {1e6f, 3e6f, 1000};
    EXPECT_EQ(0, bound_get(&bound, 0.01, 1));
    EXPECT_NEAR(0.75e6, bound_get(&bound, 0.01, 0.5), 1);
    EXPECT_NEAR(1e6, bound_get(&bound, 0.01, 0), 1);
    EXPECT_NEAR(2e6, bound_get(&bound, 0.01, -0.5), 1);
    EXPECT_NEAR(3e6, bound_get(&bound, 0.01, -1), 1);
}

TEST(predict_bound, count_stops_at_its_end)
{
    ucs_predict_bound_t bound = {1e6f, 1e6f, UINT32_MAX};
    ucs_predict_bound_update(&bound, 1e6, &ucs_predict_tuning_default);
    EXPECT_EQ(UINT32_MAX, bound.count);
}
