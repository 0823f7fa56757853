/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "regcache_fixture.h"

#include <thread>

/*
 * What a use reads, writes and loses; what is lost by which cause is test_why's
 */
class test_use : public test_regcache {
protected:
    static constexpr uint64_t US  = 1000;
    static constexpr uint64_t REG = regcache_world::REG_BASE_NS +
                                    regcache_world::REG_PAGE_NS * 256;
    static constexpr uint64_t DEREG = REG / 3;

    /* The registration and as many short uses as it takes until not every end
     * is read off the clock */
    void settle()
    {
        start(UCS_REGCACHE_POLICY_LEAVE_PINNED);
        for (unsigned i = 0; i < 18; ++i) {
            w->use(buffer(0), MB, US);
        }
        m_in_use = w->stats().why.held_byte_ns[UCS_REGCACHE_HELD_IN_USE];
        m_reads  = w->reads;
    }

    /* Since settle() */
    uint64_t in_use_ns()
    {
        return (w->stats().why.held_byte_ns[UCS_REGCACHE_HELD_IN_USE] - m_in_use) / MB;
    }

    unsigned reads()
    {
        return w->reads - m_reads;
    }

    double   m_in_use = 0;
    unsigned m_reads  = 0;
};

TEST_F(test_use, a_short_one_reads_the_clock_once)
{
    settle();
    for (unsigned i = 0; i < 15; ++i) {
        w->use(buffer(0), MB, US);
    }
    EXPECT_EQ(15u, reads());
    EXPECT_EQ(15 * US, in_use_ns());
    w->use(buffer(0), MB, 2 * US);
    EXPECT_EQ(17u, reads()) << "one end in so many is read";
    w->use(buffer(0), MB, US);
    EXPECT_EQ(18u, reads());
    EXPECT_EQ(18 * US, in_use_ns()) << "no longer than it is held";
    w->advance(US);
    EXPECT_EQ(19 * US, in_use_ns()) << "as long as the latest that was read";
}

TEST_F(test_use, a_long_one_is_timed_and_those_after_it)
{
    settle();
    for (unsigned i = 0; i < 15; ++i) {
        w->use(buffer(0), MB, US);
    }
    w->use(buffer(0), MB, MS);
    EXPECT_EQ(MS + 15 * US, in_use_ns());
    for (unsigned i = 1; i <= 16; ++i) {
        w->use(buffer(0), MB, i * 100);
        EXPECT_EQ(15 + 2 + 2 * i, reads());
    }
}

TEST_F(test_use, long_ones_are_all_timed)
{
    settle();
    w->use(buffer(1), MB, MS);
    m_reads = w->reads;
    for (unsigned i = 1; i < 100; ++i) {
        w->use(buffer(1), MB, i * 50 * US);
        EXPECT_EQ(2 * i, reads());
    }
}

TEST_F(test_use, one_of_several_users_is_timed)
{
    settle();
    ucs_regcache_memh_t first  = w->get(buffer(0), MB);
    ucs_regcache_memh_t second = w->get(buffer(0), MB);
    w->put(first);
    w->advance(MS);
    w->put(second);
    EXPECT_EQ(MS, in_use_ns());
}

TEST_F(test_use, each_buffer_is_timed_by_itself)
{
    settle();
    for (unsigned i = 0; i < 10; ++i) {
        w->use(buffer(0), MB, US);
        w->use(buffer(1), MB, MS);
    }
    EXPECT_EQ(10 * (MS + US) + REG, in_use_ns());
}

/* One thread counts in a word of its own, the others in another: the peak is
 * that of both */
TEST_F(test_use, peak_is_of_all_threads)
{
    ucs_regcache_memh_t memh[3];

    start(UCS_REGCACHE_POLICY_LEAVE_PINNED);
    memh[0] = w->get(buffer(0), MB);
    std::thread([&] { memh[1] = w->get(buffer(1), 2 * MB); }).join();
    EXPECT_EQ(3 * MB, w->stats().in_use_peak_bytes);
    /* Each gives back what is the other's */
    std::thread([&] { w->put(memh[0]); }).join();
    w->put(memh[1]);
    EXPECT_EQ(3 * MB, w->stats().in_use_peak_bytes);
    memh[2] = w->get(buffer(2), MB);
    std::thread([&] {
        w->put(memh[2]);
        w->touch(buffer(1), 2 * MB);
    }).join();
    EXPECT_EQ(3 * MB, w->stats().in_use_peak_bytes);
    memh[0] = w->get(buffer(0), MB);
    std::thread([&] { memh[1] = w->get(buffer(1), 2 * MB); }).join();
    memh[2] = w->get(buffer(2), MB);
    EXPECT_EQ(4 * MB, w->stats().in_use_peak_bytes);
    for (ucs_regcache_memh_t m : memh) {
        w->put(m);
    }
}

