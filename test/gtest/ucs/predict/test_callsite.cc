/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "table_fixture.h"

#include <cmath>
#include <functional>

namespace {

class predict_callsite : public predict_table {
};

/* create */

TEST_F(predict_callsite, defaults_are_accepted)
{
    ucs_predict_params_init(&m_params);
    EXPECT_EQ(2u, m_params.window_length);
    EXPECT_EQ(0.25, m_params.slack_fraction);
    EXPECT_EQ(2 * MS, m_params.slack_min_ns);
    create();
    EXPECT_EQ(0u, ucs_predict_table_count(m_table));
}

TEST_F(predict_callsite, no_parameters_means_defaults)
{
    ASSERT_EQ(UCS_OK, ucs_predict_table_create(nullptr, &m_table));

    ucs_predict_table_h other;

    ucs_predict_params_init(&m_params);
    ASSERT_EQ(UCS_OK, ucs_predict_table_create(&m_params, &other));
    EXPECT_EQ(ucs_predict_table_memory(other),
              ucs_predict_table_memory(m_table));
    ucs_predict_table_destroy(other);
}

TEST_F(predict_callsite, parameters_out_of_range_are_refused)
{
    using params_t = ucs_predict_params_t;
    const std::function<void(params_t&)> breaks[] = {
        [](params_t &p) { p.max_entries = 0; },
        [](params_t &p) { p.max_entries = UCS_PREDICT_MAX_ENTRIES + 1; },
        [](params_t &p) { p.window_length = UCS_PREDICT_WINDOW_MAX + 1; },
        [](params_t &p) { p.slack_fraction = -0.1; },
        [](params_t &p) { p.slack_fraction = 1.1; },
        [](params_t &p) { p.slack_fraction = NAN; },
        [](params_t &p) { p.slack_max_ns = p.slack_min_ns - 1; },
        [](params_t &p) { p.confidence_initial = 0; },
        [](params_t &p) { p.confidence_initial = p.confidence_max + 1; },
        [](params_t &p) { p.confidence_max = 256; },
    };

    for (auto &make_bad : breaks) {
        ucs_predict_params_t params = m_params;
        ucs_predict_table_h table   = nullptr;

        make_bad(params);
        EXPECT_EQ(UCS_ERR_INVALID_PARAM,
                  ucs_predict_table_create(&params, &table))
                << "case " << (&make_bad - breaks);
        EXPECT_EQ(nullptr, table);
    }
}

TEST_F(predict_callsite, destroying_nothing_is_allowed)
{
    ucs_predict_table_destroy(nullptr);
    EXPECT_EQ(nullptr, m_table);
}

/* period and deadline */

TEST_F(predict_callsite, first_use_has_no_prediction)
{
    create();

    ucs_predict_ref_t ref = record(5 * S);

    EXPECT_FALSE(predicted(ref));
    EXPECT_EQ(0u, info(ref).period_ns);
    EXPECT_EQ(0u, info(ref).confidence);
    EXPECT_EQ(5 * S, info(ref).last_ns);
    EXPECT_EQ(1u, info(ref).uses);
}

TEST_F(predict_callsite, second_use_gives_period_and_deadline)
{
    create();

    ucs_predict_ref_t first  = record(5 * S);
    ucs_predict_ref_t second = record(7 * S);

    EXPECT_EQ(first, second);
    EXPECT_EQ(2 * S, info(second).period_ns);
    EXPECT_EQ(9 * S, deadline(second));
    EXPECT_EQ(m_params.confidence_initial, info(second).confidence);
}

TEST_F(predict_callsite, a_first_use_at_time_zero_counts)
{
    create();
    record(0);
    EXPECT_EQ(14u, deadline(record(7)));
}

TEST_F(predict_callsite, irregular_workload_takes_the_shortest_period)
{
    create();

    uint64_t time = 1 * S, shortest = UINT64_MAX;

    record(time);
    for (uint64_t gap : {100, 130, 90, 95, 110, 85, 120, 86}) {
        time    += gap * MS;
        shortest = std::min(shortest, gap * MS);
        EXPECT_EQ(time + shortest, deadline(record(time))) << "gap " << gap;
    }

    EXPECT_EQ(85 * MS, shortest);
}

TEST_F(predict_callsite, entry_tells_what_was_recorded)
{
    create();

    ucs_predict_use_t use = {3, 77, 0x7000, 4096, 5};
    ucs_predict_ref_t ref = ucs_predict_table_record(m_table, &use);

    EXPECT_EQ(ucs_predict_signature(77, 0x7000, nullptr, 0),
              info(ref).signature);

    use.start_ns = 10;
    use.length   = 8192;
    EXPECT_EQ(ref, ucs_predict_table_record(m_table, &use));
    EXPECT_EQ(2u, info(ref).uses);
}

TEST_F(predict_callsite, path_and_buffer_make_contexts_of_their_own)
{
    create();

    ucs_predict_ref_t a = record(0, 1, 0x10000);
    ucs_predict_ref_t b = record(1, 2, 0x10000);
    ucs_predict_ref_t c = record(3, 1, 0x20000);

    EXPECT_FALSE(predicted(a) || predicted(b) || predicted(c));
    EXPECT_EQ(3u, ucs_predict_table_count(m_table));
    EXPECT_EQ(200u, deadline(record(100, 1, 0x10000)));
    EXPECT_EQ(201u, deadline(record(101, 2, 0x10000)));
    EXPECT_EQ(203u, deadline(record(103, 1, 0x20000)));
}

TEST_F(predict_callsite, time_that_does_not_pass_teaches_nothing)
{
    create();
    record(100);

    EXPECT_FALSE(predicted(record(100)));
    EXPECT_FALSE(predicted(record(40)));
    EXPECT_EQ(100u, info(record(99)).last_ns);

    ucs_predict_ref_t ref = record(150);

    EXPECT_EQ(200u, deadline(ref));
    record(150);
    record(10);
    EXPECT_EQ(200u, deadline(ref));
    EXPECT_EQ(m_params.confidence_initial, info(ref).confidence);
    EXPECT_EQ(7u, info(ref).uses);
}

TEST_F(predict_callsite, the_end_of_time_saturates)
{
    create();
    record(1);

    ucs_predict_ref_t ref = record(UINT64_MAX - 1);

    EXPECT_EQ(UINT64_MAX, deadline(ref));
    EXPECT_EQ(m_params.slack_max_ns, ucs_predict_table_slack(m_table, ref));
    EXPECT_EQ(UINT64_MAX, deadline(record(UINT64_MAX)));
    EXPECT_EQ(1u, info(ref).period_ns);
}

TEST_F(predict_callsite, the_longest_period_with_a_slack_of_all_of_it)
{
    m_params.slack_fraction = 1;
    m_params.slack_max_ns   = UINT64_MAX;
    create();
    record(0);

    ucs_predict_ref_t ref = record(UINT64_MAX);

    EXPECT_EQ(UINT64_MAX, ucs_predict_table_slack(m_table, ref));
    EXPECT_EQ(UINT64_MAX, deadline(ref));
}

/* slack */

TEST_F(predict_callsite, slack_is_a_fraction_with_floor_and_cap)
{
    create();

    const uint64_t cases[][2] = {
        {1 * MS, 2 * MS},    {8 * MS, 2 * MS}, {100 * MS, 25 * MS},
        {2 * S, 500 * MS},   {4 * S, 1 * S},   {100 * S, 1 * S},
    };
    ucs_predict_sig_t path = 0;

    for (auto &c : cases) {
        ++path;
        record(0, path);
        EXPECT_EQ(c[1], ucs_predict_table_slack(m_table, record(c[0], path)))
                << "period " << c[0];
    }
}

TEST_F(predict_callsite, slack_without_prediction_is_the_floor)
{
    create();
    EXPECT_EQ(2 * MS, ucs_predict_table_slack(m_table, record(10 * S)));
    EXPECT_EQ(2 * MS, ucs_predict_table_slack(m_table, {0, 0}));
}

/* confidence */

TEST_F(predict_callsite, uses_within_the_slack_raise_confidence_to_the_maximum)
{
    create();
    record(0);

    unsigned expected = m_params.confidence_initial;

    EXPECT_EQ(expected, info(record(100 * MS)).confidence);
    for (uint64_t i = 2; i < 10; ++i) {
        expected = std::min(expected + 1, m_params.confidence_max);
        EXPECT_EQ(expected, info(record(i * 100 * MS)).confidence);
    }

    EXPECT_EQ(m_params.confidence_max, expected);
}

TEST_F(predict_callsite, borders_of_the_slack_belong_to_it)
{
    const struct {
        int64_t error; /* of the third use against its deadline */
        bool    rises;
    } cases[] = {
        {25000000, true},   {25000001, false},
        {-25000000, true},  {-25000001, false},
        {0, true},
    };
    ucs_predict_sig_t path = 0;

    create();
    for (auto &c : cases) {
        ++path;
        record(1 * S, path);
        record(1 * S + 100 * MS, path);
        EXPECT_EQ(m_params.confidence_initial + c.rises,
                  info(record(1 * S + 200 * MS + c.error, path)).confidence)
                << "error " << c.error;
    }
}

TEST_F(predict_callsite, unused_spends_the_prediction_until_the_next_use)
{
    create();
    record(0);

    ucs_predict_ref_t ref = record(1 * S);

    ucs_predict_table_unused(m_table, ref);
    EXPECT_FALSE(predicted(ref));
    EXPECT_EQ(m_params.confidence_initial - 1, info(ref).confidence);
    EXPECT_EQ(1 * S, info(ref).period_ns);

    EXPECT_EQ(11 * S, deadline(record(10 * S)));
}

TEST_F(predict_callsite, at_zero_confidence_the_next_two_uses_relearn)
{
    create();
    record(0);

    ucs_predict_ref_t ref = record(1 * S);

    for (unsigned i = 0; i < m_params.confidence_initial; ++i) {
        ucs_predict_table_unused(m_table, ref);
    }
    EXPECT_EQ(0u, info(ref).confidence);
    EXPECT_EQ(0u, info(ref).period_ns);
    EXPECT_FALSE(predicted(ref));

    EXPECT_FALSE(predicted(record(30 * S)));
    EXPECT_EQ(35 * S + 5 * S, deadline(record(35 * S)));
    EXPECT_EQ(1u, info(ref).confidence);
}

TEST_F(predict_callsite, a_relearned_period_has_to_earn_its_confidence)
{
    create();
    record(0);

    ucs_predict_ref_t ref = record(1 * S);

    ucs_predict_table_unused(m_table, ref);
    ucs_predict_table_unused(m_table, ref);
    record(10 * S);
    record(11 * S);
    EXPECT_EQ(2u, info(record(12 * S)).confidence);
    EXPECT_EQ(3u, info(record(13 * S)).confidence);
}

TEST_F(predict_callsite, unused_without_prediction_has_no_effect)
{
    create();

    ucs_predict_ref_t ref = record(1 * S);

    ucs_predict_table_unused(m_table, ref);
    ucs_predict_table_unused(m_table, {0, 0});
    ucs_predict_table_unused(m_table, {77, 1});
    EXPECT_EQ(3 * S, deadline(record(2 * S)));
    EXPECT_EQ(m_params.confidence_initial, info(ref).confidence);
}

/* Once quickly, ever since slowly: what rule 5 of callsite.h promises */
TEST_F(predict_callsite, a_slow_context_is_not_wasted_on_for_ever)
{
    create();

    uint64_t time   = 0;
    unsigned wasted = 0, on_time = 0;

    for (int i = 0; i < 8; ++i) {
        record(time += 10 * MS);
    }

    for (int i = 0; i < 100; ++i) {
        ucs_predict_ref_t ref = record(time);
        uint64_t due;

        time += 1 * S;
        if (ucs_predict_table_deadline(m_table, ref, &due)) {
            if (due + ucs_predict_table_slack(m_table, ref) < time) {
                ucs_predict_table_unused(m_table, ref);
                ++wasted;
            } else {
                ++on_time;
            }
        }
    }

    EXPECT_EQ(m_params.confidence_max, wasted);
    EXPECT_EQ(100 - m_params.confidence_max - 1, on_time);
}

/* Each gap twice the one before: nothing that is predicted comes true */
TEST_F(predict_callsite, a_hopeless_context_wastes_one_in_two_at_most)
{
    create();

    unsigned wasted = 0, uses = 0;

    for (uint64_t time = 10 * MS; time < UINT64_MAX / 2; time *= 2, ++uses) {
        ucs_predict_ref_t ref = record(time);

        if (predicted(ref)) {
            ucs_predict_table_unused(m_table, ref);
            ++wasted;
        }
    }

    EXPECT_GT(uses, 30u);
    EXPECT_LE(wasted, m_params.confidence_initial + (uses / 2));
}

/* eviction */

TEST_F(predict_callsite, the_least_recently_used_context_is_evicted)
{
    m_params.max_entries = 3;
    create();

    ucs_predict_ref_t a = record(1, 1);
    ucs_predict_ref_t b = record(2, 2);
    ucs_predict_ref_t c = record(3, 3);

    record(4, 1);

    ucs_predict_ref_t d = record(5, 4);

    EXPECT_EQ(3u, ucs_predict_table_count(m_table));
    EXPECT_TRUE(stale(b));
    EXPECT_FALSE(stale(a) || stale(c) || stale(d));
    EXPECT_EQ(b.index, d.index);
    EXPECT_NE(b.generation, d.generation);

    record(6, 5);
    EXPECT_TRUE(stale(c));
    EXPECT_FALSE(stale(a));
}

TEST_F(predict_callsite, only_recording_counts_as_use_for_eviction)
{
    m_params.max_entries = 2;
    create();

    ucs_predict_ref_t a = record(1, 1);

    record(2, 2);
    EXPECT_EQ(1u, info(a).uses);
    EXPECT_FALSE(predicted(a));
    ucs_predict_table_slack(m_table, a);
    record(3, 3);
    EXPECT_TRUE(stale(a));
}

TEST_F(predict_callsite, a_stale_reference_does_nothing)
{
    m_params.max_entries = 1;
    create();
    record(0, 1);

    ucs_predict_ref_t old = record(1 * S, 1);

    record(2 * S, 2);

    ucs_predict_ref_t current = record(5 * S, 2);
    uint64_t due              = 12345;

    EXPECT_EQ(old.index, current.index);
    EXPECT_TRUE(stale(old));
    EXPECT_EQ(0, ucs_predict_table_deadline(m_table, old, &due));
    EXPECT_EQ(12345u, due);
    EXPECT_EQ(m_params.slack_min_ns, ucs_predict_table_slack(m_table, old));

    for (int i = 0; i < 10; ++i) {
        ucs_predict_table_unused(m_table, old);
    }
    EXPECT_EQ(8 * S, deadline(current));
    EXPECT_EQ(m_params.confidence_initial, info(current).confidence);
}

TEST_F(predict_callsite, an_evicted_context_starts_again)
{
    m_params.max_entries = 1;
    create();
    record(0, 1);
    record(1 * S, 1);
    record(2 * S, 2);

    ucs_predict_ref_t again = record(3 * S, 1);

    EXPECT_FALSE(predicted(again));
    EXPECT_EQ(1u, info(again).uses);
    EXPECT_EQ(5 * S, deadline(record(4 * S, 1)));
    EXPECT_EQ(m_params.confidence_initial, info(again).confidence);
}

TEST_F(predict_callsite, references_to_nothing_are_stale)
{
    m_params.max_entries = 4;
    create();
    EXPECT_TRUE(stale({0, 0}));
    EXPECT_TRUE(stale({0, 1}));
    record(1);
    EXPECT_TRUE(stale({0, 0}));
    EXPECT_TRUE(stale({1, 0}));
    EXPECT_TRUE(stale({4, 1}));
    EXPECT_TRUE(stale({UINT32_MAX, 1}));
}

} // namespace
