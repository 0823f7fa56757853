/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "firehose_world.h"

class test_firehose : public ::testing::Test {
protected:
    typedef firehose_world::options options;
    static constexpr size_t PAGE = firehose_world::PAGE;

    static ucs_status_t
    put(firehose_world &world, unsigned from, unsigned to, size_t source,
        uint64_t remote, size_t length, bool is_put = true)
    {
        firehose_result result;
        auto local = world.locals[from] + source;

        result.begin(is_put ?
                             ucx_firehose_put_nb(world.nodes[from], to, local,
                                                 remote, length,
                                                 firehose_result::done,
                                                 &result) :
                             ucx_firehose_get_nb(world.nodes[from], to, local,
                                                 remote, length,
                                                 firehose_result::done,
                                                 &result));
        world.run();
        EXPECT_LE(result.calls, 1u);
        return result.status;
    }

    static ucs_status_t flush(firehose_world &world, unsigned from, unsigned to)
    {
        firehose_result result;

        result.begin(ucx_firehose_flush_nb(world.nodes[from], to,
                                           firehose_result::done, &result));
        world.run();
        return result.status;
    }

    static void fill(firehose_world &world, unsigned seed)
    {
        std::mt19937 random(seed);

        for (unsigned node = 0; node < world.opts.nodes; ++node) {
            for (size_t i = 0; i < world.opts.arena * PAGE; ++i) {
                world.locals[node][i] = random();
            }
        }
    }
};

TEST_F(test_firehose, a_miss_then_hits)
{
    firehose_world world({});

    fill(world, 1);
    EXPECT_EQ(UCS_OK, put(world, 0, 1, 100, world.at(1, 8), 8));
    EXPECT_EQ(1u, world.attr(0).misses);
    EXPECT_EQ(1u, world.attr(1).moves);
    for (unsigned i = 1; i < 100; ++i) {
        EXPECT_EQ(UCS_OK, put(world, 0, 1, 100, world.at(1, 8 * i), 8));
    }
    EXPECT_EQ(1u, world.attr(0).misses);
    EXPECT_EQ(99u, world.attr(0).hits);
    EXPECT_EQ(UCS_OK, flush(world, 0, 1));
    EXPECT_EQ(0, memcmp(world.arenas[1] + 80, world.locals[0] + 100, 8));
}

TEST_F(test_firehose, any_length_and_alignment_both_ways)
{
    firehose_world world({});
    const size_t from = 4093, to = 2 * PAGE - 3, length = 37 * PAGE + 1234;

    fill(world, 2);
    EXPECT_EQ(UCS_OK, put(world, 0, 1, from, world.at(1, to), length));
    EXPECT_EQ(UCS_OK, flush(world, 0, 1));
    EXPECT_EQ(0, memcmp(world.arenas[1] + to, world.locals[0] + from, length));
    EXPECT_EQ(0, world.arenas[1][to - 1]);
    EXPECT_EQ(0, world.arenas[1][to + length]);
    memset(world.locals[0], 0, 64 * PAGE);
    EXPECT_EQ(UCS_OK, put(world, 0, 1, 5, world.at(1, to), length, false));
    EXPECT_EQ(0, memcmp(world.arenas[1] + to, world.locals[0] + 5, length));
    EXPECT_EQ(0, world.locals[0][5 + length]);
}

TEST_F(test_firehose, several_moves_go_in_one_message)
{
    options opts;
    opts.memory = 64;
    firehose_world world(opts);
    ucp_wire_sim_stats_t before, after;

    world.run();
    ucp_wire_sim_get_stats(world.sim, 0, &before);
    EXPECT_EQ(UCS_OK, put(world, 0, 1, 0, world.at(1, 0), 40 * PAGE));
    ucp_wire_sim_get_stats(world.sim, 0, &after);
    EXPECT_EQ(40u, world.attr(0).misses);
    EXPECT_EQ(1u, after.messages - before.messages);
}

