/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "regcache_world.h"

#include <thread>

/* The cache and what it asks about memory; the gate of events that are read */
class test_inspect : public ::testing::Test {
protected:
    static constexpr uintptr_t A      = 0x10000000;
    static constexpr size_t    LENGTH = 64 << 10;
    static constexpr uint64_t  PERIOD = 10000000;

    explicit test_inspect(
            ucs_regcache_policy_t policy = UCS_REGCACHE_POLICY_PAPER)
        : m_world(policy)
    {
        m_world.on_inspect = [this](unsigned flags, uintptr_t *start_p,
                                    uintptr_t *end_p) {
            m_flags = flags;
            ++m_questions;
            m_speculations += !!(flags & UCS_REGCACHE_INSPECT_SPECULATE);
            EXPECT_EQ(0u, *start_p % regcache_world::PAGE);
            EXPECT_EQ(0u, *end_p % regcache_world::PAGE);
            if (m_on_question) {
                m_on_question();
            }
            *end_p += m_more;
            return (flags & UCS_REGCACHE_INSPECT_SPECULATE) ? m_may_speculate :
                                                              m_may_keep;
        };
        m_world.open();
    }

    /* Regular uses, long enough for the helper to predict the next one */
    void uses(unsigned count)
    {
        for (unsigned i = 0; i < count; ++i) {
            m_is_use = true;
            ucs_regcache_memh_t memh = m_world.get(A, LENGTH);
            m_is_use = false;
            m_world.advance(1000);
            m_world.put(memh);
            m_world.advance(PERIOD);
        }
    }

    regcache_world m_world;
    bool                  m_is_use        = false;
    bool                  m_may_keep      = true;
    bool                  m_may_speculate = true;
    unsigned              m_flags         = 0;
    unsigned              m_questions     = 0;
    unsigned              m_speculations  = 0;
    size_t                m_more          = 0;
    std::function<void()> m_on_question;
};

/* Unless an event has come since it was looked at, or comes afterwards */
TEST_F(test_inspect, what_others_learned_is_not_asked_again)
{
    std::atomic<uint64_t> events{7};

    m_world.put(m_world.get(A - LENGTH, LENGTH)); /* there is room from now on */
    ucs_regcache_learn(m_world.cache, A, A + LENGTH, &events, 6);
    m_world.put(m_world.get(A, LENGTH));
    EXPECT_EQ(0u, m_flags & UCS_REGCACHE_INSPECT_KNOWN);

    ucs_regcache_learn(m_world.cache, A + LENGTH, A + 3 * LENGTH, &events,
                       7);
    m_world.put(m_world.get(A + LENGTH, LENGTH));
    EXPECT_NE(0u, m_flags & UCS_REGCACHE_INSPECT_KNOWN);

    ucs_regcache_unmapped(m_world.cache, A + 2 * LENGTH, LENGTH);
    m_world.put(m_world.get(A + 2 * LENGTH, LENGTH));
    EXPECT_EQ(0u, m_flags & UCS_REGCACHE_INSPECT_KNOWN);
}

TEST_F(test_inspect, nothing_is_learned_of_distrusted_memory)
{
    std::atomic<uint64_t> events{0};

    m_world.put(m_world.get(A - LENGTH, LENGTH)); /* as above */
    ucs_regcache_distrust(m_world.cache, UCS_REGCACHE_DISTRUST_VMAS);
    ucs_regcache_learn(m_world.cache, A, A + LENGTH, &events, 0);
    ucs_regcache_trust(m_world.cache, UCS_REGCACHE_DISTRUST_VMAS);
    m_world.put(m_world.get(A, LENGTH));
    EXPECT_EQ(0u, m_flags & UCS_REGCACHE_INSPECT_KNOWN);
}

class test_inspect_pinned : public test_inspect {
protected:
    test_inspect_pinned() : test_inspect(UCS_REGCACHE_POLICY_LEAVE_PINNED)
    {
    }
};

class test_inspect_large : public test_inspect {
protected:
    static constexpr size_t LARGE = 64ul << 20;

    test_inspect_large() : test_inspect(UCS_REGCACHE_POLICY_PREDICT)
    {
        m_may_keep = false;
    }
};

/* The thread that ends the use does not wait, and nobody finds it any more */
TEST_F(test_inspect_large, goes_in_the_background)
{
    m_world.put(m_world.get(A, LARGE));
    EXPECT_EQ(0u, m_world.deregs);
    EXPECT_LT(0u, m_world.wakes);
    EXPECT_FALSE(ucs_regcache_has_region(m_world.cache, A, A + LARGE));

    /* Unmapped at once: the registration ends once */
    ucs_regcache_unmapped(m_world.cache, A, LARGE);
    m_world.advance(1);
    EXPECT_EQ(1u, m_world.deregs);
    EXPECT_EQ(0u, m_world.stats().pinned_bytes);

    m_world.put(m_world.get(A, LARGE));
    EXPECT_EQ(2u, m_world.regs);
}

