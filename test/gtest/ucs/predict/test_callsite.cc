/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "alloc_count.h"
#include "table_fixture.h"

#include <ucs/predict/lru.h>

#include <cmath>
#include <functional>
#include <map>
#include <vector>

namespace {

class predict_callsite : public predict_table {
};

TEST_F(predict_callsite, defaults_are_accepted)
{
    ucs_predict_params_init(&m_params);
    EXPECT_EQ(2u, m_params.window_length);
    EXPECT_EQ(0.25, m_params.slack_fraction);
    EXPECT_EQ(2 * MS, m_params.slack_min_ns);
    create();
    EXPECT_EQ(0u, ucs_predict_table_count(m_table));
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

/* What test_callsite_model.cc, which has the rules once more, does not reach */

TEST_F(predict_callsite, a_first_use_at_time_zero_counts)
{
    create();
    record(0);
    EXPECT_EQ(14u, deadline(record(7)));
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

/* Memory */

class predict_callsite_memory : public predict_table {
};

TEST_F(predict_callsite_memory, is_bounded_as_stated)
{
    for (uint32_t entries : {1u, 2u, 3u, 1000u, 1024u, 1025u, 4096u}) {
        ucs_predict_table_h table;

        m_params.max_entries = entries;
        ASSERT_EQ(UCS_OK, ucs_predict_table_create(&m_params, &table));
        EXPECT_LE(ucs_predict_table_memory(table), 1024 + (112 * entries));
        EXPECT_GE(ucs_predict_table_memory(table), 64 * entries);
        ucs_predict_table_destroy(table);
    }
}

TEST_F(predict_callsite_memory, pieces_are_all_that_is_allocated_once_it_is_created)
{
    m_params.max_entries = 256;

    uint64_t before = alloc_count();

    ASSERT_EQ(UCS_OK, ucs_predict_table_create(&m_params, &m_table));
    EXPECT_LT(before, alloc_count());

    before = alloc_count();
    for (uint64_t i = 0; i < 100000; ++i) {
        ucs_predict_use_t use = {i * MS, i % 777, (i % 5) << 12, 4096, 0};
        ucs_predict_ref_t ref = ucs_predict_table_record(m_table, &use);
        ucs_predict_entry_info_t entry;
        uint64_t due;

        if (ucs_predict_table_deadline(m_table, ref, &due) && (i % 3 == 0)) {
            ucs_predict_table_unused(m_table, ref);
        }
        ucs_predict_table_slack(m_table, ref);
        ucs_predict_table_entry(m_table, ref, &entry);
    }
    uint64_t after = alloc_count();

    /* The first one was there from the start */
    EXPECT_EQ(before + 256 / UCS_PREDICT_LRU_PIECE - 1, after);
}

TEST_F(predict_callsite_memory, failed_allocation_is_reported)
{
    alloc_count_fail_each(
            m_table,
            [this](ucs_predict_table_h *table) {
                return ucs_predict_table_create(&m_params, table);
            },
            ucs_predict_table_destroy);
}

class predict_context : public predict_table {
protected:
    static constexpr uintptr_t BUF1 = 0x100000, BUF2 = 0x200000;
    static constexpr uintptr_t BUF3 = 0x300000;

    struct use_t {
        uint64_t          time;
        ucs_predict_sig_t path;
        uintptr_t         address;
    };

    void create_window(unsigned length)
    {
        ucs_predict_table_destroy(m_table);
        m_table                = nullptr;
        m_params.window_length = length;
        create();
    }

    /*
     * Time steps: one communication of buf3, then the loop nest of Fig. 4 of
     * Li et al., CF'11: three times { four times buf1, five times buf2 }.
     */
    static constexpr uint64_t INNER1 = 10 * MS, INNER2 = 20 * MS;
    static constexpr uint64_t OUTER  = (4 * INNER1) + (5 * INNER2);
    static constexpr uint64_t STEP   = (3 * OUTER) + (50 * MS);

    static std::vector<use_t> nested_loops(int steps)
    {
        std::vector<use_t> uses;

        for (int step = 0; step < steps; ++step) {
            uint64_t time = (uint64_t)step * STEP;

            uses.push_back({time, 3, BUF3});
            time += 50 * MS;
            for (int outer = 0; outer < 3; ++outer) {
                for (int i = 0; i < 4; ++i, time += INNER1) {
                    uses.push_back({time, 1, BUF1});
                }
                for (int i = 0; i < 5; ++i, time += INNER2) {
                    uses.push_back({time, 2, BUF2});
                }
            }
        }

        return uses;
    }
};

constexpr uintptr_t predict_context::BUF1, predict_context::BUF2;
constexpr uintptr_t predict_context::BUF3;
constexpr uint64_t predict_context::INNER1, predict_context::INNER2;
constexpr uint64_t predict_context::OUTER, predict_context::STEP;

/* One call site with one buffer, and three periods: the inner loop's, the
 * outer loop's, and the time step's. */
TEST_F(predict_context, nested_loops_have_three_periods_at_one_call_site)
{
    create_window(2);

    std::map<uint64_t, unsigned> periods; /* number of contexts by period */
    std::map<uint32_t, uint64_t> contexts;

    for (const use_t &use : nested_loops(6)) {
        ucs_predict_ref_t ref = record(use.time, use.path, use.address);

        if (use.address == BUF1) {
            contexts[ref.index] = info(ref).period_ns;
        }
    }
    for (auto &context : contexts) {
        ++periods[context.second];
    }

    /* First after the time step's start, where the one before that is buf2 or
     * nothing; second after the first of these; then (1, 1); first after the
     * second inner loop; second after that. */
    EXPECT_EQ(1u, periods[INNER1]);
    EXPECT_EQ(2u, periods[OUTER]);
    EXPECT_EQ(2u, periods[STEP]);
    EXPECT_EQ(1u, periods[0]); /* the very first use: never seen again */
    EXPECT_EQ(4u, periods.size());
}

} // namespace

/*
 * Margin (rule 6)
 */

class test_margin : public predict_table {
protected:
    void SetUp() override
    {
        ucs_predict_params_init(&m_params);
        create();
    }

    uint64_t margin(ucs_predict_ref_t ref)
    {
        return ucs_predict_table_margin(m_table, ref);
    }

    /* Of the last of so many uses, in turn so far apart */
    uint64_t margin_after(uint64_t gap, uint64_t other)
    {
        ucs_predict_ref_t ref = {};

        for (unsigned i = 0; i < 40; ++i) {
            ref = record(m_now += (i % 2) ? other : gap);
        }
        return margin(ref);
    }

    uint64_t m_now = 0;
};

TEST_F(test_margin, margin_follows_the_deviation)
{
    EXPECT_EQ(64000u / 48, margin_after(64000, 64000)) << "regular";
    EXPECT_NEAR(4000, margin_after(66000, 64000), 400) << "2 * D";
    EXPECT_EQ(8000u, margin_after(90000, 64000)) << "at most P / 8";
}

TEST_F(test_margin, no_margin_without_a_period)
{
    EXPECT_EQ(0u, margin(record(1000)));
    EXPECT_EQ(0u, margin({0, 77}));
}
