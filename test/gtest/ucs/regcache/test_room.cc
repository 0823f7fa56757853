/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "regcache_fixture.h"

TEST_F(test_regcache, lru_evicts_the_least_recently_used_before_pinning)
{
    w = std::make_unique<regcache_world>(UCS_REGCACHE_POLICY_LRU);
    w->params.max_pinned = 3 * MB;
    size_t most          = 0;
    w->on_reg            = [&](regcache_world::registration) {
        most = std::max(most, w->live.size());
        return UCS_OK;
    };
    w->open();
    for (unsigned i = 0; i < 3; ++i) {
        w->use(buffer(i), MB);
        w->advance(MS);
    }
    w->use(buffer(0), MB); /* a hit makes 1 the oldest */
    w->advance(MS);
    w->use(buffer(3), MB);
    EXPECT_TRUE(w->is_registered(buffer(0), MB));
    EXPECT_FALSE(w->is_registered(buffer(1), MB));
    EXPECT_TRUE(w->is_registered(buffer(2), MB));
    EXPECT_EQ(2u, most) << "evicted only after pinning";
    EXPECT_EQ(1u, w->stats().evicted);
    EXPECT_EQ(3 * MB, w->stats().pinned_peak_bytes);
}

TEST_F(test_regcache, ceiling_of_regions)
{
    w = std::make_unique<regcache_world>(UCS_REGCACHE_POLICY_LRU);
    w->params.max_regions = 2;
    w->open();
    for (unsigned i = 0; i < 10; ++i) {
        w->use(buffer(i), MB);
        EXPECT_LE(w->live.size(), 2u);
    }
}

TEST_F(test_regcache, use_passes_a_ceiling_that_is_too_small)
{
    start(UCS_REGCACHE_POLICY_PAPER, 64 * 1024);
    w->use(buffer(0), MB, MS);
    EXPECT_EQ(1u, w->stats().over_ceiling);
    EXPECT_EQ(1u, w->regs);
}

TEST_F(test_regcache, helper_never_passes_a_ceiling)
{
    w = std::make_unique<regcache_world>(UCS_REGCACHE_POLICY_PAPER);
    w->params.max_pinned = MB;
    size_t most          = 0;
    w->on_reg            = [&](regcache_world::registration reg) {
        most = std::max(most, w->live_bytes() + reg.length);
        return UCS_OK;
    };
    w->open();
    rounds(30, 2, 20 * MS);
    EXPECT_EQ(MB, most);
    EXPECT_EQ(0u, w->stats().over_ceiling);
}

TEST_F(test_regcache, small_messages_stay_in_a_bounded_cache)
{
    start(UCS_REGCACHE_POLICY_PAPER);
    for (unsigned i = 0; i < 3000; ++i) {
        w->use(buffer(0) + i * 8192, 8192);
    }
    EXPECT_EQ(3000u, w->regs);
    EXPECT_EQ(1024u, w->live.size());
    EXPECT_EQ(0u, w->stats().uses);
    EXPECT_EQ(0u, w->wakes);
}

/*
 * Main thread and helper at once
 */

TEST_F(test_regcache, use_waits_for_room_that_is_about_to_come)
{
    start(UCS_REGCACHE_POLICY_PAPER, MB);
    w->touch(buffer(0), MB);
    use_while_deregistering([&] { w->step(); });
    EXPECT_EQ(0u, w->stats().over_ceiling);
    EXPECT_EQ(MB, w->stats().pinned_peak_bytes);
}

TEST_F(test_regcache, unmapped_regions_make_room)
{
    start(UCS_REGCACHE_POLICY_PAPER, MB);
    w->touch(buffer(0), MB);
    ucs_regcache_unmapped(w->cache, buffer(0), MB);
    w->touch(buffer(1), MB);
    EXPECT_EQ(0u, w->stats().over_ceiling);
    EXPECT_EQ(MB, w->stats().pinned_peak_bytes);
}

/* All that a large buffer was made of goes at once: the thread that registers
 * next does its share, and the helper the rest */
TEST_F(test_regcache, one_use_does_not_reclaim_all)
{
    const unsigned count = 3000;

    overrun_queue(count);
    ASSERT_EQ(0u, w->deregs);
    ucs_regcache_unmapped(w->cache, buffer(0), count * 16 * MB);
    w->touch(buffer(count), MB);
    EXPECT_GT(w->deregs, 0u);
    EXPECT_LE(w->deregs, 64u);

    unsigned most   = 0;
    unsigned idle   = 0;
    unsigned before = w->deregs;
    w->on_sleep     = [&]() {
        most   = std::max(most, w->deregs - before);
        idle  += (w->deregs < count) && (w->next > w->now + MS / 10);
        before = w->deregs;
        return 0;
    };
    w->advance(50 * MS);
    w->on_sleep = nullptr;
    EXPECT_GE(w->deregs, count);
    EXPECT_LE(most, 600u) << "a step of the helper, for which fork() waits";
    EXPECT_EQ(0u, idle) << "there was more to do, and the helper slept";
}
