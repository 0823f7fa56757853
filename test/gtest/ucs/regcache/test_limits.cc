/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <uct/ib/helper_md/decorator_fixture.h>
#include "regcache_fixture.h"
#include <uct/ib/helper_md/log_capture.h>

#include <test/inside/regcache_inside.h>
#include <ucs/sys/mem/maps.h>
#include <uct/ib/helper_md/watch/range.h>
#include <uct/ib/helper_md/watch/trust.h>

#include <thread>
#include <vector>

/*
 * What there is too little of, under the virtual clock
 */

class test_limits : public test_regcache {
};

/* By which a report at the end of the program knows that it must not ask */
TEST_F(test_limits, a_claim_is_made_under_the_index_lock)
{
    regcache_world world(UCS_REGCACHE_POLICY_LEAVE_PINNED);
    unsigned claims = 0;

    world.on_claim   = [&](auto&&...) {
        ++claims;
        EXPECT_TRUE(ucs_regcache_is_locked_here(world.cache));
        return true;
    };
    world.on_unclaim = [](auto&&...) {};
    world.open();
    world.touch(buffer(0), MB);
    EXPECT_GT(claims, 0u);
    EXPECT_FALSE(ucs_regcache_is_locked_here(world.cache));
}

TEST_F(test_limits, speculation_backs_off_and_comes_back)
{
    std::vector<uint64_t> tries;
    bool is_use = false;

    start(UCS_REGCACHE_POLICY_PAPER);
    use_each_tenth_of_a_second();
    w->on_reg = [&](regcache_world::registration) {
        if (is_use) {
            return UCS_OK;
        }
        tries.push_back(w->now);
        return UCS_ERR_NO_MEMORY;
    };
    for (unsigned n = 0; n < 100; ++n) {
        w->advance(99 * MS);
        is_use = true;
        w->use(buffer(0), MB, MS);
        is_use = false;
    }
    /* 10 s of a use every 100 ms: twice the distance each time, 1 s at most */
    EXPECT_GE(tries.size(), 10u);
    EXPECT_LE(tries.size(), 20u);
    for (unsigned n = 1; n < tries.size(); ++n) {
        EXPECT_LE(tries[n] - tries[n - 1], 1200 * MS);
    }
    EXPECT_GE(tries.back() - tries[tries.size() - 2], 900 * MS);

    w->on_reg       = nullptr;
    uint64_t before = w->stats().on_time;
    for (unsigned n = 0; n < 30; ++n) {
        w->advance(99 * MS);
        w->use(buffer(0), MB, MS);
    }
    EXPECT_GE(w->stats().on_time, before + 15) << "never came back";
}

TEST_F(test_limits, use_that_was_refused_keeps_the_helper_away)
{
    start(UCS_REGCACHE_POLICY_PAPER);
    use_each_tenth_of_a_second();
    /* Another part of the application takes all there is for a moment */
    w->advance(80 * MS);
    ASSERT_FALSE(w->is_registered(buffer(0), MB));
    unsigned refused = 0;
    w->on_reg        = [&](regcache_world::registration) {
        return (refused++ == 0) ? UCS_ERR_NO_MEMORY : UCS_OK;
    };
    ucs_regcache_memh_t memh = w->get(buffer(1), MB);
    unsigned before = w->regs;
    w->advance(20 * MS);
    EXPECT_EQ(before, w->regs) << "registered in advance under pressure";
    w->put(memh);
}

/* Memory that may be locked, or registrations that a device has: what is idle
 * never makes a use fail */
TEST_F(test_limits, idle_registrations_never_cost_a_use)
{
    for (int policy = 0; policy < UCS_REGCACHE_POLICY_LAST; ++policy) {
        unsigned seed = 1;

        start(ucs_regcache_policy_t(policy));
        w->on_reg = [&](regcache_world::registration reg) {
            return ((w->live_bytes() + reg.length > 8 * MB) ||
                    (w->live.size() >= 5)) ?
                           UCS_ERR_NO_MEMORY :
                           UCS_OK;
        };
        for (unsigned n = 0; n < 2000; ++n) {
            seed          = seed * 1103515245 + 12345;
            unsigned b    = (seed >> 16) % 12;
            size_t length = ((seed >> 20) % 4 + 1) * MB;
            ucs_regcache_memh_t one = w->get(buffer(b), length, b);
            ucs_regcache_memh_t two = w->get(buffer(b + 1), 4 * MB, b);
            w->advance(MS);
            w->put(one);
            w->put(two);
            w->advance(((seed >> 24) % 16) * MS);
        }
        w->close();
    }
}

