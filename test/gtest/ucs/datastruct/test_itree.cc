/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/mem/own_memory.h>
#include <test/inside/datastruct_inside.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <random>
#include <set>
#include <vector>

class test_itree : public ::testing::Test {
protected:
    ucs_itree_node_t *add(uintptr_t start, uintptr_t end)
    {
        nodes.emplace_back();
        nodes.back().start = start;
        nodes.back().end   = end;
        ucs_itree_insert(&tree, &nodes.back());
        return &nodes.back();
    }

    std::vector<ucs_itree_node_t *> overlapping(uintptr_t start, uintptr_t end)
    {
        std::vector<ucs_itree_node_t *> found;
        for (auto node = ucs_itree_first(&tree, start, end); node != nullptr;
             node      = ucs_itree_next(&tree, node, start, end)) {
            found.push_back(node);
        }
        return found;
    }

    ucs_itree_t tree = {};
    std::list<ucs_itree_node_t> nodes;
};

TEST_F(test_itree, same_interval_twice)
{
    auto a = add(100, 200);
    auto b = add(100, 200);
    EXPECT_EQ(2u, overlapping(150, 151).size());
    ucs_itree_remove(&tree, a);
    EXPECT_EQ(std::vector<ucs_itree_node_t *>{b}, overlapping(150, 151));
}

TEST_F(test_itree, iteration_goes_on_after_removal)
{
    for (unsigned i = 0; i < 100; ++i) {
        add(i * 10, i * 10 + 15);
    }
    unsigned removed = 0;
    for (auto node = ucs_itree_first(&tree, 0, UINTPTR_MAX); node != nullptr;
         node      = ucs_itree_next(&tree, node, 0, UINTPTR_MAX)) {
        ucs_itree_remove(&tree, node);
        ++removed;
    }
    EXPECT_EQ(100u, removed);
    EXPECT_EQ(0u, tree.count);
}

/* Against a plain list, with the invariant checked throughout */
TEST_F(test_itree, stress)
{
    std::mt19937 random(7);
    std::vector<ucs_itree_node_t *> model;

    for (unsigned i = 0; i < 20000; ++i) {
        uintptr_t start = random() % 10000;
        if ((random() % 100 < 55) || model.empty()) {
            model.push_back(add(start, start + 1 + random() % 500));
        } else {
            size_t k = random() % model.size();
            ucs_itree_remove(&tree, model[k]);
            model.erase(model.begin() + k);
        }
        if (i % 50 != 0) {
            continue;
        }
        uintptr_t end = start + random() % 300;
        auto found    = overlapping(start, end);
        ASSERT_TRUE(ucs_itree_is_valid(&tree));
        ASSERT_TRUE(std::is_sorted(found.begin(), found.end(),
                                   [](auto a, auto b) {
                                       return a->start < b->start;
                                   }));
        std::set<ucs_itree_node_t *> expected;
        for (auto node : model) {
            if ((node->start < end) && (node->end > start)) {
                expected.insert(node);
            }
        }
        ASSERT_EQ(expected,
                  std::set<ucs_itree_node_t *>(found.begin(), found.end()));
        ASSERT_EQ(expected.size(), found.size());
    }
}

class test_extents : public ::testing::Test {
protected:
    void TearDown() override
    {
        EXPECT_TRUE(ucs_extents_is_valid(&set));
        ucs_extents_cleanup(&set);
        EXPECT_EQ(0u, set.bytes);
        EXPECT_TRUE(ucs_extents_is_valid(&set));
    }

    void give(unsigned count)
    {
        while (count-- > 0) {
            ucs_extents_give(&set, (ucs_extents_node_t *)ucs_own_alloc(
                                           sizeof(*set.spare)));
        }
    }

    ucs_extents_t set = {};
};

