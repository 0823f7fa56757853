/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "regcache_fixture.h"
#include <cmath>

#include <thread>
#include <vector>

/* The loop of the paper's Fig. 1: three buffers, compute in between */
TEST_F(test_regcache, fig1_loop_is_on_time_and_unpinned_in_gaps)
{
    const unsigned iterations = 50;
    unsigned pinned_gaps      = 0;

    start(UCS_REGCACHE_POLICY_PAPER);
    for (unsigned i = 0; i < iterations; ++i) {
        for (unsigned b = 0; b < 3; ++b) {
            w->use(buffer(b), 4 * MB, MS, b);
            w->advance(50 * MS);
            pinned_gaps += (w->stats().pinned_bytes > 0);
            w->advance(49 * MS);
        }
    }

    ucs_regcache_stats_t s = w->stats();
    EXPECT_EQ(3 * iterations, s.uses);
    EXPECT_EQ(3u, s.cold);
    /* The second use teaches the period, so the third is the first that can
     * be on time; each context window takes two uses more to repeat */
    EXPECT_LE(s.missed, 9u);
    EXPECT_EQ(0u, s.wasted);
    EXPECT_EQ(0u, pinned_gaps);
    EXPECT_EQ(4 * MB, s.pinned_peak_bytes);
    EXPECT_EQ(12 * MB, s.leave_pinned_bytes);
    EXPECT_LE(s.pinned_byte_ns,
              2 * s.in_use_byte_ns + 0.05 * s.leave_pinned_byte_ns);
}

TEST_F(test_regcache, first_registration_is_always_deregistered)
{
    start(UCS_REGCACHE_POLICY_PAPER);
    w->use(buffer(0), MB);
    EXPECT_TRUE(w->is_registered(buffer(0), MB));
    w->advance(MS);
    EXPECT_FALSE(w->is_registered(buffer(0), MB));
    w->advance(1000 * MS); /* it looks once more whether uses have come */
    EXPECT_EQ(UCS_REGCACHE_TIME_NEVER, w->next);
}

TEST_F(test_regcache, short_gap_stays_registered)
{
    start(UCS_REGCACHE_POLICY_PAPER);
    for (unsigned i = 0; i < 1000; ++i) {
        w->use(buffer(0), MB, 1000);
        w->advance(2000);
    }
    /* registering 1 MB takes 14 us: a gap of 2 us is no gap */
    EXPECT_LE(w->regs, 10u);
    EXPECT_GE(w->stats().on_time, 990u);
}

TEST_F(test_regcache, unused_registration_is_dropped_and_context_unlearned)
{
    start(UCS_REGCACHE_POLICY_PAPER);
    for (unsigned i = 0; i < 10; ++i) {
        w->use(buffer(0), MB, MS);
        w->advance(99 * MS);
    }
    EXPECT_GE(w->stats().on_time, 5u);
    w->advance(10000 * MS);

    ucs_regcache_stats_t s = w->stats();
    EXPECT_EQ(0u, s.pinned_bytes);
    EXPECT_EQ(1u, s.wasted);
    EXPECT_EQ(UCS_REGCACHE_TIME_NEVER, w->next);
}

TEST_F(test_regcache, no_reuse_pins_one_message)
{
    start(UCS_REGCACHE_POLICY_PAPER);
    for (unsigned i = 0; i < 1000; ++i) {
        w->use(buffer(0) + i * MB, MB, MS);
        w->advance(9 * MS);
    }
    ucs_regcache_stats_t s = w->stats();
    EXPECT_EQ(1000u, s.cold);
    EXPECT_EQ(MB, s.pinned_peak_bytes);
    EXPECT_EQ(1000 * MB, s.leave_pinned_peak_bytes);
    EXPECT_EQ(0u, s.wasted);
}

TEST_F(test_regcache, on_demand_deregisters_at_once)
{
    start(UCS_REGCACHE_POLICY_ON_DEMAND);
    for (unsigned i = 0; i < 10; ++i) {
        w->use(buffer(0), MB);
        EXPECT_TRUE(w->live.empty());
    }
    EXPECT_EQ(10u, w->regs);
    EXPECT_EQ(1u, w->stats().cold);
    EXPECT_EQ(9u, w->stats().missed);
    EXPECT_EQ(0u, w->wakes);
}