TEST_F(test_limits, use_waits_for_what_nobody_asked_for)
{
    start(UCS_REGCACHE_POLICY_PAPER);
    use_each_tenth_of_a_second();

    /* The helper is inside a registration that has taken all there is, and
     * stays there for a while, or until nobody waits for it */
    std::atomic<bool> is_inside{false}, is_refused{false}, is_over{false};
    bool was_inside = true, was_kept = true;
    std::thread user;
    w->on_reg = [&](regcache_world::registration reg) {
        if (reg.start != buffer(0)) {
            is_refused = true;
            return UCS_ERR_NO_MEMORY;
        }
        is_inside = true;
        user      = std::thread([&]() {
            ucs_regcache_memh_t memh;
            EXPECT_EQ(UCS_ERR_NO_MEMORY,
                      ucs_regcache_get(w->cache, (void *)buffer(1), MB,
                                       regcache_world::ACCESS, 1, &memh));
            ucs_regcache_yield(w->cache);
            was_inside = is_inside;
            was_kept   = w->is_registered(buffer(0), MB);
            is_over    = true;
        });
        for (unsigned i = 0; (!is_refused || (i < 20000)) && !is_over; ++i) {
            std::this_thread::yield();
        }
        is_inside = false;
        return UCS_OK;
    };
    w->advance(99 * MS);
    user.join();
    w->on_reg = nullptr;
    EXPECT_FALSE(was_inside);
    EXPECT_FALSE(was_kept);
}

/*
 * Events that cannot be served at once
 */

/* As many users as can be counted, and one more */
TEST_F(test_limits, user_too_many_registers_by_itself)
{
    const unsigned most = (1u << 24) - 1;
    ucs_regcache_memh_t memh;

    start(UCS_REGCACHE_POLICY_LEAVE_PINNED);
    ucs_regcache_memh_t first = w->get(buffer(0), MB, 1,
                                       regcache_world::ACCESS);
    for (unsigned i = 1; i < most; ++i) {
        ucs_regcache_get(w->cache, (void*)buffer(0), MB, regcache_world::ACCESS,
                         1, &memh);
    }
    EXPECT_EQ(1u, w->regs);
    ucs_regcache_memh_t second = w->get(buffer(0), MB, 1,
                                        regcache_world::ACCESS);
    EXPECT_NE(first, second);
    EXPECT_EQ(2u, w->regs);
    w->put(second);
    for (unsigned i = 0; i < most; ++i) {
        ucs_regcache_put(w->cache, first, nullptr);
    }
    EXPECT_EQ(1u, w->live.size()) << "superseded, so it goes with its user";
}

/* From an empty cache, which has nothing in reserve, with everything that can
 * be asked about memory */
TEST_F(test_limits, first_miss_takes_the_lock_at_most_six_times)
{
    w = std::make_unique<regcache_world>(UCS_REGCACHE_POLICY_PREDICT);
    w->on_inspect = [](unsigned, uintptr_t*, uintptr_t*) { return true; };
    w->open();

    uint64_t before          = ucs_regcache_lock_takings(w->cache);
    ucs_regcache_memh_t memh = w->get(buffer(0), MB);
    EXPECT_LE(ucs_regcache_lock_takings(w->cache) - before, 6u);
    w->put(memh);
}

