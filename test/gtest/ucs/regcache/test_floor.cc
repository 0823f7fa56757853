/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "regcache_fixture.h"

#include <random>

/** The floor under the whole cache: the sum of what is lost and what is held,
 *  at its price, stays near what leaving everything pinned costs. Time is the
 *  world's. */
class test_regcache_floor : public test_regcache {
protected:
    static constexpr double   MU      = 0.005;
    static constexpr unsigned BUFFERS = 8;

    /* A helper whose steps take so long of a core, of which others want a
     * share */
    void make(ucs_regcache_policy_t policy, uint64_t step_ns, double busy,
              double max_slowdown = MU)
    {
        w                      = std::make_unique<regcache_world>(policy);
        share                  = busy;
        w->params.max_slowdown = max_slowdown;
        w->step_ns             = step_ns;
        w->on_busy             = [this]() { return share; };
        w->open();
    }

    /* ns of run time, without first uses */
    double lost(const ucs_regcache_stats_t &stats)
    {
        return double(stats.lost_ns) + double(stats.helper_lost_ns) -
               double(stats.cold) * reg_ns() +
               MU * stats.pinned_byte_ns / stats.leave_pinned_peak_bytes;
    }

    double left_pinned(const ucs_regcache_stats_t &stats)
    {
        return MU * stats.leave_pinned_byte_ns / stats.leave_pinned_peak_bytes;
    }

    static double reg_ns()
    {
        return regcache_world::REG_BASE_NS +
               regcache_world::REG_PAGE_NS * (MB / regcache_world::PAGE);
    }

    /* What is not registered when it stays pinned from now on is missed once
     * more; and the step that finds it has been taken */
    double bound(const ucs_regcache_stats_t &stats)
    {
        const ucs_regcache_tuning_t *tuning = &ucs_regcache_tuning_default;

        return (1 + tuning->floor_allowance) * left_pinned(stats) +
               MU * tuning->floor_credit_ns +
               stats.cold * reg_ns() +
               (stats.floors + 1) * BUFFERS * 2 * reg_ns() + w->step_ns;
    }

    /* 0: at random; 1: what is not registered, as soon as that is so; 2: in
     * turn */
    void play(unsigned kind, std::mt19937 &random, uint64_t ns)
    {
        uint64_t end = w->now + ns;

        for (unsigned turn = 0; w->now < end; ++turn) {
            unsigned i = (kind == 2) ? turn % BUFFERS : random() % BUFFERS;
            if ((kind != 1) || !w->is_registered(buffer(i), MB)) {
                w->use(buffer(i), MB, MS / 10);
            }
            w->advance((kind == 2) ? 3 * MS : (random() % 64) * (MS / 10) + 1);
        }
    }

    double share = 0;
};

TEST_F(test_regcache_floor, costs_little_more_than_leaving_pinned)
{
    const ucs_regcache_policy_t policies[] = {UCS_REGCACHE_POLICY_PREDICT,
                                              UCS_REGCACHE_POLICY_RENT};
    unsigned floors                        = 0;

    for (ucs_regcache_policy_t policy : policies) {
        for (unsigned kind = 0; kind < 3; ++kind) {
            for (uint64_t step_ns : {1000, 20000, 200000}) {
                std::mt19937 random(kind + step_ns);
                make(policy, step_ns, 1);
                for (unsigned part = 0; part < 10; ++part) {
                    play(kind, random, 2000 * MS);
                    ucs_regcache_stats_t stats = w->stats();
                    EXPECT_LE(lost(stats), bound(stats))
                            << kind << " " << step_ns << " " << part;
                    floors += stats.floors;
                }
            }
        }
    }
    EXPECT_GT(floors, 0u);
}

TEST_F(test_regcache_floor, helper_rests_until_it_is_worn_off)
{
    std::mt19937 random(1);

    make(UCS_REGCACHE_POLICY_PREDICT, 200000, 1);
    play(0, random, 2000 * MS);
    ASSERT_EQ(1u, w->stats().floors);
    EXPECT_FALSE(ucs_regcache_needs_helper(w->cache));
    EXPECT_EQ(BUFFERS, w->live.size());
    unsigned steps  = w->steps;
    unsigned regs   = w->regs;
    unsigned deregs = w->deregs;
    share           = 0;
    play(0, random, 2000 * MS);
    EXPECT_LE(w->steps, steps + 4);
    EXPECT_EQ(regs, w->regs);
    EXPECT_EQ(deregs, w->deregs);

    for (unsigned i = 0; (i < 100) && !ucs_regcache_needs_helper(w->cache);
         ++i) {
        play(0, random, 1000 * MS);
    }
    EXPECT_TRUE(ucs_regcache_needs_helper(w->cache));
    w->advance(10000 * MS);
    EXPECT_TRUE(w->live.empty()) << w->live.size();
}

