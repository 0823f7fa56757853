/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "node_fixture.h"

#include <sched.h>

class test_node_cores : public test_node {
protected:
    /* @return Whether one of @a cpus is for the rank; and how many are idle */
    static bool find(test_rank &rank, std::vector<int> cpus,
                     unsigned idle)
    {
        cpu_set_t set;

        CPU_ZERO(&set);
        for (int cpu : cpus) {
            CPU_SET(cpu, &set);
        }
        bool has_core = ucs_node_find_core(rank.node(), &set);
        EXPECT_EQ(idle, rank.figures().idle_cores);
        return has_core;
    }
};

TEST_F(test_node_cores, are_those_that_no_rank_holds)
{
    test_rank bound(open(UINT64_MAX, 0, {1, 2}));
    EXPECT_TRUE(find(bound, {0, 1, 2, 3}, 2));
    EXPECT_FALSE(find(bound, {1, 2}, 0));
    EXPECT_TRUE(find(bound, {0}, 1)) << "it is bound to others";

    test_rank floating(open(UINT64_MAX));
    EXPECT_TRUE(find(bound, {0, 1, 2, 3}, 1));
    EXPECT_FALSE(find(bound, {0}, 0)) << "it may be there";

    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(2, &cpus);
    CPU_SET(1000, &cpus);
    ucs_node_find_core(floating.node(), &cpus);
    EXPECT_EQ(1, CPU_COUNT(&cpus));
    EXPECT_TRUE(CPU_ISSET(1000, &cpus));
}

/* In seconds, by a rank that waits for a tenth, a fifth of the time */
TEST_F(test_node_cores, work_is_waited_for_at_any_time_as_far_as_ranks_wait)
{
    static constexpr uint64_t SECOND = 1000000000;

    test_rank first(open(UINT64_MAX));
    uint64_t now = SECOND, waited = SECOND / 2;
    auto any     = [&](unsigned ms, unsigned processors) {
        double share = 0;
        for (unsigned i = 0; i < 80; ++i) {
            now    += SECOND / 4;
            waited += ms * SECOND / 4 / 1000;
            share   = ucs_node_waits(first.node(), now, waited, processors);
        }
        return share;
    };

    EXPECT_EQ(0, ucs_node_waits(first.node(), now, waited, 2));
    EXPECT_NEAR(0.1, any(100, 2), 1e-3);
    EXPECT_NEAR(0.2, any(200, 2), 1e-3);
    EXPECT_NEAR(0.2, ucs_node_waits(first.node(), now, waited, 2), 1e-3)
            << "no time passed";
    {
        test_rank second(open(UINT64_MAX)), third(open(UINT64_MAX));
        EXPECT_NEAR(0.3, any(200, 2), 1e-3) << "three share two";
        EXPECT_NEAR(0.2, any(200, 4), 1e-3);
        EXPECT_EQ(1, any(900, 1));
    }
    waited = 0;
    EXPECT_NEAR(0, any(0, 2), 1e-3) << "it is not known any more";
}

/* In milliseconds: the helper's work, and how much of it was waited for */
TEST_F(test_node_cores, work_that_was_done_is_wanted_as_far_as_ranks_waited)
{
    static constexpr uint64_t MS = 1000000;

    test_rank rank(open(UINT64_MAX));
    uint64_t worked = 0, delayed = 0, at = 1;
    auto wanted     = [&](unsigned work, unsigned delay) {
        worked       += work * MS;
        delayed      += delay * MS;
        double share  = ucs_node_wanted(rank.node(), at, worked, delayed);
        EXPECT_EQ(share, rank.figures().wanted);
        return share;
    };

    EXPECT_EQ(0, wanted(10, 5)) << "one time slice may be chance";
    EXPECT_NEAR(0.5, wanted(90, 50), 0.03) << "that many are not";
    wanted(4000, 0);
    EXPECT_NEAR(0, wanted(0, 0), 0.01) << "what was done at first is forgotten";
    EXPECT_NEAR(0.095, wanted(4000, 400), 0.01);
    EXPECT_NEAR(0.095, wanted(0, 0), 0.01) << "as long as nothing else is done";
    at += 300000 * MS;
    EXPECT_NEAR(0.083, wanted(0, 0), 0.005) << "and fades";
    at += 300000 * MS;
    EXPECT_EQ(0, wanted(0, 0)) << "then it has to be tried again";

    test_rank second(open(UINT64_MAX));
    ucs_node_waits(rank.node(), 1, 0, 1);
    double any = ucs_node_waits(rank.node(), 1000 * MS, 100 * MS, 1);
    EXPECT_LT(0, any);
    EXPECT_GT(0.1, any);
    EXPECT_EQ(any, wanted(1000, 1000)) << "two on one core wait for each other";
}

