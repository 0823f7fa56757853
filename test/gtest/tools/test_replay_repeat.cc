/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "replay_fixture.h"

/** A program with a start-up, an iteration of three uses, and an end. */
class test_replay_repeat : public test_replay {
protected:
    static constexpr unsigned STARTUP    = 4;
    static constexpr unsigned ITERATIONS = 8;
    static constexpr unsigned WIND_DOWN  = 2;

    test_replay_repeat()
    {
        std::vector<unsigned> uses = {10, 11, 12, 13};

        for (unsigned i = 0; i < ITERATIONS; ++i) {
            uses.insert(uses.end(), {0, 1, 2});
        }
        uses.insert(uses.end(), {20, 21});
        use_all(uses);
    }

    void repeat(uint64_t times, uint64_t ns = 0)
    {
        m_repeat = {times, ns};
        prepare();
        ASSERT_TRUE(m_is_prepared);
    }

    unsigned uses_of(unsigned index) const
    {
        return std::count_if(m_trace.uses, m_trace.uses + m_trace.use_count,
                             [index](const replay_use_t &use) {
                                 return use.address == buffer(index);
                             });
    }
};

TEST_F(test_replay_repeat, start_and_end_are_played_once)
{
    repeat(100);
    unsigned steady = m_trace.repeated.until - m_trace.repeated.from;

    EXPECT_EQ(0u, steady % 3);
    EXPECT_GE(steady, (STARTUP + 3 * ITERATIONS + WIND_DOWN) / 3);
    EXPECT_EQ(STARTUP + 3 * ITERATIONS + WIND_DOWN + 99 * steady,
              m_trace.use_count);
    for (unsigned index : {10, 11, 12, 13, 20, 21}) {
        EXPECT_EQ(1u, uses_of(index)) << index;
    }
    for (unsigned index : {0, 1, 2}) {
        EXPECT_EQ(ITERATIONS + 99 * steady / 3, uses_of(index)) << index;
    }
}

/* No seam is seen: the order goes on, and so do the gaps */
TEST_F(test_replay_repeat, it_goes_on_as_the_program_would)
{
    repeat(50);
    for (size_t i = STARTUP; i + WIND_DOWN < m_trace.use_count; ++i) {
        ASSERT_EQ(buffer((i - STARTUP) % 3), m_trace.uses[i].address) << i;
    }
    for (size_t i = 1; i < m_trace.use_count; ++i) {
        ASSERT_EQ(MS, m_trace.uses[i].start_ns - m_trace.uses[i - 1].start_ns);
        ASSERT_EQ(10000u, m_trace.uses[i].end_ns - m_trace.uses[i].start_ns);
    }
    for (size_t i = 1; i < m_trace.event_count; ++i) {
        ASSERT_LE(m_trace.events[i - 1].time_ns, m_trace.events[i].time_ns);
    }
    EXPECT_EQ(2 * m_trace.use_count, m_trace.event_count);
}

TEST_F(test_replay_repeat, a_time_is_reached_and_hardly_passed)
{
    repeat(1);
    uint64_t recorded = m_trace.end_ns - m_trace.start_ns;
    uint64_t steady   = m_trace.uses[m_trace.repeated.until].start_ns -
                      m_trace.uses[m_trace.repeated.from].start_ns;

    EXPECT_EQ(STARTUP + 3 * ITERATIONS + WIND_DOWN, m_trace.use_count);
    repeat(0, 3000 * MS);
    EXPECT_GE(m_trace.end_ns - m_trace.start_ns, 3000 * MS);
    EXPECT_LT(m_trace.end_ns - m_trace.start_ns, 3000 * MS + steady);
    repeat(0, 1);
    EXPECT_EQ(recorded, m_trace.end_ns - m_trace.start_ns);
}

/* One that is in use all the time is one use, as it was */
TEST_F(test_replay_repeat, what_lasts_through_all_of_it_still_does)
{
    use(MS / 2, 1000 * MS, 30);
    repeat(20);
    uint64_t added = 19 * (m_trace.uses[m_trace.repeated.until].start_ns -
                           m_trace.uses[m_trace.repeated.from].start_ns);

    EXPECT_EQ(1u, uses_of(30));
    EXPECT_EQ(1000 * MS + added, m_trace.uses[0].end_ns);
    EXPECT_EQ(m_trace.end_ns, m_trace.uses[0].end_ns);
}

