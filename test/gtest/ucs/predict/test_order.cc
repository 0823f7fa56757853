/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "alloc_count.h"
#include "order_fixture.h"

#include <algorithm>
#include <random>

namespace {

TEST_F(predict_order, of_one_use_nothing_is_known_and_it_is_rented)
{
    EXPECT_FALSE(is_known(0x1000));
    use(MS, 0x1000);
    now += 300 * MS;
    use(MS, 0x2000);
    for (uintptr_t address : {0x1000, 0x2000}) {
        EXPECT_TRUE(is_rented(address));
        EXPECT_EQ(0u, forecast(address).due_ns);
        EXPECT_EQ(0u, forecast(address).watch_ns);
    }
}

/* A period longer than the rent time, which holding does not bridge */
TEST_F(predict_order, what_comes_again_is_foretold)
{
    for (int i = 0; i < 8; ++i) {
        use(200 * MS - 100 * US, 0x1000);
    }
    ucs_predict_forecast_t f = forecast(0x1000);
    EXPECT_NEAR(now - 100 * US + 200 * MS, f.due_ns, MS / 10);
    EXPECT_EQ(f.due_ns + 50 * MS, f.until_ns);
    EXPECT_EQ(0u, f.hold_ns);
    EXPECT_TRUE(f.is_known);
    EXPECT_NEAR(100 * US, f.duration_ns, 1);
}

/* There is no time to do without */
TEST_F(predict_order, short_gaps_are_bridged)
{
    for (int i = 0; i < 20; ++i) {
        use(MS, 0x1000);
    }
    EXPECT_GE(forecast(0x1000).hold_ns, MS);
    EXPECT_EQ(0u, forecast(0x1000).due_ns);
    EXPECT_LT(ucs_predict_order_uses(order), 5u); /* they have become a row */
}

/* What is foretold well costs little, unless somebody waits for what the helper does */
TEST_F(predict_order, gaps_are_bridged_where_the_helper_is_in_the_way)
{
    for (double wanted : {0.0, 1.0}) {
        price.wanted = wanted;
        open();
        for (int i = 0; i < 20; ++i) {
            use(10 * MS, 0x1000);
        }
        EXPECT_EQ(wanted > 0, ucs_predict_order_uses(order) < 5) << "in a row";
    }
}

/* One to three uses close to each other, whose number nothing tells, then a long
 * gap whose end is announced: held through the first, done without in the other */
TEST_F(predict_order, bursts_are_held_through_and_then_foretold)
{
    std::mt19937 random(1);

    for (int i = 0; i < 60; ++i) {
        use(190 * MS, 0x5000);
        for (unsigned more = random() % 3 + 1; more > 0; --more) {
            use((more == 1) ? 10 * MS : 3 * MS, 0x1000, 0x77);
        }
    }
    ucs_predict_forecast_t f = forecast(0x1000);
    EXPECT_GE(f.hold_ns, 3 * MS);
    EXPECT_LE(f.hold_ns, 20 * MS);
    EXPECT_EQ(0u, f.due_ns); /* not announced yet */
    EXPECT_NE(0u, f.watch_ns);

    use(190 * MS, 0x5000);
    EXPECT_NE(0u, forecast(0x1000).due_ns);
    EXPECT_EQ(UCS_PREDICT_PLAN_BURST, plan(0x1000));
}

/* Their gaps vary, and the next one may be longer than each that is known */
TEST_F(predict_order, bursts_are_held_through_longer_than_their_gaps_were)
{
    std::mt19937 random(1);
    unsigned all    = 0;
    unsigned missed = 0;

    for (int i = 0; i < 300; ++i) {
        use(190 * MS, 0x5000);
        use(10 * MS, 0x1000, 0x77);
        for (unsigned more = random() % 3; more > 0; --more) {
            uint64_t gap = 3 * MS + random() % (2 * MS);
            if (i >= 20) {
                ++all;
                missed += (forecast(0x1000).hold_ns < gap);
            }
            use(gap, 0x1000, 0x77);
        }
    }
    EXPECT_GE(0.05 * all, missed) << all;
    EXPECT_GE(20 * MS, forecast(0x1000).hold_ns);
}

/* Now and then a gap is longer than those of its row. Nothing foretells that, however
 * well the use after the row is foretold */
TEST_F(predict_order, rows_are_held_through_longer_than_their_gaps_were)
{
    std::mt19937 random(1);
    unsigned all    = 0;
    unsigned missed = 0;

    price.rent_ns = 300 * MS;
    for (int i = 0; i < 300; ++i) {
        use(80 * MS, 0x1000);
        for (unsigned more = 4; more > 0; --more) {
            uint64_t gap = (random() % 50 == 0) ? 3 * MS :
                                                  MS + random() % (MS / 2);
            if (i >= 20) {
                ++all;
                missed += (forecast(0x1000).hold_ns < gap);
            }
            use(gap, 0x1000);
        }
    }
    EXPECT_EQ(UCS_PREDICT_PLAN_KEY, plan(0x1000));
    EXPECT_GE(0.005 * all, missed) << all;
    EXPECT_GE(20 * MS, forecast(0x1000).hold_ns);
}

/* Of what never comes a second time nothing is held any more */
TEST_F(predict_order, fresh_buffers_come_to_be_dropped)
{
    for (uintptr_t b = 1; b <= 300; ++b) {
        for (int i = 0; i < 2; ++i) {
            use((i == 0) ? 10 * MS : 2000 * MS, b << 12);
        }
    }
    use(MS, 0x9000000);
    EXPECT_FALSE(is_rented(0x9000000));
    EXPECT_EQ(0u, forecast(0x9000000).hold_ns);
}

TEST_F(predict_order, without_other_plans_all_is_rented)
{
    params.only_rent = 1;
    open();
    for (int i = 0; i < 100; ++i) {
        use(200 * MS, 0x1000);
        use((i % 2) ? MS : 400 * MS, 0x2000);
        EXPECT_TRUE(is_rented(0x1000));
        EXPECT_TRUE(is_rented(0x2000));
    }
    EXPECT_EQ(200u, ucs_predict_order_uses(order));
}

/* What the helper did not get done is no better than not foretold, and dearer
 * than to hold it */
TEST_F(predict_order, plans_that_the_helper_is_late_for_are_left)
{
    for (int ready = 0; ready < 2; ++ready) {
        int foretold = 0;

        open();
        for (int i = 0; i < 140; ++i) {
            use(30 * MS, 0x1000, 0, ready);
            foretold += (i >= 40) && (forecast(0x1000).due_ns != 0);
        }
        EXPECT_LE(ready ? 100 : 0, foretold);
        EXPECT_GE(ready ? 100 : 50, foretold);
    }
}

/*
 * Starts and ends
 */

/* A ceiling takes away what is held: that is no cheaper than it looks, and what
 * is foretold instead is no dearer for it */
TEST_F(predict_order, what_a_ceiling_takes_away_is_not_held)
{
    for (int i = 0; i < 40; ++i) {
        use(30 * MS, 0x1000, 0, -1);
        EXPECT_TRUE((i < 4) || !is_rented(0x1000)) << i;
    }
    EXPECT_EQ(0u, forecast(0x1000).hold_ns);
}

TEST_F(predict_order, an_end_reported_later_is_no_use)
{
    record(now, 0x1000);
    record(now, 0x1000, now + MS);
    record(now, 0x1000, now + 3 * MS);
    EXPECT_EQ(1u, ucs_predict_order_uses(order));
    now += 200 * MS;
    record(now, 0x1000);
    EXPECT_EQ(2u, ucs_predict_order_uses(order));
    /* the first end holds */
    EXPECT_NEAR(MS, forecast(0x1000).duration_ns, 1);
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

/* Of two that come after a use of varying length one follows its end, the other
 * its start */
TEST_F(predict_order, some_buffers_come_after_an_end_and_some_after_a_start)
{
    uint64_t a = now;
    auto round = [&](uint64_t duration) {
        record(a, 0xa000);
        record(a + 100 * MS, 0xc000, a + 101 * MS);
        now = a + duration;
    };
    for (int i = 0; i < 60; ++i) {
        uint64_t duration = (150 + 40 * (i % 7)) * MS;
        round(duration);
        record(a, 0xa000, now);
        record(now + 300 * MS, 0xa000, 0);
        a = now + 300 * MS;
    }
    round(170 * MS);
    record(a, 0xa000, now);
    EXPECT_NEAR(now + 300.0 * MS, forecast(0xa000).due_ns, MS);
    record(now + 300 * MS, 0xa000);
    EXPECT_NEAR(now + 400.0 * MS, forecast(0xc000).due_ns, MS);
}

TEST_F(predict_order, uses_under_way_are_learned_from)
{
    for (int i = 0; i < 20; ++i) {
        record(now, 0xa000);
        record(now + 100 * MS, 0xb000, now + 101 * MS);
        record(now, 0xa000, now + (150 + i % 5) * MS);
        now += (1000 + 300 * (i % 3)) * MS;
    }
    record(now, 0xa000);
    EXPECT_NEAR(now + 100.0 * MS, forecast(0xb000).due_ns, MS / 10);
}

TEST_F(predict_order, out_of_order_uses_teach_no_nonsense)
{
    std::mt19937 random(1);
    for (int i = 0; i < 300; ++i) {
        record(now - (random() % 50) * MS, 0x1000 << (random() % 4),
               now + MS);
        now += random() % (20 * MS);
        ASSERT_TRUE(ucs_predict_order_is_valid(order));
        for (const ucs_predict_forecast_t &f : changed()) {
            ASSERT_LT(f.due_ns, now + 3600000 * MS);
            ASSERT_LT(f.hold_ns, 3600000 * MS);
        }
    }
    /* its own start is before what it follows */
    record(now - 10 * MS, 0x1000, now - 9 * MS);
    record(now - 20 * MS, 0x1000, now - 19 * MS);
    EXPECT_TRUE(ucs_predict_order_is_valid(order));
}

/* Threads report their uses one after the other: what has announced a use until
 * then begins just after it */
TEST_F(predict_order, a_key_that_comes_after_its_use_is_no_bound)
{
    record(now, 0xa000, now + MS);
    for (int i = 0; i < 60; ++i) {
        now += 300 * MS;
        record(now, 0xb000, now + MS);
        ucs_predict_forecast_t f = forecast(0xa000);
        ASSERT_LT(f.due_ns, now + 1000 * MS) << i;
        ASSERT_LT(f.until_ns, now + 1000 * MS) << i;
        uint64_t start = (i < 20) ? now + 100 * MS : now - 2 * MS;
        record(start, 0xa000, start + MS);
        ASSERT_TRUE(ucs_predict_order_is_valid(order)) << i;
    }
}

TEST_F(predict_order, times_at_the_end_of_the_range)
{
    now = UINT64_MAX - 1000 * MS;
    for (int i = 0; i < 8; ++i) {
        use(100 * MS, 0x1000);
        EXPECT_GE(forecast(0x1000).until_ns, forecast(0x1000).due_ns);
    }
}

/* Iterations take any time, what comes in them has an order */
TEST_F(predict_order, warped_gaps_are_foretold)
{
    std::mt19937 random(1);
    std::uniform_real_distribution<double> scale(0.5, 3);
    unsigned in_time = 0, late = 0;

    for (int i = 0; i < 300; ++i) {
        use(uint64_t(1000 * MS * scale(random)), 0xa000);
        use(200 * MS, 0xb000);
        uint64_t due = forecast(0xc000 * (i > 0) + 0xb000 * (i == 0)).due_ns;
        use(100 * MS, 0xc000);
        if (i >= 20) {
            uint64_t start = now - 100 * US;
            in_time += (due != 0) && (due <= start) && (due + 50 * MS > start);
            late    += (due > start);
        }
    }
    EXPECT_GE(in_time, 270u);
    EXPECT_EQ(0u, late);
}

TEST_F(predict_order, the_same_program_is_told_the_same)
{
    std::vector<std::vector<uint64_t>> told;
    for (int i = 0; i < 2; ++i) {
        std::mt19937 random(3);
        now = 1000 * MS;
        open();
        told.emplace_back();
        for (int j = 0; j < 2000; ++j) {
            use(random() % (60 * MS), (1 + random() % 30) << 12, random() % 3);
            for (const ucs_predict_forecast_t &f : changed()) {
                for (uint64_t value : {uint64_t(f.ref.index), f.hold_ns,
                                       f.due_ns, f.until_ns,
                                       f.watch_ns, f.every_ns}) {
                    told.back().push_back(value);
                }
            }
        }
    }
    EXPECT_EQ(told[0], told[1]);
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
 * The floor (plans.h), of a buffer that comes when its plan likes it least
 */

class predict_order_floor : public predict_order {
protected:
    double cost_of(double hold, double due, uint64_t gap)
    {
        ucs_predict_course_t course = {hold, due, 0, 0};
        return ucs_predict_course_cost(&course, &price, gap);
    }

    double planned(const ucs_predict_forecast_t &f, uint64_t gap)
    {
        return cost_of(f.hold_ns, f.due_ns ? double(f.due_ns) - now : -1, gap);
    }

    double rented(uint64_t gap)
    {
        return cost_of(price.rent_ns, -1, gap);
    }

    uint64_t worst(const ucs_predict_forecast_t &f, std::mt19937 &random)
    {
        uint64_t least = 300 * US; /* else they are in a row */
        uint64_t due   = (f.due_ns > now) ? f.due_ns - now : MS;
        uint64_t found = least;
        double most    = -1e9;
        for (uint64_t gap : {f.hold_ns + US, due - due / 100, due,
                             due + uint64_t(price.rent_ns) + US,
                             uint64_t(price.rent_ns), least,
                             uint64_t(random() % (200 * MS))}) {
            gap = std::max(gap, least);
            double more = planned(f, gap) - 1.125 * rented(gap);
            if (more > most) {
                most  = more;
                found = gap;
            }
        }
        return found;
    }
};

TEST_F(predict_order_floor, holds_for_the_worst_gaps)
{
    for (unsigned seed = 0; seed < 20; ++seed) {
        std::mt19937 random(seed);
        double cost = 0, rent = 0, most = 0;

        open();
        use(MS, 0x1000);
        for (unsigned i = 0; i < 3000; ++i) {
            ucs_predict_forecast_t f = forecast(0x1000);
            /* first it is taught something, which it is to rely on */
            bool is_kind = (seed % 3 > 0) && (i % (50 * (seed % 3)) < 40);
            uint64_t gap = is_kind ? 120 * MS : worst(f, random);
            double step  = planned(f, gap);
            cost += step;
            most  = std::max(most, step);
            rent += rented(gap);
            use(gap, 0x1000);
            ASSERT_LE(cost, 1.125 * rent + 2 + most + 0.1)
                    << seed << " " << i;
        }
    }
}

/*
 * Bounds of what is remembered
 */

TEST_F(predict_order, a_forgotten_buffer_leaves_nothing_behind)
{
    params.max_buffers = 4;
    open();
    for (int i = 0; i < 20; ++i) {
        use(200 * MS, 0xa000);
        use(200 * MS, 0xb000);
    }
    ucs_predict_ref_t b = forecast(0xb000).ref;
    EXPECT_NE(0u, ucs_predict_order_next(order, b));
    for (uintptr_t c = 1; c <= 3; ++c) {
        use(MS, 0xa000);
        use(3 * MS, c << 12);
    }
    EXPECT_TRUE(is_known(0xa000)) << "it was used in between";
    EXPECT_FALSE(is_known(0xb000));
    EXPECT_EQ(0u, ucs_predict_order_next(order, b));
    ucs_predict_forecast_t f;
    EXPECT_FALSE(ucs_predict_order_forecast(order, b, &f));
    EXPECT_EQ(b.index, forecast(0x3000).ref.index);
    EXPECT_NE(b.generation, forecast(0x3000).ref.generation);
    changed();
    /* a's announcement of b is not that of the buffer in b's place */
    use(MS, 0xa000);
    for (const ucs_predict_forecast_t &told : changed()) {
        EXPECT_NE(b.index, told.ref.index);
    }
    EXPECT_EQ(0u, forecast(0x3000).due_ns);
    EXPECT_EQ(4u, ucs_predict_order_buffers(order));
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
        ucs_predict_ref_t ref = forecast(b << 12).ref;
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
    for (uint32_t ucs_predict_order_params_t::*member :
         {&ucs_predict_order_params_t::max_buffers,
          &ucs_predict_order_params_t::max_labels}) {
        for (uint32_t size : {0u, (1u << 20) + 1, UINT32_MAX}) {
            ucs_predict_order_params_t p = params;
            p.*member                    = size;
            EXPECT_EQ(UCS_ERR_INVALID_PARAM,
                      ucs_predict_order_create(&p, &none));
        }
    }
    EXPECT_EQ(nullptr, none);
    ucs_predict_order_destroy(nullptr);
}

TEST_F(predict_order, memory_is_what_the_header_states)
{
    for (uint32_t places : {1, 1025, 4096}) {
        for (uint32_t labels : {1, 1025, 4096}) {
            params.max_buffers = places;
            params.max_labels  = labels;
            open();
            EXPECT_LE(ucs_predict_order_memory(order),
                      49152 +
                              UCS_PREDICT_ORDER_BUFFER_BYTES * size_t(places) +
                              UCS_PREDICT_ORDER_LABEL_BYTES * size_t(labels));
            /* and is no number of no use */
            EXPECT_GE(ucs_predict_order_memory(order),
                      256 * size_t(places) + 1024 * size_t(labels));
        }
    }
}

TEST_F(predict_order, pieces_are_all_that_is_allocated_after_creation)
{
    params.max_buffers = 50;
    params.max_labels  = 70;
    open();
    std::vector<ucs_predict_forecast_t> told(3);
    uint64_t before = alloc_count();
    for (uint64_t i = 0; i < 50000; ++i) {
        use((i * i) % (30 * MS), (1 + i * 7 % 80) << 12, i % 3);
        while (ucs_predict_order_changed(order, told.data(), told.size()) > 0) {
        }
    }
    EXPECT_EQ(before + 1, alloc_count()); /* of labels */
}

TEST_F(predict_order, failed_allocation_is_reported)
{
    ucs_predict_order_h none = nullptr;

    alloc_count_fail_each(
            none,
            [this](ucs_predict_order_h *order) {
                return ucs_predict_order_create(&params, order);
            },
            ucs_predict_order_destroy);
}

/* Gaps that nothing tells, and longer than memory is worth holding for */
class predict_order_drops : public predict_order {
protected:
    /* @return After how many uses the thread that ends the next is to drop it */
    unsigned count_drops()
    {
        std::mt19937 random(1);
        unsigned count = 0;

        for (unsigned i = 0; i < 60; ++i) {
            use((70 + random() % 2000) * MS, 0x1000);
            ucs_predict_forecast_t f = forecast(0x1000);
            EXPECT_TRUE(!f.drops || ((f.hold_ns == 0) && (f.due_ns == 0)));
            count += f.drops;
        }
        return count;
    }
};

/* Where holding until the helper comes costs more than a deregistration */
TEST_F(predict_order_drops, by_the_thread_that_ends_the_use)
{
    price.late_ns = 15 * MS;
    open();
    EXPECT_LT(30u, count_drops());

    /* Until it comes so soon that it is to be held */
    for (unsigned i = 0; (i < 30) && !forecast(0x1000).drops; ++i) {
        use((500 + i * i) * MS, 0x1000);
    }
    ASSERT_TRUE(forecast(0x1000).drops);
    for (unsigned i = 0; (i < 20) && forecast(0x1000).drops; ++i) {
        use(90 * US, 0x1000);
    }
    EXPECT_FALSE(forecast(0x1000).drops);
    EXPECT_LT(0u, forecast(0x1000).hold_ns);
}

TEST_F(predict_order_drops, by_the_helper_where_it_comes_soon)
{
    open();
    EXPECT_EQ(0u, count_drops());
    EXPECT_EQ(UCS_PREDICT_PLAN_DROP, plan(0x1000));
}

/* After uses that are held in turn with those that are not, it is not known
 * which comes */
TEST_F(predict_order_drops, not_after_one)
{
    price.late_ns = 15 * MS;
    open();
    use(MS, 0x1000);
    unsigned count = 0, plans = 0;
    for (unsigned i = 0; i < 100; ++i) {
        use((i % 2) ? 30 * MS : (500 + 37 * (i % 23)) * MS, 0x1000,
            1 + i % 2);
        count += forecast(0x1000).drops;
        plans += plan(0x1000) == UCS_PREDICT_PLAN_DROP;
    }
    EXPECT_GE(2u, count);
    EXPECT_LT(20u, plans);
}

/* Random programs: whatever comes, the object stays valid, and each buffer that
 * changed is named once, in bounds */
TEST_F(predict_order, random_programs_keep_the_invariants)
{
    for (unsigned seed = 0; seed < 8; ++seed) {
        std::mt19937 random(seed);
        params.max_labels  = 4 << (seed % 5);
        params.max_buffers = 3 + 9 * seed;
        open();
        for (unsigned i = 0; i < 3000; ++i) {
            unsigned b    = (random() % 5) ? i % (4 + seed) : random() % 60;
            uint64_t back = (random() % 9) ? 0 : 3 * MS;
            price.rent_ns = (1 + random() % 100) * MS;
            price.late_ns = (random() % 8) * MS;
            price.drop_work = (random() % 4) / 4.0;
            price.wanted    = (random() % 3) / 2.0;
            ucs_predict_ref_t ref =
                    record(now - back, 0x1000ul * (b + 1),
                           (random() % 4) ? now - back + US : 0,
                           1 + random() % 3, random() % 2,
                           LENGTH << (random() % 2));
            ASSERT_LT(ref.index, params.max_buffers);
            now += random() % (2 * MS) << (random() % 7);
            if (i % 7 != 0) {
                continue;
            }
            ASSERT_TRUE(ucs_predict_order_is_valid(order));
            std::vector<uint32_t> named;
            for (auto &f : changed()) {
                named.push_back(f.ref.index);
                ASSERT_LT(f.ref.index, params.max_buffers);
                ASSERT_NE(0u, f.ref.generation);
                ASSERT_LE(f.due_ns, f.until_ns);
                ASSERT_TRUE((f.due_ns == 0) || (f.watch_ns == 0));
                ASSERT_TRUE((f.watch_ns == 0) || (f.every_ns > 0));
            }
            std::sort(named.begin(), named.end());
            ASSERT_EQ(named.end(),
                      std::adjacent_find(named.begin(), named.end()));
            ASSERT_TRUE(changed().empty());
            ASSERT_TRUE(ucs_predict_order_is_valid(order));
            ASSERT_LE(ucs_predict_order_buffers(order), params.max_buffers);
            ASSERT_LE(ucs_predict_order_labels(order), params.max_labels);
        }
    }
}

} // namespace
