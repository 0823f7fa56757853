/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/predict/price.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

/* Rounding of doubles, as a share of a sum of some hundred */
static constexpr double ROUNDING = 1e-9;

/* A buffer and its price; what a gap costs, in nanoseconds of lost time */
class rental {
public:
    rental(double max_slowdown, double leave, double bytes, double cost) :
        m_lambda(max_slowdown / leave * bytes), m_cost(cost),
        m_rent(ucs_predict_price_rent_ns(max_slowdown, leave, bytes, cost))
    {
    }

    /* Of one who knows the gap */
    double best(double gap) const
    {
        return std::min(m_cost, m_lambda * gap);
    }

    /* Dropped after @a limit if it has not been used by then; what is dropped
     * is held for @a delay longer, until a helper comes to it */
    double held_for(double limit, double gap, double delay = 0) const
    {
        return m_lambda * std::min(gap, limit + delay) +
               ((gap > limit + delay) ? m_cost : 0);
    }

    double rent(double gap, double delay = 0) const
    {
        return held_for(m_rent, gap, delay);
    }

    double m_lambda; /* of the whole buffer, ns lost a ns */
    double m_cost;
    double m_rent;
};

typedef std::function<double(unsigned, std::mt19937_64&, const rental&)> gaps_t;

static double uniform(std::mt19937_64 &random, double from, double to)
{
    return std::uniform_real_distribution<double>(from, to)(random);
}

/* Gaps of a program that knows the rule as well as we do, and of others */
static const struct {
    const char *name;
    gaps_t     gap;
} sequences[] = {
    {"uniform", [](unsigned, std::mt19937_64 &random, const rental &r) {
         return uniform(random, 0, 4 * r.m_rent);
     }},
    {"lognormal", [](unsigned, std::mt19937_64 &random, const rental &r) {
         return r.m_rent *
                std::lognormal_distribution<double>(0, 2)(random);
     }},
    {"just before", [](unsigned, std::mt19937_64&, const rental &r) {
         return r.m_rent * (1 - 1e-6);
     }},
    {"just after", [](unsigned, std::mt19937_64&, const rental &r) {
         return r.m_rent * (1 + 1e-6);
     }},
    {"around", [](unsigned, std::mt19937_64 &random, const rental &r) {
         return r.m_rent * uniform(random, 0.999, 1.001);
     }},
    {"alternating", [](unsigned i, std::mt19937_64&, const rental &r) {
         return r.m_rent * ((i % 2) ? 1e-3 : 1.001);
     }},
    {"growing", [](unsigned i, std::mt19937_64&, const rental &r) {
         return r.m_rent * 1e-3 * std::pow(1.1, i % 150);
     }},
    {"bursts", [](unsigned i, std::mt19937_64 &random, const rental &r) {
         return (i % 20) ? uniform(random, 0, 1e-2 * r.m_rent) :
                           uniform(random, 1, 100) * r.m_rent;
     }}
};

static rental random_rental(std::mt19937_64 &random)
{
    double bytes = 4096 * std::pow(2, uniform(random, 0, 20));

    return rental(std::pow(10, uniform(random, -4, 0)),
                  bytes * std::pow(2, uniform(random, 0, 15)), bytes,
                  std::pow(10, uniform(random, 2, 8)));
}

/* Gap by gap, so the sum as well */
TEST(predict_price, rent_is_at_most_twice_as_dear_as_who_knows_the_gap)
{
    for (unsigned seed = 1; seed <= 300; ++seed) {
        std::mt19937_64 random(seed);
        rental r = random_rental(random);

        for (const auto &sequence : sequences) {
            double rent = 0, best = 0;

            for (unsigned i = 0; i < 200; ++i) {
                double gap = sequence.gap(i, random, r);

                ASSERT_LE(r.rent(gap), 2 * r.best(gap) * (1 + ROUNDING))
                        << sequence.name << ", seed " << seed << ", gap "
                        << gap << " of " << r.m_rent;
                rent += r.rent(gap);
                best += r.best(gap);
            }
            ASSERT_LE(rent, 2 * best * (1 + ROUNDING))
                    << sequence.name << ", seed " << seed;
        }
    }
}

/* A helper that comes late holds what it drops for as long, and no more */
TEST(predict_price, a_delay_costs_what_is_held_meanwhile)
{
    for (unsigned seed = 1; seed <= 300; ++seed) {
        std::mt19937_64 random(seed);
        rental r = random_rental(random);

        for (const auto &sequence : sequences) {
            for (unsigned i = 0; i < 200; ++i) {
                double gap   = sequence.gap(i, random, r);
                double delay = r.m_rent * uniform(random, 0, 0.5);

                ASSERT_LE(r.rent(gap, delay),
                          (2 * r.best(gap) + r.m_lambda * delay) *
                                  (1 + ROUNDING))
                        << sequence.name << ", seed " << seed;
            }
        }
    }
}

TEST(predict_price, rent_is_proportional_to_what_it_is_made_of)
{
    double rent = ucs_predict_price_rent_ns(0.005, 1e9, 1e6, 84000);

    EXPECT_DOUBLE_EQ(84000 * 1e9 / (0.005 * 1e6), rent);
    EXPECT_DOUBLE_EQ(rent / 2,
                     ucs_predict_price_rent_ns(0.01, 1e9, 1e6, 84000));
    EXPECT_DOUBLE_EQ(rent * 2,
                     ucs_predict_price_rent_ns(0.005, 2e9, 1e6, 84000));
    EXPECT_DOUBLE_EQ(rent / 2,
                     ucs_predict_price_rent_ns(0.005, 1e9, 2e6, 84000));
    EXPECT_DOUBLE_EQ(rent * 2,
                     ucs_predict_price_rent_ns(0.005, 1e9, 1e6, 168000));
}

/* A deadline in the past would drop what was just used */
TEST(predict_price, what_is_too_long_saturates)
{
    for (double max_slowdown : {1e-300, 1e-5, 1.0}) {
        for (double leave : {0.0, 1.0, 1e30, double(INFINITY)}) {
            for (double bytes : {0.0, 1.0, 1e18}) {
                double rent = ucs_predict_price_rent_ns(max_slowdown, leave,
                                                        bytes, 1e9);

                EXPECT_GE(rent, 1e9) << max_slowdown << ' ' << leave;
                EXPECT_LE(rent, 1e18) << max_slowdown << ' ' << leave;
            }
        }
    }
}
