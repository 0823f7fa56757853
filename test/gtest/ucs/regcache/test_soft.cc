/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "regcache_fixture.h"

/** The soft ceiling, which there is where the price of memory is minded. Idle
 *  regions are rented for longer than any test takes. */
class test_regcache_soft : public test_regcache {
protected:
    void SetUp() override
    {
        make(UCS_REGCACHE_POLICY_RENT);
    }

    void make(ucs_regcache_policy_t policy)
    {
        w                      = std::make_unique<regcache_world>(policy);
        w->params.max_slowdown = 0.0005;
        tuning                 = ucs_regcache_tuning_default;
        tuning.soft_weight     = 0.01; /* nothing is soon dear enough */
        tuning.soft_least      = 1;
        tuning.soft_horizon_ns = 3e8; /* for what takes minutes in a job */
        w->params.tuning       = &tuning;
    }

    uint64_t ceiling()
    {
        return w->stats().soft_ceiling_bytes;
    }

    /* A millisecond apart. @return After how many uses both stay registered, at
     * most @a count. */
    unsigned use_two_in_turn(unsigned count)
    {
        unsigned i;

        w->open();
        for (i = 0; (i < count) && (w->live.size() < 2); ++i) {
            w->touch(buffer(i % 2), MB);
            w->advance(MS);
        }
        return i;
    }

    ucs_regcache_tuning_t tuning;
};

TEST_F(test_regcache_soft, begins_at_the_most_that_is_in_use_at_once)
{
    w->open();
    EXPECT_EQ(tuning.soft_least, ceiling());
    w->touch(buffer(0), MB);
    EXPECT_EQ(MB + tuning.soft_least, ceiling());
    ucs_regcache_memh_t first  = w->get(buffer(0), MB);
    ucs_regcache_memh_t second = w->get(buffer(1), 2 * MB);
    EXPECT_EQ(3 * MB + tuning.soft_least, ceiling());
    w->put(first);
    w->put(second);
    w->touch(buffer(2), MB);
    EXPECT_LT(ceiling(), 3 * MB + MB / 2);
    EXPECT_GE(ceiling(), 3 * MB);
}

/* What is less than the helper takes itself is not worth a use that registers */
TEST_F(test_regcache_soft, a_little_has_room_in_any_case)
{
    const size_t size = MB / 16;
    tuning.soft_least = 4 * size;
    w->params.max_slowdown = 0.005;
    w->open();
    for (unsigned i = 0; i < 100; ++i) {
        w->touch(buffer(i % 5), size);
        w->now += MS / 100;
    }
    EXPECT_EQ(5u, w->stats().cold);
    EXPECT_EQ(0u, w->stats().missed);
    EXPECT_EQ(0u, w->stats().soft_ceiling_raises);
    w->touch(buffer(5), size);
    EXPECT_EQ(5 * size, w->stats().pinned_peak_bytes);
    EXPECT_EQ(1u, w->stats().evicted);
}

TEST_F(test_regcache_soft, a_use_evicts_before_it_passes_it)
{
    size_t most = 0;

    w->open();
    w->on_reg = [&](regcache_world::registration) {
        most = std::max(most, w->live.size());
        return UCS_OK;
    };
    for (unsigned i = 0; i < 5; ++i) {
        w->touch(buffer(i), MB);
        w->advance(MS);
    }
    EXPECT_EQ(0u, most) << "evicted only after pinning";
    EXPECT_EQ(1u, w->live.size());
    EXPECT_EQ(4u, w->stats().evicted);
    EXPECT_EQ(MB, w->stats().pinned_peak_bytes);
}

TEST_F(test_regcache_soft, what_is_in_use_for_long_does_not_hide_what_is_idle)
{
    std::vector<ucs_regcache_memh_t> windows;

    tuning.lot = 8;
    w->open();
    for (unsigned i = 0; i < 32; ++i) {
        windows.push_back(w->get(buffer(i), MB));
        w->advance(MS);
    }
    for (unsigned i = 32; i < 40; ++i) {
        w->use(buffer(i), MB, MS);
    }
    EXPECT_EQ(33 * MB, w->stats().pinned_peak_bytes);
    for (ucs_regcache_memh_t memh : windows) {
        w->put(memh);
    }
}

/* The first of two goes in the use of the second, each time before the helper has heard
 * of its own use. It is registered for the next one all the same. */
TEST_F(test_regcache_soft, what_goes_before_the_helper_hears_of_it_is_foretold)
{
    make(UCS_REGCACHE_POLICY_PREDICT);
    w->open();
    for (unsigned round = 0; round < 12; ++round) {
        uint64_t before = w->stats().on_time;
        w->touch(buffer(0), MB);
        if (round >= 6) {
            EXPECT_EQ(before + 1, w->stats().on_time) << round;
        }
        w->touch(buffer(1), MB);
        EXPECT_FALSE(w->is_registered(buffer(0), MB));
        w->advance(1000 * MS);
    }
    EXPECT_GE(MB + MB / 2, w->stats().pinned_peak_bytes);
}

