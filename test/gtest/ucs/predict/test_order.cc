/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/predict/bound.h>
#include <ucs/predict/order.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

static constexpr uint64_t US = 1000;
static constexpr uint64_t MS = 1000000;

class predict_order : public ::testing::Test {
protected:
    void SetUp() override
    {
        ucs_predict_order_params_init(&params);
        open();
    }

    void TearDown() override
    {
        EXPECT_TRUE(ucs_predict_order_is_valid(order));
        ucs_predict_order_destroy(order);
    }

    void open()
    {
        ucs_predict_order_destroy(order);
        order = nullptr;
        ASSERT_EQ(UCS_OK, ucs_predict_order_create(&params, &order));
    }

    /* One use of 100 us, @a gap after the end of the one before */
    ucs_predict_ref_t use(uint64_t gap, uintptr_t address, uint64_t path = 0)
    {
        ucs_predict_use_t u = {now + gap, path ? path : address, address,
                               65536, 0};
        now                 = u.start_ns + 100 * US;
        return ucs_predict_order_record(order, &u, now);
    }

    std::vector<ucs_predict_forecast_t> forecast()
    {
        std::vector<ucs_predict_forecast_t> out(UCS_PREDICT_FORECAST_MAX);
        out.resize(ucs_predict_order_forecast(order, now, UINT64_MAX,
                                              out.data(),
                                              out.size()));
        return out;
    }

    /* When the buffer is expected, from now; -1: it is not named */
    int64_t expected(ucs_predict_ref_t ref)
    {
        for (auto &f : forecast()) {
            if (f.ref.index == ref.index) {
                EXPECT_LE(f.start_ns, f.end_ns);
                return (int64_t)(f.start_ns - now);
            }
        }
        return -1;
    }

    uint64_t early()
    {
        ucs_predict_order_info_t info;
        ucs_predict_order_info(order, &info);
        return info.early;
    }

    uint64_t followed()
    {
        ucs_predict_order_info_t info;
        ucs_predict_order_info(order, &info);
        return info.followed;
    }

    ucs_predict_order_params_t params;
    ucs_predict_order_h        order = nullptr;
    uint64_t                   now   = 1000 * MS;
};

TEST_F(predict_order, nothing_is_expected_before_anything_repeats)
{
    EXPECT_TRUE(forecast().empty());
    use(MS, 0x1000);
    use(MS, 0x2000);
    EXPECT_TRUE(forecast().empty());
}

TEST_F(predict_order, second_occurrence_predicts_what_followed_the_first)
{
    use(MS, 0x1000);
    auto b = use(5 * MS, 0x2000);
    use(MS, 0x3000);
    use(MS, 0x1000);
    int64_t when = expected(b);
    EXPECT_GT(when, 4 * (int64_t)MS);
    EXPECT_LE(when, 5 * (int64_t)MS);
}

/* The first use of all has none before it, and what was never repeated has no
 * repetition to measure from */
TEST_F(predict_order, delays_at_the_start_are_between_uses_that_there_were)
{
    const uintptr_t buffers[] = {0xa000, 0xb000, 0xa000, 0xb000, 0xb000,
                                 0xc000, 0xc000, 0xb000, 0xc000, 0xb000};
    const uint64_t paths[]    = {1, 2, 3, 4, 5, 6, 6, 5, 6, 5};
    now = 3600 * 1000 * MS;
    for (unsigned i = 0; i < 10; ++i) {
        ucs_predict_use_t u = {now, paths[i], buffers[i], 65536, 0};
        ucs_predict_order_record(order, &u, now + MS);
        now += 100 * MS;
        for (auto &f : forecast()) {
            EXPECT_LE(f.start_ns, now + 1000 * MS) << "after use " << i;
        }
        if (i == 3) {
            ASSERT_FALSE(forecast().empty());
            EXPECT_GE(forecast().front().start_ns, now - 20 * MS);
        }
    }
}

