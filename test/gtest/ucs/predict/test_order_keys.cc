/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "order_fixture.h"

#include <algorithm>
#include <random>

namespace {

class predict_order_keys : public predict_order {
protected:
    uint64_t any(uint64_t least, uint64_t most)
    {
        return least + random() % (most - least);
    }

    /* A at any time from half a second to @a most after the last, and 200 ms after
     * B, which announces it */
    void announced(int count, uint64_t most)
    {
        for (int i = 0; i < count; ++i) {
            use(any(500 * MS, most), 0xb000);
            use(200 * MS, 0xa000);
        }
    }

    /* What is told of a buffer since it was last asked */
    bool is_told(uintptr_t address)
    {
        ucs_predict_ref_t ref = forecast(address).ref;
        auto told             = changed();
        return std::any_of(told.begin(), told.end(), [&](auto &f) {
            return f.ref.index == ref.index;
        });
    }

    std::mt19937_64 random{1};
};

/* What comes at any time is told by what comes before it */
TEST_F(predict_order_keys, what_goes_before_announces)
{
    announced(30, 2000 * MS);
    EXPECT_EQ(0u, forecast(0xa000).due_ns);
    changed();
    use(any(500 * MS, 2000 * MS), 0xb000);
    EXPECT_TRUE(is_told(0xa000));
    EXPECT_NEAR(now + 200 * MS, forecast(0xa000).due_ns, MS / 10);
}

/* By time alone nothing changes: when the key is late, so is the due */
TEST_F(predict_order_keys, a_late_key_puts_off_what_it_announces)
{
    announced(30, 1000 * MS);
    changed();
    now += 60000 * MS;
    EXPECT_TRUE(changed().empty());
    EXPECT_EQ(0u, forecast(0xa000).due_ns);
    use(0, 0xb000);
    EXPECT_NEAR(now + 200 * MS, forecast(0xa000).due_ns, MS / 10);
}

/* Until the key comes, it is said when to look for it, and how often */
TEST_F(predict_order_keys, what_waits_for_a_key_is_watched)
{
    announced(30, 1000 * MS);
    ucs_predict_forecast_t f = forecast(0xa000);
    ASSERT_EQ(0u, f.due_ns);
    EXPECT_GT(f.watch_ns, now);
    EXPECT_LT(f.watch_ns, now + 510 * MS); /* the soonest that the key comes */
    EXPECT_NEAR(200 * MS, f.every_ns, MS);
    EXPECT_GT(f.until_ns, now + 1000 * MS);

    /* No more looks than cost a missed use */
    price.look = 0.5;
    announced(1, 1000 * MS);
    f = forecast(0xa000);
    EXPECT_NEAR(f.watch_ns + 2 * f.every_ns, f.until_ns, MS);
}

/* Some four looks at most for a key 200 ms ahead. It is not gone by if they cost more than
 * the uses that it saves; a buffer's own latest use needs no look. */
TEST_F(predict_order_keys, what_looks_cost_is_charged)
{
    price.look = 0.01;
    announced(30, 1000 * MS);
    EXPECT_EQ(UCS_PREDICT_PLAN_KEY, plan(0xa000));

    open();
    price.look = 10;
    announced(30, 1000 * MS);
    EXPECT_NE(UCS_PREDICT_PLAN_KEY, plan(0xa000));
    EXPECT_EQ(0u, forecast(0xa000).watch_ns);

    open();
    for (int i = 0; i < 30; ++i) {
        use(200 * MS, 0xa000);
    }
    EXPECT_EQ(UCS_PREDICT_PLAN_KEY, plan(0xa000));
}

/* A label that comes ten times between two uses announces at the tenth only */
TEST_F(predict_order_keys, the_tenth_occurrence_announces)
{
    for (int i = 0; i < 60; ++i) {
        use(any(500 * MS, 2000 * MS), 0xc000);
        for (int j = 1; j <= 10; ++j) {
            use(any(5 * MS, 60 * MS), 0xb000);
            if (i >= 40) {
                EXPECT_EQ(j == 10, forecast(0xa000).due_ns != 0)
                        << i << " " << j;
            }
        }
        if (i >= 40) {
            EXPECT_NEAR(now + 150 * MS, forecast(0xa000).due_ns, MS / 10);
        }
        use(150 * MS, 0xa000);
    }
}

/* The same label is the first for one buffer and the third for another, as each
 * counts from its own latest use */
TEST_F(predict_order_keys, occurrences_count_from_the_buffers_own_use)
{
    for (int i = 0; i < 60; ++i) {
        for (int j = 1; j <= 3; ++j) {
            use(any(300 * MS, 900 * MS), 0xb000);
            if (i >= 40) {
                EXPECT_NEAR(now + 80 * MS, forecast(0xd000).due_ns, MS / 10);
            }
            use(80 * MS, 0xd000);
            if (i >= 40) {
                EXPECT_EQ(j == 3, forecast(0xc000).due_ns != 0);
            }
        }
        if (i >= 40) {
            EXPECT_NEAR(now + 170 * MS, forecast(0xc000).due_ns, MS / 10);
        }
        use(170 * MS, 0xc000);
    }
}

/* More than are remembered: those are told from no other, and announce
 * nothing */
TEST_F(predict_order_keys, too_many_occurrences_are_no_key)
{
    for (int i = 0; i < 60; ++i) {
        for (int j = 1; j <= 3 * UCS_PREDICT_OCCURRENCES; ++j) {
            changed();
            use(any(60 * MS, 90 * MS), 0xb000);
            if ((i > 0) && (j >= UCS_PREDICT_OCCURRENCES)) {
                EXPECT_FALSE(is_told(0xa000)) << i << " " << j;
            }
        }
        use(150 * MS, 0xa000);
        ASSERT_TRUE(ucs_predict_order_is_valid(order));
    }
}

/* Three loops use a buffer from one place: what comes after what is the same each
 * time, and so are the times */
TEST_F(predict_order_keys, gaps_that_differ_in_turn_are_told_apart)
{
    const uint64_t gaps[] = {175 * MS, 175 * MS, 250 * MS};

    for (int i = 0; i < 30; ++i) {
        use(gaps[i % 3], 0x1000);
        if (i >= 12) {
            uint64_t next = gaps[(i + 1) % 3];
            EXPECT_NEAR(now + next, forecast(0x1000).due_ns, next / 15)
                    << i;
        }
    }
}

/* What worse keys have cost before counts no more than the best one would have */
TEST_F(predict_order_keys, a_plan_costs_what_its_best_key_has)
{
    const uint64_t gaps[] = {175 * MS, 175 * MS, 250 * MS};

    for (int i = 0; i < 6; ++i) {
        use(gaps[i % 3], 0x1000);
    }
    EXPECT_EQ(UCS_PREDICT_PLAN_KEY, plan(0x1000));
}

/* The next delay may be below the least so far. How far is worth while depends on how
 * much they differ and on what holding costs */
TEST_F(predict_order_keys, the_margin_is_worth_its_rent)
{
    for (double rent_ms : {5000.0, 20.0}) {
        price.rent_ns = rent_ms * MS;
        open();
        for (int i = 0; i < 30; ++i) {
            use(1000 * MS + (i * 7 % 10) * MS, 0x1000);
        }
        EXPECT_NEAR(now + 1000 * MS - (rent_ms > 100 ? 44.2 : 0) * MS,
                    forecast(0x1000).due_ns, MS / 4);
    }
}

/* Of two delays that hardly differ the third may differ more */
TEST_F(predict_order_keys, few_delays_leave_a_margin)
{
    price.rent_ns = 4000 * MS;
    use(2500 * MS, 0x1000);
    use(2500 * MS, 0x1000);
    use(2501 * MS, 0x1000);
    EXPECT_NEAR(now + 2500 * MS - 50 * MS, forecast(0x1000).due_ns, 2 * MS);
}

/* Buffers of one exchange come soon after each other, in an order that may change. What
 * comes just before a buffer saves a little holding against the buffer's own use, and fails
 * when it comes after it: it is not followed before it has come often, and is then, where
 * it saves more than a miss in as many times */
TEST_F(predict_order_keys, another_use_of_an_exchange_has_to_prove_itself)
{
    price.rent_ns = 4000 * MS;
    for (int i = 0; i < 80; ++i) {
        use(any(2500 * MS, (i < 20) ? 2510 * MS : 2900 * MS), 0xb000);
        use(2 * MS, 0xa000);
        if ((i > 2) && (i < 20)) {
            EXPECT_NEAR(now + 2450 * MS, forecast(0xa000).due_ns, 80 * MS) << i;
        } else if (i > 60) {
            EXPECT_EQ(UCS_PREDICT_PLAN_KEY, plan(0xa000)) << i;
            EXPECT_EQ(0u, forecast(0xa000).due_ns) << i;
        }
    }
    use(2500 * MS, 0xb000);
    EXPECT_NEAR(now + 2 * MS, forecast(0xa000).due_ns, MS / 5);
}

/* Short gaps are bridged by holding. What foretells these best is no good for the long
 * one, which something else goes before */
TEST_F(predict_order_keys, what_is_beyond_bursts_has_a_key_of_its_own)
{
    for (int i = 0; i < 40; ++i) {
        use(400 * MS, 0x5000);
        use(10 * MS, 0x1000);
        for (uint64_t more = any(2, 5); more > 0; --more) {
            use(20 * MS, 0x1000);
        }
    }
    EXPECT_EQ(UCS_PREDICT_PLAN_BURST, plan(0x1000));
    EXPECT_GE(forecast(0x1000).hold_ns, 20 * MS);
    EXPECT_EQ(0u, forecast(0x1000).due_ns);
    use(400 * MS, 0x5000);
    EXPECT_NEAR(now + 10 * MS, forecast(0x1000).due_ns, MS);
}

/* It may have been given up meanwhile */
TEST_F(predict_order_keys, what_is_overdue_is_told_again)
{
    for (int i = 0; i < 30; ++i) {
        uint64_t between = any(20 * MS, 180 * MS);
        use(any(500 * MS, 1000 * MS), 0xb000);
        use(between, 0xc000);
        use(200 * MS - between, 0xa000);
    }
    use(500 * MS, 0xb000);
    EXPECT_TRUE(is_told(0xa000));
    use(100 * MS, 0xc000);
    EXPECT_FALSE(is_told(0xa000)); /* not due yet */

    use(100 * MS - 100 * US, 0xa000);
    use(500 * MS, 0xb000);
    changed();
    use(300 * MS, 0xc000);
    EXPECT_TRUE(is_told(0xa000));
}

/* Of what came before, each of it once, the latest foretells most nearly; after
 * what came just before there is no time */
TEST_F(predict_order_keys, at_first_the_latest_after_which_there_is_time)
{
    for (int i = 0; i < 3; ++i) {
        use(100 * MS, 0xb000);
        if (i == 2) {
            EXPECT_EQ(0u, forecast(0xa000).due_ns);
        }
        use(100 * MS, 0xc000);
        if (i == 2) {
            EXPECT_NEAR(now + 50 * MS, forecast(0xa000).due_ns, 5 * MS);
        }
        use(50 * MS, 0xd000);
        use(10 * US, 0xa000);
    }
}

TEST_F(predict_order_keys, call_sites_tell_uses_of_a_buffer_apart)
{
    for (int i = 0; i < 30; ++i) {
        use(200 * MS, 0xa000, 1);
        if (i > 10) {
            EXPECT_NEAR(now + 500 * MS, forecast(0xa000).due_ns, 100 * US);
        }
        use(500 * MS, 0xa000, 2);
        if (i > 10) {
            EXPECT_NEAR(now + 200 * MS, forecast(0xa000).due_ns, 100 * US);
        }
    }
}

/* The same buffer from two places: one of them announces */
TEST_F(predict_order_keys, a_label_is_a_buffer_and_a_call_site)
{
    for (int i = 0; i < 60; ++i) {
        use(any(500 * MS, 900 * MS), 0xb000, 1);
        if (i >= 40) {
            EXPECT_EQ(0u, forecast(0xa000).due_ns);
        }
        use(any(500 * MS, 900 * MS), 0xb000, 2);
        if (i >= 40) {
            EXPECT_NEAR(now + 150 * MS, forecast(0xa000).due_ns, MS / 10);
        }
        use(150 * MS, 0xa000);
    }
}

TEST_F(predict_order_keys, address_and_length_name_a_buffer)
{
    for (int i = 0; i < 20; ++i) {
        record(now, 0xa000, now + MS, 1, 1, LENGTH);
        record(now + 300 * MS, 0xa000, now + 301 * MS, 1, 1, 2 * LENGTH);
        now += 1000 * MS;
    }
    EXPECT_EQ(2u, ucs_predict_order_buffers(order));
    EXPECT_FALSE(is_known(0xa000, 3 * LENGTH));
    EXPECT_NEAR(now, forecast(0xa000, LENGTH).due_ns, MS / 10);
    record(now, 0xa000, now + MS, 1, 1, LENGTH);
    EXPECT_NEAR(now + 300 * MS, forecast(0xa000, 2 * LENGTH).due_ns, MS / 10);
}

/* Sooner than it could be deregistered and registered again */
TEST_F(predict_order_keys, a_row_of_uses_is_one_use)
{
    for (int i = 0; i < 20; ++i) {
        use(300 * MS, 0xa000);
        for (int j = 0; j < 30; ++j) {
            use(100 * US, 0xa000);
        }
    }
    EXPECT_EQ(20u, ucs_predict_order_uses(order));
    EXPECT_NEAR(now + 300 * MS, forecast(0xa000).due_ns, 100 * US);
}

/* An end in a row is not the last one: what is told by it is taken back */
TEST_F(predict_order_keys, a_row_that_goes_on_is_under_way)
{
    for (int i = 0; i < 20; ++i) {
        use(300 * MS, 0xa000);
    }
    uint64_t due = forecast(0xa000).due_ns;
    for (int j = 0; j < 30; ++j) {
        use(200 * US, 0xa000);
    }
    EXPECT_EQ(20u, ucs_predict_order_uses(order));
    EXPECT_GE(forecast(0xa000).due_ns, due);
}

/* The program enters another phase: keys that come no more make room */
TEST_F(predict_order_keys, keys_of_a_new_phase_take_the_places)
{
    for (int phase = 0; phase < 4; ++phase) {
        for (int i = 0; i < 60; ++i) {
            for (uintptr_t b = 1; b <= 20; ++b) {
                use(any(20 * MS, 80 * MS),
                    (b << 12) | (uintptr_t(phase) << 20));
            }
            if (i >= 40) {
                EXPECT_NEAR(now + 150 * MS, forecast(0xa000000).due_ns, MS / 10)
                        << phase << " " << i;
            }
            use(150 * MS, 0xa000000);
        }
    }
}

/* The label has been forgotten: who comes into its place does not announce what
 * it did */
TEST_F(predict_order_keys, a_forgotten_label_announces_nothing)
{
    params.max_labels = 4;
    open();
    announced(20, 2000 * MS);
    uint64_t due = 0;
    for (uintptr_t c = 1; c <= 3; ++c) {
        use(MS, c << 20);
        due |= forecast(0xa000).due_ns;
    }
    ASSERT_TRUE(ucs_predict_order_is_valid(order));
    use(MS, 4 << 20); /* forgets a's own label as well */
    ASSERT_TRUE(ucs_predict_order_is_valid(order));
    EXPECT_EQ(0u, due);
    changed();
    use(MS, 0xb000);
    EXPECT_EQ(0u, forecast(0xa000).due_ns);
    use(200 * MS, 0xa000);
    ASSERT_TRUE(ucs_predict_order_is_valid(order));
}

/* A buffer is forgotten while its keys wait */
TEST_F(predict_order_keys, a_forgotten_buffer_waits_for_nothing)
{
    params.max_buffers = 4;
    open();
    announced(20, 2000 * MS);
    for (uintptr_t c = 1; c <= 3; ++c) {
        use(MS, c << 20);
        use(MS, 0xb000);
        ASSERT_TRUE(ucs_predict_order_is_valid(order));
    }
    EXPECT_FALSE(is_known(0xa000));
    changed();
    use(MS, 0xb000);
    EXPECT_EQ(1u, changed().size());
}

/* Tables so small that each use forgets something that others wait for */
TEST_F(predict_order_keys, links_survive_any_forgetting)
{
    for (uint32_t labels : {1, 2, 3, 7, 20}) {
        for (uint32_t buffers : {1, 2, 5, 20}) {
            params.max_labels  = labels;
            params.max_buffers = buffers;
            open();
            for (int i = 0; i < 600; ++i) {
                use(any(MS, 200 * MS), (1 + random() % 12) << 12,
                    1 + random() % 3);
                ASSERT_TRUE(ucs_predict_order_is_valid(order))
                        << labels << " " << buffers << " " << i;
            }
        }
    }
}

/* What is not listened to is not counted: a key that waited for the second of
 * two sounds would take one of later for it */
TEST_F(predict_order_keys, a_sound_after_silence_is_not_the_one_waited_for)
{
    auto cycle = [&]() {
        use(300 * MS, 0xa000);
        for (int i = 0; i < 2; ++i) {
            ucs_predict_order_hear(order, 7, now += any(50 * MS, 900 * MS));
        }
        now += 100 * MS;
    };

    EXPECT_FALSE(ucs_predict_order_listens(order));
    for (int i = 0; i < 40; ++i) {
        cycle();
    }
    use(300 * MS, 0xa000);
    EXPECT_TRUE(ucs_predict_order_listens(order));
    ucs_predict_order_hear(order, 7, now += 300 * MS);
    EXPECT_EQ(0u, forecast(0xa000).due_ns);
    ucs_predict_order_hear(order, 7, now += 300 * MS);
    ASSERT_NE(0u, forecast(0xa000).due_ns); /* so it is foretold */

    use(300 * MS, 0xa000);
    ucs_predict_order_hear(order, 7, now += 300 * MS);
    for (int i = 0; i < 2000; ++i) {
        ucs_predict_order_hear(order, 8, now += US);
    }
    EXPECT_FALSE(ucs_predict_order_listens(order));
    use(MS, 0xb000);
    EXPECT_TRUE(ucs_predict_order_listens(order));
    ucs_predict_order_hear(order, 7, now += MS);
    EXPECT_EQ(0u, forecast(0xa000).due_ns);
    use(300 * MS, 0xa000);
    ucs_predict_order_hear(order, 7, now += 300 * MS);
    ucs_predict_order_hear(order, 7, now += 300 * MS);
    EXPECT_NE(0u, forecast(0xa000).due_ns); /* and is again */
}

} // namespace