TEST_F(test_regcache_soft, what_is_in_use_is_no_reason_to_wait)
{
    w->open();
    ucs_regcache_memh_t first  = w->get(buffer(0), MB);
    ucs_regcache_memh_t second = w->get(buffer(1), MB);
    EXPECT_EQ(2u, w->live.size());
    w->put(first);
    w->put(second);
}

/* What uses lose for want of room pays for it in the end */
TEST_F(test_regcache_soft, losses_raise_it)
{
    tuning.soft_weight = 1;
    unsigned i         = use_two_in_turn(10000);
    EXPECT_GT(i, 2u) << "at once";
    EXPECT_LT(i, 1000u);
    EXPECT_GE(ceiling(), 2 * MB);
    EXPECT_GT(w->stats().soft_ceiling_raises, 0u);
}

/* What it takes to learn is lost once, and the job goes on */
TEST_F(test_regcache_soft, losses_of_the_first_seconds_do_not)
{
    tuning.soft_weight  = 1;
    tuning.soft_learned = UINT64_MAX;
    unsigned i          = use_two_in_turn(10000);

    make(UCS_REGCACHE_POLICY_RENT);
    tuning.soft_weight     = 1;
    tuning.soft_learned    = UINT64_MAX;
    tuning.soft_horizon_ns = ucs_regcache_tuning_default.soft_horizon_ns;
    EXPECT_EQ(10 * i, use_two_in_turn(10 * i));
    EXPECT_EQ(1u, w->live.size());
    EXPECT_EQ(MB, w->stats().pinned_peak_bytes);
    EXPECT_LT(ceiling(), MB + MB / 10);
}

/* What is known by now would have been registered in time, had there been room */
TEST_F(test_regcache_soft, what_is_refused_again_and_again_raises_it_soon)
{
    tuning.soft_weight     = 1;
    tuning.soft_horizon_ns = ucs_regcache_tuning_default.soft_horizon_ns;
    unsigned i             = use_two_in_turn(100);
    EXPECT_GT(i, 2 + 2 * tuning.soft_learned);
    EXPECT_LT(i, 4 + 2 * tuning.soft_learned);
}

/* Whatever is known, there is no time to register the one in the other's room */
TEST_F(test_regcache_soft, uses_without_a_pause_raise_it_soon)
{
    for (uint64_t pause : {MS / 100, MS}) {
        make(UCS_REGCACHE_POLICY_RENT);
        tuning.soft_weight     = 1;
        tuning.soft_horizon_ns = ucs_regcache_tuning_default.soft_horizon_ns;
        tuning.soft_learned    = UINT64_MAX;
        w->open();
        for (unsigned i = 0; i < 20; ++i) {
            w->touch(buffer(i % 2), MB);
            w->step(); /* it hears of the use */
            w->now += pause;
        }
        EXPECT_EQ((pause < MS) ? 2u : 1u, w->live.size());
    }
}

/* To deregister what does not come back costs the same sooner or later; whether it
 * does the helper knows of what it has heard of */
TEST_F(test_regcache_soft, buffers_that_do_not_come_back_do_not_raise_it)
{
    w->params.max_slowdown = 0.005;
    w->open();
    for (unsigned i = 0; i < 100; ++i) {
        w->use(buffer(i), MB, MS / 10);
        w->step();
        w->now += MS;
    }
    EXPECT_GT(w->stats().evicted, 0u);
    EXPECT_EQ(0u, w->stats().soft_ceiling_raises);
    EXPECT_EQ(MB, w->stats().pinned_peak_bytes);
}

/* Each goes before the helper has heard of its use, and is another the next time */
TEST_F(test_regcache_soft, two_in_turn_find_room_without_the_helper)
{
    tuning.soft_weight = 5;
    w->open();
    for (unsigned i = 0; i < 100; ++i) {
        w->touch(buffer(i % 2), MB);
        w->now += MS;
    }
    EXPECT_GT(w->stats().soft_ceiling_raises, 0u);
    EXPECT_EQ(2u, w->live.size());
    EXPECT_LT(w->stats().missed, 30u);
}

/* Room is never more than leaving all pinned takes */
TEST_F(test_regcache_soft, room_is_bounded_by_what_would_be_left_pinned)
{
    tuning.soft_weight = 1e6;
    w->open();
    for (unsigned i = 0; i < 100; ++i) {
        w->touch(buffer(i % 4), MB);
        w->advance(MS);
    }
    EXPECT_LE(ceiling(), 5 * MB + tuning.soft_least);
    EXPECT_EQ(4u, w->live.size());
}

