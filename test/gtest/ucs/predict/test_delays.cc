/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/predict/delays.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

TEST(predict_delays, of_none_each_part_is_zero)
{
    ucs_predict_delays_t delays = {};
    for (double share : {0.0, 0.1, 0.99}) {
        EXPECT_EQ(0, ucs_predict_delays_at(&delays, share));
    }
}

/* The next one's number is a multiple, too */
TEST(predict_delays, each_second_to_eighth)
{
    ucs_predict_delays_t delays = {};
    for (int i = 0; i < 40; ++i) {
        for (int every = 2; every <= 8; ++every) {
            ucs_predict_delays_t like = ucs_predict_delays_every(&delays,
                                                                 every);
            ASSERT_EQ(std::min(i, UCS_PREDICT_DELAYS) / every, like.count);
            for (int j = 0; j < like.count; ++j) {
                ASSERT_EQ(i % every, int(like.sorted[j]) % every);
                ASSERT_LT((j == 0) ? -1 : like.sorted[j - 1], like.sorted[j]);
            }
        }
        ucs_predict_delays_add(&delays, i);
    }
}

/* Against the latest sixteen in a list that is sorted anew. Few different
 * values, so that equal ones are many. */
TEST(predict_delays, as_a_naive_model)
{
    for (unsigned seed = 0; seed < 50; ++seed) {
        std::mt19937 random(seed);
        unsigned values             = 1 + random() % 40;
        ucs_predict_delays_t delays = {};
        std::deque<float> model;

        for (unsigned i = 0; i < 500; ++i) {
            float delay = random() % values;
            ucs_predict_delays_add(&delays, delay);
            model.push_back(delay);
            if (model.size() > UCS_PREDICT_DELAYS) {
                model.pop_front();
            }

            std::vector<float> sorted(model.begin(), model.end());
            std::sort(sorted.begin(), sorted.end());
            ASSERT_EQ(sorted.size(), delays.count);
            for (double share = 0; share < 1; share += 0.0625) {
                ASSERT_EQ(sorted[unsigned(share * sorted.size())],
                          ucs_predict_delays_at(&delays, share))
                        << seed << " " << i << " " << share;
            }
        }
    }
}