TEST_F(test_extents, split_without_spare_forgets_the_smaller_half)
{
    give(1);
    ucs_extents_add(&set, 100, 200);
    ucs_extents_remove(&set, 120, 130);
    EXPECT_EQ(70u, set.bytes);
    EXPECT_TRUE(ucs_extents_covers(&set, 130, 200));

    ucs_extents_remove(&set, 180, 190);
    EXPECT_EQ(50u, set.bytes);
    EXPECT_TRUE(ucs_extents_covers(&set, 130, 180));
}

TEST_F(test_extents, a_broken_invariant_shows)
{
    give(4);
    ucs_extents_add(&set, 100, 200);
    ucs_extents_add(&set, 300, 400);
    EXPECT_TRUE(ucs_extents_is_valid(&set));
    ++set.bytes;
    EXPECT_FALSE(ucs_extents_is_valid(&set));
    --set.bytes;
    ++set.spares;
    EXPECT_FALSE(ucs_extents_is_valid(&set));
    --set.spares;
    ++set.pieces;
    EXPECT_FALSE(ucs_extents_is_valid(&set));
    --set.pieces;

    /* Two that touch */
    ucs_itree_node_t *last = ucs_itree_first(&set.tree, 300, 301);
    ucs_itree_remove(&set.tree, last);
    last->start = 200;
    set.bytes  += 100;
    ucs_itree_insert(&set.tree, last);
    EXPECT_FALSE(ucs_extents_is_valid(&set));

    /* So that they can be released */
    ucs_itree_remove(&set.tree, last);
    last->start = 300;
    set.bytes  -= 100;
    ucs_itree_insert(&set.tree, last);
}

TEST_F(test_extents, pieces_are_counted_as_far_as_they_are_there)
{
    give(8);
    /* Neighbours merge, and stay two */
    ucs_extents_add(&set, 100, 200);
    ucs_extents_add(&set, 200, 300);
    EXPECT_EQ(1u, set.tree.count);
    EXPECT_DOUBLE_EQ(2, set.pieces);

    /* One that is larger takes the place of those that it covers ... */
    ucs_extents_add(&set, 100, 400);
    EXPECT_DOUBLE_EQ(1, set.pieces);
    /* ... and the same once more is the same */
    ucs_extents_add(&set, 100, 400);
    EXPECT_DOUBLE_EQ(1, set.pieces);

    /* Each interval loses its own share of the bytes removed */
    ucs_extents_add(&set, 1000, 1001);
    ucs_extents_add(&set, 1001, 1002);
    EXPECT_DOUBLE_EQ(3, set.pieces);
    ucs_extents_remove(&set, 250, 400);
    EXPECT_DOUBLE_EQ(2.5, set.pieces);
    ucs_extents_remove(&set, 150, 200);
    EXPECT_NEAR(2 + 1. / 3, set.pieces, 1e-12);
    ucs_extents_remove(&set, 0, 500);
    EXPECT_NEAR(2, set.pieces, 1e-12);
    ucs_extents_remove(&set, 0, UINTPTR_MAX);
    EXPECT_EQ(0, set.pieces);
}

TEST_F(test_extents, stress)
{
    std::mt19937 random(11);
    std::vector<bool> model(5000);

    for (unsigned i = 0; i < 5000; ++i) {
        uintptr_t start = random() % 4800 + 1;
        uintptr_t end   = start + 1 + random() % 100;
        bool adding     = random() % 2;
        give(2);
        if (adding) {
            ucs_extents_add(&set, start, end);
        } else {
            ucs_extents_remove(&set, start, end);
        }
        std::fill(model.begin() + start, model.begin() + end, adding);
        ASSERT_EQ((size_t)std::count(model.begin(), model.end(), true),
                  set.bytes);
        ASSERT_TRUE(ucs_extents_is_valid(&set));
        start = random() % 4900;
        end   = start + 1 + random() % 20;
        ASSERT_EQ(std::count(model.begin() + start, model.begin() + end, false)
                          == 0,
                  !!ucs_extents_covers(&set, start, end));
    }
}
