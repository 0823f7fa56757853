/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "policy/order_fixture.h"

/** Why memory is held and time is lost: one buffer of 1 MB, unless a test has
 *  others, so that byte-seconds are its seconds. */
class test_why : public test_regcache_order {
protected:
    static constexpr uint64_t REG = regcache_world::REG_BASE_NS +
                                    regcache_world::REG_PAGE_NS * 256;
    static constexpr uint64_t DEREG = REG / 3;

    void open(ucs_regcache_policy_t policy)
    {
        make(policy);
        w->open();
        m_before = why();
    }

    /* What idle registrations may add to the peak is next to nothing */
    void open_with_room_for_one()
    {
        make(UCS_REGCACHE_POLICY_RENT);
        tuning.soft_least      = 1;
        tuning.soft_weight     = 0.01;
        w->params.max_slowdown = 0.0005;
        w->open();
    }

    void TearDown() override
    {
        (void)why(); /* the sums hold in the end as well */
    }

    ucs_regcache_why_t why()
    {
        ucs_regcache_stats_t stats = w->stats();
        EXPECT_EQ(nullptr, w->invalid());
        EXPECT_NEAR(stats.pinned_byte_ns, ucs_regcache_why_held(&stats.why),
                    1e-9 * stats.pinned_byte_ns);
        EXPECT_EQ(stats.lost_ns, ucs_regcache_why_lost(&stats.why));
        for (double held : stats.why.held_byte_ns) {
            EXPECT_LE(0, held);
        }
        return stats.why;
    }

    /* From now on */
    void begin()
    {
        m_before = why();
    }

    /* Since then, ns */
    double held(ucs_regcache_held_t reason)
    {
        return (why().held_byte_ns[reason] - m_before.held_byte_ns[reason]) /
               MB;
    }

    double held_in_all()
    {
        ucs_regcache_why_t now = why();
        return (ucs_regcache_why_held(&now) -
                ucs_regcache_why_held(&m_before)) / MB;
    }

    uint64_t lost(ucs_regcache_lost_t cause)
    {
        return why().lost_ns[cause] - m_before.lost_ns[cause];
    }

    uint64_t lost_in_all()
    {
        ucs_regcache_why_t now = why();
        return ucs_regcache_why_lost(&now) - ucs_regcache_why_lost(&m_before);
    }

    /* Until the helper registers it ahead of each use */
    void learn()
    {
        open(UCS_REGCACHE_POLICY_PREDICT);
        period(40, 99 * MS);
    }

    ucs_regcache_why_t m_before = {};
};

TEST_F(test_why, what_is_left_pinned_is_in_use_or_kept)
{
    open(UCS_REGCACHE_POLICY_LEAVE_PINNED);
    w->use(buffer(0), MB, MS);
    w->advance(9 * MS);
    EXPECT_EQ(REG + MS, held(UCS_REGCACHE_HELD_IN_USE));
    EXPECT_EQ(9 * MS, held(UCS_REGCACHE_HELD_SOON));
    EXPECT_EQ(REG + 10 * MS, held_in_all());
    EXPECT_EQ(REG, lost(UCS_REGCACHE_LOST_FIRST));
    EXPECT_EQ(REG, lost_in_all());

    /* Also while it is in use */
    ucs_regcache_memh_t memh = w->get(buffer(0), MB);
    w->advance(5 * MS);
    EXPECT_EQ(REG + 6 * MS, held(UCS_REGCACHE_HELD_IN_USE));
    w->advance(MS);
    w->put(memh);
    EXPECT_EQ(REG + 7 * MS, held(UCS_REGCACHE_HELD_IN_USE));
    EXPECT_EQ(9 * MS, held(UCS_REGCACHE_HELD_SOON));
}

TEST_F(test_why, on_demand_holds_nothing_and_loses_each_time)
{
    open(UCS_REGCACHE_POLICY_ON_DEMAND);
    for (unsigned i = 1; i <= 3; ++i) {
        w->use(buffer(0), MB, MS);
        EXPECT_EQ(i * (REG + MS), held(UCS_REGCACHE_HELD_IN_USE));
        EXPECT_EQ(i * DEREG, held(UCS_REGCACHE_HELD_OTHER));
        EXPECT_EQ(i * (REG + MS + DEREG), held_in_all());
        EXPECT_EQ(REG, lost(UCS_REGCACHE_LOST_FIRST));
        EXPECT_EQ((i - 1) * REG, lost(UCS_REGCACHE_LOST_UNFORETOLD));
        EXPECT_EQ(i * DEREG, lost(UCS_REGCACHE_LOST_RELEASED));
        EXPECT_EQ(i * (REG + DEREG), lost_in_all());
    }
}