/* At first the soft ceiling has room for what uses had at once, and to learn that
 * more room pays costs more than a second of memory does. A missed use of each
 * buffer is allowed, so that this is learned. */
TEST_F(test_regcache_floor, what_is_learned_may_cost_a_missed_use_of_each)
{
    w                      = std::make_unique<regcache_world>(
            UCS_REGCACHE_POLICY_PREDICT);
    w->params.max_slowdown = MU / 100; /* all for a second costs 50 us */
    w->open();
    for (unsigned iteration = 0; iteration < 12; ++iteration) {
        for (unsigned i = 0; i < BUFFERS; ++i) {
            w->use(buffer(i), MB, MS / 10);
        }
        EXPECT_EQ(0u, w->stats().floors) << iteration;
        w->advance(100 * MS);
    }
    EXPECT_GT(w->stats().missed, 0u);
    EXPECT_GT(w->stats().soft_ceiling_raises, 0u);
    EXPECT_GT(w->stats().on_time, 10 * BUFFERS);
}

/* The helper registers a posted receive for the first use of its buffer, which
 * would have registered it however much is left pinned */
TEST_F(test_regcache_floor, what_is_registered_for_a_first_use_may_cost_that)
{
    const unsigned receives = 200;

    make(UCS_REGCACHE_POLICY_PREDICT, uint64_t(reg_ns() / 4), 1, MU / 100);
    w->use(buffer(0), MB, MS / 10);
    for (unsigned i = 1; i <= receives; ++i) {
        /* Another message as long says how much of the receive will be used */
        const ucs_operation_t operations[] = {
                {w->now, buffer(0), MB, 1, 0, UCS_OPERATION_SEND, 0},
                {w->now, buffer(i), MB, 2, 0, UCS_OPERATION_RECEIVE, 0}};
        ucs_regcache_hear(w->cache, operations, 2);
        w->step();
        w->advance(MS);
        w->use(buffer(i), MB, MS / 10);
        w->advance(20 * MS);
    }
    EXPECT_GT(w->stats().announced_on_time, receives / 2);
    EXPECT_GT(w->stats().helper_lost_ns, receives / 2 * reg_ns());
    EXPECT_EQ(0u, w->stats().floors);
    EXPECT_LT(w->live.size(), receives / 10);
}

/* Neither reason for a rest ends the other */
TEST_F(test_regcache_floor, a_rest_for_want_of_a_core_goes_on)
{
    std::mt19937 random(1);

    make(UCS_REGCACHE_POLICY_PREDICT, 200000, 1);
    play(0, random, 2000 * MS);
    ASSERT_EQ(1u, w->stats().floors);
    ucs_regcache_rest(w->cache);
    ucs_regcache_resume(w->cache);
    EXPECT_FALSE(ucs_regcache_needs_helper(w->cache));
    ucs_regcache_rest(w->cache);
    share = 0;
    w->now += 1000000 * MS; /* all is worn off */
    w->step();
    EXPECT_FALSE(ucs_regcache_needs_helper(w->cache));
    ucs_regcache_resume(w->cache);
    EXPECT_TRUE(ucs_regcache_needs_helper(w->cache));
}

/* Uses of memory that may not be kept register each time, pinned or not */
TEST_F(test_regcache_floor, memory_that_may_not_be_kept_does_not_count)
{
    w = std::make_unique<regcache_world>(UCS_REGCACHE_POLICY_PREDICT);
    w->params.max_slowdown = MU;
    w->on_inspect          = [](unsigned, uintptr_t*, uintptr_t*) {
        return false;
    };
    w->open();
    for (unsigned i = 0; i < 10000; ++i) {
        w->touch(buffer(0), MB);
        w->advance(MS / 10);
        w->step();
    }
    EXPECT_EQ(10000u, w->regs);
    EXPECT_EQ(0u, w->stats().floors);
}
