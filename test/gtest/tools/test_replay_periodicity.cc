/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "replay_fixture.h"

#include <cmath>

/* Where every use but the first could be early by the whole lead */
TEST_F(test_replay, lead_is_paid_once_a_warm_use_and_not_beyond_the_gap)
{
    replay_params_t p = params(UCS_REGCACHE_POLICY_PREDICT);
    double lead       = 550 + 100000 * exp(0.6 * 2.0537);

    p.lateness_ns = 100000;
    use(10 * MS, 11 * MS, 0);
    use(20 * MS, 21 * MS, 0);
    use(20 * MS + 10, 21 * MS - 10, 0);      /* in use: nothing to pay */
    use(21 * MS + 20000, 22 * MS, 0);        /* idle for less than the lead */
    prepare();
    EXPECT_DOUBLE_EQ(lead, replay_model_lead_ns(&m_trace, &p, PAGE));
    EXPECT_DOUBLE_EQ(PAGE * (lead + 20000), replay_model_lead(&m_trace, &p));

    add(UCS_TRACE_UNMAP, 30 * MS, buffer(0), PAGE);
    use(40 * MS, 41 * MS, 0);                /* cold */
    prepare();
    EXPECT_DOUBLE_EQ(PAGE * (lead + 20000), replay_model_lead(&m_trace, &p));
}

TEST_F(test_replay, periodicity_holds_one_lead_of_what_is_periodic)
{
    replay_params_t p = params(UCS_REGCACHE_POLICY_PREDICT);
    std::vector<unsigned> sequence;
    replay_figures_t limit, figures;

    for (unsigned i = 0; i < 300; ++i) {
        sequence.push_back(i % 3);
    }
    use_all(sequence);
    prepare();
    replay_model_limit(&m_trace, &limit, nullptr);
    replay_model_periodicity(&m_trace, &p, 4, &figures);
    EXPECT_EQ(300u, figures.uses);
    EXPECT_EQ(3u, figures.cold);
    EXPECT_EQ(300u, figures.on_time + figures.missed + figures.cold);
    /* Two windows of four, three apart, and each buffer once more */
    EXPECT_GE(figures.on_time, 290u);
    EXPECT_GT(figures.pinned_byte_ns, limit.pinned_byte_ns);
    EXPECT_LE(figures.pinned_byte_ns,
              limit.pinned_byte_ns + replay_model_lead(&m_trace, &p) +
                      3 * PAGE * 0.05 * 3 * MS);
    EXPECT_LE(figures.wasted, 3u); /* what the end has cut off */
    EXPECT_EQ(PAGE, figures.pinned_peak_bytes);
}

TEST_F(test_replay, periodicity_without_a_period_registers_on_demand)
{
    replay_params_t p = params(UCS_REGCACHE_POLICY_PREDICT);
    replay_figures_t limit, figures;

    use_at_random(3);
    prepare();
    replay_model_limit(&m_trace, &limit, nullptr);
    replay_model_periodicity(&m_trace, &p, 64, &figures);
    EXPECT_LE(figures.on_time, 5u);
    EXPECT_LE(figures.pinned_byte_ns, 1.05 * limit.pinned_byte_ns);
}

TEST_F(test_replay, periodicity_drops_what_does_not_come)
{
    replay_params_t p = params(UCS_REGCACHE_POLICY_PREDICT);
    std::vector<unsigned> sequence(40, 0);
    replay_figures_t before, after, gone;

    use_all(sequence);
    prepare();
    replay_model_periodicity(&m_trace, &p, 4, &before);

    /* One more use, of another buffer, after a long time */
    use(1000 * MS, 1000 * MS + 10000, 1);
    prepare();
    replay_model_periodicity(&m_trace, &p, 4, &after);
    EXPECT_EQ(1u, after.wasted);
    EXPECT_GT(after.pinned_byte_ns, before.pinned_byte_ns);
    EXPECT_LE(after.pinned_byte_ns - before.pinned_byte_ns,
              PAGE * (10000 + 0.1 * MS));

    /* Unmapped before it would have been registered again */
    add(UCS_TRACE_UNMAP, 40 * MS + 20000, buffer(0), PAGE);
    prepare();
    replay_model_periodicity(&m_trace, &p, 4, &gone);
    EXPECT_EQ(0u, gone.wasted);
    EXPECT_DOUBLE_EQ(before.pinned_byte_ns + 10000 * PAGE, gone.pinned_byte_ns);
}
