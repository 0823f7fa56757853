/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <uct/ib/helper_md/site.h>

#include <gtest/gtest.h>

#include <thread>
#include <vector>

/* One call in the source must be one return address: no loop is peeled */
#pragma GCC optimize("O0")

class test_site : public ::testing::Test {
protected:
    void SetUp() override
    {
        ASSERT_EQ(UCS_OK, uct_helper_site_create(&m_site));
    }

    void TearDown() override
    {
        uct_helper_site_destroy(m_site);
    }

    uct_helper_site_stats_t stats()
    {
        uct_helper_site_stats_t result;

        uct_helper_site_stats(m_site, &result);
        return result;
    }

    uct_helper_site_h m_site;
};

/* Two call sites; the result is used after the call, so that neither can be a
 * jump that leaves no frame */
static __attribute__((noinline)) uint64_t
one_way(uct_helper_site_h site, uintptr_t sp, uintptr_t address, size_t length)
{
    volatile uint64_t path = uct_helper_site_walk(site, sp, address, length);
    return path;
}

static __attribute__((noinline)) uint64_t
other_way(uct_helper_site_h site, uintptr_t sp, uintptr_t address,
          size_t length)
{
    volatile uint64_t path = uct_helper_site_walk(site, sp, address, length);
    asm volatile("nop");
    return path;
}

TEST_F(test_site, same_path_same_signature)
{
    uint64_t paths[2];
    volatile int count = 2; /* one call, not one for each turn */

    for (int i = 0; i < count; ++i) {
        paths[i] = one_way(m_site, 0x1000 + i, 0x2000, 64);
    }

    EXPECT_EQ(paths[0], paths[1]);
    EXPECT_NE(0u, paths[0]);
    EXPECT_EQ(2u, stats().walks);
}

TEST_F(test_site, other_path_other_signature)
{
    EXPECT_NE(one_way(m_site, 0x1000, 0x2000, 64),
              other_way(m_site, 0x1001, 0x2000, 64));
}

TEST_F(test_site, recalled_without_a_walk)
{
    EXPECT_EQ(0u, uct_helper_site_recall(m_site, 0x1000, 0x2000, 64));
    const uint64_t path = one_way(m_site, 0x1000, 0x2000, 64);
    EXPECT_EQ(path, uct_helper_site_recall(m_site, 0x1000, 0x2000, 64));
    EXPECT_EQ(1u, stats().walks);
}

TEST_F(test_site, key_is_stack_address_and_length)
{
    one_way(m_site, 0x1000, 0x2000, 64);
    EXPECT_EQ(0u, uct_helper_site_recall(m_site, 0x1008, 0x2000, 64));
    EXPECT_EQ(0u, uct_helper_site_recall(m_site, 0x1000, 0x2008, 64));
    EXPECT_EQ(0u, uct_helper_site_recall(m_site, 0x1000, 0x2000, 65));
}

TEST_F(test_site, a_further_walk_confirms)
{
    volatile int count = 10;

    for (int i = 0; i < count; ++i) {
        one_way(m_site, 0x1000, 0x2000, 64);
    }
    EXPECT_EQ(10u, stats().walks);
    EXPECT_EQ(9u, stats().confirmed);
    EXPECT_EQ(0u, stats().corrected);
}

TEST_F(test_site, corrected_when_another_path_has_the_key)
{
    const uint64_t one   = one_way(m_site, 0x1000, 0x2000, 64);
    const uint64_t other = other_way(m_site, 0x1000, 0x2000, 64);

    EXPECT_NE(one, other);
    EXPECT_EQ(1u, stats().corrected);
    EXPECT_EQ(other, uct_helper_site_recall(m_site, 0x1000, 0x2000, 64));
}

/* Far more keys than entries, from several threads: whatever is torn or
 * replaced, the answer is that of the caller's own path */
TEST_F(test_site, stress_never_answers_for_another_key)
{
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "libunwind locks a mutex at the end of a thread, after "
                    "ThreadSanitizer has taken leave of the thread";
#endif
    std::vector<std::thread> threads;

    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([this, t] {
            uint64_t path[2] = {0, 0};
            for (uintptr_t i = 0; i < 60000; ++i) {
                const int odd       = i & 1;
                const uintptr_t key = (i * 7919) % 9000;
                const uint64_t got  = odd ?
                        other_way(m_site, 0x10000 + t, (key << 1) | 1, 64) :
                        one_way(m_site, 0x10000 + t, key << 1, 64);
                const uint64_t recalled = uct_helper_site_recall(
                        m_site, 0x10000 + t, (key << 1) | odd, 64);
                if (path[odd] == 0) {
                    path[odd] = got;
                }
                /* 0: another thread has taken the place since */
                if ((recalled != 0) && (recalled != path[odd])) {
                    ADD_FAILURE() << "thread " << t << " recalled at " << i;
                    return;
                }
                if ((got != path[odd]) || (path[0] == path[1])) {
                    ADD_FAILURE() << "thread " << t << " step " << i;
                    return;
                }
            }
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    EXPECT_EQ(0u, stats().corrected);
}
