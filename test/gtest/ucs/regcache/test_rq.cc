/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <test/inside/regcache_inside.h>

#include <ucs/regcache/regions.h>

#include <gtest/gtest.h>

#include <random>
#include <vector>

class test_rq : public ::testing::Test {
protected:
    static constexpr unsigned CONTEXTS = 64, REGIONS = 8;

    void SetUp() override
    {
        regions = regions_new(REGIONS);
        ASSERT_EQ(UCS_OK, ucs_regcache_rq_init(&rq, CONTEXTS));
    }

    void TearDown() override
    {
        EXPECT_TRUE(ucs_regcache_rq_is_valid(&rq));
        ucs_regcache_rq_cleanup(&rq);
        free(regions);
    }

    void expect(unsigned context, unsigned region, uint64_t time,
                uint64_t gap = 0)
    {
        ucs_regcache_rq_expect(&rq, &regions[region], {context, 1}, time, gap)
                ->use_end = time + 6;
    }

    std::vector<uint64_t> times()
    {
        std::vector<uint64_t> result;
        for (auto item = ucs_regcache_rq_first(&rq, UCS_REGCACHE_RQ_PENDING);
             item != nullptr; item = item->next) {
            result.push_back(item->time);
        }
        return result;
    }

    ucs_regcache_rq_t rq;
    ucs_regcache_region_t *regions;
};

/* Section 3.2 of the paper: deadlines only ever become earlier, and far enough
 * apart for one registration and one deregistration between them */
TEST_F(test_rq, deadlines_are_spread)
{
    for (unsigned i = 0; i < 5; ++i) {
        expect(i, i, 1000, 10);
    }
    EXPECT_EQ((std::vector<uint64_t>{960, 970, 980, 990, 1000}), times());
    expect(5, 5, 975, 10);
    EXPECT_EQ((std::vector<uint64_t>{950, 960, 970, 980, 990, 1000}), times());
    expect(6, 6, 2000, 10);
    EXPECT_EQ(2000u, times().back());
}

TEST_F(test_rq, spreading_stops_at_zero)
{
    for (unsigned i = 0; i < 5; ++i) {
        expect(i, i, 15, 10);
    }
    EXPECT_EQ((std::vector<uint64_t>{0, 0, 0, 5, 15}), times());
}

TEST_F(test_rq, items_of_a_recycled_region_are_stale)
{
    expect(0, 0, 100);
    auto item = ucs_regcache_rq_first(&rq, UCS_REGCACHE_RQ_PENDING);
    EXPECT_TRUE(ucs_regcache_rq_item_is_current(item));
    set_word(&regions[0], 1, 0);
    EXPECT_FALSE(ucs_regcache_rq_item_is_current(item));
    EXPECT_EQ(nullptr, ucs_regcache_rq_of_region(&regions[0]));

    expect(1, 0, 200);
    ucs_regcache_rq_remove(&rq, item);
    ASSERT_NE(nullptr, ucs_regcache_rq_of_region(&regions[0]));
    EXPECT_EQ(1u, ucs_regcache_rq_of_region(&regions[0])->ref.index);
}

TEST_F(test_rq, registered_items_expire)
{
    expect(0, 0, 100);
    expect(1, 0, 50);
    auto item = ucs_regcache_rq_first(&rq, UCS_REGCACHE_RQ_PENDING);
    ucs_regcache_rq_registered(&rq, item, &regions[1], 400);
    EXPECT_EQ(item, ucs_regcache_rq_first(&rq, UCS_REGCACHE_RQ_EXPECTED));
    EXPECT_EQ(56u, item->use_end);
    EXPECT_EQ(400u, item->time);
    EXPECT_EQ(std::vector<uint64_t>{100}, times());
    EXPECT_EQ(item, ucs_regcache_rq_of_region(&regions[1]));
    ucs_regcache_rq_extend(&rq, item, 500);
    EXPECT_EQ(500u, item->time);
}

TEST_F(test_rq, extended_items_are_behind_those_that_are_not_later)
{
    for (unsigned i = 0; i < 5; ++i) {
        expect(i, i, 100 * (i + 1));
        ucs_regcache_rq_registered(&rq, &rq.items[i], &regions[i],
                                   100 * (i + 1));
    }
    struct {
        unsigned              item;
        uint64_t              time;
        std::vector<unsigned> order;
    } moves[] = {{1, 250, {0, 1, 2, 3, 4}}, {1, 400, {0, 2, 3, 1, 4}},
                 {1, 400, {0, 2, 3, 1, 4}}, {3, 400, {0, 2, 1, 3, 4}},
                 {0, 900, {2, 1, 3, 4, 0}}, {4, 1, {4, 2, 1, 3, 0}},
                 {0, 300, {4, 2, 0, 1, 3}}, {2, 300, {4, 0, 2, 1, 3}}};
    for (auto &move : moves) {
        ucs_regcache_rq_extend(&rq, &rq.items[move.item], move.time);
        std::vector<unsigned> order;
        for (auto item = ucs_regcache_rq_first(&rq, UCS_REGCACHE_RQ_EXPECTED);
             item != NULL; item = item->next) {
            order.push_back(item - rq.items);
        }
        EXPECT_EQ(move.order, order) << move.item << " " << move.time;
        EXPECT_TRUE(ucs_regcache_rq_is_valid(&rq));
    }
}

TEST_F(test_rq, stress)
{
    std::mt19937 random(5);
    std::vector<uint64_t> gen(REGIONS, 0);

    for (unsigned step = 0; step < 100000; ++step) {
        unsigned context = random() % CONTEXTS, region = random() % REGIONS;
        auto item        = &rq.items[context];
        switch (random() % 4) {
        case 0:
            ucs_regcache_rq_remove(&rq, item);
            break;
        case 1:
            if (item->list == UCS_REGCACHE_RQ_PENDING) {
                ucs_regcache_rq_registered(&rq, item, &regions[region],
                                           random() % 10000);
            }
            break;
        case 2:
            if (random() % 10 == 0) {
                set_word(&regions[region], ++gen[region], 0);
            }
            break;
        default:
            expect(context, region, random() % 10000, random() % 20);
            break;
        }
        if (step % 100 == 0) {
            ASSERT_TRUE(ucs_regcache_rq_is_valid(&rq));
        }
    }

    unsigned chained = 0, current = 0;
    for (unsigned r = 0; r < REGIONS; ++r) {
        for (auto item             = ucs_regcache_rq_of_region(&regions[r]);
             item != nullptr; item = item->region_next) {
            ASSERT_EQ(&regions[r], item->region);
            ++chained;
        }
    }
    for (unsigned c = 0; c < CONTEXTS; ++c) {
        current += (rq.items[c].list != UCS_REGCACHE_RQ_NONE) &&
                   ucs_regcache_rq_item_is_current(&rq.items[c]);
    }
    EXPECT_EQ(current, chained);
    EXPECT_GT(chained, 0u);
}
