/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "regcache_fixture.h"

#include <vector>

/* It does not look at the next ones at once: the lock is not fair, and a thread
 * that wants it would have to be lucky */
TEST_F(test_regcache, helper_sleeps_while_it_looks_for_strays)
{
    const unsigned count = 3000;
    unsigned looks       = 0;
    unsigned hasty       = 0;

    w = std::make_unique<regcache_world>(UCS_REGCACHE_POLICY_PAPER);
    w->params.dq_length = 8;
    w->open();
    std::vector<ucs_regcache_memh_t> memhs;
    for (unsigned i = 0; i < count; ++i) { /* in use: none is a stray */
        memhs.push_back(w->get(buffer(i), MB));
    }
    for (unsigned i = 0; i < 20; ++i) {
        w->touch(buffer(count + i), MB);
    }
    w->advance(9 * MS);
    w->on_sleep = [&]() {
        ++looks;
        hasty += (w->next < w->now + MS / 10);
        return 0;
    };
    w->advance(20 * MS);
    w->on_sleep = nullptr;
    EXPECT_GE(looks, count / 256);
    EXPECT_EQ(0u, hasty);
    for (ucs_regcache_memh_t memh : memhs) {
        w->put(memh);
    }
    w->advance(500 * MS);
    EXPECT_TRUE(w->live.empty()) << w->live.size();
}

/* What others needed the room of waits, unregistered, until the helper hears of its use,
 * which is lost */
TEST_F(test_regcache, lost_uses_of_what_made_room)
{
    ucs_regcache_tuning_t tuning = ucs_regcache_tuning_default;

    w                  = std::make_unique<regcache_world>(UCS_REGCACHE_POLICY_PREDICT);
    tuning.soft_least  = 1;
    w->params.tuning   = &tuning;
    w->params.dq_length = 8;
    w->open();
    auto is_known = [&](unsigned i) {
        return ucs_regcache_has_region(w->cache, buffer(i), buffer(i) + MB) != 0;
    };
    for (unsigned i = 0; i < 100; ++i) {
        w->touch(buffer(i), MB);
    }
    EXPECT_EQ(1u, w->live.size());
    EXPECT_TRUE(is_known(50));
    w->advance(500 * MS);
    EXPECT_FALSE(is_known(50));
    EXPECT_FALSE(is_known(99)) << "the last one, which was registered until then";
}

/* What is lost during a sweep may lie where that has been already */
TEST_F(test_regcache, uses_lost_during_a_sweep_are_looked_for_after_it)
{
    const unsigned count = 3000;

    overrun_queue(count);
    /* Places are given out from the end, so what comes now is where the sweep
     * has been */
    while (w->deregs < count / 2) {
        w->advance(MS / 10);
    }
    for (unsigned i = 0; i < 100; ++i) {
        w->touch(buffer(count + i), MB);
    }
    w->advance(500 * MS);
    EXPECT_TRUE(w->live.empty()) << w->live.size();
}

/* A rest interrupts a sweep. What is used at rest is in no queue, and lies where
 * that sweep has been already. */
TEST_F(test_regcache, uses_at_rest_are_looked_for_after_it)
{
    const unsigned count = 3000;

    overrun_queue(count);
    while (w->deregs < count / 2) {
        w->advance(MS / 10);
    }
    ASSERT_FALSE(w->live.empty()) << "the sweep is over";
    ucs_regcache_rest(w->cache);
    for (unsigned i = 0; i < 100; ++i) {
        w->touch(buffer(count + i), MB);
    }
    w->now += 100 * MS;
    ucs_regcache_resume(w->cache);
    w->step();
    w->advance(500 * MS);
    EXPECT_TRUE(w->live.empty()) << w->live.size();
}

/* A region whose next use lies far ahead is in the queue of registrations: the
 * end of its present use is lost, and that one is years away */
TEST_F(test_regcache, lost_use_of_a_region_expected_later)
{
    w = std::make_unique<regcache_world>(UCS_REGCACHE_POLICY_PAPER);
    w->params.dq_length = 8;
    w->open();
    for (unsigned i = 0; i < 6; ++i) {
        w->use(buffer(100), MB);
        w->advance(100000 * MS);
    }
    w->use(buffer(100), MB);
    w->advance(MS);
    ASSERT_FALSE(w->is_registered(buffer(100), MB));
    ASSERT_NE(UCS_REGCACHE_TIME_NEVER, w->next) << "no further use is expected";
    for (unsigned i = 0; i < 8; ++i) {
        w->touch(buffer(i), MB);
    }
    w->touch(buffer(100), MB);
    w->advance(30 * MS);
    EXPECT_TRUE(w->live.empty());
}

/* A helper that is not let run: what the application unmaps meanwhile must not
 * pile up, neither regions nor bytes */
TEST_F(test_regcache, unmapped_memory_does_not_wait_for_a_late_helper)
{
    const size_t lengths[] = {16 << 10, 256 << 10, 8 * MB, 64 * MB};
    const size_t much      = 300 * 64 * MB;

    start(UCS_REGCACHE_POLICY_PAPER);
    /* What leaving all pinned would hold is more than piles up here */
    w->use(buffer(1000), much);
    w->advance(MS);
    ASSERT_TRUE(w->live.empty());
    for (size_t length : lengths) {
        for (unsigned i = 0; i < 300; ++i) {
            w->touch(buffer(i), length);
            ucs_regcache_unmapped(w->cache, buffer(i), length);
            ASSERT_LE(w->live.size(), 65u);
            ASSERT_LE(w->live.size() * length, 16 * MB + length) << i;
        }
        w->advance(MS);
        EXPECT_TRUE(w->live.empty());
    }
}
