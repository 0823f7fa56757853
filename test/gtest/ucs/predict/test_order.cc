/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/predict/order.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
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

    ucs_predict_ref_t record(uint64_t start, uintptr_t address,
                             uint64_t end = 0, int is_ready = 0,
                             uint64_t path = 0)
    {
        ucs_predict_use_t u = {start, path ? path : address, address, 65536,
                               0};
        return ucs_predict_order_record(order, &u, end, is_ready);
    }

    /* One use of 100 us, @a gap after the end of the one before */
    ucs_predict_ref_t
    use(uint64_t gap, uintptr_t address, uint64_t path = 0, int is_ready = 0)
    {
        uint64_t start = now + gap;
        now            = start + 100 * US;
        return record(start, address, now, is_ready, path);
    }

    std::vector<ucs_predict_forecast_t> changed()
    {
        std::vector<ucs_predict_forecast_t> all, some(3);
        unsigned count;
        while ((count = ucs_predict_order_changed(order, now, some.data(),
                                                  some.size())) > 0) {
            all.insert(all.end(), some.begin(), some.begin() + count);
        }
        return all;
    }

    ucs_predict_forecast_t forecast(uintptr_t address)
    {
        ucs_predict_forecast_t f = {};
        changed(); /* ends until now */
        EXPECT_TRUE(ucs_predict_order_expected(order, address, &f));
        return f;
    }

    uint64_t start_of(uintptr_t address)
    {
        return forecast(address).start_ns;
    }

    int is_held(uintptr_t address)
    {
        return forecast(address).until_ns > now;
    }

    ucs_predict_order_info_t info()
    {
        ucs_predict_order_info_t i;
        ucs_predict_order_info(order, &i);
        return i;
    }

    /* What so many equal delays make certain */
    double bound(double delay, unsigned count)
    {
        double known = std::min(1.0, cbrt(params.miss_target * count));
        return delay * (1 - (1 - known) / (count + 1));
    }

    ucs_predict_order_params_t params;
    ucs_predict_order_h        order = nullptr;
    uint64_t                   now   = 1000 * MS;
};

TEST_F(predict_order, of_one_use_nothing_is_known_and_it_is_not_held)
{
    ucs_predict_forecast_t f;
    EXPECT_FALSE(ucs_predict_order_expected(order, 0x1000, &f));
    use(MS, 0x1000);
    now += 300 * MS;
    use(MS, 0x2000);
    EXPECT_EQ(0u, start_of(0x1000));
    EXPECT_EQ(0u, start_of(0x2000));
    EXPECT_FALSE(is_held(0x1000));
    EXPECT_FALSE(is_held(0x2000));
}

TEST_F(predict_order, second_occurrence_predicts)
{
    use(MS, 0x1000);
    uint64_t start1 = now - 100 * US, end1 = now;
    use(5 * MS, 0x2000);
    uint64_t other = now - 100 * US;
    use(5 * MS, 0x1000);
    uint64_t start2 = now - 100 * US;
    double from_start = start2 + bound(start2 - start1, 1);
    double from_end   = now + bound(start2 - end1, 1);
    EXPECT_NEAR(std::max(from_start, from_end), start_of(0x1000), US);
    /* the other has been used but once, and is announced */
    from_start = start2 + bound(other - start1, 1);
    from_end   = now + bound(other - end1, 1);
    EXPECT_NEAR(std::max(from_start, from_end), start_of(0x2000), US);
    EXPECT_TRUE(is_held(0x2000));
}

TEST_F(predict_order, what_follows_is_announced_by_what_goes_before)
{
    for (int i = 0; i < 101; ++i) {
        use(5 * MS, 0x1000);
        use(2 * MS, 0x2000);
    }
    now += 500 * MS;
    use(0, 0x1000);
    EXPECT_NEAR(now + 2 * MS, start_of(0x2000), US);
    EXPECT_TRUE(forecast(0x2000).is_sure);
    EXPECT_NEAR(now + 2 * MS + 100 * US, forecast(0x2000).end_ns, US);
}

TEST_F(predict_order, is_sure_from_sixteen_sights_on)
{
    for (int i = 0; i < 30; ++i) {
        use(5 * MS, 0x1000);
        EXPECT_EQ(i >= 16, forecast(0x1000).is_sure) << i;
    }
}