TEST_F(predict_order, context_tells_two_successors_of_a_buffer_apart)
{
    ucs_predict_ref_t b, c;
    for (int i = 0; i < 6; ++i) {
        use(MS, 0x8000);
        use(MS, 0x1000);
        b = use(2 * MS, 0x2000);
        use(MS, 0x9000);
        use(MS, 0x1000);
        c = use(30 * MS, 0x3000);
    }
    use(MS, 0x8000);
    use(MS, 0x1000);
    EXPECT_EQ(b.index, forecast().front().ref.index);
    use(2 * MS, 0x2000);
    use(MS, 0x9000);
    use(MS, 0x1000);
    EXPECT_EQ(c.index, forecast().front().ref.index);
    EXPECT_GT(expected(c), 25 * (int64_t)MS);
}

TEST_F(predict_order, what_has_not_come_holds_up_what_follows)
{
    ucs_predict_ref_t c = {};
    for (int i = 0; i < 8; ++i) {
        use(MS, 0x1000);
        use(2 * MS, 0x2000);
        c = use(4 * MS, 0x3000);
    }
    use(MS, 0x1000);
    now += 50 * MS; /* 0x2000 is late */
    EXPECT_GT(expected(c), 3 * (int64_t)MS);
}

TEST_F(predict_order, what_never_comes_is_given_up_with_all_that_follows)
{
    for (int i = 0; i < 8; ++i) {
        use(MS, 0x1000);
        use(2 * MS, 0x2000);
        use(4 * MS, 0x3000);
    }
    use(MS, 0x1000);
    EXPECT_FALSE(forecast().empty());
    now += 10000 * MS; /* the program has ended */
    EXPECT_TRUE(forecast().empty());
    use(MS, 0x2000);
    EXPECT_FALSE(forecast().empty());
}

TEST_F(predict_order, overtaking_neighbours_stay_followed)
{
    for (int i = 0; i < 40; ++i) {
        bool swap = i & 1;
        use(5 * MS, 0x1000);
        use(MS, swap ? 0x3000 : 0x2000);
        use(MS, swap ? 0x2000 : 0x3000);
        use(MS, 0x4000);
    }
    EXPECT_GE(followed(), 40u * 4 - 12);
}

TEST_F(predict_order, buffers_that_alternate_are_named_in_turn)
{
    ucs_predict_ref_t x = {}, y = {};
    for (int i = 0; i < 12; ++i) {
        use(MS, 0x1000, 7);
        ((i & 1) ? y : x) = use(3 * MS, (i & 1) ? 0x6000 : 0x5000, 8);
    }
    use(MS, 0x1000, 7);
    EXPECT_GE(expected(x), 0);
    EXPECT_EQ(x.index, forecast().front().ref.index);
    use(3 * MS, 0x5000, 8);
    use(MS, 0x1000, 7);
    EXPECT_EQ(y.index, forecast().front().ref.index);
}

TEST_F(predict_order, a_stride_over_known_buffers_is_followed)
{
    std::vector<ucs_predict_ref_t> slots;
    for (int i = 0; i < 20; ++i) {
        slots.push_back(use(MS, 0x100000 + i * 0x10000, 99));
    }
    /* another call site walks over the same buffers */
    for (int i = 0; i < 6; ++i) {
        use(MS, 0x1000, 7);
        use(3 * MS, 0x100000 + i * 0x10000, 8);
    }
    use(MS, 0x1000, 7);
    EXPECT_GE(expected(slots[6]), 0);
}

TEST_F(predict_order, a_dropped_part_costs_one_surprise)
{
    for (int i = 0; i < 20; ++i) {
        for (int b = 1; b <= 10; ++b) {
            if ((i != 15) || (b < 4) || (b > 7)) {
                use(MS, b * 0x1000);
            }
        }
    }
    EXPECT_GE(followed(), 20u * 10 - 4 - 10 - 2);
}

TEST_F(predict_order, a_phase_that_comes_back_is_known)
{
    ucs_predict_ref_t b = {};
    for (int phase = 0; phase < 4; ++phase) {
        for (int i = 0; i < 20; ++i) {
            use(MS, (phase & 1) ? 0x11000 : 0x1000);
            b = use(6 * MS, (phase & 1) ? 0x12000 : 0x2000);
        }
    }
    use(MS, 0x1000);
    use(6 * MS, 0x2000);
    use(MS, 0x1000);
    EXPECT_GT(expected({b.index - 2, b.generation}), 5 * (int64_t)MS);
}

