/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/node/cpus.h>
#include <ucs/node/node.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <vector>

TEST(test_share, each_gets_what_is_due)
{
    uint64_t equal[] = {50, 50, 50, 50};
    uint64_t mixed[] = {10, 100, 100};
    uint64_t little[] = {10, 20, 30};
    uint64_t huge[]  = {UINT64_MAX, UINT64_MAX, 1};
    uint64_t one[]   = {7};

    EXPECT_EQ(25u, ucs_node_share_level(equal, 4, 100));
    EXPECT_EQ(45u, ucs_node_share_level(mixed, 3, 100)); /* 10, 45, 45 */
    EXPECT_EQ(UINT64_MAX, ucs_node_share_level(little, 3, 100));
    EXPECT_EQ(49u, ucs_node_share_level(huge, 3, 100));
    EXPECT_EQ(UINT64_MAX, ucs_node_share_level(one, 1, 7));
    EXPECT_EQ(6u, ucs_node_share_level(one, 1, 6));
    EXPECT_EQ(0u, ucs_node_share_level(one, 1, 0));
}

/* Never below an equal part, never more than there is, and nothing is left over
 * while somebody wants more */
TEST(test_share, level_is_max_min_fair)
{
    std::mt19937_64 random(1);

    for (unsigned n = 0; n < 20000; ++n) {
        std::vector<uint64_t> demands(1 + random() % 9);
        for (auto &demand : demands) {
            demand = random() % ((n % 3) ? 1000 : 5);
        }
        uint64_t budget = random() % 4000;
        uint64_t level  = ucs_node_share_level(demands.data(), demands.size(),
                                               budget);
        uint64_t sum    = 0;
        unsigned hungry = 0;
        for (auto demand : demands) {
            sum    += std::min(demand, level);
            hungry += (demand > level);
        }
        ASSERT_LE(sum, budget);
        ASSERT_GE(level, budget / demands.size());
        ASSERT_TRUE((hungry == 0) || (budget - sum < hungry));
    }
}

class test_place : public ::testing::Test {
protected:
    static constexpr unsigned LISTENS = UCS_LEDGER_LISTENS;
    static constexpr unsigned RUNS    = UCS_LEDGER_LISTENS | UCS_LEDGER_RUNS;

    void set_cores(unsigned count)
    {
        m_topology.allowed = {};
        for (unsigned i = 0; i < count; ++i) {
            CPU_SET(i, &m_topology.allowed);
        }
    }

    /* A rank that is bound to this processor, or to none if it is negative */
    ucs_place_rank_t &add(int cpu, uint64_t demand, unsigned state = LISTENS)
    {
        ucs_place_rank_t rank = {};

        rank.slot   = m_ranks.size();
        rank.demand = demand;
        rank.cores  = 1;
        rank.wants  = UCS_BUSY_CORE;
        rank.cpu    = UCS_PLACE_ANY;
        rank.state  = state;
        if (cpu >= 0) {
            rank.state |= UCS_LEDGER_BOUND;
            CPU_SET(cpu, &rank.cpus);
        }
        m_ranks.push_back(rank);
        return m_ranks.back();
    }

    ucs_place_t decide(unsigned self, ucs_place_policy_t policy)
    {
        ucs_place_t place;

        memset(&place, 0xff, sizeof(place));
        ucs_place_decide(m_ranks.data(), m_ranks.size(), self, policy,
                         &m_topology, &place);
        if (place.cpu != UCS_PLACE_ANY) {
            EXPECT_TRUE(CPU_ISSET(place.cpu, &m_topology.allowed));
            for (auto &rank : m_ranks) {
                EXPECT_FALSE((rank.wants >= UCS_PLACE_ABSENT) &&
                             CPU_ISSET(place.cpu, &rank.cpus))
                        << "a rank is bound to " << place.cpu;
            }
        }
        return place;
    }

    std::vector<int> runners(ucs_place_policy_t policy)
    {
        std::vector<int> result;
        for (unsigned i = 0; i < m_ranks.size(); ++i) {
            if (decide(i, policy).runs) {
                result.push_back(i);
            }
        }
        return result;
    }

    std::vector<ucs_place_rank_t> m_ranks;
    ucs_place_topology_t m_topology = {};
};