TEST_F(test_regcache, leave_pinned_registers_once)
{
    start(UCS_REGCACHE_POLICY_LEAVE_PINNED);
    for (unsigned i = 0; i < 30; ++i) {
        w->use(buffer(i % 3), MB);
    }
    EXPECT_EQ(3u, w->regs);
    EXPECT_EQ(0u, w->deregs);
    EXPECT_EQ(27u, w->stats().on_time);
    EXPECT_FALSE(ucs_regcache_needs_helper(w->cache));
}

TEST_F(test_regcache, sub_range_hits)
{
    start(UCS_REGCACHE_POLICY_LEAVE_PINNED);
    w->use(buffer(0), 4 * MB);
    w->use(buffer(0) + MB, MB);
    w->use(buffer(0) + 3 * MB, MB);
    EXPECT_EQ(1u, w->regs);
    w->use(buffer(0) + 3 * MB, 2 * MB);
    EXPECT_EQ(2u, w->regs);
}

TEST_F(test_regcache, larger_registration_supersedes)
{
    start(UCS_REGCACHE_POLICY_LEAVE_PINNED);
    w->use(buffer(0), MB);
    w->use(buffer(0) + 2 * MB, MB);
    w->use(buffer(0), 4 * MB);
    EXPECT_EQ(1u, w->live.size());
    EXPECT_EQ(4 * MB, w->stats().pinned_bytes);
}

TEST_F(test_regcache, access_flags_are_honoured_and_joined)
{
    start(UCS_REGCACHE_POLICY_PAPER);
    const unsigned get_only = regcache_world::REMOTE_GET |
                              regcache_world::LOCAL_READ;
    const unsigned write    = regcache_world::LOCAL_WRITE;

    ucs_regcache_memh_t reading = w->get(buffer(0), MB, 1, get_only);
    ucs_regcache_memh_t writing = w->get(buffer(0), MB, 1, write);
    EXPECT_NE(reading, writing);
    EXPECT_EQ(2u, w->regs);
    w->put(reading);
    w->put(writing);
}

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
    w = std::make_unique<regcache_world>(UCS_REGCACHE_POLICY_PAPER);
    w->params.max_pinned = 64 * 1024;
    w->open();
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
        size_t bytes = reg.length;
        for (auto &entry : w->live) {
            bytes += entry.second.length;
        }
        most = std::max(most, bytes);
        return UCS_OK;
    };
    w->open();
    for (unsigned i = 0; i < 60; ++i) {
        w->use(buffer(i % 2), MB, MS, i % 2);
        w->advance(20 * MS);
    }
    EXPECT_EQ(MB, most);
    EXPECT_EQ(0u, w->stats().over_ceiling);
}

TEST_F(test_regcache, full_device_evicts_and_retries)
{
    start(UCS_REGCACHE_POLICY_LEAVE_PINNED);
    w->on_reg = [&](regcache_world::registration) {
        return (w->live.size() >= 4) ? UCS_ERR_NO_MEMORY : UCS_OK;
    };
    for (unsigned i = 0; i < 20; ++i) {
        w->use(buffer(i), MB);
    }
    EXPECT_EQ(20u, w->regs);
    EXPECT_EQ(16u, w->stats().evicted);
    EXPECT_EQ(0u, w->stats().failed);
}

TEST_F(test_regcache, error_of_the_lower_domain_is_the_callers)
{
    start(UCS_REGCACHE_POLICY_PAPER);
    w->on_reg = [](regcache_world::registration) {
        return UCS_ERR_INVALID_ADDR;
    };
    ucs_regcache_memh_t memh = nullptr;
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              ucs_regcache_get(w->cache, (void *)buffer(0), MB,
                               regcache_world::ACCESS, 1, &memh));
    EXPECT_EQ(nullptr, memh);
    EXPECT_EQ(0u, w->stats().pinned_bytes);
    w->on_reg = nullptr;
    w->use(buffer(0), MB);
    EXPECT_EQ(1u, w->regs);
}