/* Before the helper has done anything */
TEST_F(test_node_cores, work_that_was_not_tried_is_wanted_as_at_any_time)
{
    static constexpr uint64_t MS = 1000000;

    test_rank rank(open(UINT64_MAX));
    ucs_node_waits(rank.node(), 1, 0, 2);
    double any = ucs_node_waits(rank.node(), 1000 * MS, 800 * MS, 1);
    EXPECT_GT(any, 0.2);
    EXPECT_EQ(any, ucs_node_wanted(rank.node(), 0, 0, 0));
    EXPECT_NEAR(any / 2, ucs_node_wanted(rank.node(), 0, MS, 0), 0.01);
}

TEST_F(test_node_cores, the_others_waits_are_looked_at_in_turn)
{
    unsigned others = 7;

    test_rank first(open(UINT64_MAX));
    EXPECT_EQ(0, ucs_node_beside(first.node(), 1, &others)) << "it is alone";
    EXPECT_EQ(0u, others);
    test_rank second(open(UINT64_MAX)), third(open(UINT64_MAX));
    EXPECT_EQ(0, ucs_node_beside(first.node(), 3, &others)) << "one for each";
    /* The ranks of this test are one process */
    EXPECT_EQ(getpid(), ucs_node_beside(first.node(), 2, &others));
    EXPECT_EQ(2u, others);
}

/* Two cores for three helpers */
TEST_F(test_node_cores, are_for_those_that_need_most)
{
    test_rank one(open(UINT64_MAX, 0, {0})), two(open(UINT64_MAX, 0, {0})),
            three(open(UINT64_MAX, 0, {0}));

    one.use(4 * MB);
    two.use(6 * MB);
    three.use(5 * MB);
    EXPECT_TRUE(find(one, {1, 2}, 2)) << "nobody else listens";
    for (auto rank : {&one, &two, &three}) {
        ucs_node_listen(rank->node(), 1);
    }
    EXPECT_FALSE(find(one, {1, 2}, 2));
    EXPECT_TRUE(find(two, {1, 2}, 2));
    EXPECT_TRUE(find(three, {1, 2}, 2));

    /* A little more does not take it away from who has one */
    ucs_node_set_runs(one.node(), 0);
    one.use(2 * MB);
    EXPECT_FALSE(find(one, {1, 2}, 2));
    EXPECT_TRUE(find(three, {1, 2}, 2));
    one.use(MB);
    EXPECT_TRUE(find(one, {1, 2}, 2));
    EXPECT_FALSE(find(three, {1, 2}, 2));

    /* The first of equals */
    ucs_node_set_runs(one.node(), 1);
    two.use(MB);
    EXPECT_TRUE(find(one, {1}, 1));
    EXPECT_FALSE(find(two, {1}, 1));
}

TEST_F(test_node_cores, rests_are_counted)
{
    test_rank one(open(UINT64_MAX));

    ucs_node_set_runs(one.node(), 1);
    EXPECT_EQ(0u, one.figures().rests);
    EXPECT_EQ(0u, one.figures().rest_ns);
    ucs_node_set_runs(one.node(), 0);
    ucs_node_set_runs(one.node(), 0);
    usleep(1000);
    EXPECT_GE(one.figures().rest_ns, MS);
    ucs_node_set_runs(one.node(), 1);
    uint64_t rested = one.figures().rest_ns;
    usleep(1000);
    EXPECT_EQ(rested, one.figures().rest_ns);
    EXPECT_EQ(1u, one.figures().rests);
}