/* 8 cores and 6 ranks, as in section 5 of the paper */
TEST_F(test_place, conservative_gives_idle_cores_to_those_that_need_most)
{
    set_cores(8);
    for (unsigned i = 0; i < 6; ++i) {
        add(i, 100 * (i % 3));
    }
    EXPECT_EQ((std::vector<int>{2, 5}), runners(UCS_PLACE_POLICY_CONSERVATIVE));
    EXPECT_EQ(6, decide(2, UCS_PLACE_POLICY_CONSERVATIVE).cpu);
    EXPECT_EQ(7, decide(5, UCS_PLACE_POLICY_CONSERVATIVE).cpu);
    EXPECT_EQ(2u, decide(0, UCS_PLACE_POLICY_CONSERVATIVE).idle_cores);
    EXPECT_EQ(UCS_PLACE_ANY, decide(0, UCS_PLACE_POLICY_CONSERVATIVE).cpu);
}

TEST_F(test_place, aggressive_shares_idle_cores_evenly)
{
    std::map<int, int> helpers;

    set_cores(8);
    for (unsigned i = 0; i < 6; ++i) {
        add(i, 100);
    }
    EXPECT_EQ(6u, runners(UCS_PLACE_POLICY_AGGRESSIVE).size());
    for (unsigned i = 0; i < 6; ++i) {
        ++helpers[decide(i, UCS_PLACE_POLICY_AGGRESSIVE).cpu];
    }
    EXPECT_EQ((std::map<int, int>{{6, 3}, {7, 3}}), helpers);
}

/* Inequality (2): the others' slices and switches, and only on that core */
TEST_F(test_place, sharing_counts_the_helpers_on_the_same_core)
{
    set_cores(3);
    for (unsigned i = 0; i < 2; ++i) {
        add(i, 100, RUNS).cpu = 2;
        m_ranks[i].step_ns    = 1000 * (i + 1);
    }
    add(-1, 1, RUNS).cpu = 1;
    m_ranks[2].state |= UCS_LEDGER_BOUND; /* to nothing */
    auto place = decide(0, UCS_PLACE_POLICY_AGGRESSIVE);
    EXPECT_EQ(2, place.cpu);
    EXPECT_EQ(2000u + UCS_PLACE_SWITCH_NS, place.shared_ns);
    m_ranks[1].state &= ~UCS_LEDGER_RUNS;
    EXPECT_EQ(0u, decide(0, UCS_PLACE_POLICY_AGGRESSIVE).shared_ns);
}

TEST_F(test_place, without_an_idle_core)
{
    set_cores(2);
    add(0, 100);
    add(1, 200);
    EXPECT_EQ(std::vector<int>{}, runners(UCS_PLACE_POLICY_CONSERVATIVE));
    EXPECT_EQ((std::vector<int>{0, 1}), runners(UCS_PLACE_POLICY_AGGRESSIVE));
    EXPECT_EQ((std::vector<int>{0, 1}), runners(UCS_PLACE_POLICY_AUTO));
    m_ranks[1].load = UCS_PLACE_LOAD_MAX + 1;
    EXPECT_EQ(std::vector<int>{0}, runners(UCS_PLACE_POLICY_AUTO));
    /* With a core of its own it may take all of it */
    set_cores(3);
    EXPECT_EQ((std::vector<int>{0, 1}), runners(UCS_PLACE_POLICY_AUTO));
}

/* A rank that waits has time for its helper's work, however many there are */
TEST_F(test_place, where_waiting_is_heard_ranks_do_it_themselves)
{
    set_cores(2);
    for (unsigned i = 0; i < 2; ++i) {
        add(-1, 100);
    }
    EXPECT_EQ(UCS_PLACE_LIGHT, decide(0, UCS_PLACE_POLICY_AUTO).why);
    EXPECT_EQ(UCS_PLACE_LIGHT, decide(0, UCS_PLACE_POLICY_IDLE).why);
    EXPECT_EQ(0u, decide(0, UCS_PLACE_POLICY_IDLE).patience_ns);
    m_topology.hears_waits = 1;
    for (auto policy : {UCS_PLACE_POLICY_AUTO, UCS_PLACE_POLICY_IDLE}) {
        auto place = decide(0, policy);
        EXPECT_EQ(UCS_PLACE_WAITS, place.why);
        EXPECT_TRUE(place.runs);
        EXPECT_EQ(UCS_PLACE_PATIENCE_NS, place.patience_ns);
    }
    EXPECT_EQ(UCS_PLACE_ALL, decide(0, UCS_PLACE_POLICY_AGGRESSIVE).why);
    EXPECT_EQ(UCS_PLACE_NO_CORE, decide(0, UCS_PLACE_POLICY_CONSERVATIVE).why);

    add(-1, 100);
    EXPECT_EQ(UCS_PLACE_CROWDED_PATIENCE_NS,
              decide(0, UCS_PLACE_POLICY_AUTO).patience_ns);
    m_ranks[0].load = UCS_PLACE_LOAD_MAX + 1;
    EXPECT_EQ(3u, runners(UCS_PLACE_POLICY_AUTO).size());
}