/* What came before it was pinned is no time in which it was held */
TEST_F(test_why, a_use_that_makes_room_first_holds_from_then_on)
{
    make(UCS_REGCACHE_POLICY_LRU);
    w->params.max_pinned = MB;
    w->open();
    w->touch(buffer(0), MB);
    begin();
    w->use(buffer(1), MB, MS);
    w->now += MS;
    EXPECT_EQ(REG + MS, held(UCS_REGCACHE_HELD_IN_USE));
    EXPECT_EQ(MS, held(UCS_REGCACHE_HELD_SOON));
    EXPECT_EQ(DEREG, held(UCS_REGCACHE_HELD_OTHER));
    EXPECT_EQ(REG + 2 * MS + DEREG, held_in_all());
}

/* Rented: that is the plan of one who knows nothing. When the helper does not
 * come at its end, that is another reason. */
TEST_F(test_why, what_is_rented_is_not_known_and_then_the_helper_is_late)
{
    uint64_t rent = rented(UCS_REGCACHE_POLICY_RENT, 0.005);

    open(UCS_REGCACHE_POLICY_RENT);
    w->touch(buffer(0), MB);
    w->step();
    EXPECT_TRUE(w->is_registered(buffer(0), MB));
    w->now += 10 * rent;
    EXPECT_EQ(REG, held(UCS_REGCACHE_HELD_IN_USE));
    EXPECT_NEAR(rent, held(UCS_REGCACHE_HELD_UNKNOWN), 0.2 * rent);
    EXPECT_NEAR(9 * rent, held(UCS_REGCACHE_HELD_LATE), 0.2 * rent);
    w->step();
    EXPECT_FALSE(w->is_registered(buffer(0), MB));
    EXPECT_EQ(DEREG, held(UCS_REGCACHE_HELD_OTHER));
    EXPECT_EQ(REG + 10 * rent + DEREG, held_in_all());
}

/* What the helper has never heard of is not known */
TEST_F(test_why, a_first_use_is_not_known_until_the_helper_comes)
{
    open(UCS_REGCACHE_POLICY_PREDICT);
    w->touch(buffer(0), MB);
    w->now += 5 * MS;
    EXPECT_EQ(5 * MS, held(UCS_REGCACHE_HELD_UNKNOWN));
    EXPECT_EQ(REG + 5 * MS, held_in_all());
}

TEST_F(test_why, what_is_registered_ahead_waits_for_its_use)
{
    learn();
    begin();
    period(20, 99 * MS);
    ucs_regcache_why_t now = why();
    EXPECT_EQ(0u, lost_in_all());
    EXPECT_EQ(20u, now.ahead - m_before.ahead);
    EXPECT_EQ(20 * MS, held(UCS_REGCACHE_HELD_IN_USE));
    EXPECT_LT(0, held(UCS_REGCACHE_HELD_AHEAD));
    EXPECT_EQ(now.ahead_ns - m_before.ahead_ns, held(UCS_REGCACHE_HELD_AHEAD))
            << "its share is how long it waits";
    EXPECT_EQ(20 * DEREG, held(UCS_REGCACHE_HELD_OTHER));
    EXPECT_GT(0.2 * 20 * 100 * MS, held_in_all()) << "not worth a test else";
}

/* The use came, and then the helper does not: what it would have given up */
TEST_F(test_why, a_helper_that_does_not_come_holds_what_was_used)
{
    learn();
    w->use(buffer(0), MB, MS);
    begin();
    w->now += 99 * MS;
    w->use(buffer(0), MB, MS);
    w->now += 30 * MS;
    w->step();
    EXPECT_FALSE(w->is_registered(buffer(0), MB));
    EXPECT_EQ(MS, held(UCS_REGCACHE_HELD_IN_USE));
    EXPECT_EQ(129 * MS, held(UCS_REGCACHE_HELD_LATE));
    EXPECT_EQ(0, held(UCS_REGCACHE_HELD_AHEAD));
}

TEST_F(test_why, a_use_that_the_helper_was_to_register_for_says_so)
{
    learn();
    w->use(buffer(0), MB, MS);
    w->advance(50 * MS);
    ASSERT_FALSE(w->is_registered(buffer(0), MB));
    begin();
    w->use(buffer(0), MB, MS);
    EXPECT_EQ(REG, lost(UCS_REGCACHE_LOST_UNFORETOLD)) << "too early";
    w->advance(99 * MS);

    period(40, 99 * MS);
    w->use(buffer(0), MB, MS);
    w->advance(50 * MS);
    ASSERT_FALSE(w->is_registered(buffer(0), MB));
    begin();
    w->now += 49 * MS;
    w->use(buffer(0), MB, MS);
    EXPECT_EQ(REG, lost(UCS_REGCACHE_LOST_LATE));
    EXPECT_EQ(REG, lost_in_all());
}