/* The helper hears of the uses of all threads */
TEST_F(test_use, of_any_thread_is_learned)
{
    start(UCS_REGCACHE_POLICY_PAPER);
    for (unsigned i = 0; i < 20; ++i) {
        w->use(buffer(0), MB, 10 * US);
        std::thread([&] { w->touch(buffer(1), MB, 2); }).join();
        w->advance(10 * MS);
    }
    EXPECT_GT(w->stats().on_time, 20u);
}

/*
 * Lost time
 */

TEST_F(test_use, hits_lose_nothing)
{
    start(UCS_REGCACHE_POLICY_LEAVE_PINNED);
    w->use(buffer(0), MB, MS);
    EXPECT_EQ(REG, w->stats().lost_ns);
    for (unsigned i = 0; i < 100; ++i) {
        w->use(buffer(0), MB, MS);
    }
    EXPECT_EQ(REG, w->stats().lost_ns);
    EXPECT_EQ(0u, w->stats().why.lost_ns[UCS_REGCACHE_LOST_WAITED]);
}

TEST_F(test_use, evicting_for_itself_is_lost)
{
    start(UCS_REGCACHE_POLICY_LRU, MB);
    w->use(buffer(0), MB, MS);
    w->use(buffer(1), MB, MS);
    EXPECT_EQ(2 * REG + DEREG, w->stats().lost_ns);
}

/* Two uses at once pass the ceiling, and the first to end puts that right */
TEST_F(test_use, trimming_at_the_end_is_lost)
{
    start(UCS_REGCACHE_POLICY_LRU, MB);
    ucs_regcache_memh_t first  = w->get(buffer(0), MB);
    ucs_regcache_memh_t second = w->get(buffer(1), MB);
    EXPECT_EQ(2 * REG, w->stats().lost_ns);
    w->put(first);
    EXPECT_EQ(2 * REG + DEREG, w->stats().lost_ns);
    w->put(second);
    EXPECT_EQ(2 * REG + DEREG, w->stats().lost_ns);
}

TEST_F(test_use, deregistering_what_was_unmapped_is_lost)
{
    start(UCS_REGCACHE_POLICY_LEAVE_PINNED);
    ucs_regcache_memh_t memh = w->get(buffer(0), MB);
    ucs_regcache_unmapped(w->cache, buffer(0), MB);
    w->put(memh);
    ASSERT_EQ(1u, w->deregs);
    EXPECT_EQ(REG + DEREG, w->stats().lost_ns);
    /* What nobody used is left to the next use that comes the slow way, even
     * if that finds its own region */
    w->touch(buffer(0), 2 * MB);
    w->touch(buffer(1), MB);
    ucs_regcache_unmapped(w->cache, buffer(1), MB);
    uint64_t before = w->stats().lost_ns;
    w->touch(buffer(0) + 4096, MB);
    ASSERT_EQ(2u, w->deregs);
    EXPECT_EQ(before + DEREG, w->stats().lost_ns);
}

/* Short uses have no share in misses, but time is time */
TEST_F(test_use, short_buffers_lose_as_well)
{
    start(UCS_REGCACHE_POLICY_LEAVE_PINNED);
    w->use(buffer(0), 4096, MS);
    EXPECT_EQ(0u, w->stats().uses);
    EXPECT_EQ(regcache_world::REG_BASE_NS + regcache_world::REG_PAGE_NS,
              w->stats().lost_ns);
}

/* A use that waits for another's registration */
TEST_F(test_use, waiting_is_lost_and_late)
{
    std::atomic<bool> is_inside{false}, is_waited_for{false};

    start(UCS_REGCACHE_POLICY_LEAVE_PINNED);
    w->on_reg = [&](regcache_world::registration) {
        is_inside = true;
        while (!is_waited_for) {
            std::this_thread::yield();
        }
        return UCS_OK;
    };
    w->on_wait = [&] {
        if (!is_waited_for) {
            w->now       += 5 * US;
            is_waited_for = true;
        }
        std::this_thread::yield();
    };
    std::thread other([&] { w->touch(buffer(0), MB); });
    while (!is_inside) {
        std::this_thread::yield();
    }
    w->touch(buffer(0), MB);
    other.join();
    EXPECT_EQ(1u, w->stats().late);
    EXPECT_EQ(REG + 5 * US, w->stats().why.lost_ns[UCS_REGCACHE_LOST_WAITED]);
    EXPECT_EQ(2 * (REG + 5 * US), w->stats().lost_ns);
}