TEST_F(test_firehose, the_least_recently_used_firehose_moves)
{
    options opts;
    opts.memory = 2;
    firehose_world world(opts);
    uint64_t misses;

    put(world, 0, 1, 0, world.at(1, 0), 8);
    put(world, 0, 1, 0, world.at(1, PAGE), 8);
    put(world, 0, 1, 0, world.at(1, 0), 8);
    put(world, 0, 1, 0, world.at(1, 2 * PAGE), 8); /* page 1 goes */
    misses = world.attr(0).misses;
    EXPECT_EQ(3u, misses);
    put(world, 0, 1, 0, world.at(1, 0), 8);
    EXPECT_EQ(misses, world.attr(0).misses);
    put(world, 0, 1, 0, world.at(1, PAGE), 8);
    EXPECT_EQ(misses + 1, world.attr(0).misses);
}

TEST_F(test_firehose, each_peer_has_its_share)
{
    options opts;
    opts.nodes  = 5;
    opts.memory = 16; /* F = 4 */
    firehose_world world(opts);

    for (unsigned from = 1; from < 5; ++from) {
        for (unsigned i = 0; i < 4; ++i) {
            put(world, from, 0, 0, world.at(0, (from * 4 + i) * PAGE), 8);
        }
    }
    EXPECT_EQ(16u * PAGE, world.attr(0).pinned);
    for (unsigned i = 0; i < 4; ++i) {
        put(world, 1, 0, 0, world.at(0, (4 + i) * PAGE), 8);
    }
    EXPECT_EQ(4u, world.attr(1).hits); /* others took none of its own */
    put(world, 1, 0, 0, world.at(0, 30 * PAGE), 8);
    EXPECT_LE(world.attr(0).pinned, 20u * PAGE);
}

TEST_F(test_firehose, a_flush_orders_what_overlaps)
{
    options opts;
    opts.memory = 2;
    opts.jitter = 50000;
    firehose_world world(opts);

    for (unsigned round = 0; round < 50; ++round) {
        for (unsigned i = 0; i < 8; ++i) {
            memset(world.locals[0] + i * PAGE, round * 8 + i, PAGE);
            ucx_firehose_put_nb(world.nodes[0], 1, world.locals[0] + i * PAGE,
                                world.at(1, 4000 + 96 * (i % 2)), 3000, nullptr,
                                nullptr);
            firehose_result flushed;
            flushed.begin(ucx_firehose_flush_nb(world.nodes[0], 1,
                                                firehose_result::done,
                                                &flushed));
            while (flushed.status == UCS_INPROGRESS) {
                world.step();
            }
            ASSERT_EQ(UCS_OK, flushed.status);
            ASSERT_EQ((char)(round * 8 + i),
                      world.arenas[1][4000 + 96 * (i % 2) + 2999]);
        }
        for (unsigned i = 96; i < 3000; ++i) {
            ASSERT_EQ((char)(round * 8 + 7), world.arenas[1][4000 + i]);
        }
        ASSERT_EQ((char)(round * 8 + 6), world.arenas[1][4000]);
    }
}

TEST_F(test_firehose, flush_of_nothing_is_over_at_once)
{
    firehose_world world({});

    EXPECT_EQ(UCS_OK,
              ucx_firehose_flush_nb(world.nodes[0], 1, nullptr, nullptr));
    EXPECT_EQ(UCS_OK, put(world, 0, 1, 0, world.at(1, 0), 0));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, put(world, 0, 0, 0, world.at(1, 0), 1));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, put(world, 0, 2, 0, world.at(1, 0), 1));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, put(world, 0, 1, 0, UINT64_MAX, 8));
}

