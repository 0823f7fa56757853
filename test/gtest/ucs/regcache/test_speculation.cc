/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "regcache_fixture.h"

#include <thread>
#include <vector>

TEST_F(test_regcache, use_during_speculation_waits_and_counts_as_late)
{
    start(UCS_REGCACHE_POLICY_PAPER);
    use_each_tenth_of_a_second();

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

/* Its pages may be another mapping's by now, and nobody would ever give it up */
TEST_F(test_regcache, speculation_of_what_is_unmapped_meanwhile_is_given_up)
{
    unsigned regs = 0;

    start(UCS_REGCACHE_POLICY_PAPER);
    use_each_tenth_of_a_second();
    w->on_reg = [&](regcache_world::registration) {
        ++regs;
        ucs_regcache_unmapped(w->cache, buffer(0), MB);
        return UCS_OK;
    };
    w->advance(99 * MS);
    w->on_reg = nullptr;
    EXPECT_EQ(1u, regs);
    EXPECT_TRUE(w->live.empty());
}

/* Two wait for a registration that fails: the first to hear of it is not the last */
TEST_F(test_regcache, all_that_wait_for_a_registration_that_fails_register)
{
    std::atomic<unsigned> waiting{0};
    std::atomic<bool> is_inside{false};
    std::atomic<std::thread::id> first;
    std::vector<std::thread> users;

    start(UCS_REGCACHE_POLICY_LEAVE_PINNED);
    w->on_wait = [&]() {
        thread_local bool is_counted = false;
        waiting   += !is_counted;
        is_counted = true;
        std::this_thread::yield();
    };
    w->on_reg = [&](regcache_world::registration) {
        if (std::this_thread::get_id() != first) {
            return UCS_OK;
        }
        is_inside = true;
        while (waiting < 2) {
            std::this_thread::yield();
        }
        return UCS_ERR_IO_ERROR;
    };
    users.emplace_back([&]() {
        ucs_regcache_memh_t memh = nullptr;
        first = std::this_thread::get_id();
        EXPECT_EQ(UCS_ERR_IO_ERROR,
                  ucs_regcache_get(w->cache, (void*)buffer(0), MB,
                                   regcache_world::REMOTE_GET |
                                           regcache_world::REMOTE_PUT,
                                   1, &memh));
    });
    while (!is_inside) {
        std::this_thread::yield();
    }
    users.emplace_back([&]() { w->touch(buffer(0), MB); });
    users.emplace_back([&]() { w->touch(buffer(0), MB); });
    for (auto &user : users) {
        user.join();
    }
    EXPECT_EQ(1u, w->live.size());
}

/* The helper has lost its processor in the middle of a registration */
TEST_F(test_regcache, use_during_a_speculation_that_does_not_end_goes_alone)
{
    ucs_regcache_memh_t memh = nullptr;
    unsigned waits           = 0;

    start(UCS_REGCACHE_POLICY_PAPER);
    use_each_tenth_of_a_second();
    w->on_wait = [&]() {
        ++waits;
        w->now += 2 * MS / 5;
    };
    w->on_reg = [&](regcache_world::registration) {
        if (waits == 0) {
            memh = w->get(buffer(0), MB);
            EXPECT_EQ(1u, w->live.size());
        }
        return UCS_OK;
    };
    w->advance(99 * MS);
    w->on_reg = nullptr;
    EXPECT_EQ(3u, waits); /* a millisecond */
    EXPECT_EQ(0u, w->stats().late);

    /* Both are, and what was for that use alone goes with it */
    EXPECT_EQ(2u, w->live.size());
    w->put(memh);
    w->step();
    EXPECT_EQ(1u, w->live.size());

    /* What the helper registered is not taken to be in use */
    memh = w->get(buffer(0), MB);
    EXPECT_EQ(1u, w->live.size());
    w->put(memh);
    w->advance(1000 * MS);
    EXPECT_EQ(0u, w->live.size());
}
