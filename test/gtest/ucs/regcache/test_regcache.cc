/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "regcache_fixture.h"

#include <cmath>
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
              2 * s.why.held_byte_ns[UCS_REGCACHE_HELD_IN_USE] + 0.05 * s.leave_pinned_byte_ns);
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
    period(10, 99 * MS);
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

TEST_F(test_regcache, foreign_handle_is_not_ours)
{
    start(UCS_REGCACHE_POLICY_PAPER);
    EXPECT_EQ(UCS_ERR_NO_ELEM,
              ucs_regcache_put(w->cache, (ucs_regcache_memh_t)0xabc, nullptr));
}

/* The table has room for few contexts: new ones take the places of those that
 * a registration was made ahead for */
TEST_F(test_regcache, registration_of_a_forgotten_context_is_dropped)
{
    w = std::make_unique<regcache_world>(UCS_REGCACHE_POLICY_PAPER);
    w->params.max_contexts = 4;
    w->open();
    use_each_tenth_of_a_second();
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
    std::feclearexcept(FE_INVALID); /* of what is no number */
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
    EXPECT_EQ(w->live_bytes(), s.pinned_bytes);
}