TEST_F(test_inspect_large, a_user_that_comes_meanwhile_keeps_it)
{
    ucs_regcache_memh_t first  = m_world.get(A, LARGE);
    ucs_regcache_memh_t second = m_world.get(A, LARGE);

    m_world.put(first);
    m_world.advance(1);
    EXPECT_TRUE(m_world.is_registered(A, LARGE));
    m_world.put(second);
    EXPECT_TRUE(m_world.is_registered(A, LARGE));
    m_world.advance(1);
    EXPECT_FALSE(m_world.is_registered(A, LARGE));
}

/* What nobody has deregistered yet is not held against those who register */
TEST_F(test_inspect_large, a_use_that_registers_does_not_pile_it_up)
{
    m_world.put(m_world.get(A, LARGE));
    m_world.put(m_world.get(A + LARGE, LARGE));
    EXPECT_EQ(1u, m_world.deregs);
    EXPECT_GE(2 * LARGE, m_world.stats().pinned_peak_bytes);
}

TEST_F(test_inspect_large, by_the_caller_if_it_is_small_or_without_a_helper)
{
    m_world.put(m_world.get(A, LARGE - regcache_world::PAGE));
    EXPECT_EQ(1u, m_world.deregs);
    ucs_regcache_helper_refused(m_world.cache);
    m_world.put(m_world.get(A, LARGE));
    EXPECT_EQ(2u, m_world.deregs);
}

TEST_F(test_inspect_pinned, what_may_not_be_kept_goes_with_its_last_user)
{
    m_may_keep = false;
    for (unsigned i = 1; i <= 3; ++i) {
        ucs_regcache_memh_t first  = m_world.get(A, LENGTH);
        ucs_regcache_memh_t second = m_world.get(A, LENGTH);
        EXPECT_EQ(first, second);
        m_world.put(first);
        EXPECT_TRUE(m_world.is_registered(A, LENGTH));
        m_world.put(second);
        EXPECT_FALSE(m_world.is_registered(A, LENGTH));
        EXPECT_EQ(i, m_world.regs);
    }
}

TEST_F(test_inspect_pinned, small_buffers_are_asked_about_too)
{
    m_may_keep = false;
    m_world.touch(A, 64);
    EXPECT_FALSE(m_world.is_registered(A, 64));
    m_may_keep = true;
    m_world.touch(A + LENGTH, 64);
    EXPECT_TRUE(m_world.is_registered(A + LENGTH, 64));
}

TEST_F(test_inspect_pinned, hits_ask_nothing)
{
    m_world.touch(A, LENGTH);
    EXPECT_EQ(1u, m_questions);
    for (int i = 0; i < 100; ++i) {
        m_world.touch(A, LENGTH);
    }
    EXPECT_EQ(1u, m_questions);
    EXPECT_EQ(1u, m_world.regs);
}

TEST_F(test_inspect_pinned, an_answer_holds_for_the_mapping_until_an_event)
{
    m_more = LENGTH;
    m_world.touch(A, LENGTH);
    EXPECT_EQ(0u, m_flags & UCS_REGCACHE_INSPECT_KNOWN);
    m_world.touch(A + LENGTH, LENGTH);
    EXPECT_NE(0u, m_flags & UCS_REGCACHE_INSPECT_KNOWN);
    ucs_regcache_unmapped(m_world.cache, A, LENGTH);
    m_world.touch(A, LENGTH);
    EXPECT_EQ(0u, m_flags & UCS_REGCACHE_INSPECT_KNOWN);
}

TEST_F(test_inspect_pinned, a_no_is_remembered_until_an_event)
{
    m_may_keep = false;
    m_world.touch(A, LENGTH);
    m_world.touch(A, LENGTH);
    EXPECT_EQ(1u, m_questions);
    m_may_keep = true;
    ucs_regcache_unmapped(m_world.cache, A, LENGTH);
    m_world.touch(A, LENGTH);
    EXPECT_EQ(2u, m_questions);
    EXPECT_TRUE(m_world.is_registered(A, LENGTH));
}

/* The answer may be about what was there before */
TEST_F(test_inspect_pinned, an_answer_that_an_event_overtook_is_not_kept)
{
    m_on_question = [this] {
        m_on_question = nullptr;
        ucs_regcache_unmapped(m_world.cache, A, LENGTH);
    };
    m_world.touch(A, LENGTH);
    m_world.touch(A, LENGTH);
    EXPECT_EQ(2u, m_questions);
    EXPECT_EQ(0u, m_flags & UCS_REGCACHE_INSPECT_KNOWN);
}

TEST_F(test_inspect, speculation_asks_each_time)
{
    uses(12);
    EXPECT_GT(m_speculations, 4u);
    EXPECT_GT(m_world.stats().on_time, 4u);
}

