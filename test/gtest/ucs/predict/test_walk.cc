/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/predict/walk.h>

#include <gtest/gtest.h>
#include <random>

namespace {

constexpr size_t    KB   = 1024;
constexpr uintptr_t BASE = 0x10000000;
constexpr uint64_t  MS   = 1000000;

class predict_walk : public ::testing::Test {
protected:
    ucs_predict_walk_t *use(uintptr_t address, size_t length = 64 * KB,
                            uint64_t pause = MS)
    {
        now += pause;
        return ucs_predict_walks_use(&walks, address, length, now);
    }

    /* Steps from @a from on; @return the walk of the last */
    ucs_predict_walk_t *steps(intptr_t stride, unsigned count,
                              unsigned from = 0, size_t length = 64 * KB)
    {
        ucs_predict_walk_t *walk = nullptr;
        for (unsigned i = from; i < from + count; ++i) {
            walk = use(BASE + i * stride, length);
        }
        return walk;
    }

    static unsigned window(const ucs_predict_walk_t *walk, double rent_ns,
                           double most_bytes)
    {
        return ucs_predict_walk_window(walk, &ucs_predict_tuning_default, rent_ns,
                                       most_bytes);
    }

    ucs_predict_walks_t walks = {};
    uint64_t now              = 1000 * MS;
};

TEST_F(predict_walk, three_at_equal_distances)
{
    EXPECT_EQ(nullptr, use(BASE));
    EXPECT_EQ(nullptr, use(BASE + 64 * KB));
    const ucs_predict_walk_t *walk = use(BASE + 128 * KB);
    ASSERT_NE(nullptr, walk);
    EXPECT_EQ(64 * intptr_t(KB), walk->stride);
    EXPECT_EQ(3u, walk->steps);
    EXPECT_EQ(BASE + 128 * KB, walk->at);
    EXPECT_DOUBLE_EQ(MS, walk->step_ns);
}

TEST_F(predict_walk, up_and_down_and_with_gaps)
{
    for (intptr_t stride : {65536, -65536, 1 << 20, -(3 << 16), 4096}) {
        walks = {};
        const ucs_predict_walk_t *walk = steps(stride, 100);
        ASSERT_NE(nullptr, walk) << stride;
        EXPECT_EQ(stride, walk->stride);
        EXPECT_EQ(100u, walk->steps);
        EXPECT_EQ(BASE + 99 * stride, walk->at);
    }
}

/* As a reduction in two halves uses its pieces, and memory of its own */
TEST_F(predict_walk, several_at_once_from_one_place)
{
    for (unsigned i = 0; i < 50; ++i) {
        const uintptr_t piece = BASE + i * 64 * KB;

        const ucs_predict_walk_t *upper = use(piece + 32 * KB, 32 * KB);
        EXPECT_EQ(nullptr, use(BASE / 2, 32 * KB));
        const ucs_predict_walk_t *lower = use(piece, 32 * KB);
        const ucs_predict_walk_t *again = use(piece + 32 * KB, 32 * KB);
        if (i >= 2) {
            ASSERT_NE(nullptr, upper);
            EXPECT_NE(nullptr, lower);
            EXPECT_EQ(upper, again);
            EXPECT_EQ(piece + 32 * KB, upper->at);
            EXPECT_LT(0, upper->stride);
        }
    }
}

TEST_F(predict_walk, other_lengths_are_other_walks)
{
    const ucs_predict_walk_t *walk = steps(65536, 10);
    EXPECT_EQ(nullptr, use(walk->at + 65536, 32 * KB));
    EXPECT_EQ(10u, walk->steps);
}

TEST_F(predict_walk, steps_may_be_left_out_and_repeated)
{
    const ucs_predict_walk_t *walk = steps(65536, 10);
    EXPECT_EQ(walk, use(BASE + 12 * 65536));
    EXPECT_EQ(13u, walk->steps);
    EXPECT_EQ(walk, use(BASE + 10 * 65536));
    EXPECT_EQ(BASE + 12 * 65536, walk->at);
    EXPECT_EQ(13u, walk->steps);
}

TEST_F(predict_walk, begins_anew_where_it_began)
{
    steps(65536, 1000);
    now += 5000 * MS;
    const ucs_predict_walk_t *walk = steps(65536, 10);
    ASSERT_NE(nullptr, walk);
    EXPECT_GE(10u, walk->steps);
    EXPECT_LE(8u, walk->steps);
    EXPECT_EQ(BASE + 9 * 65536, walk->at);
    EXPECT_NEAR(MS, walk->step_ns, 0.5 * MS);
}

/* From its first step on it is expected to go as far as the last time */
TEST_F(predict_walk, goes_as_far_as_the_last_time)
{
    for (intptr_t stride : {65536, -65536}) {
        walks = {};
        const ucs_predict_walk_t *walk = steps(stride, 1000);
        EXPECT_EQ(UINT32_MAX, ucs_predict_walk_left(walk));
        now += 5000 * MS;
        EXPECT_EQ(walk, use(BASE));
        EXPECT_TRUE(ucs_predict_walk_is_new(walk));
        EXPECT_EQ(999u, ucs_predict_walk_left(walk));
        EXPECT_EQ(1000u, window(walk, 1e12, 1e12));
        EXPECT_EQ(walk, use(BASE)); /* repeated */
        EXPECT_EQ(1000u, window(walk, 1e12, 1e12));
        steps(stride, 599, 1);
        EXPECT_EQ(401u, window(walk, 1e12, 1e12));
        steps(stride, 400, 600);
        EXPECT_EQ(0u, ucs_predict_walk_left(walk));
        EXPECT_EQ(1u, window(walk, 1e12, 1e12));
        steps(stride, 1, 1000);
        EXPECT_EQ(UINT32_MAX, ucs_predict_walk_left(walk));
        EXPECT_EQ(1001u, window(walk, 1e12, 1e12));
    }
}

/* The first ones may come in another order */
TEST_F(predict_walk, begins_again_with_one_of_its_first_steps)
{
    const ucs_predict_walk_t *walk = steps(65536, 100);
    EXPECT_EQ(walk, use(BASE + 3 * 65536));
    EXPECT_EQ(4u, walk->steps);
    EXPECT_EQ(walk, use(BASE));
    EXPECT_EQ(4u, walk->steps);
    steps(65536, 96, 4);
    EXPECT_EQ(100u, walk->steps);
    EXPECT_EQ(nullptr, use(BASE + 4 * 65536));
}

/* Its first step alone may be used again and again: that is foretold by what it was the
 * last time */
TEST_F(predict_walk, begins_in_vain_once)
{
    const ucs_predict_walk_t *walk = steps(65536, 1000);
    now += 5000 * MS;
    use(BASE);
    EXPECT_EQ(1000u, window(walk, 1e12, 1e12));
    now += 5000 * MS;
    EXPECT_EQ(walk, use(BASE));
    EXPECT_EQ(0u, window(walk, 1e12, 1e12));
    EXPECT_EQ(100u, window(steps(65536, 100), 1e12, 1e12));
}

TEST_F(predict_walk, first_step_may_be_long_ago)
{
    use(BASE);
    now += 10000 * MS;
    EXPECT_NEAR(MS, steps(65536, 2, 1)->step_ns, 4 * MS);
}

TEST_F(predict_walk, is_over_when_one_like_it_begins)
{
    const ucs_predict_walk_t *before = steps(65536, 100);
    steps(65536, 2, 20);
    EXPECT_FALSE(before->is_over);
    steps(65536, 10, 22);
    EXPECT_TRUE(before->is_over);
    EXPECT_EQ(before, use(BASE + 100 * 65536));
    EXPECT_FALSE(before->is_over);
}

TEST_F(predict_walk, a_pause_is_no_slow_step)
{
    const ucs_predict_walk_t *walk = steps(65536, 100);
    now += 10000 * MS;
    use(BASE + 100 * 65536);
    EXPECT_GT(2 * MS, walk->step_ns);
    for (unsigned i = 101; i < 200; ++i) {
        use(BASE + i * 65536, 64 * KB, 3 * MS);
    }
    EXPECT_NEAR(3 * MS, walk->step_ns, 0.1 * MS);
}

TEST_F(predict_walk, no_order_is_no_walk)
{
    std::mt19937 random(1);
    unsigned found = 0;
    for (unsigned i = 0; i < 10000; ++i) {
        const ucs_predict_walk_t *walk = use(BASE + (random() % 100000) * 4096);
        found += (walk != nullptr) && (walk->steps >= ucs_predict_tuning_default.walk_least);
    }
    EXPECT_GE(10u, found);
}

TEST_F(predict_walk, windows_are_as_long_as_the_walk_so_far)
{
    EXPECT_EQ(0u, window(steps(65536, 7), 1e12, 1e12));
    EXPECT_EQ(8u, window(steps(65536, 1, 7), 1e12, 1e12));
    EXPECT_EQ(100u, window(steps(65536, 92, 8), 1e12, 1e12));
}

TEST_F(predict_walk, windows_are_worth_their_price)
{
    const ucs_predict_walk_t *walk = steps(65536, 1000);
    /* Each waits for half of 16 ms in the mean, a sixteenth of 128 ms */
    EXPECT_EQ(16u, window(walk, 128 * MS, 1e12));
    EXPECT_EQ(1u, window(walk, 8 * MS, 1e12));
    EXPECT_EQ(0u, window(walk, 7 * MS, 1e12));
    EXPECT_EQ(10u, window(walk, 1e12, 10 * 65536));
    EXPECT_EQ(1u, window(walk, 1e12, 1));
}

/* An all-to-all in blocks that come in another order each time: in some rounds one block
 * each lies as far from that of the round before */
TEST_F(predict_walk, a_step_a_round_is_no_walk)
{
    const uint64_t round = 10000 * MS;
    const ucs_predict_walk_t *walk = nullptr;
    for (unsigned i = 0; i < 20; ++i) {
        walk = use(BASE + i * 3 * 65536, 64 * KB, round);
    }
    ASSERT_NE(nullptr, walk);
    EXPECT_EQ(0u, window(walk, round, 1e12));
}

TEST_F(predict_walk, leads_by_twice_what_registering_takes)
{
    const ucs_predict_walk_t *walk = steps(65536, 1000);
    EXPECT_EQ(1u, ucs_predict_walk_lead(walk, 0.1 * MS));
    EXPECT_EQ(9u, ucs_predict_walk_lead(walk, 4 * MS));
    EXPECT_LT(1000000u, ucs_predict_walk_lead(walk, 1e30));
}

TEST_F(predict_walk, is_waited_for_longer_than_a_step_takes_and_shorter_than_rent)
{
    const ucs_predict_walk_t *walk = steps(65536, 1000);
    EXPECT_NEAR(100 * MS, ucs_predict_walk_still(walk, 10000 * MS), MS);
    EXPECT_NEAR(MS, ucs_predict_walk_still(walk, MS), 0.1 * MS);
}

TEST_F(predict_walk, any_address_and_length)
{
    std::mt19937_64 random(2);
    for (unsigned i = 0; i < 10000; ++i) {
        uintptr_t address = random() >> (random() % 64);
        size_t length     = 1 + (random() >> (1 + random() % 63));
        const ucs_predict_walk_t *walk = nullptr;
        for (unsigned k = 0; k < 10; ++k) {
            walk = use(address + k * length, length, random() % 2 ? 0 : MS);
        }
        if (walk != nullptr) {
            EXPECT_LE(1u, window(walk, 1e18, 1e18) +
                                  (walk->steps < ucs_predict_tuning_default.walk_least));
        }
    }
}

}