/* A buffer that is mapped anew each iteration is unmapped in each */
TEST_F(test_replay_repeat, unmappings_recur)
{
    for (unsigned i = 0; i < ITERATIONS; ++i) {
        add(UCS_TRACE_UNMAP, (STARTUP + 3 * i) * MS + 3 * MS / 2, buffer(0),
            PAGE);
    }
    repeat(10);
    unsigned steady = (m_trace.repeated.until - m_trace.repeated.from) / 3;

    EXPECT_EQ(ITERATIONS + 9 * steady, m_trace.unmap_count);
    EXPECT_EQ(STARTUP + WIND_DOWN + 2 + ITERATIONS + 9 * steady,
              run(params(UCS_REGCACHE_POLICY_LEAVE_PINNED)).cold);
}

/* A receive's end is that of its own post, in each repetition */
TEST_F(test_replay_repeat, operations_pair_as_they_did)
{
    uint32_t id = 0;

    for (unsigned i = 0; i < 3 * ITERATIONS; ++i) {
        uint64_t start = MS + (STARTUP + i) * MS;

        ++id;
        m_events.push_back({start - 100, buffer(i % 3), PAGE, 7,
                            UCS_OPERATION_RECEIVE, UCS_TRACE_OPERATION, id});
        m_events.push_back({start + 2 * MS, 0, 0, 0,
                            UCS_OPERATION_RECEIVED, UCS_TRACE_OPERATION, id});
    }
    repeat(30);

    std::vector<uint64_t> posts(31 * (id + 1), 0);
    unsigned posted = 0, ended = 0;
    for (size_t i = 0; i < m_trace.operation_count; ++i) {
        const ucs_operation_t &operation = m_trace.operations[i];

        ASSERT_LT(operation.id, posts.size());
        if (operation.kind == UCS_OPERATION_RECEIVE) {
            ASSERT_EQ(0u, posts[operation.id]);
            posts[operation.id] = operation.time;
            ++posted;
        } else {
            ASSERT_EQ(posts[operation.id] + 100 + 2 * MS, operation.time);
            ++ended;
        }
    }
    EXPECT_GT(posted, 30u * ITERATIONS);
    EXPECT_EQ(posted, ended);
}

/* What was learned carries on: later passes cost less than the first */
TEST_F(test_replay_repeat, what_is_lost_first_is_told_apart)
{
    repeat(200);
    auto stats    = run(params(UCS_REGCACHE_POLICY_ON_DEMAND));
    double once   = replay_lost(&m_once);
    double steady = replay_lost(&stats) - once;

    EXPECT_GT(once, 0);
    EXPECT_GT(m_once.lost_ns, once);
    EXPECT_EQ(PAGE, m_once.pinned_peak_bytes);
    EXPECT_GT(steady, 20 * once);

    run(params(UCS_REGCACHE_POLICY_LEAVE_PINNED));
    EXPECT_EQ(0, replay_lost(&m_once));

    repeat(1);
    run(params(UCS_REGCACHE_POLICY_ON_DEMAND));
    EXPECT_EQ(0u, m_once.lost_ns);
}

TEST_F(test_replay_repeat, what_has_no_steady_part_is_refused)
{
    m_events.clear();
    use_all({0, 1, 2, 3, 4});
    m_repeat = {10, 0};
    testing::internal::CaptureStderr();
    prepare();
    EXPECT_FALSE(m_is_prepared);
    EXPECT_NE(std::string::npos, testing::internal::GetCapturedStderr().find(
                                         "--repeat needs 6 uses, it has 5"));

    m_events.clear();
    for (unsigned i = 0; i < 9; ++i) {
        use(MS, MS, i % 3);
    }
    testing::internal::CaptureStderr();
    prepare();
    EXPECT_FALSE(m_is_prepared);
    EXPECT_NE(std::string::npos, testing::internal::GetCapturedStderr().find(
                                         "the uses have all the same time"));

    m_events.clear();
    use_all({0, 1, 0, 1, 0, 1, 0, 1, 0, 1});
    m_repeat = {UINT32_MAX, 0};
    testing::internal::CaptureStderr();
    prepare();
    EXPECT_FALSE(m_is_prepared);
    EXPECT_NE(std::string::npos,
              testing::internal::GetCapturedStderr().find("are more than"));
}
