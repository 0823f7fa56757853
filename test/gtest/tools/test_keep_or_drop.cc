/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "replay_fixture.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

/* Keep or drop: a page for which leave pinned's whole is worth a tenth of the
 * time, and that takes 100 us to register, is kept for up to 1 ms */
class test_keep_or_drop : public test_replay {
protected:
    static constexpr uint64_t COST = 100000;

    ucs_regcache_stats_t model()
    {
        replay_params_t p = params(UCS_REGCACHE_POLICY_ON_DEMAND);

        p.register_cost = {COST - 50.0, 50};
        p.max_slowdown  = 0.1;
        replay_model_keep_or_drop(&m_trace, &p, &m_model);
        EXPECT_EQ(m_model.stats.uses,
                  m_model.stats.on_time + m_model.stats.missed +
                          m_model.stats.cold);
        return m_model.stats;
    }

    replay_figures_t m_model;
};

TEST_F(test_keep_or_drop, a_gap_is_kept_as_long_as_that_is_cheaper)
{
    ucs_regcache_stats_t figures;

    use(0, 1000, 0);
    use(MS + 1000, MS + 3000, 0);         /* after 1 ms */
    use(2 * MS + 4000, 2 * MS + 5000, 0); /* after 1 ms and 1 us */
    prepare();
    figures = model();
    EXPECT_EQ(1u, figures.cold);
    EXPECT_EQ(1u, figures.on_time);
    EXPECT_EQ(1u, figures.missed);
    EXPECT_EQ(2.0 * COST, m_model.lost_ns);
    EXPECT_EQ(1.0 * COST, m_model.first_ns);
    EXPECT_EQ(PAGE * (MS + 3000 + 1000.0), figures.pinned_byte_ns);
    EXPECT_EQ(PAGE, figures.pinned_peak_bytes);
}

/* A registration that holds as much again as its page is kept for half as long */
TEST_F(test_keep_or_drop, what_the_nic_holds_is_held_as_well)
{
    for (uint64_t gap : {MS, MS + 1000}) {
        m_events.clear();
        use(0, 1000, 0);
        use(gap + 1000, gap + 2000, 0);
        use(5 * MS, 5 * MS + 1000, 1); /* leave pinned's second page */
        prepare();
        replay_params_t p = params(UCS_REGCACHE_POLICY_ON_DEMAND);
        p.register_cost   = {COST - 50.0, 50};
        p.max_slowdown    = 0.2;
        p.region_bytes    = PAGE;
        replay_model_keep_or_drop(&m_trace, &p, &m_model);
        EXPECT_EQ(gap == MS ? 1u : 0u, m_model.stats.on_time);
        EXPECT_EQ(1u, m_model.stats.regions_peak);
        EXPECT_EQ(3000.0 + (gap == MS ? gap : 0), m_model.stats.region_ns);
    }
}

TEST_F(test_keep_or_drop, what_is_in_use_is_held)
{
    ucs_regcache_stats_t figures;

    use(0, 9 * MS, 0);
    use(MS, 20 * MS, 0); /* meets the first, and goes on */
    use(30 * MS, 31 * MS, 0);
    use(5 * MS, 6 * MS, 1);
    prepare();
    figures = model();
    EXPECT_EQ(2u, figures.cold);
    EXPECT_EQ(1u, figures.on_time);
    EXPECT_EQ(1u, figures.missed);
    EXPECT_EQ(limit().stats.pinned_byte_ns, figures.pinned_byte_ns);
    EXPECT_EQ(limit().stats.pinned_peak_bytes, figures.pinned_peak_bytes);
}

TEST_F(test_keep_or_drop, what_is_unmapped_is_not_held_for_its_next_use)
{
    ucs_regcache_stats_t figures;

    use(0, 1000, 0);
    add(UCS_TRACE_UNMAP, 2000, buffer(0), PAGE);
    use(3000, 4000, 0);
    use(5000, 7000, 0);
    add(UCS_TRACE_UNMAP, 6000, buffer(0), PAGE); /* in use */
    use(8000, 9000, 0);
    prepare();
    figures = model();
    EXPECT_EQ(3u, figures.cold);
    EXPECT_EQ(1u, figures.on_time);
    EXPECT_EQ(3.0 * COST, m_model.first_ns);
    EXPECT_EQ(PAGE * (1000.0 + 4000 + 1000), figures.pinned_byte_ns);
}

/* Its price is the sum over all gaps of the cheaper of two things, and what is
 * in use: neither keeping all nor dropping all is below it */
TEST_F(test_keep_or_drop, no_other_choice_is_cheaper)
{
    for (unsigned seed = 1; seed <= 20; ++seed) {
        std::mt19937 random(seed);
        std::lognormal_distribution<double> gap(std::log(1e6), 1.5);
        std::map<unsigned, uint64_t> ended;
        double price = 0, all = 0, none = 0;
        uint64_t now = MS;
        ucs_regcache_stats_t figures;

        m_events.clear();
        for (unsigned i = 0; i < 300; ++i) {
            unsigned index = random() % 5;
            uint64_t end   = now + 1 + random() % 100000;

            use(now, end, index);
            if (ended.count(index)) {
                double hold = 0.1 / 5 * (now - ended[index]);
                price += std::min(hold, double(COST));
                all   += hold;
                none  += COST;
            }
            price       += 0.1 / 5 * (end - now);
            all         += 0.1 / 5 * (end - now);
            none        += 0.1 / 5 * (end - now);
            ended[index] = end;
            now          = end + 1 + uint64_t(gap(random));
        }
        prepare();
        figures = model();
        ASSERT_EQ(5u, figures.cold) << "seed " << seed;

        double found = m_model.lost_ns - m_model.first_ns +
                       0.1 / (5 * PAGE) * figures.pinned_byte_ns;
        EXPECT_NEAR(price, found, 1e-6 * price) << "seed " << seed;
        EXPECT_LE(found, 1.000001 * std::min(all, none)) << "seed " << seed;
    }
}
