/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "table_fixture.h"

#include <map>
#include <vector>

namespace {

/*
 * Programs as lists of uses, run through a table. A use is covered if some
 * context of its buffer predicted it to within 1 % of the distance to the
 * buffer's use before: then the cache, which takes the earliest of a region's
 * deadlines that are still to come, can have it registered in time.
 */
class predict_context : public predict_table {
protected:
    static constexpr uintptr_t BUF1 = 0x100000, BUF2 = 0x200000;
    static constexpr uintptr_t BUF3 = 0x300000, BUF4 = 0x400000;

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

    /* buf3 follows buf4 always; what came before buf4 tells how long it is
     * until that happens again. */
    static std::vector<use_t> two_back(int turns)
    {
        std::vector<use_t> uses;
        uint64_t time = 0;

        for (int turn = 0; turn < turns; ++turn) {
            uses.push_back({time, 1, (turn % 2) ? BUF1 : BUF2});
            uses.push_back({time + 1 * MS, 4, BUF4});
            uses.push_back({time + 2 * MS, 3, BUF3});
            time += (turn % 2) ? 100 * MS : 300 * MS;
        }

        return uses;
    }

    /* Share of the uses of `address` in the second half that are covered; of
     * those at place `offset` of each round of `round` uses. */
    double covered(const std::vector<use_t> &uses, uintptr_t address,
                   unsigned round = 1, unsigned offset = 0)
    {
        std::map<uint32_t, uint64_t> due; /* by context of the buffer */
        uint64_t last  = 0;
        unsigned total = 0, good = 0;

        for (size_t i = 0; i < uses.size(); ++i) {
            bool hit = false;

            if (uses[i].address == address) {
                uint64_t tolerance = (uses[i].time - last) / 100;

                for (auto &context : due) {
                    hit = hit || ((context.second + tolerance >=
                                   uses[i].time) &&
                                  (context.second <=
                                   uses[i].time + tolerance));
                }
                last = uses[i].time;
                if ((i >= uses.size() / 2) && (i % round == offset)) {
                    ++total;
                    good += hit;
                }
            }

            ucs_predict_ref_t ref = record(uses[i].time, uses[i].path,
                                           uses[i].address);

            if ((uses[i].address == address) && predicted(ref)) {
                due[ref.index] = deadline(ref);
            }
        }

        return (double)good / total;
    }
};

constexpr uintptr_t predict_context::BUF1, predict_context::BUF2;
constexpr uintptr_t predict_context::BUF3, predict_context::BUF4;
constexpr uint64_t predict_context::INNER1, predict_context::INNER2;
constexpr uint64_t predict_context::OUTER, predict_context::STEP;

TEST_F(predict_context, the_window_is_part_of_the_context)
{
    ucs_predict_window_t window = {};

    create_window(2);
    for (uintptr_t address : {BUF1, BUF2, BUF3, BUF2, BUF1}) {
        ucs_predict_ref_t ref = record(address, 9, address, 7);

        EXPECT_EQ(ucs_predict_signature(9, address, &window, 2),
                  info(ref).signature);
        ucs_predict_window_push(&window, ucs_predict_comm(7, address));
    }
}

TEST_F(predict_context, the_type_of_what_came_before_counts)
{
    create_window(1);
    record(1, 1, BUF1, 0);

    ucs_predict_ref_t after_0 = record(2, 2, BUF2);

    record(3, 1, BUF1, 1);

    ucs_predict_ref_t after_1 = record(4, 2, BUF2);

    record(5, 1, BUF1, 0);
    EXPECT_FALSE(after_0 == after_1);
    EXPECT_EQ(after_0, record(6, 2, BUF2));
}

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

/*
 * Fig. 4 alone, four times buf1 and five times buf2 in turn. What the window
 * does, and what it cannot do: in the loop of n iterations all contexts are
 * different if the window is as long as n - 1, and then all uses are covered.
 * With a shorter window of length w, the iterations from number w on (counted
 * from 0) share one context, whose latest use at number w is the end of the
 * loop's previous round: of the shortest period, that prediction is long past.
 */
TEST_F(predict_context, nested_loops_lose_one_use_a_round_at_a_known_place)
{
    const unsigned n = 4;

    for (unsigned length = 0; length <= UCS_PREDICT_WINDOW_MAX; ++length) {
        std::vector<use_t> uses;

        for (int outer = 0; outer < 20; ++outer) {
            uint64_t time = (uint64_t)outer * OUTER;

            for (unsigned i = 0; i < n; ++i, time += INNER1) {
                uses.push_back({time, 1, BUF1});
            }
            for (int i = 0; i < 5; ++i, time += INNER2) {
                uses.push_back({time, 2, BUF2});
            }
        }

        for (unsigned i = 0; i < n; ++i) {
            create_window(length);
            EXPECT_EQ((length < n - 1) && (i == length) ? 0 : 1,
                      covered(uses, BUF1, 9, i))
                    << "window length " << length << ", iteration " << i;
        }
    }
}

/* One call site and buffer, now after buf1, now after buf2, at distances that
 * differ: what the paper found in CG (its Fig. 6a). */
TEST_F(predict_context, length_one_sees_what_length_zero_does_not)
{
    std::vector<use_t> uses;

    for (uint64_t turn = 0; turn < 40; ++turn) {
        uint64_t time = turn * 400 * MS;

        uses.push_back({time, 1, BUF1});
        uses.push_back({time + 1 * MS, 3, BUF3});
        uses.push_back({time + 100 * MS, 2, BUF2});
        uses.push_back({time + 101 * MS, 3, BUF3});
    }

    create_window(0);
    EXPECT_NEAR(0.5, covered(uses, BUF3), 0.05);
    create_window(1);
    EXPECT_EQ(1, covered(uses, BUF3));
}

TEST_F(predict_context, length_two_sees_what_length_one_does_not)
{
    std::vector<use_t> uses = two_back(40);

    create_window(1);
    EXPECT_NEAR(0.5, covered(uses, BUF3), 0.05);
    create_window(2);
    EXPECT_EQ(1, covered(uses, BUF3));
}

/* The loop of the paper's Fig. 1: every use after the second round */
TEST_F(predict_context, three_rotating_buffers)
{
    std::vector<use_t> uses;

    for (uint64_t i = 0; i < 60; ++i) {
        uses.push_back({i * 1 * S, 1 + (i % 3), BUF1 + (i % 3) * 0x100000});
    }

    create_window(2);
    EXPECT_EQ(1, covered(uses, BUF1));
    /* Without a predecessor, with one, and the settled contexts */
    EXPECT_EQ(5u, ucs_predict_table_count(m_table));
}

} // namespace