/* What was registered in vain waits until it is to be given up, no longer */
TEST_F(test_why, what_nobody_came_for_is_held_ahead_until_it_is_given_up)
{
    learn();
    w->use(buffer(0), MB, MS);
    begin();
    w->advance(98 * MS);
    while (!w->is_registered(buffer(0), MB)) {
        w->advance(MS);
    }
    w->now += 1000 * MS;
    EXPECT_LT(0, held(UCS_REGCACHE_HELD_AHEAD));
    EXPECT_LT(900 * MS, held(UCS_REGCACHE_HELD_LATE));
    w->step();
    EXPECT_FALSE(w->is_registered(buffer(0), MB));
}

TEST_F(test_why, what_a_ceiling_has_room_for_is_held_for_that)
{
    make(UCS_REGCACHE_POLICY_PREDICT);
    w->params.max_pinned = 16 * MB;
    w->open();
    period(40, 99 * MS);
    begin();
    period(20, 99 * MS);
    EXPECT_EQ(20 * MS, held(UCS_REGCACHE_HELD_IN_USE));
    EXPECT_LT(0.9 * 20 * 99 * MS, held(UCS_REGCACHE_HELD_OTHER));
    EXPECT_EQ(20 * 100 * MS, held_in_all());
}

TEST_F(test_why, what_is_unmapped_is_held_for_that_until_it_is_deregistered)
{
    open(UCS_REGCACHE_POLICY_LEAVE_PINNED);
    w->touch(buffer(0), MB);
    w->now += 3 * MS;
    ucs_regcache_unmapped(w->cache, buffer(0), MB);
    w->now += 5 * MS;
    EXPECT_EQ(3 * MS, held(UCS_REGCACHE_HELD_SOON));
    EXPECT_EQ(5 * MS, held(UCS_REGCACHE_HELD_OTHER));
    w->step();
    EXPECT_EQ(5 * MS + DEREG, held(UCS_REGCACHE_HELD_OTHER));
    EXPECT_EQ(REG + 8 * MS + DEREG, held_in_all());
}

/* Two buffers in turn where there is room for one */
TEST_F(test_why, what_a_ceiling_took_away_is_missed_for_want_of_room)
{
    open_with_room_for_one();
    for (unsigned i = 0; i < 8; ++i) {
        w->touch(buffer(i % 2), MB);
        w->advance(MS);
    }
    ASSERT_EQ(MB, w->stats().pinned_peak_bytes);
    begin();
    w->touch(buffer(0), MB);
    EXPECT_LT(0u, lost(UCS_REGCACHE_LOST_ROOM));
    EXPECT_EQ(lost_in_all(), lost(UCS_REGCACHE_LOST_ROOM));
}

/* When it hears of the use, the helper would have held the buffer */
TEST_F(test_why, what_went_before_it_was_heard_of_is_missed_for_want_of_room)
{
    open_with_room_for_one();
    w->touch(buffer(0), MB);
    w->touch(buffer(1), MB);
    w->advance(MS);
    ASSERT_FALSE(w->is_registered(buffer(0), MB));
    begin();
    w->touch(buffer(0), MB);
    EXPECT_LT(0u, lost(UCS_REGCACHE_LOST_ROOM));
    EXPECT_EQ(lost_in_all(), lost(UCS_REGCACHE_LOST_ROOM));
}

/* The paper's condition: no time to deregister and register again */
TEST_F(test_why, what_is_used_again_at_once_is_kept)
{
    open(UCS_REGCACHE_POLICY_PAPER);
    for (unsigned i = 0; i < 40; ++i) {
        w->use(buffer(0), MB, US);
        w->advance(REG);
    }
    begin();
    for (unsigned i = 0; i < 20; ++i) {
        w->use(buffer(0), MB, US);
        w->advance(REG);
    }
    EXPECT_EQ(0u, lost_in_all());
    EXPECT_LT(0.9 * 20 * REG, held(UCS_REGCACHE_HELD_SOON));

    /* Also when it comes before that is looked at again */
    begin();
    w->step();
    w->now += REG / 4;
    w->use(buffer(0), MB);
    w->step();
    EXPECT_EQ(REG / 4, held(UCS_REGCACHE_HELD_SOON));
    EXPECT_EQ(0, held(UCS_REGCACHE_HELD_LATE));
}

/* One that is interrupted by a failing registration has held nothing */
TEST_F(test_why, what_is_refused_is_not_held)
{
    open(UCS_REGCACHE_POLICY_LEAVE_PINNED);
    w->on_reg = [this](regcache_world::registration) {
        w->now += MS;
        return UCS_ERR_INVALID_PARAM;
    };
    ucs_regcache_memh_t memh = nullptr;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              ucs_regcache_get(w->cache, (void*)buffer(0), MB,
                               regcache_world::REMOTE_GET, 1, &memh));
    EXPECT_EQ(MS, held(UCS_REGCACHE_HELD_IN_USE)) << "it may be pinned";
    EXPECT_EQ(MS, held_in_all());
    w->now += MS;
    EXPECT_EQ(MS, held_in_all());
    EXPECT_EQ(MS, lost(UCS_REGCACHE_LOST_FIRST));
}