TEST_F(test_regcache, failed_speculation_is_quiet_and_harmless)
{
    start(UCS_REGCACHE_POLICY_PAPER);
    for (unsigned i = 0; i < 6; ++i) {
        w->use(buffer(0), MB, MS);
        w->advance(99 * MS);
    }
    w->use(buffer(0), MB, MS);
    bool is_speculating = true;
    w->on_reg           = [&](regcache_world::registration) {
        return is_speculating ? UCS_ERR_NO_MEMORY : UCS_OK;
    };
    w->advance(99 * MS);
    w->on_reg = nullptr;
    w->use(buffer(0), MB, MS);
    EXPECT_EQ(1u, w->stats().failed);
}

TEST_F(test_regcache, foreign_handle_is_not_ours)
{
    start(UCS_REGCACHE_POLICY_PAPER);
    EXPECT_EQ(UCS_ERR_NO_ELEM,
              ucs_regcache_put(w->cache, (ucs_regcache_memh_t)0xabc, nullptr));
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

/* The table has room for few contexts: new ones take the places of those that
 * a registration was made ahead for */
TEST_F(test_regcache, registration_of_a_forgotten_context_is_dropped)
{
    w = std::make_unique<regcache_world>(UCS_REGCACHE_POLICY_PAPER);
    w->params.max_contexts = 4;
    w->open();
    for (unsigned i = 0; i < 6; ++i) {
        w->use(buffer(0), MB, MS);
        w->advance(99 * MS);
    }
    w->use(buffer(0), MB, MS);
    w->advance(50 * MS);
    while (!w->is_registered(buffer(0), MB)) {
        w->advance(MS);
    }
    for (unsigned i = 0; i < 30; ++i) {
        w->use(buffer(1 + i / 5), MB, 1000, 2 + i / 5);
        w->advance(MS / 2);
    }
    w->advance(10000 * MS);
    EXPECT_TRUE(w->live.empty());
}

/*
 * Main thread and helper at once
 */

TEST_F(test_regcache, use_waits_for_room_that_is_about_to_come)
{
    w = std::make_unique<regcache_world>(UCS_REGCACHE_POLICY_PAPER);
    w->params.max_pinned = MB;
    w->open();
    w->touch(buffer(0), MB);

    /* The helper is inside the deregistration of buffer 0 */
    std::atomic<bool> is_asking{false};
    std::thread user;
    w->on_dereg = [&]() {
        if (user.joinable()) {
            return;
        }
        user = std::thread([&]() {
            is_asking = true;
            w->touch(buffer(1), MB);
        });
        while (!is_asking) {
            std::this_thread::yield();
        }
    };
    w->step();
    user.join();
    w->on_dereg = nullptr;
    EXPECT_EQ(0u, w->stats().over_ceiling);
    EXPECT_EQ(MB, w->stats().pinned_peak_bytes);
}

TEST_F(test_regcache, unmapped_regions_make_room)
{
    w = std::make_unique<regcache_world>(UCS_REGCACHE_POLICY_PAPER);
    w->params.max_pinned = MB;
    w->open();
    w->touch(buffer(0), MB);
    ucs_regcache_unmapped(w->cache, buffer(0), MB);
    w->touch(buffer(1), MB);
    EXPECT_EQ(0u, w->stats().over_ceiling);
    EXPECT_EQ(MB, w->stats().pinned_peak_bytes);
}

TEST_F(test_regcache, use_during_speculation_waits_and_counts_as_late)
{
    start(UCS_REGCACHE_POLICY_PAPER);
    for (unsigned i = 0; i < 6; ++i) {
        w->use(buffer(0), MB, MS);
        w->advance(99 * MS);
    }
    w->use(buffer(0), MB, MS);

    std::atomic<bool> is_waiting{false};
    std::thread user;
    w->on_wait = [&]() {
        is_waiting = true;
    };
    w->on_reg = [&](regcache_world::registration) {
        user = std::thread([&]() {
            w->touch(buffer(0), MB);
        });
        while (!is_waiting) {
            std::this_thread::yield();
        }
        return UCS_OK;
    };
    w->advance(99 * MS);
    user.join();
    w->on_reg = nullptr;
    EXPECT_EQ(1u, w->stats().late);
    EXPECT_EQ(0u, w->stats().wasted);
}

TEST_F(test_regcache, waiter_of_a_failed_speculation_registers_itself)
{
    start(UCS_REGCACHE_POLICY_PAPER);
    for (unsigned i = 0; i < 6; ++i) {
        w->use(buffer(0), MB, MS);
        w->advance(99 * MS);
    }
    w->use(buffer(0), MB, MS);

    std::atomic<bool> is_waiting{false};
    std::thread user;
    w->on_wait = [&]() {
        is_waiting = true;
    };
    w->on_reg = [&](regcache_world::registration) {
        if (!user.joinable()) {
            user = std::thread([&]() { w->touch(buffer(0), MB); });
            while (!is_waiting) {
                std::this_thread::yield();
            }
            return UCS_ERR_NO_MEMORY;
        }
        return UCS_OK;
    };
    w->advance(99 * MS);
    user.join();
    w->on_reg = nullptr;
    EXPECT_EQ(0u, w->stats().late);
    EXPECT_EQ(1u, w->stats().failed);
}

TEST_F(test_regcache, full_queue_loses_uses_but_no_region)
{
    w = std::make_unique<regcache_world>(UCS_REGCACHE_POLICY_PAPER);
    w->params.dq_length = 8;
    w->open();
    for (unsigned i = 0; i < 100; ++i) {
        w->touch(buffer(i), MB);
    }
    EXPECT_EQ(100u, w->live.size());
    w->advance(30 * MS);
    EXPECT_TRUE(w->live.empty());
}

/* More regions than the helper looks at before it lets the index lock go, which
 * it does between any two steps: each is found all the same, also those that
 * move to the places of others meanwhile */
TEST_F(test_regcache, strays_among_many_regions_are_found_bit_by_bit)
{
    const unsigned count = 3000;
    unsigned before      = 0;
    unsigned most        = 0;
    unsigned pieces      = 0;

    w = std::make_unique<regcache_world>(UCS_REGCACHE_POLICY_PAPER);
    w->params.dq_length = 8;
    w->open();
    for (unsigned i = 0; i < count; ++i) {
        w->touch(buffer(i), MB);
    }
    w->on_sleep = [&]() {
        most    = std::max(most, w->deregs - before);
        pieces += (w->deregs > before);
        before  = w->deregs;
        if (pieces % 4 == 1) { /* places are freed and taken again */
            ucs_regcache_unmapped(w->cache, buffer(pieces), 16 * MB);
            w->touch(buffer(count + pieces), MB);
        }
        return 0;
    };
    w->advance(500 * MS);
    w->on_sleep = nullptr;
    w->advance(500 * MS);
    EXPECT_TRUE(w->live.empty()) << w->live.size();
    EXPECT_GT(pieces, 10u);
    EXPECT_LT(most, 300u);
}

/* Nor does it look at the next ones at once: the lock is not fair, and a thread
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

/* What is lost during a sweep may lie where that has been already */
TEST_F(test_regcache, uses_lost_during_a_sweep_are_looked_for_after_it)
{
    const unsigned count = 3000;

    w = std::make_unique<regcache_world>(UCS_REGCACHE_POLICY_PAPER);
    w->params.dq_length = 8;
    w->open();
    for (unsigned i = 0; i < count; ++i) {
        w->touch(buffer(i), MB);
    }
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

    w = std::make_unique<regcache_world>(UCS_REGCACHE_POLICY_PAPER);
    w->params.dq_length = 8;
    w->open();
    for (unsigned i = 0; i < count; ++i) {
        w->touch(buffer(i), MB);
    }
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

    start(UCS_REGCACHE_POLICY_PAPER);
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

/* All that a large buffer was made of goes at once: the thread that registers
 * next does its share, and the helper the rest */
TEST_F(test_regcache, one_use_does_not_reclaim_all)
{
    const unsigned count = 3000;

    w = std::make_unique<regcache_world>(UCS_REGCACHE_POLICY_PAPER);
    w->params.dq_length = 8;
    w->open();
    for (unsigned i = 0; i < count; ++i) {
        w->touch(buffer(i), MB);
    }
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

TEST_F(test_regcache, refused_helper_leaves_pinned)
{
    start(UCS_REGCACHE_POLICY_PAPER);
    ucs_regcache_helper_refused(w->cache);
    for (unsigned i = 0; i < 30; ++i) {
        w->use(buffer(i % 3), MB);
    }
    EXPECT_EQ(3u, w->regs);
    EXPECT_EQ(0u, w->wakes);
    ucs_regcache_unmapped(w->cache, buffer(0), MB);
    w->use(buffer(1), MB);
    w->use(buffer(3), MB);
    EXPECT_EQ(1u, w->deregs) << "nobody reclaimed the unmapped region";
}

/* Its processor time counts as lost by the share that others wanted it, also
 * while it rests; where nobody tells, it is not lost */
TEST_F(test_regcache, the_helper_is_charged_for_what_others_wanted)
{
    double share = 0;

    regcache_world asked(UCS_REGCACHE_POLICY_PREDICT);
    asked.step_ns = 1000;
    asked.on_busy = [&] { return share; };
    asked.open();
    asked.step();
    EXPECT_EQ(0u, asked.stats().helper_lost_ns);
    share = 1;
    asked.step();
    EXPECT_EQ(1000u, asked.stats().helper_lost_ns);
    share = 0.25;
    asked.step();
    asked.step();
    EXPECT_EQ(1500u, asked.stats().helper_lost_ns);
    ucs_regcache_rest(asked.cache);
    ucs_regcache_rested(asked.cache);
    EXPECT_EQ(1750u, asked.stats().helper_lost_ns);

    regcache_world unasked(UCS_REGCACHE_POLICY_PREDICT);
    unasked.step_ns = 1000;
    unasked.open();
    unasked.step();
    EXPECT_EQ(0u, unasked.stats().helper_lost_ns);
}

TEST_F(test_regcache, bad_parameters)
{
    regcache_world bad(UCS_REGCACHE_POLICY_LAST);
    ucs_regcache_env_t env = {};
    env.now                = [](void *) {
        return uint64_t(0);
    };
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              ucs_regcache_create(&bad.params, &env, &bad.cache));
    bad.params.policy    = UCS_REGCACHE_POLICY_PAPER;
    bad.params.page_size = 3000;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              ucs_regcache_create(&bad.params, &env, &bad.cache));
    bad.params.page_size = 0;
    bad.params.dq_length = 7;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              ucs_regcache_create(&bad.params, &env, &bad.cache));
    bad.params.dq_length = 0;
    for (double slowdown : {-0.01, 1.01, double(NAN)}) {
        bad.params.max_slowdown = slowdown;
        EXPECT_EQ(UCS_ERR_INVALID_PARAM,
                  ucs_regcache_create(&bad.params, &env, &bad.cache));
    }
}