class predict_order_chain : public predict_order {
protected:
    /* A, after 8 ms B, after 2 ms C; from one A to the next, 30 ms */
    void train()
    {
        for (int i = 0; i < 120; ++i) {
            at(a, 0xa000);
            at(a + 8 * MS, 0xb000);
            at(a + 10 * MS, 0xc000);
            a += 30 * MS;
        }
    }

    void at(uint64_t start, uintptr_t address)
    {
        now = start + 100 * US;
        record(start, address, now);
    }

    uint64_t a = 1000 * MS;
};

TEST_F(predict_order_chain, latest_of_several_announcements_holds)
{
    train();
    at(a, 0xa000);
    EXPECT_NEAR(a + 10 * MS, start_of(0xc000), US);
    at(a + MS, 0xb000); /* says 3 ms */
    EXPECT_NEAR(a + 10 * MS, start_of(0xc000), US);
}

TEST_F(predict_order_chain, a_late_iteration_puts_off_what_depends_on_it)
{
    train();
    at(a, 0xa000);
    changed();
    now = a + 40 * MS;
    EXPECT_TRUE(changed().empty()); /* by time alone nothing changes */
    EXPECT_NEAR(a + 10 * MS, start_of(0xc000), US);
    at(a + 50 * MS, 0xb000);
    bool is_told = false;
    for (auto &f : changed()) {
        is_told |= f.ref.index == forecast(0xc000).ref.index;
    }
    EXPECT_TRUE(is_told);
    EXPECT_NEAR(a + 52 * MS, start_of(0xc000), US);
}

TEST_F(predict_order_chain, what_was_used_is_not_announced_by_what_went_before)
{
    train();
    record(a, 0xa000); /* its end will come after C */
    at(a + 8 * MS, 0xb000);
    at(a + 10 * MS, 0xc000);
    uint64_t start = start_of(0xc000);
    EXPECT_NEAR(a + 40 * MS, start, US); /* a period after */
    now = a + 36 * MS;
    record(a, 0xa000, a + 35 * MS); /* 10 ms before, as a rule */
    EXPECT_EQ(start, start_of(0xc000));
}

TEST_F(predict_order, some_buffers_come_after_an_end_and_some_after_a_start)
{
    uint64_t a = now;
    for (int i = 0; i < 200; ++i) {
        uint64_t duration = (1 + i % 7) * MS;
        record(a, 0xa000, a + duration);
        record(a + duration + MS, 0xb000, a + duration + 2 * MS);
        record(a + 10 * MS, 0xc000, a + 11 * MS);
        a += 20 * MS;
    }
    now = a;
    record(a, 0xa000);
    EXPECT_NEAR(a + 2.0 * MS, start_of(0xb000), 0.6 * MS);
    EXPECT_NEAR(a + 10.0 * MS, start_of(0xc000), 0.5 * MS);
    now = a + 5 * MS;
    record(a, 0xa000, now);
    EXPECT_NEAR(a + 6.0 * MS, start_of(0xb000), 0.5 * MS);
    EXPECT_NEAR(a + 10.0 * MS, start_of(0xc000), 0.5 * MS);
}

TEST_F(predict_order, ends_reported_late_are_announced_in_order)
{
    uint64_t a = now;
    auto round = [&](uint64_t c) {
        record(a, 0xa000);
        record(a + MS, 0xb000);
        record(a + MS, 0xb000, a + 30 * MS); /* before that of A, later */
        record(a, 0xa000, a + 20 * MS);
        record(c, 0xc000, c + MS);
        a += 100 * MS;
    };
    for (int i = 0; i < 100; ++i) {
        /* 5 ms after the end of A, of which nothing else tells */
        record(a, 0xa000, a + (2 + i % 9) * MS);
        record(a + (7 + i % 9) * MS, 0xc000, a + (8 + i % 9) * MS);
        a += 100 * MS;
    }
    uint64_t early = info().early;
    round(a + 22 * MS);
    EXPECT_EQ(early + 1, info().early);
}