/* On a core of its own a helper disturbs nobody, unless the user says so */
TEST_F(test_place, with_an_idle_core_only_idle_leaves_the_work_to_waits)
{
    set_cores(2);
    add(0, 100);
    m_topology.hears_waits = 1;
    EXPECT_EQ(UCS_PLACE_IDLE, decide(0, UCS_PLACE_POLICY_AUTO).why);
    EXPECT_EQ(0u, decide(0, UCS_PLACE_POLICY_AUTO).patience_ns);
    EXPECT_EQ(UCS_PLACE_WAITS, decide(0, UCS_PLACE_POLICY_IDLE).why);
}

/* Ranks that wait for each other's time slices have no time for a helper */
TEST_F(test_place, more_ranks_than_cores_have_no_helper_under_auto)
{
    set_cores(2);
    add(-1, 100);
    add(-1, 200);
    EXPECT_EQ((std::vector<int>{0, 1}), runners(UCS_PLACE_POLICY_AUTO));
    add(-1, 300);
    EXPECT_EQ(std::vector<int>{}, runners(UCS_PLACE_POLICY_AUTO));
    EXPECT_EQ(3u, runners(UCS_PLACE_POLICY_AGGRESSIVE).size());
    /* Bound to a core that the helpers may not use */
    CPU_SET(2, &m_ranks[2].cpus);
    m_ranks[2].state |= UCS_LEDGER_BOUND;
    EXPECT_EQ(3u, runners(UCS_PLACE_POLICY_AUTO).size());
    m_ranks[1].wants = 2 * UCS_BUSY_CORE; /* threads */
    EXPECT_EQ(std::vector<int>{}, runners(UCS_PLACE_POLICY_AUTO));
}

/* What they want counts, not how many they are */
TEST_F(test_place, ranks_that_sleep_crowd_nobody)
{
    set_cores(2);
    for (unsigned i = 0; i < 6; ++i) {
        add(-1, 100);
    }
    EXPECT_EQ(std::vector<int>{}, runners(UCS_PLACE_POLICY_AUTO));
    for (unsigned i = 2; i < 6; ++i) {
        m_ranks[i].wants = UCS_BUSY_CORE / 10;
    }
    EXPECT_EQ(6u, runners(UCS_PLACE_POLICY_AUTO).size());
    EXPECT_EQ(UCS_PLACE_LIGHT, decide(0, UCS_PLACE_POLICY_AUTO).why);
    EXPECT_EQ(2400000u, decide(0, UCS_PLACE_POLICY_AUTO).wanted);
    EXPECT_EQ(2u, decide(0, UCS_PLACE_POLICY_AUTO).processors);
    /* Half a core more than there is: one of them is waiting */
    m_ranks[2].wants = UCS_BUSY_CORE / 4;
    EXPECT_EQ(std::vector<int>{}, runners(UCS_PLACE_POLICY_AUTO));
    EXPECT_EQ(UCS_PLACE_CROWDED, decide(0, UCS_PLACE_POLICY_AUTO).why);
}

/* A job that is stopped, or at its end, holds no core and takes no helper; by
 * the paper's policies as well */
TEST_F(test_place, ranks_that_are_absent_hold_nothing)
{
    set_cores(4);
    for (unsigned i = 0; i < 2; ++i) {
        add(i, 100);
    }
    for (unsigned i = 2; i < 4; ++i) {
        add(i, 1000); /* needs more than the others */
    }
    EXPECT_EQ(std::vector<int>{}, runners(UCS_PLACE_POLICY_CONSERVATIVE));
    EXPECT_EQ(UCS_PLACE_NO_CORE, decide(0, UCS_PLACE_POLICY_CONSERVATIVE).why);
    for (unsigned i = 2; i < 4; ++i) {
        m_ranks[i].wants = UCS_PLACE_ABSENT - 1;
    }
    for (unsigned i = 0; i < 2; ++i) {
        EXPECT_EQ(int(i) + 2, decide(i, UCS_PLACE_POLICY_CONSERVATIVE).cpu);
    }
    EXPECT_EQ(UCS_PLACE_IDLE, decide(0, UCS_PLACE_POLICY_CONSERVATIVE).why);
    m_ranks[3].wants = UCS_PLACE_ABSENT; /* it is back */
    EXPECT_TRUE(decide(3, UCS_PLACE_POLICY_CONSERVATIVE).runs);
    EXPECT_FALSE(decide(0, UCS_PLACE_POLICY_CONSERVATIVE).runs);
}