TEST_F(predict_order, share_of_early_uses_is_steered_to_the_target)
{
    std::mt19937 random(1);
    std::lognormal_distribution<double> tail(0, 1);

    for (int i = 0; i < 4000; ++i) {
        forecast();
        use(uint64_t(MS * (1 + tail(random))), 0x1000 * (1 + i % 4));
    }
    EXPECT_LT(early(), 4000 * 3 / 100);
}

TEST_F(predict_order, a_higher_target_waits_longer)
{
    double sum[2];
    for (int t = 0; t < 2; ++t) {
        std::mt19937 random(1);
        std::lognormal_distribution<double> tail(0, 1);
        ucs_predict_ref_t ref = {};
        params.miss_target = t ? 0.3 : 0.01;
        open();
        sum[t] = 0;
        for (int i = 0; i < 2000; ++i) {
            int64_t when = (i < 8) ? 0 : forecast().front().start_ns - now;
            sum[t] += when;
            ref = use(uint64_t(MS * (1 + tail(random))), 0x1000 * (1 + i % 2));
        }
        EXPECT_NE(0u, ref.generation);
    }
    EXPECT_GT(sum[1], 1.1 * sum[0]);
}

TEST_F(predict_order, an_end_reported_later_counts_once)
{
    ucs_predict_use_t u = {now, 1, 0x1000, 65536, 0};
    auto ref = ucs_predict_order_record(order, &u, 0);
    EXPECT_EQ(0u, ucs_predict_order_hold(order, ref));
    ucs_predict_order_record(order, &u, now + MS);
    ucs_predict_order_record(order, &u, now + MS);
    ucs_predict_order_info_t info;
    ucs_predict_order_info(order, &info);
    EXPECT_EQ(1u, info.uses);
    EXPECT_GT(ucs_predict_order_hold(order, ref), now + MS);
}

TEST_F(predict_order, next_use_is_known_however_far)
{
    ucs_predict_ref_t a = {};
    for (int i = 0; i < 3; ++i) {
        a = use(MS, 0x1000);
        for (int b = 2; b < 200; ++b) {
            use(MS, b * 0x1000);
        }
    }
    a = use(MS, 0x1000);
    EXPECT_EQ(3u * 199 + 1 + 199, ucs_predict_order_next(order, a));
}

TEST_F(predict_order, an_unforeseen_buffer_is_held_for_its_gap)
{
    std::mt19937 random(3);
    ucs_predict_ref_t ref = {};
    uint64_t last = 0, gap = 0;
    for (int i = 0; i < 300; ++i) {
        unsigned b = random() % 40;
        auto r     = use(MS, 0x1000 + b * 0x1000);
        if (b == 7) {
            gap = last ? std::max(gap - gap / 16, now - 100 * US - last) : 0;
            last = now;
            ref  = r;
        }
    }
    EXPECT_GT(ucs_predict_order_hold(order, ref), last + gap);
}

TEST_F(predict_order, least_recently_used_buffer_is_forgotten)
{
    params.max_places = 4;
    open();
    auto first = use(MS, 0x1000);
    for (int b = 2; b <= 5; ++b) {
        use(MS, b * 0x1000);
    }
    EXPECT_EQ(0u, ucs_predict_order_hold(order, first));
    EXPECT_EQ(0u, ucs_predict_order_next(order, first));
    EXPECT_TRUE(ucs_predict_order_is_valid(order));
}

TEST_F(predict_order, bad_parameters_are_refused)
{
    ucs_predict_order_h none = nullptr;
    auto refused = [&](ucs_predict_order_params_t p) {
        return ucs_predict_order_create(&p, &none) == UCS_ERR_INVALID_PARAM;
    };
    auto p = params;
    p.max_events = 100;
    EXPECT_TRUE(refused(p));
    p = params;
    p.max_places = 0;
    EXPECT_TRUE(refused(p));
    p = params;
    p.miss_target = 1;
    EXPECT_TRUE(refused(p));
    EXPECT_EQ(nullptr, none);
}

