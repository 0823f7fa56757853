/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "alloc_count.h"

#include <test/inside/predict_inside.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <random>

struct lru_entry {
    ucs_predict_lru_node_t node;
    uint64_t               value;
};

class predict_lru : public ::testing::TestWithParam<unsigned> {
protected:
    void SetUp() override
    {
        ASSERT_EQ(UCS_OK, ucs_predict_lru_init(&lru, GetParam(),
                                               sizeof(lru_entry)));
    }

    void TearDown() override
    {
        EXPECT_TRUE(ucs_predict_lru_is_valid(&lru));
        ucs_predict_lru_cleanup(&lru);
    }

    lru_entry *get(uint64_t key, bool is_new)
    {
        int found;
        auto entry = (lru_entry*)ucs_predict_lru_get(&lru, key, &found);
        EXPECT_EQ(is_new, !!found) << key;
        EXPECT_EQ(key, entry->node.key);
        return entry;
    }

    ucs_predict_lru_t lru = {};
};

/* A table whose next piece is not to be had goes on with what it has */
TEST(predict_lru_pieces, what_cannot_grow_forgets)
{
    const unsigned max    = 3 * UCS_PREDICT_LRU_PIECE;
    ucs_predict_lru_t lru = {};
    int is_new;

    ASSERT_EQ(UCS_OK, ucs_predict_lru_init(&lru, max, sizeof(lru_entry)));
    for (uint64_t key = 0; key < UCS_PREDICT_LRU_PIECE; ++key) {
        ucs_predict_lru_get(&lru, key, &is_new);
    }
    alloc_count_fail_next();
    ASSERT_NE(nullptr, ucs_predict_lru_get(&lru, 1000, &is_new));
    EXPECT_TRUE(is_new);
    EXPECT_EQ((unsigned)UCS_PREDICT_LRU_PIECE, lru.count);
    EXPECT_EQ(nullptr, ucs_predict_lru_find(&lru, 0)); /* the oldest */
    EXPECT_NE(nullptr, ucs_predict_lru_find(&lru, 1));
    /* It tries again, and pieces come one by one */
    for (uint64_t key = 2000; key < 2000 + max; ++key) {
        ucs_predict_lru_get(&lru, key, &is_new);
        EXPECT_EQ(lru.count <= 2 * UCS_PREDICT_LRU_PIECE,
                  lru.pieces[2] == nullptr);
    }
    EXPECT_EQ(max, lru.count);
    EXPECT_TRUE(ucs_predict_lru_is_valid(&lru));
    ucs_predict_lru_cleanup(&lru);
}

TEST_P(predict_lru, least_recently_used_is_replaced_and_refs_go_stale)
{
    unsigned max = GetParam();
    for (uint64_t key = 0; key < max; ++key) {
        get(key, true)->value = key;
    }
    get(0, false); /* now the newest; with one entry, the only one */
    uint64_t oldest = (max > 1) ? 1 : 0;
    auto entry      = (lru_entry*)ucs_predict_lru_find(&lru, oldest);
    auto ref        = ucs_predict_lru_ref(&lru, entry);
    EXPECT_EQ(entry, ucs_predict_lru_deref(&lru, ref));
    auto other = get(1000, true);
    EXPECT_EQ(entry, other);
    EXPECT_EQ(oldest, other->value); /* what it was about before */
    EXPECT_EQ(nullptr, ucs_predict_lru_find(&lru, oldest));
    EXPECT_EQ(nullptr, ucs_predict_lru_deref(&lru, ref));
    EXPECT_EQ(other,
              ucs_predict_lru_deref(&lru, ucs_predict_lru_ref(&lru, other)));
    if (max > 1) {
        EXPECT_NE(nullptr, ucs_predict_lru_find(&lru, 0));
    }
}

TEST_P(predict_lru, a_ref_that_was_never_given_is_stale)
{
    EXPECT_EQ(nullptr, ucs_predict_lru_deref(&lru, {0, 0}));
    get(1, true);
    EXPECT_EQ(nullptr, ucs_predict_lru_deref(&lru, {0, 0}));
    EXPECT_EQ(nullptr, ucs_predict_lru_deref(&lru, {UINT32_MAX, 1}));
    EXPECT_NE(nullptr, ucs_predict_lru_deref(&lru, {0, 1}));
}

TEST_P(predict_lru, a_generation_that_wraps_is_not_zero)
{
    get(1, true);
    for (uint64_t key = 2; key <= GetParam(); ++key) {
        get(key, true);
    }
    auto first             = (lru_entry*)ucs_predict_lru_at(&lru, 0);
    first->node.generation = UINT32_MAX;
    EXPECT_EQ(first, get(99, true));
    EXPECT_EQ(1u, first->node.generation);
}

TEST_P(predict_lru, behaves_like_a_list)
{
    std::mt19937 random(GetParam());
    std::list<uint64_t> model;
    for (int i = 0; i < 4000; ++i) {
        /* keys that differ in high bits only meet in a bucket, or may */
        uint64_t key = (uint64_t)(random() % (GetParam() + 3))
                       << (random() % 2 * 40);
        auto it     = std::find(model.begin(), model.end(), key);
        bool is_new = it == model.end();
        EXPECT_EQ(is_new, ucs_predict_lru_find(&lru, key) == nullptr);
        if (!is_new) {
            model.erase(it);
        } else if (model.size() == GetParam()) {
            EXPECT_NE(nullptr, ucs_predict_lru_find(&lru, model.back()));
            model.pop_back();
        }
        get(key, is_new);
        model.push_front(key);
        ASSERT_EQ(model.size(), lru.count);
        if (i % 16 == 0) {
            ASSERT_TRUE(ucs_predict_lru_is_valid(&lru));
        }
    }
    for (uint64_t key : model) {
        EXPECT_NE(nullptr, ucs_predict_lru_find(&lru, key));
    }
}

TEST_P(predict_lru, a_broken_list_is_not_valid)
{
    auto entry = get(1, true);
    EXPECT_TRUE(ucs_predict_lru_is_valid(&lru));
    entry->node.older = 0; /* a ring */
    EXPECT_FALSE(ucs_predict_lru_is_valid(&lru));
    entry->node.older = UCS_PREDICT_LRU_NIL;
    ++lru.count;
    EXPECT_FALSE(ucs_predict_lru_is_valid(&lru));
    --lru.count;
    entry->node.key = 2; /* not to be found */
    entry->node.generation = 0;
    EXPECT_FALSE(ucs_predict_lru_is_valid(&lru));
    entry->node.key        = 1;
    entry->node.generation = 1;
}

INSTANTIATE_TEST_SUITE_P(sizes, predict_lru, ::testing::Values(1, 2, 5, 64));
