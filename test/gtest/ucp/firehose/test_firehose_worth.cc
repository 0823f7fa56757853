/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "firehose_world.h"

extern "C" {
#include <ucp/firehose/firehose_tuning.h>
#include <ucp/firehose/worth.h>
}

/* How long victims are kept */

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

/* Victims that nobody wants are let go though there is room for them */
TEST_F(test_firehose_worth, what_is_not_worth_its_memory_goes)
{
    const size_t PAGE = firehose_world::PAGE;

    for (unsigned flags : {0u, (unsigned)UCX_FIREHOSE_FLAG_ADAPT}) {
        firehose_world::options opts;
        opts.memory   = 8;
        opts.victims  = 2000;
        opts.arena    = 4096;
        opts.flags    = flags;
        opts.reg_cost = 1000;
        firehose_world world(opts);
        size_t most = 0;

        for (size_t page = 0; page < 2000; ++page) {
            firehose_result result;

            result.begin(ucx_firehose_put_nb(world.nodes[0], 1, world.locals[0],
                                             world.at(1, page * PAGE), 8,
                                             firehose_result::done, &result));
            world.run();
            ASSERT_EQ(UCS_OK, result.status);
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
