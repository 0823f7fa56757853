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
                EXPECT_FALSE(CPU_ISSET(place.cpu, &rank.cpus))
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
    EXPECT_EQ((std::vector<int>{0, 1}), runners(UCS_PLACE_POLICY_IDLE));
}

/* What takes nothing from anybody needs no place */
TEST_F(test_place, idle_runs_anywhere)
{
    for (unsigned cores : {1, 2, 8}) {
        set_cores(cores);
        add(0, 100);
        auto place = decide(0, UCS_PLACE_POLICY_IDLE);
        EXPECT_TRUE(place.runs);
        EXPECT_EQ(UCS_PLACE_SPARE, place.why);
        EXPECT_EQ(UCS_PLACE_ANY, place.cpu);
        EXPECT_EQ(0u, place.shared_ns);
    }
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
    EXPECT_EQ(0u, decide(1, UCS_PLACE_POLICY_CONSERVATIVE).idle_cores);
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
    EXPECT_EQ(5, decide(0, UCS_PLACE_POLICY_CONSERVATIVE).cpu);
    EXPECT_EQ(4, decide(1, UCS_PLACE_POLICY_CONSERVATIVE).cpu);
    EXPECT_EQ(3, decide(2, UCS_PLACE_POLICY_CONSERVATIVE).cpu);
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