TEST_F(test_limits, event_inside_the_lock_strikes_everything)
{
    const unsigned count = 1000;

    start(UCS_REGCACHE_POLICY_LEAVE_PINNED);
    for (unsigned i = 0; i < count; ++i) {
        w->touch(buffer(i), MB);
    }
    /* As from a signal handler that interrupts the owner */
    ucs_regcache_lock(w->cache);
    for (unsigned i = 0; i < count; ++i) {
        ucs_regcache_unmapped(w->cache, buffer(i), MB);
    }
    ucs_regcache_unlock(w->cache);
    unsigned before = w->regs;
    for (unsigned i = 0; i < count; ++i) {
        w->touch(buffer(i), MB);
    }
    EXPECT_EQ(before + count, w->regs) << "an event was dropped";
}

/*
 * Distrust
 */

TEST_F(test_limits, distrusted_memory_is_registered_in_use_only)
{
    start(UCS_REGCACHE_POLICY_PAPER);
    use_each_tenth_of_a_second();
    w->use(buffer(1), 8192); /* small ones are kept otherwise */
    ucs_regcache_memh_t before = w->get(buffer(2), MB);
    ucs_regcache_distrust(w->cache, UCS_REGCACHE_DISTRUST_EVENTS);
    EXPECT_FALSE(ucs_regcache_needs_helper(w->cache));

    /* Not even shared: what is in use may be another mapping by now */
    ucs_regcache_memh_t one = w->get(buffer(2), MB);
    ucs_regcache_memh_t two = w->get(buffer(2), MB);
    EXPECT_NE(before, one);
    EXPECT_NE(one, two);
    w->put(before);
    w->put(one);
    w->put(two);
    EXPECT_TRUE(w->live.empty());
    for (unsigned i = 0; i < 10; ++i) {
        w->use(buffer(0), MB, MS);
        w->use(buffer(1), 8192);
        EXPECT_TRUE(w->live.empty());
        w->advance(99 * MS);
        EXPECT_TRUE(w->live.empty()) << "registered in advance";
    }

    ucs_regcache_distrust(w->cache, UCS_REGCACHE_DISTRUST_VMAS);
    ucs_regcache_trust(w->cache, UCS_REGCACHE_DISTRUST_VMAS);
    EXPECT_FALSE(ucs_regcache_needs_helper(w->cache));
    ucs_regcache_trust(w->cache, UCS_REGCACHE_DISTRUST_EVENTS);
    uint64_t on_time = w->stats().on_time;
    use_each_tenth_of_a_second();
    EXPECT_GT(w->stats().on_time, on_time);
}

TEST_F(test_limits, distrust_dooms_a_registration_in_progress)
{
    start(UCS_REGCACHE_POLICY_PAPER);
    use_each_tenth_of_a_second();
    w->on_reg = [&](regcache_world::registration) {
        ucs_regcache_distrust(w->cache, UCS_REGCACHE_DISTRUST_EVENTS);
        return UCS_OK;
    };
    w->advance(99 * MS);
    w->on_reg = nullptr;
    EXPECT_TRUE(w->live.empty());
}

TEST_F(test_limits, distrusted_region_can_be_invalidated)
{
    unsigned calls = 0;

    start(UCS_REGCACHE_POLICY_PAPER);
    ucs_regcache_distrust(w->cache, UCS_REGCACHE_DISTRUST_MARKS);
    w->put(w->get(buffer(0), MB), &calls);
    EXPECT_EQ(1u, calls);
    EXPECT_EQ(1u, w->invalidates);
}

/*
 * The decorator has the last word
 */

class test_limits_domain : public test_decorator {
protected:
    /* Bytes that all domains together may have */
    void share(fake_lower &lower, size_t *left)
    {
        lower.on_reg = [left](void*, size_t length) {
            if (length > *left) {
                return UCS_ERR_IO_ERROR; /* so says the verbs domain of 1.13 */
            }
            *left -= length;
            return UCS_OK;
        };
        lower.on_dereg = [left](void*, size_t length) { *left += length; };
    }
};