/* Who has a helper needs less for that very reason */
TEST_F(test_place, incumbents_stay)
{
    set_cores(3);
    add(0, 100, RUNS);
    add(1, 120);
    EXPECT_EQ(std::vector<int>{0}, runners(UCS_PLACE_POLICY_CONSERVATIVE));
    m_ranks[1].demand = 130;
    EXPECT_EQ(std::vector<int>{1}, runners(UCS_PLACE_POLICY_CONSERVATIVE));
}

TEST_F(test_place, ranks_without_a_helper_only_hold_cores)
{
    set_cores(3);
    add(0, 1);
    add(1, 1000, 0);
    EXPECT_TRUE(decide(0, UCS_PLACE_POLICY_CONSERVATIVE).runs);
}

TEST_F(test_place, floating_ranks_leave_a_number_of_cores)
{
    set_cores(4);
    add(-1, 100);
    add(-1, 200).cores = 2;
    auto place         = decide(1, UCS_PLACE_POLICY_CONSERVATIVE);
    EXPECT_EQ(1u, place.idle_cores);
    EXPECT_TRUE(place.runs);
    EXPECT_EQ(UCS_PLACE_ANY, place.cpu);
    EXPECT_FALSE(decide(0, UCS_PLACE_POLICY_CONSERVATIVE).runs);
    m_ranks[1].cores = UCS_LEDGER_CPUS; /* more than there are */
    EXPECT_EQ(0u, decide(1, UCS_PLACE_POLICY_AUTO).idle_cores);
}

TEST_F(test_place, the_nearest_core_is_taken_first)
{
    set_cores(6);
    m_topology.distances[4] = 20;
    m_topology.distances[5] = 10;
    m_topology.distances[3] = 21;
    for (unsigned i = 0; i < 3; ++i) {
        add(i, 300 - i);
    }
    EXPECT_EQ(5, decide(0, UCS_PLACE_POLICY_AUTO).cpu);
    EXPECT_EQ(4, decide(1, UCS_PLACE_POLICY_AUTO).cpu);
    EXPECT_EQ(3, decide(2, UCS_PLACE_POLICY_AUTO).cpu);
}

/* Whatever stands in the ledger */
TEST_F(test_place, any_figures_give_a_place)
{
    std::mt19937_64 random(3);

    for (unsigned n = 0; n < 2000; ++n) {
        m_ranks.clear();
        for (unsigned i = 0; i < 1 + n % 8; ++i) {
            auto &rank   = add(-1, random());
            rank.state   = random();
            rank.cores   = random() % (UCS_LEDGER_CPUS + 1);
            rank.cpu     = int(random() % 1025) - 1;
            rank.step_ns = random() % 1000000000;
            rank.load    = random();
            rank.wants   = random() % (4 * UCS_PLACE_ABSENT);
            for (auto &word : rank.cpus.__bits) {
                word = random() & random() & random();
            }
        }
        for (auto &word : m_topology.allowed.__bits) {
            word = (n % 5) ? random() : 0;
        }
        for (auto &distance : m_topology.distances) {
            distance = random();
        }
        decide(random() % m_ranks.size(),
               ucs_place_policy_t(n % UCS_PLACE_POLICY_LAST));
    }
}

TEST(test_cpus, what_the_system_tells)
{
    cpu_set_t mine = {};
    ucs_cpus_held_t hold;
    uint8_t distances[UCS_LEDGER_CPUS];

    ASSERT_TRUE(ucs_cpus_allow(0, &mine));
    EXPECT_GT(CPU_COUNT(&mine), 0u);
    ucs_cpus_distances("no/device", &mine, distances);
    for (int cpu = 0; cpu < UCS_LEDGER_CPUS; ++cpu) {
        if (CPU_ISSET(cpu, &mine)) {
            EXPECT_LE(distances[cpu], 10) << cpu; /* near, or the node's own */
        }
    }
    ucs_cpus_hold(&hold);
    EXPECT_GE(hold.cores, 1u);
    EXPECT_TRUE(!hold.is_bound || (CPU_COUNT(&hold.cpus) > 0));
}