TEST_F(predict_order, an_end_counts_when_its_time_has_come)
{
    uint64_t a = now;
    for (int i = 0; i < 100; ++i) {
        record(a, 0xa000, a + (2 + i % 9) * MS);
        record(a + (7 + i % 9) * MS, 0xc000, a + (8 + i % 9) * MS);
        a += 100 * MS;
    }
    record(a, 0xa000, a + 20 * MS);
    now = a + 19 * MS;
    EXPECT_LT(start_of(0xc000), a + 10 * MS);
    now = a + 20 * MS;
    EXPECT_NEAR(a + 25.0 * MS, start_of(0xc000), 0.5 * MS);
}

TEST_F(predict_order, an_end_reported_later_is_no_use)
{
    record(now, 0x1000);
    record(now, 0x1000, now + MS);
    record(now, 0x1000, now + 3 * MS);
    EXPECT_EQ(1u, info().uses);
    uint64_t first = now;
    now += 10 * MS;
    record(now, 0x1000);
    EXPECT_EQ(2u, info().uses);
    /* the first end holds, and how long a use takes is known */
    EXPECT_EQ(start_of(0x1000) + MS, forecast(0x1000).end_ns);
    EXPECT_NEAR(now + bound(now - first, 1), start_of(0x1000), US);
}

/* Even one that starts when the one before did: the recorder waits to be
 * told */
TEST_F(predict_order, each_buffer_recorded_is_told_of)
{
    for (uint64_t end : {uint64_t(0), now + MS, now + MS}) {
        record(now, 0x1000, end);
        EXPECT_EQ(1u, changed().size());
    }
}

TEST_F(predict_order, more_ends_at_a_time_than_are_kept_are_not_lost)
{
    uint64_t start = now;
    for (uintptr_t b = 1; b <= 400; ++b) {
        record(start + b, b << 12);
    }
    for (uintptr_t b = 400; b > 0; --b) {
        record(start + b, b << 12, start + MS + b);
        ASSERT_TRUE(ucs_predict_order_is_valid(order));
    }
    now = start + 2 * MS;
    for (uintptr_t b = 1; b <= 400; ++b) {
        EXPECT_NEAR(MS, forecast(b << 12).end_ns, US) << b;
    }
    EXPECT_EQ(400u, info().uses);
}

TEST_F(predict_order, an_end_long_after_is_not_that_of_another_use)
{
    uintptr_t filler = 0x1000000;
    for (int i = 0; i < 101; ++i) {
        use(20 * MS, 0xa000);
        use(5 * MS, 0xb000);
    }
    now += MS;
    uint64_t start = now;
    record(start, 0xc000);
    for (int i = 0; i < 127; ++i) {
        use(US, filler += 0x1000);
    }
    now += 200 * MS; /* b was given up */
    use(0, 0xa000);
    uint64_t expected = start_of(0xb000);
    EXPECT_NEAR(now + 5 * MS, expected, US);
    record(start, 0xc000, now + 4 * MS);
    now += 4 * MS;
    EXPECT_EQ(expected, start_of(0xb000));
}

/*
 * Caution
 */

static double steered_share(ucs_predict_order_h order, double target)
{
    std::mt19937 random(1);
    std::lognormal_distribution<double> tail(0, 1);
    ucs_predict_order_info_t info;
    uint64_t now = 1000 * MS;

    for (int i = 0; i < 40000; ++i) {
        uintptr_t b         = 1 + i % 4;
        ucs_predict_use_t u = {now, b, b << 12, 65536, 0};
        ucs_predict_order_record(order, &u, now + 10 * US, 0);
        now += uint64_t(MS * (0.1 + tail(random)));
    }
    ucs_predict_order_info(order, &info);
    EXPECT_GE(info.followed, 39000u);
    return (double)info.early / info.followed / target;
}

TEST_F(predict_order, share_of_early_uses_is_steered_to_the_target)
{
    for (double target : {0.01, 0.05, 0.2}) {
        params.miss_target = target;
        open();
        double share = steered_share(order, target);
        EXPECT_GT(share, 0.7) << target;
        EXPECT_LT(share, 1.3) << target;
    }
}