TEST_F(test_limits_domain, other_domains_give_way)
{
    fake_lower one, two;
    size_t left = 4 * TEST_LENGTH;

    share(one, &left);
    share(two, &left);
    attach(one);
    attach(two);
    std::vector<void*> buffers;
    for (int i = 0; i < 4; ++i) {
        buffers.push_back(map(nullptr));
        EXPECT_EQ(UCS_OK, dereg(one, reg(one, buffers[i], TEST_LENGTH)));
    }
    EXPECT_EQ(0u, left);
    uct_mem_h memh = reg(two, m_buffer, TEST_LENGTH);
    EXPECT_EQ(3 * TEST_LENGTH, left);
    EXPECT_EQ(UCS_OK, dereg(two, memh));
    close(one);
    close(two);
    for (void *buffer : buffers) {
        munmap(buffer, TEST_LENGTH);
    }
    EXPECT_EQ(4 * TEST_LENGTH, left);
}

/* What they fail with is not told: the caller has a way left */
TEST_F(test_limits_domain, the_caches_own_registrations_are_quiet)
{
    attach(lower);
    uct_mem_h memh = reg(lower, m_buffer, TEST_LENGTH, access);
    EXPECT_EQ(access | UCT_MD_MEM_FLAG_HIDE_ERRORS, lower.find(memh).flags);
    EXPECT_EQ(UCS_OK, dereg(lower, memh));
}

TEST_F(test_limits_domain, what_fails_would_have_failed_without_us)
{
    uct_mem_h memh = nullptr;

    attach(lower);
    /* The last word is the domain's own, with the caller's own flags */
    lower.fail_reg(UCS_ERR_NO_MEMORY, 2);
    memh = reg(lower, m_buffer, TEST_LENGTH, access);
    EXPECT_EQ(unsigned(access), lower.find(memh).flags);
    EXPECT_EQ(UCS_OK, dereg(lower, memh));
    EXPECT_FALSE(lower.is_live(memh));

    lower.fail_reg(UCS_ERR_NO_MEMORY, 3);
    EXPECT_EQ(UCS_ERR_NO_MEMORY,
              ops(lower)->mem_reg(lower.md(), m_buffer, TEST_LENGTH, access,
                                  &memh));
    close(lower);
    EXPECT_EQ(0u, lower.live_count());
}

TEST_F(test_limits_domain, registration_that_fails_at_random)
{
    unsigned seed = 7, refused = 0;

    lower.on_reg = [&](void*, size_t) {
        seed = seed * 1103515245 + 12345;
        return ((seed >> 16) % 4 == 0) ? UCS_ERR_IO_ERROR : UCS_OK;
    };
    m_config.policy = UCS_REGCACHE_POLICY_PAPER;
    attach(lower);
    for (int i = 0; i < 5000; ++i) {
        uct_mem_h memh;
        if (ops(lower)->mem_reg(lower.md(), m_buffer, TEST_LENGTH, access,
                                &memh) == UCS_OK) {
            EXPECT_EQ(UCS_OK, dereg(lower, memh));
        } else {
            ++refused;
        }
    }
    /* Three in a row: one in 64 of those that get as far as the domain */
    EXPECT_LE(refused, 5000u / 16);
    close(lower);
    EXPECT_EQ(0u, lower.live_count());
}

/*
 * Mappings
 */

class test_trust : public ::testing::Test {
protected:
    void SetUp() override
    {
        uct_helper_trust_forget();
    }

    void TearDown() override
    {
        uct_helper_trust_set_limit(0);
        uct_helper_trust_forget();
    }

    /* Counts at the time that was said last, by this limit */
    static bool is_near_by(long limit)
    {
        uint64_t next;

        uct_helper_trust_set_limit(limit);
        (void)uct_helper_trust_is_near(&next);
        uct_helper_trust_step(next);
        return uct_helper_trust_is_near(&next);
    }

    long         m_count = ucs_maps_count(0, UINTPTR_MAX);
    log_capture  m_log;
};

