/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "firehose_world.h"

extern "C" {
#include <ucp/firehose/firehose_tuning.h>
}

/* The short way of what hits, and what it leaves behind */
class test_firehose_hit : public ::testing::Test {
protected:
    typedef firehose_world::options options;
    static constexpr size_t PAGE = firehose_world::PAGE;

    static void put(firehose_world &world, size_t page, size_t source,
                    firehose_result &result)
    {
        result.begin(ucx_firehose_put_nb(world.nodes[0], 1,
                                         world.locals[0] + source,
                                         world.at(1, page * PAGE + 64), 8,
                                         firehose_result::done, &result));
    }

    static void put(firehose_world &world, size_t page, size_t source = 0)
    {
        firehose_result result;

        put(world, page, source, result);
        world.run();
        ASSERT_EQ(UCS_OK, result.status);
    }

    static uint64_t misses(firehose_world &world)
    {
        return world.attr(0).misses;
    }
};

/* Whether the wire ends at once (a million of a million) or later (none) */
TEST_F(test_firehose_hit, data_and_counts_both_ways_of_ending)
{
    for (unsigned chance : {0u, 500000u, 1000000u}) {
        options opts;
        opts.inline_chance = chance;
        firehose_world world(opts);
        std::vector<firehose_result> results(200);

        put(world, 3);
        for (size_t i = 0; i < results.size(); ++i) {
            world.locals[0][8 * i] = 'a' + i % 26;
            results[i].begin(ucx_firehose_put_nb(
                    world.nodes[0], 1, world.locals[0] + 8 * i,
                    world.at(1, 3 * PAGE + 8 * i), 8, firehose_result::done,
                    &results[i]));
        }
        firehose_result flushed;
        flushed.begin(ucx_firehose_flush_nb(world.nodes[0], 1,
                                            firehose_result::done, &flushed));
        world.run();
        EXPECT_EQ(UCS_OK, flushed.status);
        for (size_t i = 0; i < results.size(); ++i) {
            EXPECT_EQ(UCS_OK, results[i].status);
            EXPECT_LE(results[i].calls, 1u);
            EXPECT_EQ('a' + (int)(i % 26), world.arenas[1][3 * PAGE + 8 * i]);
        }
        EXPECT_EQ(200u, world.attr(0).hits);
        EXPECT_EQ(1u, world.attr(0).misses);
    }
}

TEST_F(test_firehose_hit, gets_too)
{
    options opts;
    firehose_world world(opts);
    firehose_result first, second;

    memset(world.arenas[1] + 5 * PAGE, 'x', 100);
    first.begin(ucx_firehose_get_nb(world.nodes[0], 1, world.locals[0],
                                    world.at(1, 5 * PAGE), 50,
                                    firehose_result::done, &first));
    world.run();
    second.begin(ucx_firehose_get_nb(world.nodes[0], 1, world.locals[0] + 50,
                                     world.at(1, 5 * PAGE + 50), 50,
                                     firehose_result::done, &second));
    world.run();
    EXPECT_EQ(UCS_OK, first.status);
    EXPECT_EQ(UCS_OK, second.status);
    EXPECT_EQ(0, memcmp(world.locals[0], world.arenas[1] + 5 * PAGE, 100));
    EXPECT_EQ(1u, world.attr(0).hits);
}

/* One bucket that is hit between any two misses is never the one that goes */
TEST_F(test_firehose_hit, what_is_hit_stays)
{
    options opts;
    opts.memory        = 4;
    opts.inline_chance = 1000000;
    firehose_world world(opts);
    uint64_t before;

    put(world, 0);
    for (size_t page = 1; page < 40; ++page) {
        put(world, page);
        before = misses(world);
        put(world, 0);
        EXPECT_EQ(before, misses(world)) << page;
    }
    EXPECT_EQ(40u, misses(world));
}

/* Where all were hit, a miss still finds one, and looks at a few only */
TEST_F(test_firehose_hit, all_hit_and_one_more)
{
    const size_t count = 3 * UCP_FIREHOSE_SECOND_CHANCES;
    options opts;
    opts.memory        = count;
    opts.inline_chance = 1000000;
    firehose_world world(opts);

    for (size_t page = 0; page < count; ++page) {
        put(world, page);
    }
    for (size_t page = 0; page < count; ++page) {
        put(world, page);
    }
    EXPECT_EQ(count, misses(world));
    put(world, count);
    EXPECT_EQ(count + 1, misses(world));
}
