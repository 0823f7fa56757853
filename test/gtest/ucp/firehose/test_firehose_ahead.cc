/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "firehose_world.h"

extern "C" {
#include <ucp/firehose/firehose_tuning.h>
#include <ucp/firehose/history.h>
#include <ucp/firehose/worth.h>
}

/* What is moved before it is missed, and how long victims are kept */

TEST(test_firehose_history, an_order_is_followed_from_the_second_time)
{
    ucp_firehose_history_t history;
    uint64_t next = 0;

    ASSERT_EQ(UCS_OK, ucp_firehose_history_init(&history, 1000));
    for (uint64_t i = 1; i <= 50; ++i) {
        ucp_firehose_history_learn(&history, i * 4096);
    }
    EXPECT_FALSE(ucp_firehose_history_next(&history, 4096, &next));
    for (uint64_t i = 1; i <= 50; ++i) {
        ucp_firehose_history_learn(&history, i * 4096);
    }
    unsigned known = 0;
    for (uint64_t i = 1; i < 50; ++i) {
        if (ucp_firehose_history_next(&history, i * 4096, &next)) {
            EXPECT_EQ((i + 1) * 4096, next);
            ++known;
        }
    }
    EXPECT_GE(known, 45u); /* a few share a place */
    ucp_firehose_history_cleanup(&history);
}

TEST(test_firehose_history, a_new_order_replaces_the_old_one)
{
    ucp_firehose_history_t history;
    uint64_t next = 0;

    ASSERT_EQ(UCS_OK, ucp_firehose_history_init(&history, 64));
    for (unsigned i = 0; i < 100; ++i) {
        ucp_firehose_history_learn(&history, 4096);
        ucp_firehose_history_learn(&history, 8192);
    }
    ASSERT_TRUE(ucp_firehose_history_next(&history, 4096, &next));
    EXPECT_EQ(8192u, next);
    for (unsigned i = 0; i < UCP_FIREHOSE_HISTORY_TRUST + 2; ++i) {
        ucp_firehose_history_learn(&history, 4096);
        ucp_firehose_history_learn(&history, 3 * 4096);
    }
    ASSERT_TRUE(ucp_firehose_history_next(&history, 4096, &next));
    EXPECT_EQ(3 * 4096u, next);
    ucp_firehose_history_cleanup(&history);
}

class test_firehose_worth : public ::testing::Test {
protected:
    void SetUp() override
    {
        ucp_firehose_worth_init(&worth, 100);
        ucp_firehose_worth_pinned(&worth, 20000);
        ucp_firehose_worth_unpinned(&worth, 10000);
    }

    /* 30 us, at 0.005 for a hundred buckets */
    static constexpr double RENT = 30000 / (UCP_FIREHOSE_PRICE / 100);

    ucp_firehose_worth_t worth;
};

TEST_F(test_firehose_worth, a_ski_rental_without_a_past)
{
    EXPECT_EQ(UINT64_MAX, worth.keep_ns);
    ucp_firehose_worth_choose(&worth);
    EXPECT_NEAR(RENT, (double)worth.keep_ns, 1);
}

TEST_F(test_firehose_worth, nothing_is_kept_that_nobody_wants_again)
{
    for (unsigned i = 0; i < 2 * UCP_FIREHOSE_WORTH_SEEN; ++i) {
        ucp_firehose_worth_evicted(&worth);
    }
    ucp_firehose_worth_choose(&worth);
    EXPECT_EQ(0u, worth.keep_ns);
}

TEST_F(test_firehose_worth, as_long_as_reuses_take)
{
    for (unsigned i = 0; i < 2 * UCP_FIREHOSE_WORTH_SEEN; ++i) {
        ucp_firehose_worth_revived(&worth, 1000000); /* a millisecond */
    }
    for (unsigned i = 0; i < UCP_FIREHOSE_WORTH_SEEN / 4; ++i) {
        ucp_firehose_worth_evicted(&worth);
    }
    ucp_firehose_worth_choose(&worth);
    EXPECT_GE(worth.keep_ns, 1000000u);
    EXPECT_LE(worth.keep_ns, 4000000u);
}