TEST_F(test_trust, near_begins_and_ends_apart)
{
    uint64_t next;

    EXPECT_FALSE(is_near_by(2 * m_count));
    EXPECT_FALSE(uct_helper_trust_is_near(&next));
    EXPECT_GE(next, 1000 * MS);
    uct_helper_trust_set_limit(m_count + m_count / 16);
    uct_helper_trust_step(next - 1);
    EXPECT_FALSE(uct_helper_trust_is_near(&next)) << "too soon";
    EXPECT_TRUE(is_near_by(m_count + m_count / 16));
    EXPECT_TRUE(is_near_by(m_count + m_count / 16));
    EXPECT_EQ(1u, m_log.lines().size()) << "said once";
    /* One fifth free: not near any more for one that was not, but it was */
    EXPECT_TRUE(is_near_by(m_count + m_count / 4));
    EXPECT_FALSE(is_near_by(2 * m_count));
    EXPECT_FALSE(is_near_by(m_count + m_count / 4));
}

/* A second is too long for a program that is fast */
TEST_F(test_trust, so_many_watches_are_counted_as_well)
{
    long spare = 0;

    ASSERT_FALSE(is_near_by(2 * m_count));
    uct_helper_trust_set_limit(m_count); /* read when it is counted again */
    while (uct_helper_trust_watched()) {
        ASSERT_LT(++spare, m_count);
    }
    /* From one half in use to seven eighths of the limit, two mappings each */
    EXPECT_NEAR(2 * m_count * 3 / 8 / 2, spare, 8);
    EXPECT_FALSE(uct_helper_trust_watched());
}

TEST_F(test_limits_domain, near_the_limit_of_mappings_nothing_is_kept)
{
    const time_t end = time(nullptr) + 15;
    log_capture log;

    m_config.policy   = UCS_REGCACHE_POLICY_PAPER;
    m_config.min_size = 4096;
    uct_helper_trust_set_limit(1);
    uct_helper_trust_forget(); /* it is time to count */
    attach(lower);
    /* Soon each deregistration reaches the domain before it returns */
    unsigned in_a_row = 0;
    while ((in_a_row < 100) && (time(nullptr) < end)) {
        dereg(lower, reg(lower, m_buffer, TEST_LENGTH));
        in_a_row = (lower.live_count() == 0) ? in_a_row + 1 : 0;
    }
    EXPECT_EQ(100u, in_a_row);
    unsigned before = lower.dereg_count();
    for (int i = 0; i < 50; ++i) {
        dereg(lower, reg(lower, m_buffer, TEST_LENGTH));
    }
    EXPECT_EQ(before + 50, lower.dereg_count());

    /* And when there is room again it goes on as before */
    uct_helper_trust_set_limit(0);
    while ((lower.dereg_count() >= lower.reg_count()) &&
           (time(nullptr) < end)) {
        dereg(lower, reg(lower, m_buffer, TEST_LENGTH));
    }
    EXPECT_LT(time(nullptr), end);
    close(lower);
    ASSERT_EQ(1u, log.lines().size());
    EXPECT_NE(std::string::npos, log.lines()[0].find("vm.max_map_count=1 "))
            << log.lines()[0];
}

/* Windows of memory that others reach are in use for as long as the job: what is idle is
 * found behind them, however many there are */
TEST_F(test_limits, what_is_in_use_for_long_does_not_hide_what_is_idle)
{
    ucs_regcache_tuning_t tuning = ucs_regcache_tuning_default;

    tuning.lot = 8;
    for (auto policy : {UCS_REGCACHE_POLICY_PREDICT, UCS_REGCACHE_POLICY_LRU}) {
        std::vector<ucs_regcache_memh_t> windows;

        w                    = std::make_unique<regcache_world>(policy);
        w->params.max_pinned = 34 * MB;
        w->params.tuning     = &tuning;
        w->open();
        for (unsigned i = 0; i < 32; ++i) {
            windows.push_back(w->get(buffer(i), MB));
            w->advance(MS);
        }
        for (unsigned i = 32; i < 52; ++i) {
            w->use(buffer(i), MB, MS);
            w->advance(MS);
        }
        EXPECT_EQ(0u, w->stats().over_ceiling);
        EXPECT_EQ(34 * MB, w->stats().pinned_peak_bytes);
        for (ucs_regcache_memh_t memh : windows) {
            w->put(memh);
        }
        w->close();
    }
}