TEST_F(test_firehose, what_is_not_mapped_is_told)
{
    firehose_world world({});
    uint64_t hole = world.at(1, 10 * PAGE);

    ASSERT_EQ(0, munmap((void *)hole, PAGE));
    ASSERT_EQ(0, mprotect((void *)(hole + PAGE), PAGE, PROT_READ));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, put(world, 0, 1, 0, hole, 8));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, put(world, 0, 1, 0, hole - 8, 16));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, put(world, 0, 1, 0, hole + PAGE, 8));
    EXPECT_EQ(UCS_OK, put(world, 0, 1, 0, hole - 8, 8));
    EXPECT_EQ(UCS_OK, put(world, 0, 1, 0, hole + 2 * PAGE, 8));
    /* Here as well */
    ASSERT_EQ(0, munmap(world.locals[0] + 3 * PAGE, PAGE));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              put(world, 0, 1, 3 * PAGE, world.at(1, 0), 8));
    EXPECT_EQ(UCS_OK, put(world, 0, 1, 2 * PAGE, world.at(1, 0), 8));
}

TEST_F(test_firehose, a_failure_is_told_by_the_next_flush)
{
    firehose_world world({});

    ASSERT_EQ(0, munmap(world.arenas[1] + PAGE, PAGE));
    ucx_firehose_put_nb(world.nodes[0], 1, world.locals[0], world.at(1, PAGE),
                        8, nullptr, nullptr);
    ucx_firehose_put_nb(world.nodes[0], 1, world.locals[0], world.at(1, 0), 8,
                        nullptr, nullptr);
    world.run();
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, flush(world, 0, 1));
    EXPECT_EQ(UCS_OK, flush(world, 0, 1));
}

TEST_F(test_firehose, a_bound_of_zero)
{
    options opts;
    opts.memory = 0;
    firehose_world world(opts);

    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT, put(world, 0, 1, 0, world.at(1, 0), 8));
    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT,
              put(world, 0, 1, 0, world.at(1, 0), 9 * PAGE, false));
}

TEST_F(test_firehose, bad_parameters)
{
    ucp_wire_sim_params_t network = {};
    ucx_firehose_params_t params  = {};
    ucx_firehose_h firehose;
    ucp_wire_sim_t *sim;

    params.num_nodes = 2;
    params.node      = 2;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucx_firehose_open(&params, &firehose));
    network.num_nodes = 6;
    sim               = ucp_wire_sim_create(&network);
    auto create       = [&](unsigned node) {
        ucp_wire_t *wire; /* destroyed by the failure */

        EXPECT_EQ(UCS_OK, ucp_wire_sim_open(sim, node, nullptr, &wire));
        return ucp_firehose_create(&params, wire, &firehose);
    };
    unsigned number   = 0;
    params.node       = 0;
    params.field_mask = UCX_FIREHOSE_PARAM_FIELD_BUCKET;
    for (size_t bucket : {size_t(0), size_t(2048), 3 * PAGE, size_t(1) << 41}) {
        params.bucket = bucket;
        EXPECT_EQ(UCS_ERR_INVALID_PARAM, create(number++));
    }
    params.field_mask = UCX_FIREHOSE_PARAM_FIELD_VICTIMS;
    params.victims    = PAGE - 1;
    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT, create(number));
    ucp_wire_sim_destroy(sim);
}

TEST_F(test_firehose, a_failed_registration_fails_one_operation)
{
    firehose_world world({});

    world.run();
    ucp_wire_sim_fail_reg(world.sim, 1, 1);
    EXPECT_EQ(UCS_OK, put(world, 0, 1, 0, world.at(1, 0), 8));
    EXPECT_TRUE(UCS_STATUS_IS_ERR(put(world, 0, 1, 0, world.at(1, PAGE), 8)));
    EXPECT_EQ(UCS_OK, put(world, 0, 1, 0, world.at(1, PAGE), 8));
    ucp_wire_sim_fail_reg(world.sim, 0, 0);
    EXPECT_TRUE(
            UCS_STATUS_IS_ERR(put(world, 0, 1, 9 * PAGE, world.at(1, 0), 8)));
    EXPECT_EQ(UCS_OK, put(world, 0, 1, 9 * PAGE, world.at(1, 0), 8));
}