/* Only what would have stayed until its next use was lost for want of room */
TEST_F(test_regcache_soft, what_had_gone_anyway_is_no_loss)
{
    for (int is_late = 0; is_late < 2; ++is_late) {
        SetUp();
        w->params.max_slowdown = 0.005;
        w->open();
        w->touch(buffer(0), MB);
        w->advance(MS);
        w->touch(buffer(1), MB); /* buffer 0 gives way */
        EXPECT_EQ(1u, w->stats().evicted);
        uint64_t raises = w->stats().soft_ceiling_raises;
        w->advance(is_late ? 60 * MS : MS);
        w->touch(buffer(0), MB);
        EXPECT_EQ(is_late, w->stats().soft_ceiling_raises == raises);
    }
}

TEST_F(test_regcache_soft, waits_for_what_is_leaving)
{
    w->open();
    w->touch(buffer(0), MB);
    w->advance(MS);
    ASSERT_NE(UCS_REGCACHE_TIME_NEVER, w->next);
    use_while_deregistering([&] { w->advance(100 * MS); }, 20);
    EXPECT_EQ(MB, w->stats().pinned_peak_bytes);
    EXPECT_EQ(0u, w->stats().evicted);
}

/* The first buffer is in use for longer than ever before when the other one is
 * due: both together would pass what uses had registered at once */
TEST_F(test_regcache_soft, the_helper_stays_below_it)
{
    for (int has_room = 0; has_room < 2; ++has_room) {
        make(UCS_REGCACHE_POLICY_PREDICT);
        w->params.max_slowdown = 0.005;
        tuning.soft_weight     = has_room ? 1e6 : 0.01;
        w->open();
        for (unsigned i = 0; i < 40; ++i) {
            w->use(buffer(0), MB, 10 * MS, 1);
            w->advance(190 * MS);
            EXPECT_LE(w->stats().pinned_bytes, ceiling());
            w->use(buffer(1), MB, 10 * MS, 2);
            EXPECT_LE(w->stats().pinned_bytes, ceiling());
            w->advance(190 * MS);
        }
        if (has_room) { /* what was lost once is dear enough */
            w->touch(buffer(2), 64 * 1024);
            w->touch(buffer(3), 64 * 1024);
        }
        ucs_regcache_memh_t memh = w->get(buffer(0), MB, 1);
        w->advance(205 * MS);
        EXPECT_EQ(has_room, w->is_registered(buffer(1), MB));
        w->put(memh);
    }
}

/* A due buffer takes the place of one that is needed later */
TEST_F(test_regcache_soft, the_helper_makes_room_by_what_is_needed_later)
{
    make(UCS_REGCACHE_POLICY_PREDICT);
    w->params.max_slowdown = 0.005;
    w->open();
    for (unsigned i = 0; i < 100; ++i) {
        for (unsigned b = 0; b < 4; ++b) {
            w->use(buffer(b), MB, MS, b);
            EXPECT_LE(w->stats().pinned_bytes, ceiling());
            w->advance((10 + (i * 7 + b * 5) % 13) * MS);
            EXPECT_LE(w->stats().pinned_bytes, ceiling());
        }
    }
    EXPECT_LE(w->stats().pinned_peak_bytes, ceiling());
    EXPECT_GT(w->stats().on_time, 100u);
}

/* Two pairs in turn, and room for one: what a use finds given up, although it was
 * to be held, is foretold instead, from the next time on */
TEST_F(test_regcache_soft, what_is_taken_away_is_foretold_instead)
{
    ucs_regcache_stats_t learned = {};

    make(UCS_REGCACHE_POLICY_PREDICT);
    w->params.max_slowdown = 0.00005;
    w->open();
    for (unsigned i = 0; i < 30; ++i) {
        for (unsigned b = 0; b < 4; b += 2) {
            ucs_regcache_memh_t one   = w->get(buffer(b), MB, 1);
            ucs_regcache_memh_t other = w->get(buffer(b + 1), MB, 2);
            w->advance(MS);
            w->put(one);
            w->put(other);
            w->advance(20 * MS);
        }
        if (i == 1) {
            learned = w->stats();
        }
    }
    ucs_regcache_stats_t s = w->stats();
    EXPECT_EQ(4u, learned.missed);
    EXPECT_GE(2u, s.missed + s.late - learned.missed - learned.late);
    EXPECT_EQ(0u, s.evicted - learned.evicted);
    EXPECT_EQ(2 * MB, s.pinned_peak_bytes);
}

TEST_F(test_regcache_soft, there_is_none_under_a_ceiling_and_other_policies)
{
    w->params.max_pinned = 64 * MB;
    w->open();
    w->touch(buffer(0), MB);
    w->touch(buffer(1), MB);
    EXPECT_EQ(0u, ceiling());
    EXPECT_EQ(2u, w->live.size());

    for (auto policy :
         {UCS_REGCACHE_POLICY_PAPER, UCS_REGCACHE_POLICY_LRU}) {
        make(policy);
        w->open();
        w->touch(buffer(0), MB);
        w->touch(buffer(1), MB);
        EXPECT_EQ(0u, ceiling());
        EXPECT_EQ(2u, w->live.size());
    }
}