TEST_F(predict_order, what_is_ready_is_not_early)
{
    for (int ready = 0; ready < 2; ++ready) {
        open();
        for (int i = 0; i < 50; ++i) {
            use(10 * MS, 0x1000);
        }
        use(MS, 0x1000, 0, ready);
        EXPECT_EQ(!ready, info().early);
        EXPECT_EQ(49u, info().followed); /* from the third use on */
        EXPECT_EQ(51u, info().uses);
    }
}

/* Where nothing is missed, it may be later than the least delay seen, up to
 * what is typical; and beyond that only if many may be missed */
TEST_F(predict_order, success_raises_the_time_above_the_least_delay)
{
    for (double target : {0.01, 0.2}) {
        params.miss_target = target;
        open();
        std::mt19937 random(1);
        std::uniform_real_distribution<double> delay(10, 20);
        for (int i = 0; i < 2000; ++i) {
            use(uint64_t(MS * delay(random)), 0x1000, 0, 1);
        }
        EXPECT_EQ(0u, info().early);
        EXPECT_GT(start_of(0x1000), now + 13 * MS); /* the least is 10 */
        /* 15 are typical */
        EXPECT_EQ(target < 0.1, start_of(0x1000) < now + 17 * MS);
    }
}

/* Each buffer comes three times, the third time too soon: of none is known
 * that before, but of all together */
TEST_F(predict_order, many_new_buffers_make_cautious_of_new_buffers)
{
    for (uintptr_t b = 1; b <= 300; ++b) {
        use(MS, b << 12);
        use(50 * MS, b << 12);
        use(MS, b << 12);
    }
    EXPECT_GE(info().early, 20u);
    EXPECT_LE(info().early, 100u);
}

/* What was missed of new buffers says nothing of one with habits */
TEST_F(predict_order, what_learning_cost_is_not_held_against_what_is_known)
{
    for (uintptr_t b = 1; b <= 300; ++b) {
        use(MS, b << 12);
        use(50 * MS, b << 12);
        use(MS, b << 12);
    }
    for (int i = 0; i < 40; ++i) {
        use(100 * MS, 0x9000000);
        if (i == 8) { /* new as well */
            EXPECT_LT(start_of(0x9000000), now + 50 * MS);
        }
    }
    EXPECT_GT(start_of(0x9000000), now + 80 * MS);
}

/*
 * Giving up
 */

TEST_F(predict_order, given_up_after_four_times_the_longest_recent_gap)
{
    for (int gap : {10, 30, 10}) {
        use(gap * MS - 100 * US, 0x1000);
    }
    uint64_t start = now - 100 * US;
    EXPECT_NEAR(start + 4 * 30 * MS * 15 / 16 + MS,
                forecast(0x1000).until_ns, US);
    for (int i = 0; i < 40; ++i) {
        use(10 * MS - 100 * US, 0x1000);
    }
    EXPECT_NEAR(now - 100 * US + 41 * MS, forecast(0x1000).until_ns, US);
}

TEST_F(predict_order, revived_twice_then_not_until_it_is_used)
{
    for (int i = 0; i < 20; ++i) {
        use(8 * MS, 0x1000);
        use(2 * MS, 0x2000);
    }
    unsigned revived = 0;
    for (int i = 0; i < 20; ++i) {
        bool was_held = is_held(0x2000);
        now += 60 * MS;
        EXPECT_FALSE(is_held(0x2000));
        use(0, 0x1000);
        revived += !was_held || is_held(0x2000);
        EXPECT_EQ(i < 2, is_held(0x2000)) << i;
        if (i < 2) {
            EXPECT_GT(start_of(0x2000), now);
        }
    }
    use(MS, 0x2000);
    EXPECT_TRUE(is_held(0x2000));
    /* its time was long: another two */
    now = forecast(0x2000).until_ns + MS;
    use(0, 0x1000);
    EXPECT_TRUE(is_held(0x2000));
}

TEST_F(predict_order, what_comes_after_it_was_given_up_is_not_judged)
{
    for (int i = 0; i < 20; ++i) {
        use(8 * MS, 0x1000);
    }
    uint64_t followed = info().followed;
    now               = forecast(0x1000).until_ns + MS;
    use(0, 0x1000);
    EXPECT_EQ(followed, info().followed);
}

