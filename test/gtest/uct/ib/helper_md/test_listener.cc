/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/regcache/regcache_world.h>

#include <uct/ib/helper_md/watch/events.h>

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <thread>

#include <sys/mman.h>
#include <unistd.h>

/* A cache whose clock can hold up a thread that reads it: an event reads it
 * before it takes a lock */
class test_listener : public ::testing::Test {
protected:
    static constexpr size_t MB = 1 << 20;

    void SetUp() override
    {
#if defined(__SANITIZE_THREAD__)
        GTEST_SKIP() << "UCM's hooks and ThreadSanitizer exclude each other";
#endif
        const char *reason;

        ASSERT_EQ(UCS_OK, uct_helper_events_check(&reason));
        m_world.on_claim   = [this](auto&&...) {
            if (m_in_claim) {
                m_in_claim();
            }
            return true;
        };
        m_world.on_unclaim = [](auto&&...) {};
        m_world.open();
    }

    regcache_world        m_world{UCS_REGCACHE_POLICY_PAPER};
    std::function<void()> m_in_claim; /* runs under the cache's index lock */
};

static std::atomic<int> events_inside{0};
static std::atomic<int> events_hold{0};
static std::atomic<int> events_left{0};
static std::atomic<int> events_left_inside{0};

static uint64_t events_clock(void*)
{
    /* Long enough for one that does not wait, however busy the machine */
    for (int i = 0; events_hold && !events_left && (i < 200000); ++i) {
        events_inside = 1;
        std::this_thread::yield();
    }
    if (events_hold && events_left) {
        events_left_inside = 1;
    }
    return 1;
}

TEST_F(test_listener, leave_waits_for_an_event_that_is_inside)
{
    ucs_regcache_params_t params = m_world.params;
    ucs_regcache_env_t env       = {};
    ucs_regcache_h cache;

    env.now  = events_clock;
    env.wake = [](void*) {};
    ASSERT_EQ(UCS_OK, ucs_regcache_create(&params, &env, &cache));
    ASSERT_EQ(UCS_OK, uct_helper_events_join(cache));
    void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                      0);
    ASSERT_NE(MAP_FAILED, page);

    events_inside = events_left = events_left_inside = 0;
    std::thread closer([&]() {
        while (!events_inside) {
            std::this_thread::yield();
        }
        uct_helper_events_leave(cache);
        events_left = 1;
    });
    std::thread unmapper([&]() {
        events_hold = 1;
        munmap(page, 4096);
        events_hold = 0;
    });
    unmapper.join();
    closer.join();
    ucs_regcache_destroy(cache);
    EXPECT_TRUE(events_inside);
    EXPECT_FALSE(events_left_inside);
}

static ucs_regcache_h events_interrupted;

static void events_unmap_in_handler(int)
{
    ucs_regcache_unmapped(events_interrupted, 0x10000000, 4096);
}

TEST_F(test_listener, signal_inside_the_lock_leaves_a_mark)
{
    struct sigaction action = {};
    struct sigaction old_user, old_alarm;

    m_world.touch(0x10000000, MB);
    ASSERT_EQ(1u, m_world.regs);

    /* A thread that waits for itself is ended by the alarm */
    action.sa_handler = events_unmap_in_handler;
    sigaction(SIGUSR1, &action, &old_user);
    action.sa_handler = SIG_DFL;
    sigaction(SIGALRM, &action, &old_alarm);
    alarm(20);
    events_interrupted = m_world.cache;
    m_in_claim = []() { raise(SIGUSR1); };
    m_world.touch(0x20000000, MB);
    m_in_claim = nullptr;
    ASSERT_EQ(2u, m_world.regs);
    alarm(0);
    sigaction(SIGUSR1, &old_user, NULL);
    sigaction(SIGALRM, &old_alarm, NULL);

    m_world.touch(0x10000000, MB);
    EXPECT_EQ(3u, m_world.regs) << "found what was unmapped";
}

TEST_F(test_listener, hint_of_a_doomed_region_is_no_hit)
{
    m_world.touch(0x10000000, MB);
    m_world.touch(0x10000000, MB); /* leaves a hint */
    ucs_regcache_memh_t first = m_world.get(0x10000000, MB);
    ucs_regcache_unmapped(m_world.cache, 0x10000000, 4096);
    ucs_regcache_memh_t second = m_world.get(0x10000000, MB);
    EXPECT_NE(first, second) << "found what was unmapped";
    m_world.put(first);
    m_world.put(second);
}

TEST_F(test_listener, superseded_region_in_use_stays_registered)
{
    ucs_regcache_memh_t small = m_world.get(0x10000000, MB);
    ucs_regcache_memh_t large = m_world.get(0x10000000, 2 * MB);
    EXPECT_EQ(0u, m_world.deregs) << "deregistered under its user";
    m_world.put(large);
    m_world.put(small);
}
