/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "regcache_fixture.h"

#include <thread>

/*
 * What a use reads and writes
 */
class test_use : public test_regcache {
protected:
    static constexpr uint64_t US  = 1000;
    static constexpr uint64_t REG = regcache_world::REG_BASE_NS +
                                    regcache_world::REG_PAGE_NS * 256;

    /* The registration and as many short uses as it takes until not every end
     * is read off the clock */
    void settle()
    {
        for (unsigned i = 0; i < 18; ++i) {
            w->use(buffer(0), MB, US);
        }
        m_in_use = w->stats().in_use_byte_ns;
        m_reads  = w->reads;
    }

    /* Since settle() */
    uint64_t in_use_ns()
    {
        return (w->stats().in_use_byte_ns - m_in_use) / MB;
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
    start(UCS_REGCACHE_POLICY_LEAVE_PINNED);
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
    EXPECT_EQ(19 * US, in_use_ns()) << "as long as the latest that was read";
}

TEST_F(test_use, a_long_one_is_timed_and_those_after_it)
{
    start(UCS_REGCACHE_POLICY_LEAVE_PINNED);
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
    start(UCS_REGCACHE_POLICY_LEAVE_PINNED);
    settle();
    w->use(buffer(1), MB, MS);
    m_reads = w->reads;
    for (unsigned i = 1; i < 100; ++i) {
        w->use(buffer(1), MB, i * 50 * US);
        EXPECT_EQ(2 * i + 1, reads()) << "one more is a sample of a hit";
    }
}

TEST_F(test_use, one_of_several_users_is_timed)
{
    start(UCS_REGCACHE_POLICY_LEAVE_PINNED);
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
    start(UCS_REGCACHE_POLICY_LEAVE_PINNED);
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