TEST_F(predict_order, fresh_buffers_are_not_held)
{
    unsigned held = 0;
    for (uintptr_t b = 1; b <= 6000; ++b) {
        use(50 * US, 0x1000000 + (b << 12), 7);
        held += is_held(0x1000000 + (b << 12));
    }
    EXPECT_EQ(0u, held);
}

/* What came before it but once calls a buffer that has habits no more */
TEST_F(predict_order, one_sight_does_not_call_a_buffer_back)
{
    for (int i = 0; i < 20; ++i) {
        use(MS, 0x1000);
        use(MS, 0x2000);
    }
    use(MS, 0x3000);
    use(MS, 0x2000); /* after 3 but once */
    now += 1000 * MS;
    EXPECT_FALSE(is_held(0x2000));
    use(MS, 0x3000);
    EXPECT_FALSE(is_held(0x2000));
    use(MS, 0x1000);
    EXPECT_TRUE(is_held(0x2000));
}

/*
 * Patterns
 */

/* Of the last uses, each came at its time: not before, and the prediction came
 * up to at least a part of the time from the last use */
class predict_order_pattern : public predict_order {
protected:
    void expect(uint64_t gap, uintptr_t address, double part)
    {
        auto f         = forecast(address);
        uint64_t start = now + gap;
        /* a bound creeps up by a thousandth of what a longer phase took */
        EXPECT_LE(f.start_ns, start + 200 * US) << address;
        EXPECT_GE(f.start_ns - last[address],
                  (start - last[address]) * part)
                << address;
        EXPECT_GT(f.until_ns, start);
    }

    void step(uint64_t gap, uintptr_t address, uint64_t path, double part)
    {
        if (part > 0) {
            expect(gap, address, part);
        }
        last[address] = now + gap;
        use(gap, address, path);
    }

    uint64_t last[64] = {};
};

TEST_F(predict_order_pattern, overtaking_neighbours)
{
    for (int i = 0; i < 140; ++i) {
        double part = (i < 120) ? 0 : 0.8;
        step(5 * MS, 1, 0, part);
        step(MS, 2 + (i & 1), 0, part);
        step(MS, 3 - (i & 1), 0, part);
        step(MS, 4, 0, part);
    }
    EXPECT_LE(info().early, 8u);
}

TEST_F(predict_order_pattern, alternating_buffers)
{
    for (int i = 0; i < 240; ++i) {
        step(MS, 1, 7, (i < 220) ? 0 : 0.95);
        step(3 * MS, 2 + (i & 1), 8, (i < 220) ? 0 : 0.95);
    }
    EXPECT_LE(info().early, 3u);
}

TEST_F(predict_order_pattern, a_stride_over_buffers)
{
    for (int i = 0; i < 2400; ++i) {
        step(MS, 1, 7, (i < 2360) ? 0 : 0.95);
        step(3 * MS, 8 + i % 20, 8, (i < 2360) ? 0 : 0.95);
    }
    EXPECT_LE(info().early, 21u);
}

TEST_F(predict_order_pattern, a_phase_that_comes_back_is_known)
{
    for (int phase = 0; phase < 4; ++phase) {
        for (int i = 0; i < 120; ++i) {
            bool is_known = (phase > 1) && (i > 0);
            step(MS, 1 + 10 * (phase & 1), 0, is_known ? 0.85 : 0);
            if ((phase > 1) && (i == 0)) {
                EXPECT_GT(start_of(2 + 10 * (phase & 1)), now + 5 * MS);
            }
            step(6 * MS, 2 + 10 * (phase & 1), 0, is_known ? 0.85 : 0);
        }
    }
}

TEST_F(predict_order, call_sites_tell_two_uses_of_a_buffer_apart)
{
    for (int i = 0; i < 120; ++i) {
        use(MS, 0x1000, 1);
        use(2 * MS, 0x2000);
        use(MS, 0x1000, 2);
        use(30 * MS, 0x3000);
    }
    now += 500 * MS;
    use(MS, 0x1000, 1);
    EXPECT_NEAR(now + 2 * MS, start_of(0x2000), US);
    EXPECT_NEAR(now + 33 * MS + 200 * US, start_of(0x3000), US);
    use(2 * MS, 0x2000);
    use(MS, 0x1000, 2);
    EXPECT_NEAR(now + 30 * MS, start_of(0x3000), US);
}

