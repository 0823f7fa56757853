/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "engine_world.h"

extern "C" {
#include <uct/ib/helper_md/duel.h>
}

class test_duel : public ::testing::Test {
protected:
    /* @a first is used before @a second would have been */
    void lose(uintptr_t first, uintptr_t second)
    {
        uct_helper_duel_differ(&duel, first, second);
        uct_helper_duel_use(&duel, first);
    }

    uct_helper_duel_t duel = {};
};

TEST_F(test_duel, rule_that_is_wrong_loses_its_say_and_gets_it_back)
{
    for (int i = 0; i < UCT_HELPER_DUEL_CHANGE; ++i) {
        EXPECT_EQ(0, duel.second);
        lose(1, 2);
    }
    EXPECT_EQ(1, duel.second);
    for (int i = 0; i < 2 * UCT_HELPER_DUEL_CHANGE; ++i) {
        EXPECT_EQ(1, duel.second);
        uct_helper_duel_differ(&duel, 1, 2);
        uct_helper_duel_use(&duel, 2);
    }
    EXPECT_EQ(0, duel.second);
}

TEST_F(test_duel, score_is_bounded)
{
    for (int i = 0; i < 1000; ++i) {
        lose(1, 2);
    }
    EXPECT_EQ(-UCT_HELPER_DUEL_MAX, duel.score);
}

TEST_F(test_duel, other_uses_decide_nothing)
{
    uct_helper_duel_differ(&duel, 1, 2);
    uct_helper_duel_use(&duel, 3);
    EXPECT_EQ(1u, duel.open);
    uct_helper_duel_use(&duel, 1);
    uct_helper_duel_use(&duel, 2); /* decided already */
    EXPECT_EQ(0u, duel.open);
    EXPECT_EQ(-1, duel.score);
}

TEST_F(test_duel, oldest_pair_gives_way)
{
    for (uintptr_t i = 1; i <= UCT_HELPER_DUEL_PAIRS + 1; ++i) {
        uct_helper_duel_differ(&duel, 2 * i, 2 * i + 1);
    }
    EXPECT_EQ((unsigned)UCT_HELPER_DUEL_PAIRS, duel.open);
    uct_helper_duel_use(&duel, 2);
    EXPECT_EQ(0, duel.score);
    uct_helper_duel_use(&duel, 4);
    EXPECT_EQ(-1, duel.score);
}

/* More than the ceiling was in use at once: the last user lets go of it */
TEST(test_ceiling, lru_goes_back_when_the_last_user_leaves)
{
    const uintptr_t base = 0x10000000;
    const size_t size    = 1 << 20;
    engine_world w(UCT_HELPER_POLICY_LRU);

    w.params.max_pinned = 2 * size;
    w.open();
    uct_mem_h memhs[4];
    for (unsigned i = 0; i < 4; ++i) {
        memhs[i] = w.get(base + 2 * i * size, size);
    }
    EXPECT_EQ(4u, w.live.size());
    for (unsigned i = 0; i < 4; ++i) {
        w.put(memhs[i]);
    }
    EXPECT_EQ(2u, w.live.size());
    EXPECT_EQ(2 * size, w.stats().pinned_bytes);
    EXPECT_EQ(2u, w.stats().over_ceiling);
}
