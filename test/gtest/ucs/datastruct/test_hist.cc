/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/datastruct/hist.h>

#include <gtest/gtest.h>

#include <memory>

TEST(test_hist, quantiles_to_seven_percent)
{
    auto hist = std::make_unique<ucs_hist_t>();

    EXPECT_EQ(0u, ucs_hist_quantile(hist.get(), 0.5));
    for (uint64_t i = 1; i <= 100000; ++i) {
        ucs_hist_add(hist.get(), i);
    }
    EXPECT_EQ(100000u, ucs_hist_samples(hist.get()));
    EXPECT_NEAR(50000, ucs_hist_quantile(hist.get(), 0.5), 3500);
    EXPECT_NEAR(99000, ucs_hist_quantile(hist.get(), 0.99), 7000);
}

TEST(test_hist, extremes)
{
    auto hist = std::make_unique<ucs_hist_t>();

    ucs_hist_add(hist.get(), 0);
    EXPECT_EQ(0u, ucs_hist_quantile(hist.get(), 1.0));
    ucs_hist_add(hist.get(), UINT64_MAX);
    EXPECT_GT(ucs_hist_quantile(hist.get(), 1.0), uint64_t(1) << 40);
    for (uint64_t ns : {7, 15, 16, 31, 32, 33}) {
        auto one = std::make_unique<ucs_hist_t>();
        ucs_hist_add(one.get(), ns);
        EXPECT_GE(ucs_hist_quantile(one.get(), 0.5), ns);
        EXPECT_LE(ucs_hist_quantile(one.get(), 0.5), ns + ns / 16);
    }
}