TEST_F(predict_order, a_full_table_of_followers_takes_what_comes_often)
{
    std::mt19937 random(1);
    for (uintptr_t b = 0x10; b < 0x10 + UCS_PREDICT_FOLLOWERS - 1; ++b) {
        /* and A itself */
        for (int i = 0; i < 8; ++i) {
            use(MS, 0x1000);
            use(MS, b << 12);
        }
    }
    int first = -1;
    for (int i = 0; i < 40; ++i) {
        use((5 + random() % 50) * MS, 0x1000);
        /* its own gap tells less than A does */
        bool is_followed = (i > 0) && (start_of(0x2000) > now);
        first = ((first < 0) && is_followed) ? i : first;
        use(2 * MS, 0x2000);
    }
    EXPECT_GT(first, 3);
    EXPECT_LT(first, 20);
    now += 60 * MS;
    use(0, 0x1000);
    EXPECT_GT(start_of(0x2000), now + MS);
}

TEST_F(predict_order, followers_that_were_forgotten_make_room_at_once)
{
    params.max_buffers = 20;
    open();
    for (uintptr_t b = 0x10; b < 0x10 + UCS_PREDICT_FOLLOWERS - 1; ++b) {
        for (int i = 0; i < 8; ++i) {
            use(MS, 0x1000);
            use(MS, b << 12);
        }
    }
    for (uintptr_t b = 0x100; b < 0x100 + 20; ++b) {
        use(MS, 0x1000);
        use(MS, b << 12);
    }
    use(MS, 0x1000);
    use(2 * MS, 0x2000);
    use(20 * MS, 0x1000);
    use(2 * MS, 0x2000);
    use(50 * MS, 0x1000);
    EXPECT_GT(start_of(0x2000), now);
}

TEST_F(predict_order, next_use_is_known_however_far)
{
    ucs_predict_ref_t a = {};
    for (int i = 0; i < 3; ++i) {
        a = use(MS, 0x1000);
        EXPECT_EQ((i < 2) ? 0u : 3u * 199 + 1,
                  ucs_predict_order_next(order, a));
        for (int b = 2; b < 200; ++b) {
            use(MS, b * 0x1000);
        }
    }
    a = use(MS, 0x1000);
    EXPECT_EQ(3u * 199 + 1 + 199, ucs_predict_order_next(order, a));
}

/*
 * Bounds of what is remembered
 */

TEST_F(predict_order, a_forgotten_buffer_leaves_nothing_behind)
{
    params.max_buffers = 4;
    open();
    for (int i = 0; i < 20; ++i) {
        use(MS, 0xa000);
        use(MS, 0xb000);
    }
    auto b = forecast(0xb000).ref;
    EXPECT_NE(0u, ucs_predict_order_next(order, b));
    for (uintptr_t c = 1; c <= 3; ++c) {
        use(MS, 0xa000);
        use(3 * MS, c << 12);
    }
    ucs_predict_forecast_t f;
    EXPECT_FALSE(ucs_predict_order_expected(order, 0xb000, &f));
    EXPECT_EQ(0u, ucs_predict_order_next(order, b));
    use(MS, 0xa000);
    EXPECT_EQ(b.index, forecast(0x3000).ref.index);
    EXPECT_NE(b.generation, forecast(0x3000).ref.generation);
    /* a's announcement of b is not its: it has one of its own */
    double from_start = now - 100 * US + bound(3 * MS + 100 * US, 1);
    EXPECT_NEAR(std::max(from_start, now + bound(3 * MS, 1)), start_of(0x3000),
                US);
    EXPECT_EQ(4u, info().buffers);
}

TEST_F(predict_order, a_forgotten_buffer_is_not_told_of)
{
    params.max_buffers = 4;
    open();
    for (uintptr_t b = 1; b <= 11; ++b) {
        use(MS, b << 12);
        ASSERT_TRUE(ucs_predict_order_is_valid(order));
    }
    auto told = changed();
    EXPECT_EQ(4u, told.size());
    for (uintptr_t b = 8; b <= 11; ++b) {
        auto ref = forecast(b << 12).ref;
        EXPECT_EQ(1, std::count_if(told.begin(), told.end(), [&](auto &f) {
                      return (f.ref.index == ref.index) &&
                             (f.ref.generation == ref.generation);
                  }));
    }
    EXPECT_TRUE(changed().empty());
}