/* Reuses later than holding is worth are not waited for */
TEST_F(test_firehose_worth, not_for_what_comes_too_late)
{
    for (unsigned i = 0; i < 2 * UCP_FIREHOSE_WORTH_SEEN; ++i) {
        ucp_firehose_worth_evicted(&worth);
        ucp_firehose_worth_repinned(&worth, (uint64_t)(4 * RENT));
    }
    ucp_firehose_worth_choose(&worth);
    EXPECT_EQ(0u, worth.keep_ns);
}

TEST_F(test_firehose_worth, the_past_fades)
{
    for (unsigned i = 0; i < 100 * UCP_FIREHOSE_WORTH_SEEN; ++i) {
        ucp_firehose_worth_evicted(&worth);
        ucp_firehose_worth_choose(&worth);
    }
    EXPECT_EQ(0u, worth.keep_ns);
    EXPECT_LE(worth.count, 9u * UCP_FIREHOSE_WORTH_SEEN);
    for (unsigned i = 0; i < 30 * UCP_FIREHOSE_WORTH_SEEN; ++i) {
        ucp_firehose_worth_revived(&worth, 1000);
        ucp_firehose_worth_choose(&worth);
    }
    EXPECT_GE(worth.keep_ns, 1000u);
}

class test_firehose_ahead : public ::testing::Test {
protected:
    typedef firehose_world::options options;
    static constexpr size_t PAGE = firehose_world::PAGE;

    static void put(firehose_world &world, size_t page)
    {
        firehose_result result;

        result.begin(ucx_firehose_put_nb(world.nodes[0], 1, world.locals[0],
                                         world.at(1, page * PAGE), 8,
                                         firehose_result::done, &result));
        world.run();
        ASSERT_EQ(UCS_OK, result.status);
    }

    /* A walk in one order, again and again, over more than there is room for */
    static uint64_t walk(unsigned flags, unsigned rounds)
    {
        options opts;
        opts.memory = 4 * UCP_FIREHOSE_PREFETCH_DEPTH;
        opts.arena  = 128;
        opts.flags  = flags;
        firehose_world world(opts);

        for (unsigned round = 0; round < rounds; ++round) {
            for (size_t i = 0; i < 127; ++i) {
                put(world, i * i % 127); /* each of 64 pages once or twice */
            }
        }
        return world.attr(0).misses;
    }
};

TEST_F(test_firehose_ahead, history_saves_misses_of_an_order)
{
    uint64_t without = walk(0, 20), with = walk(UCX_FIREHOSE_FLAG_HISTORY, 20);

    EXPECT_LT(with, without / 2) << without;
}

TEST_F(test_firehose_ahead, history_costs_little_without_an_order)
{
    uint64_t moves[2];

    for (unsigned i = 0; i < 2; ++i) {
        options opts;
        opts.memory = 4 * UCP_FIREHOSE_PREFETCH_DEPTH;
        opts.arena  = 128;
        opts.flags  = (i == 0) ? 0 : (unsigned)UCX_FIREHOSE_FLAG_HISTORY;
        firehose_world world(opts);
        std::mt19937 random(7);

        for (unsigned put_count = 0; put_count < 2000; ++put_count) {
            put(world, random() % 128);
        }
        moves[i] = world.attr(1).moves;
    }
    EXPECT_LT(moves[1], moves[0] * 11 / 10) << moves[0];
}

/* Victims that nobody wants are let go though there is room for them */
TEST_F(test_firehose_ahead, what_is_not_worth_its_memory_goes)
{
    for (unsigned flags : {0u, (unsigned)UCX_FIREHOSE_FLAG_PRICE}) {
        options opts;
        opts.memory   = 8;
        opts.victims  = 2000;
        opts.arena    = 4096;
        opts.flags    = flags;
        opts.reg_cost = 1000;
        firehose_world world(opts);
        size_t most = 0;

        for (size_t page = 0; page < 2000; ++page) {
            put(world, page);
            ucp_wire_sim_work(world.sim, 0, 1000000);
            ucp_wire_sim_work(world.sim, 1, 1000000);
        }
        most = world.attr(1).pinned / PAGE;
        if (flags == 0) {
            EXPECT_GE(most, 1990u);
        } else {
            EXPECT_LE(most, 1000u);
        }
    }
}