/*
 * Stress: users, an unmapper and the helper; the lower domain checks that
 * nothing is deregistered twice, the end that nothing is left
 */
TEST_F(test_regcache, stress)
{
    const unsigned uses = 20000;
    std::vector<std::thread> threads;
    std::atomic<unsigned> running{3};

    w = std::make_unique<regcache_world>(UCS_REGCACHE_POLICY_PAPER);
    w->params.max_pinned = 20 * MB;
    w->params.dq_length  = 64;
    w->open();
    w->on_wait = []() { std::this_thread::yield(); };
    for (unsigned t = 0; t < 3; ++t) {
        threads.emplace_back([&, t]() {
            unsigned seed = t;
            for (unsigned i = 0; i < uses; ++i) {
                seed             = seed * 1103515245 + 12345;
                unsigned b       = (seed >> 16) % 12;
                uint64_t started = w->now;
                if ((seed >> 24) % 16 == 0) {
                    ucs_regcache_unmapped(w->cache, buffer(b), 2 * MB);
                }
                w->touch(buffer(b), ((seed >> 20) % 3 + 1) * MB, b);
                w->now = std::max<uint64_t>(w->now, started + 1000);
            }
            --running;
        });
    }
    while (running > 0) {
        w->step();
    }
    for (auto &thread : threads) {
        thread.join();
    }
    w->step();

    ucs_regcache_stats_t s = w->stats();
    EXPECT_EQ(3 * uses, s.uses);
    EXPECT_EQ(0u, s.failed);
    size_t bytes = 0;
    for (auto &entry : w->live) {
        bytes += entry.second.length;
    }
    EXPECT_EQ(bytes, s.pinned_bytes);
}