TEST_F(predict_order, bad_parameters_are_refused)
{
    ucs_predict_order_h none = nullptr;
    auto refused = [&](double ucs_predict_order_params_t::*member,
                       double value) {
        auto p    = params;
        p.*member = value;
        return ucs_predict_order_create(&p, &none) == UCS_ERR_INVALID_PARAM;
    };
    auto refused_size = [&](uint32_t ucs_predict_order_params_t::*member,
                            uint32_t value) {
        auto p    = params;
        p.*member = value;
        return ucs_predict_order_create(&p, &none) == UCS_ERR_INVALID_PARAM;
    };
    for (double target : {0.0, 1.0, -0.5, double(NAN),
                          std::numeric_limits<double>::infinity()}) {
        EXPECT_TRUE(refused(&ucs_predict_order_params_t::miss_target, target));
    }
    for (uint32_t size : {0u, (1u << 20) + 1, UINT32_MAX}) {
        EXPECT_TRUE(refused_size(&ucs_predict_order_params_t::max_buffers,
                                 size));
        EXPECT_TRUE(refused_size(&ucs_predict_order_params_t::max_labels,
                                 size));
    }
    EXPECT_EQ(nullptr, none);
    ASSERT_EQ(UCS_OK, ucs_predict_order_create(nullptr, &none));
    EXPECT_EQ(ucs_predict_order_memory(order), ucs_predict_order_memory(none));
    ucs_predict_order_destroy(none);
    ucs_predict_order_destroy(nullptr);
}

TEST_F(predict_order, memory_is_what_the_header_states)
{
    for (uint32_t places : {1, 1025, 4096}) {
        for (uint32_t labels : {1, 1025, 4096}) {
            params.max_buffers = places;
            params.max_labels = labels;
            open();
            EXPECT_LE(ucs_predict_order_memory(order),
                      16384 +
                              UCS_PREDICT_ORDER_BUFFER_BYTES * size_t(places) +
                              UCS_PREDICT_ORDER_LABEL_BYTES * size_t(labels));
            /* and is no number of no use */
            EXPECT_GE(ucs_predict_order_memory(order),
                      96 * size_t(places) + 512 * size_t(labels));
        }
    }
}

/* Random programs: whatever comes, the object stays valid, and each buffer that
 * changed is named once, in bounds */
TEST_F(predict_order, random_programs_keep_the_invariants)
{
    for (unsigned seed = 0; seed < 8; ++seed) {
        std::mt19937 random(seed);
        params.max_labels = 16 << (seed % 3);
        params.max_buffers = 3 + 9 * seed;
        open();
        for (unsigned i = 0; i < 3000; ++i) {
            unsigned b = (random() % 5) ? i % (4 + seed) : random() % 60;
            uint64_t back = (random() % 9) ? 0 : 3 * MS;
            auto ref = record(now - back, 0x1000ul * (b + 1),
                              (random() % 4) ? now - back + US : 0,
                              random() % 2, 1 + random() % 3);
            ASSERT_LT(ref.index, params.max_buffers);
            now += random() % (2 * MS);
            if (i % 7 != 0) {
                continue;
            }
            ASSERT_TRUE(ucs_predict_order_is_valid(order));
            std::vector<uint32_t> named;
            for (auto &f : changed()) {
                named.push_back(f.ref.index);
                ASSERT_LT(f.ref.index, params.max_buffers);
                ASSERT_NE(0u, f.ref.generation);
                ASSERT_LE(f.start_ns, f.end_ns);
                ASSERT_LE(f.start_ns, f.until_ns);
            }
            std::sort(named.begin(), named.end());
            ASSERT_EQ(named.end(),
                      std::adjacent_find(named.begin(), named.end()));
            ASSERT_TRUE(changed().empty());
            ASSERT_TRUE(ucs_predict_order_is_valid(order));
            ASSERT_LE(info().early, info().followed);
            ASSERT_LE(info().followed, info().uses);
            ASSERT_LE(info().buffers, params.max_buffers);
            ASSERT_LE(info().labels, params.max_labels);
        }
    }
}
