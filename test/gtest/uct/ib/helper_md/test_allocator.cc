/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "decorator_fixture.h"

#include <ucs/sys/clock.h>

#include <cstdlib>

#include <malloc.h>
#include <pthread.h>

/*
 * Memory events from inside the allocator: glibc gives memory back with the
 * lock of its arena held. A thread that allocates in such an event waits for
 * itself, which the alarm of the child ends.
 */

class test_allocator : public test_decorator {
protected:
    static const size_t block_size = 8ul << 20;

    void SetUp() override
    {
        test_decorator::SetUp();
#if defined(__SANITIZE_ADDRESS__)
        if (!IsSkipped()) {
            GTEST_SKIP() << "the allocator is the sanitizer's";
        }
#endif
        m_config.monitor = UCT_HELPER_MONITOR_UCM;
    }

    static void *wait_for_ever(void *arg)
    {
        return (pthread_mutex_lock((pthread_mutex_t*)arg), nullptr);
    }

    /* With a single thread glibc takes no lock */
    static void start_thread()
    {
        static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        pthread_t thread;

        pthread_mutex_lock(&mutex);
        EXPECT_EQ(0, pthread_create(&thread, nullptr, wait_for_ever, &mutex));
    }

    static unsigned long struck(fake_lower &lower)
    {
        ucs_regcache_stats_t stats;

        ucs_regcache_stats(uct_helper_md_cache(lower.md()), ucs_clock_now(),
                           &stats);
        return stats.invalidated;
    }

    /* Part of the block, in the middle of whole pages */
    static void use(fake_lower &lower, char *block)
    {
        memset(block, 1, block_size);
        EXPECT_EQ(UCS_OK, dereg(lower, reg(lower, block + block_size / 2,
                                           TEST_LENGTH)));
    }

    /* Give a block of the heap back to the system, as @a release does it */
    void give_back(bool is_on_top, const std::function<void()> &release)
    {
        auto child = [&] {
            fake_lower lower;

            mallopt(M_MMAP_THRESHOLD, 1 << 30);
            mallopt(M_TRIM_THRESHOLD, 1 << 30);
            mallopt(M_ARENA_MAX, 1);
            start_thread();
            attach(lower);
            char *block = (char*)malloc(block_size);
            void *above = is_on_top ? nullptr : malloc(64);
            use(lower, block);
            free(block);
            release();
            int is_good = struck(lower) > 0;
            free(above);
            close(lower);
            return is_good && !HasFailure() ? 0 : 1;
        };

        EXPECT_EQ(0, in_child(child));
    }
};

TEST_F(test_allocator, discards_under_its_lock)
{
    give_back(false, [] { malloc_trim(0); });
}

TEST_F(test_allocator, shrinks_the_heap_under_its_lock)
{
    give_back(true, [] { malloc_trim(0); });
}