TEST_F(predict_order, memory_is_what_the_header_states)
{
    EXPECT_LE(ucs_predict_order_memory(order),
              1024 + 256 * size_t(params.max_events) +
                      96 * size_t(params.max_places));
}

/* Random programs: whatever comes, the object stays valid, a forecast names
 * each buffer once and only buffers that were used, in bounds */
TEST_F(predict_order, random_programs_keep_the_invariants)
{
    for (unsigned seed = 0; seed < 6; ++seed) {
        std::mt19937 random(seed);
        params.max_events = 64 << (seed % 3);
        params.max_places = 3 + 9 * seed;
        open();
        for (unsigned i = 0; i < 3000; ++i) {
            unsigned b = (random() % 5) ? i % (4 + seed) : random() % 60;
            uint64_t back = (random() % 9) ? 0 : 3 * MS;
            ucs_predict_use_t u = {now - back, 1 + b % 3, 0x1000ul * (b + 1),
                                   4096, 0};
            ucs_predict_order_record(order, &u,
                                     (random() % 4) ? now - back + US : 0);
            now += random() % (2 * MS);
            if (i % 7 == 0) {
                std::vector<uint32_t> named;
                for (auto &f : forecast()) {
                    named.push_back(f.ref.index);
                    ASSERT_LT(f.ref.index, params.max_places);
                    ASSERT_NE(0u, f.ref.generation);
                    ASSERT_LE(f.start_ns, f.end_ns);
                    ASSERT_LE(f.start_ns, f.until_ns);
                }
                std::sort(named.begin(), named.end());
                ASSERT_EQ(named.end(),
                          std::adjacent_find(named.begin(), named.end()));
                ASSERT_TRUE(ucs_predict_order_is_valid(order));
            }
        }
    }
}

TEST(predict_bound, floor_is_below_nearly_all_delays_of_a_long_tail)
{
    std::mt19937 random(1);
    std::lognormal_distribution<double> tail(0, 1);
    ucs_predict_bound_t bound = {};
    unsigned below            = 0;

    for (int i = 0; i < 5000; ++i) {
        double delay = 1e6 * (1 + tail(random));
        below += (i >= 100) && (delay < ucs_predict_bound_get(&bound, 0));
        ucs_predict_bound_update(&bound, delay);
    }
    EXPECT_LT(below, 300u);
    EXPECT_GT(ucs_predict_bound_get(&bound, 0), 1.0e6);
}

TEST(predict_bound, one_stray_delay_does_not_set_the_floor)
{
    ucs_predict_bound_t bound = {};
    for (int i = 0; i < 500; ++i) {
        ucs_predict_bound_update(&bound, 1e7 + (i % 10) * 1e4);
    }
    ucs_predict_bound_update(&bound, 1000);
    EXPECT_GT(ucs_predict_bound_get(&bound, 0), 9e6);
}

TEST(predict_bound, a_longer_delay_is_learned)
{
    ucs_predict_bound_t bound = {};
    for (int i = 0; i < 50; ++i) {
        ucs_predict_bound_update(&bound, 1e6);
    }
    for (int i = 0; i < 1000; ++i) {
        ucs_predict_bound_update(&bound, 5e6);
    }
    EXPECT_GT(ucs_predict_bound_get(&bound, 0), 4e6);
}

TEST(predict_bound, caution_lowers_it)
{
    ucs_predict_bound_t bound = {};
    EXPECT_EQ(0, ucs_predict_bound_get(&bound, 1));
    for (int i = 0; i < 50; ++i) {
        ucs_predict_bound_update(&bound, 1e6 + i * 1e4);
    }
    EXPECT_LT(ucs_predict_bound_get(&bound, 1),
              ucs_predict_bound_get(&bound, 0));
    EXPECT_GT(ucs_predict_bound_get(&bound, -1),
              ucs_predict_bound_get(&bound, 0));
}
