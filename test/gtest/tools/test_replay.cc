/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "replay_fixture.h"

#include <cstring>
#include <random>

#include <unistd.h>

TEST_F(test_replay, small_and_broken_uses_are_left_out)
{
    use(0, 10, 0, PAGE);
    use(20, 30, 1, PAGE - 1);
    add(UCS_TRACE_RELEASE, 40, buffer(2), PAGE);
    add(UCS_TRACE_USE, 50, buffer(3), PAGE);
    add(UCS_TRACE_LOST, 60, 0, 5);
    add(UCS_TRACE_UNMAP, 70, buffer(9), PAGE);
    prepare(PAGE);
    EXPECT_EQ(2u, m_trace.use_count);
    EXPECT_EQ(1u, m_trace.small);
    EXPECT_EQ(1u, m_trace.unmatched);
    EXPECT_EQ(1u, m_trace.open);
    EXPECT_EQ(5u, m_trace.lost);
    EXPECT_EQ(5u, m_trace.event_count);
    EXPECT_EQ(70u, m_trace.uses[1].end_ns);
}

/* Once the engine has learned what a registration costs it begins in time; a
 * use that comes before its time then finds the registration under way */
TEST_F(test_replay, use_during_the_helpers_registration_is_late)
{
    replay_params_t p = params(UCS_REGCACHE_POLICY_PAPER);

    p.register_cost.base_ns = 20 * MS;
    for (unsigned i = 0; i < 60; ++i) {
        use(MS + i * 100 * MS, 2 * MS + i * 100 * MS, 0);
    }
    prepare();
    auto regular = run(p);
    EXPECT_EQ(1u, regular.cold);
    EXPECT_GT(regular.on_time, 30u);

    use(MS + 60 * 100 * MS - 10 * MS, MS + 60 * 100 * MS, 0);
    prepare();
    auto early = run(p);
    EXPECT_EQ(regular.late + 1, early.late);
    EXPECT_EQ(regular.on_time, early.on_time);

    /* It waited for what was left, not for a registration of its own */
    EXPECT_EQ(regular.missed, early.missed);
}

/* What else happens during that registration is not delayed by it */
TEST_F(test_replay, other_buffers_are_used_during_the_helpers_registration)
{
    replay_params_t p = params(UCS_REGCACHE_POLICY_PAPER);

    p.register_cost.base_ns = 20 * MS;
    for (unsigned i = 0; i < 20; ++i) {
        use(MS + i * 100 * MS, 2 * MS + i * 100 * MS, 0);
    }
    prepare();
    uint64_t alone = run(p).on_time;

    for (unsigned i = 0; i < 2000; ++i) {
        use(MS + i * MS, MS + i * MS + 1000, 1 + i % 3);
    }
    prepare();
    auto stats = run(p);
    EXPECT_EQ(2020u, stats.uses);
    EXPECT_GE(stats.on_time, alone);
}

TEST_F(test_replay, same_seed_same_outcome)
{
    std::mt19937 random(5);
    uint64_t now = 0;

    for (unsigned i = 0; i < 3000; ++i) {
        now += 20000 + random() % 200000;
        use(now, now + random() % 100000, i % 7, PAGE * (1 + i % 7));
    }
    prepare();
    for (unsigned policy = 0; policy < UCS_REGCACHE_POLICY_LAST; ++policy) {
        replay_params_t p = params(ucs_regcache_policy_t(policy));

        p.lateness_ns = 30000;
        auto first    = run(p);
        auto second   = run(p);
        uint64_t words[2][sizeof(first) / sizeof(uint64_t)];
        memcpy(words[0], &first, sizeof(first));
        memcpy(words[1], &second, sizeof(second));
        for (size_t i = 0; i < sizeof(first) / sizeof(uint64_t); ++i) {
            EXPECT_EQ(words[0][i], words[1][i])
                    << ucs_regcache_policy_names[policy] << ", word " << i
                    << " of its figures";
        }
    }
}

/* A use that needs room waits for what the helper is just deregistering */
TEST_F(test_replay, ceilings_end_in_every_policy)
{
    std::mt19937 random(6);
    uint64_t now = 0;

    alarm(60); /* a wait that does not end must not hang the others */

    for (unsigned i = 0; i < 3000; ++i) {
        now += random() % 30000;
        use(now, now + random() % 60000, i % 7, PAGE * (1 + i % 7));
    }
    prepare();
    for (unsigned policy = 0; policy < UCS_REGCACHE_POLICY_LAST; ++policy) {
        for (uint64_t pages : {0, 3, 8, 20}) {
            replay_params_t p = params(ucs_regcache_policy_t(policy));

            p.lateness_ns = 3000;
            p.max_pinned  = pages * PAGE;
            run(p);
        }
    }
    alarm(0);
}

TEST_F(test_replay, time_lost_is_what_the_main_thread_is_kept_for)
{
    use_all({0, 1, 0, 1, 0, 1, 0, 1, 0, 1});
    prepare();
    EXPECT_EQ(10u * (550 + 187),
              run(params(UCS_REGCACHE_POLICY_ON_DEMAND)).lost_ns);
    EXPECT_EQ(2u * 550, run(params(UCS_REGCACHE_POLICY_LEAVE_PINNED)).lost_ns);
}

/* The thread wakes for that under each policy, be all uses after it hits */
TEST_F(test_replay, what_is_unmapped_is_given_up_without_steps)
{
    use(0, 10, 0);
    use(20, 30, 1);
    add(UCS_TRACE_UNMAP, MS, buffer(0), PAGE);
    use(100 * MS, 101 * MS, 1);
    prepare();
    for (ucs_regcache_policy_t policy : {UCS_REGCACHE_POLICY_LEAVE_PINNED,
                                         UCS_REGCACHE_POLICY_LRU}) {
        auto stats = run(params(policy));

        EXPECT_EQ(1u, stats.invalidated);
        EXPECT_EQ(1u, stats.on_time);
        EXPECT_NEAR(stats.leave_pinned_byte_ns, stats.pinned_byte_ns,
                    PAGE * 0.01 * MS);
    }
}

/* What is compared with, where registering takes no time */
TEST_F(test_replay, in_use_and_left_pinned_of_a_small_trace)
{
    use(0, 10, 0, 2 * PAGE);
    use(5, 20, 1, PAGE);
    use(30, 40, 0, PAGE);        /* inside the first */
    add(UCS_TRACE_UNMAP, 50, buffer(0) + PAGE, PAGE);
    use(60, 70, 0, 2 * PAGE);    /* half of it is new */
    prepare();

    replay_params_t p = params(UCS_REGCACHE_POLICY_ON_DEMAND);
    p.register_cost   = {};
    p.deregister_cost = {};
    auto stats        = run(p);
    EXPECT_EQ(4u, stats.uses);
    EXPECT_EQ(3u, stats.cold);
    EXPECT_EQ(3 * PAGE, stats.in_use_peak_bytes);
    EXPECT_EQ(PAGE * (2.0 * 10 + 15 + 10 + 2 * 10),
              stats.why.held_byte_ns[UCS_REGCACHE_HELD_IN_USE]);
    EXPECT_EQ(3 * PAGE, stats.leave_pinned_peak_bytes);
    EXPECT_EQ(2u, stats.leave_pinned_regions_peak);
    EXPECT_EQ(PAGE * (2.0 * 5 + 3 * 45 + 2 * 10 + 3 * 10),
              stats.leave_pinned_byte_ns);
}