TEST_F(test_firehose, released_memory_may_be_unmapped)
{
    options opts;
    opts.arena = 128;
    firehose_world world(opts);

    fill(world, 4);
    for (unsigned round = 0; round < 20; ++round) {
        uint64_t start = world.at(1, (5 + 5 * round) * PAGE);
        uint64_t end   = start + 4 * PAGE;

        ASSERT_EQ(UCS_OK, put(world, 0, 1, 7, start + 11, 3 * PAGE));
        /* More are under way while it is taken back */
        for (unsigned i = 0; i < 20; ++i) {
            ucx_firehose_put_nb(world.nodes[0], 1, world.locals[0],
                                start + 100 * i, 50, nullptr, nullptr);
            if (i % 3 == round % 3) {
                world.step();
            }
        }
        flush(world, 0, 1); /* the program has done with it */
        uint64_t doom = ucp_firehose_revoke(world.nodes[1], start, end);
        while (!ucp_firehose_is_released(world.nodes[1], doom)) {
            ASSERT_TRUE(world.step());
        }
        EXPECT_GT(world.attr(1).revokes, round);
        ASSERT_EQ(0, munmap((void *)start, end - start));
        ucp_wire_sim_unmap(world.sim, 1, (void *)start, end - start);
        ASSERT_EQ(UCS_ERR_INVALID_ADDR, put(world, 0, 1, 0, start, 8));
    }
}

TEST_F(test_firehose, an_event_takes_out_at_once_and_drops_at_the_next_progress)
{
    firehose_world world({});
    uint64_t start = world.at(1, 5 * PAGE), misses;

    ASSERT_EQ(UCS_OK, put(world, 0, 1, 0, start, 8));
    ASSERT_EQ(UCS_OK, flush(world, 0, 1));
    ucp_firehose_unmapped(world.nodes[1], start, start + PAGE);
    EXPECT_EQ(PAGE, world.attr(1).pinned); /* nothing waits inside munmap() */
    ASSERT_EQ(UCS_OK, put(world, 1, 0, 0, world.at(0, 0), 8));
    world.run();
    EXPECT_EQ(1u, world.attr(1).revokes);
    EXPECT_EQ(2u, world.attr(1).pins);
    EXPECT_EQ(1u, world.attr(1).unpins);
    misses = world.attr(0).misses;
    ASSERT_EQ(UCS_OK, put(world, 0, 1, 0, start, 8));
    EXPECT_EQ(misses + 1, world.attr(0).misses);
    EXPECT_EQ(3u, world.attr(1).pins); /* anew */
}

TEST_F(test_firehose, a_peer_that_dies)
{
    options opts;
    opts.nodes = 3;
    firehose_world world(opts);
    std::vector<firehose_result> results(200);
    firehose_result flushed;

    put(world, 1, 0, 0, world.at(0, 0), 12 * PAGE); /* it holds memory here */
    for (unsigned i = 0; i < results.size(); ++i) {
        results[i].begin(ucx_firehose_put_nb(
                world.nodes[0], 1, world.locals[0] + 100 * i,
                world.at(1, (i * 5 % 60) * PAGE), 100, firehose_result::done,
                &results[i]));
        if (i % 10 == 0) {
            world.step();
        }
    }
    flushed.begin(ucx_firehose_flush_nb(world.nodes[0], 1,
                                        firehose_result::done, &flushed));
    ucp_wire_sim_kill(world.sim, 1);
    world.run();
    unsigned failed = 0;
    for (auto &result : results) {
        EXPECT_NE(UCS_INPROGRESS, result.status);
        EXPECT_LE(result.calls, 1u);
        failed += result.status != UCS_OK;
    }
    EXPECT_GT(failed, 0u);
    EXPECT_TRUE(UCS_STATUS_IS_ERR(flushed.status));
    EXPECT_TRUE(UCS_STATUS_IS_ERR(put(world, 0, 1, 0, world.at(1, 0), 8)));
    EXPECT_EQ(UCS_OK, put(world, 0, 2, 0, world.at(2, 0), 20 * PAGE));
    EXPECT_EQ(UCS_OK, put(world, 2, 0, 0, world.at(0, 0), 20 * PAGE));
}