TEST_F(test_inspect, what_is_not_to_be_speculated_on_waits_for_its_use)
{
    m_may_speculate = false;
    uses(12);
    EXPECT_GT(m_speculations, 0u);
    EXPECT_EQ(0u, m_world.stats().on_time);
    EXPECT_EQ(12u, m_world.regs);
    EXPECT_FALSE(m_world.is_registered(A, LENGTH));
}

TEST_F(test_inspect, what_may_not_be_kept_is_never_speculated_on)
{
    m_may_keep = false;
    uses(12);
    EXPECT_EQ(0u, m_speculations);
    EXPECT_EQ(12u, m_world.regs);
}

/* Read-only memory, for one, that a use may have and the helper's registration,
 * with the access of all users before, may not */
TEST_F(test_inspect, refusals_are_not_tried_again_at_each_use)
{
    unsigned refused = 0;

    m_world.on_reg = [&](regcache_world::registration) {
        if (m_is_use) {
            return UCS_OK;
        }
        ++refused;
        return UCS_ERR_INVALID_ADDR;
    };
    uses(300);
    EXPECT_GE(refused, 3u);
    EXPECT_LE(refused, 12u);
    EXPECT_EQ(300u, m_world.regs);
    EXPECT_EQ(0u, m_world.stats().on_time);

    /* In the end it is tried again */
    m_world.on_reg = nullptr;
    uses(1100);
    EXPECT_GT(m_world.stats().on_time, 4u);
}

TEST_F(test_inspect, what_is_refused_by_kind_is_not_asked_about_at_each_use)
{
    m_may_speculate = false;
    uses(300);
    EXPECT_GE(m_speculations, 3u);
    EXPECT_LE(m_speculations, 12u);
}

/* It was predictable memory, and then something else was mapped there */
TEST_F(test_inspect, a_change_of_mind_ends_speculation)
{
    uses(12);
    EXPECT_GT(m_world.stats().on_time, 4u);
    m_may_keep = m_may_speculate = false;
    ucs_regcache_unmapped(m_world.cache, A, LENGTH);
    m_world.advance(PERIOD);
    unsigned long on_time = m_world.stats().on_time;
    uses(12);
    EXPECT_EQ(on_time, m_world.stats().on_time);
    EXPECT_FALSE(m_world.is_registered(A, LENGTH));
}

/*
 * Gate
 */

TEST_F(test_inspect_pinned, a_hit_waits_for_the_strike)
{
    unsigned waits = 0;

    m_world.touch(A, LENGTH);
    m_world.touch(A, LENGTH); /* from now on without the lock */
    m_world.on_wait = [&] {
        ++waits;
        ASSERT_TRUE(ucs_regcache_try_unmapped(m_world.cache, A, LENGTH, 0));
        ucs_regcache_gate_open(m_world.cache);
    };
    ucs_regcache_gate_shut(m_world.cache);
    m_world.touch(A, LENGTH);
    EXPECT_EQ(1u, waits);
    EXPECT_EQ(2u, m_world.regs);
    m_world.touch(A, LENGTH);
    EXPECT_EQ(1u, waits);
    EXPECT_EQ(2u, m_world.regs);
}

TEST_F(test_inspect_pinned, an_early_wake_up_waits_again)
{
    unsigned waits = 0;

    m_world.touch(A, LENGTH);
    m_world.on_wait = [&] {
        if (++waits == 3) {
            ucs_regcache_gate_open(m_world.cache);
        }
    };
    ucs_regcache_gate_shut(m_world.cache);
    ucs_regcache_gate_shut(m_world.cache);
    m_world.touch(A, LENGTH);
    EXPECT_EQ(3u, waits);
    EXPECT_EQ(1u, m_world.regs);
}

TEST_F(test_inspect_pinned, the_end_of_a_use_does_not_wait)
{
    ucs_regcache_memh_t memh = m_world.get(A, LENGTH);

    m_world.on_wait = [] { FAIL() << "waited"; };
    ucs_regcache_gate_shut(m_world.cache);
    m_world.put(memh);
    ucs_regcache_gate_open(m_world.cache);
}

/* A thread between fork's handlers holds the lock and may unmap */
TEST_F(test_inspect_pinned, the_reader_does_not_wait_for_the_lock)
{
    m_world.touch(A, LENGTH);
    ucs_regcache_lock(m_world.cache);
    int passed = 1;
    std::thread([&] {
        passed = ucs_regcache_try_unmapped(m_world.cache, A, LENGTH, 0);
    }).join();
    EXPECT_FALSE(passed);
    ucs_regcache_unlock(m_world.cache);
    EXPECT_TRUE(ucs_regcache_try_unmapped(m_world.cache, A, LENGTH, 0));
    m_world.touch(A, LENGTH);
    EXPECT_EQ(2u, m_world.regs);
}