/*
 * Margin and borrowing (rules 6 and 7)
 */

class test_borrow : public ::testing::Test {
protected:
    void SetUp() override
    {
        ucs_predict_params_t params;

        ucs_predict_params_init(&params);
        params.borrow = 1;
        ASSERT_EQ(UCS_OK, ucs_predict_table_create(&params, &table));
    }

    void TearDown() override
    {
        EXPECT_TRUE(ucs_predict_table_is_valid(table));
        ucs_predict_table_destroy(table);
    }

    ucs_predict_ref_t use(uint64_t start_ns, uintptr_t address)
    {
        ucs_predict_use_t u = {};

        u.start_ns = start_ns;
        u.path     = 1;
        u.address  = address;
        u.length   = 4096;
        return ucs_predict_table_record(table, &u);
    }

    uint64_t deadline(ucs_predict_ref_t ref)
    {
        uint64_t result = 0;

        return ucs_predict_table_deadline(table, ref, &result) ? result : 0;
    }

    ucs_predict_table_h table = nullptr;
};

TEST_F(test_borrow, new_context_takes_the_period_of_its_call_site)
{
    use(1000, 0xa000);
    use(2000, 0xb000);
    EXPECT_EQ(0u, deadline(use(3000, 0xc000)));
    /* Preceded by other buffers than before: a new context, a known buffer */
    EXPECT_EQ(7000u, deadline(use(4000, 0xa000)));
}

TEST_F(test_borrow, own_second_use_replaces_what_was_borrowed)
{
    use(1000, 0xa000);
    use(1500, 0xa000); /* the call site alone: 500 */
    use(2000, 0xb000);
    use(2500, 0xc000);
    EXPECT_EQ(3500u, deadline(use(3000, 0xa000)));
    use(9000, 0xb000);
    use(9500, 0xc000);
    EXPECT_EQ(17000u, deadline(use(10000, 0xa000)))
            << "its own gap of 7000, though it is longer";
}

TEST_F(test_borrow, wrong_loan_costs_lender_and_borrower)
{
    const uint64_t ms = 1000000; /* beyond the floor of the slack */
    ucs_predict_entry_info_t info;
    ucs_predict_ref_t ref;

    use(10 * ms, 0xa000);
    use(20 * ms, 0xa000);
    for (unsigned i = 1; i <= 2; ++i) {
        use(i * 1000 * ms, 0xb000 + i);
        ref = use((i * 1000 + 1) * ms, 0xa000);
        EXPECT_NE(0u, deadline(ref)) << i;
        ucs_predict_table_unused(table, ref);
        EXPECT_EQ(0u, deadline(ref));
        ASSERT_EQ(UCS_OK, ucs_predict_table_entry(table, ref, &info));
        EXPECT_EQ(0u, info.period_ns);
        EXPECT_EQ((i * 1000 + 1) * ms, info.last_ns);
    }
    use(3000 * ms, 0xb003);
    EXPECT_EQ(0u, deadline(use(3001 * ms, 0xa000)))
            << "the lender lends on though its loans proved wrong";
}

TEST_F(test_borrow, margin_follows_the_deviation)
{
    ucs_predict_ref_t ref = {};
    uint64_t now          = 0;

    for (unsigned i = 0; i < 40; ++i) {
        now += 64000;
        ref  = use(now, 0xa000);
    }
    EXPECT_EQ(64000u / 48, ucs_predict_table_margin(table, ref)) << "regular";

    for (unsigned i = 0; i < 40; ++i) {
        now += (i % 2) ? 64000 : 66000;
        ref  = use(now, 0xa000);
    }
    EXPECT_NEAR(4000, ucs_predict_table_margin(table, ref), 400) << "2 * D";

    for (unsigned i = 0; i < 40; ++i) {
        now += (i % 2) ? 64000 : 90000;
        ref  = use(now, 0xa000);
    }
    EXPECT_EQ(8000u, ucs_predict_table_margin(table, ref)) << "at most P / 8";
}

TEST_F(test_borrow, no_margin_without_a_period)
{
    EXPECT_EQ(0u, ucs_predict_table_margin(table, use(1000, 0xa000)));
    EXPECT_EQ(0u, ucs_predict_table_margin(table, {0, 77}));
}
