/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "pipeline_world.h"

#include <memory>
#include <string>

class test_pipeline : public ::testing::Test {
protected:
    void start(ucx_pipeline_mode_t mode, unsigned num_nodes = 2)
    {
        options = pipeline_world::options(mode);
        world.reset(new pipeline_world(pipeline_world::network(num_nodes, 1),
                                       options));
    }

    ucx_pipeline_request_h send(const std::vector<char> &bytes, uint64_t tag)
    {
        ucx_pipeline_request_h req = NULL;
        EXPECT_EQ(UCS_OK, ucx_pipeline_send(world->nodes[0], 1, tag,
                                            bytes.data(), bytes.size(), &req));
        return req;
    }

    ucx_pipeline_request_h recv(std::vector<char> &bytes, uint64_t tag,
                                unsigned peer = 0)
    {
        ucx_pipeline_request_h req = NULL;
        EXPECT_EQ(UCS_OK,
                  ucx_pipeline_recv(world->nodes[1], peer, tag, ~0ull,
                                    bytes.data(), bytes.size(), &req));
        return req;
    }

    ucs_status_t end(ucx_pipeline_request_h req)
    {
        ucx_pipeline_status_t status = {UCS_INPROGRESS, 0, 0, 0};
        EXPECT_TRUE(ucx_pipeline_test(req, &status));
        EXPECT_EQ(UCS_OK, ucx_pipeline_request_free(req));
        return status.status;
    }

    void transfer()
    {
        auto in = recv(target, 1);
        auto out = send(source, 1);
        world->run();
        EXPECT_EQ(UCS_OK, end(out));
        EXPECT_EQ(UCS_OK, end(in));
        EXPECT_EQ(source, target);
    }

    ucx_pipeline_options_t options;
    std::unique_ptr<pipeline_world> world;
    std::vector<char> source = std::vector<char>(100000, 's');
    std::vector<char> target = std::vector<char>(100000, 't');
};

TEST_F(test_pipeline, at_most_depth_fragments_are_registered)
{
    start(UCX_PIPELINE_MODE_PIPELINE);
    transfer();
    EXPECT_EQ(options.depth, world->stats(1).registered_peak);
    EXPECT_LE(world->stats(0).registered_peak, options.depth);
    EXPECT_EQ(0u, world->stats(0).registered);
    EXPECT_EQ(0u, world->stats(1).registered);
    /* from the offset on, in fragments */
    EXPECT_EQ((100000u - 2048 + 4095) / 4096, world->stats(0).puts);
    EXPECT_EQ(2048u, world->pipeline_stats(0).copied);
    EXPECT_EQ(100000u - 2048, world->pipeline_stats(0).written);
}

TEST_F(test_pipeline, the_cache_registers_once)
{
    PIPELINE_TEST_NEEDS_UCM();
    start(UCX_PIPELINE_MODE_CACHE);
    transfer();
    uint64_t before = world->stats(1).registrations;
    target.assign(target.size(), 0);
    transfer();
    EXPECT_EQ(before, world->stats(1).registrations);
    EXPECT_EQ(before, world->pipeline_stats(1).reused);
    EXPECT_GT(before, 0u);
}

TEST_F(test_pipeline, the_cache_forgets_what_is_unmapped)
{
    PIPELINE_TEST_NEEDS_UCM();
    start(UCX_PIPELINE_MODE_CACHE);
    transfer();
    ucp_pipeline_unmapped(world->nodes[1], target.data(), target.size());
    ucp_wire_sim_stats_t before = world->stats(1);
    transfer();
    EXPECT_EQ(2 * before.registrations, world->stats(1).registrations);
}

TEST_F(test_pipeline, the_cache_keeps_within_its_bytes)
{
    PIPELINE_TEST_NEEDS_UCM();
    options = pipeline_world::options(UCX_PIPELINE_MODE_CACHE);
    options.cache_bytes = 20000;
    world.reset(new pipeline_world(pipeline_world::network(2, 1), options));
    transfer();
    EXPECT_LE(world->stats(1).bytes, options.cache_bytes);
    EXPECT_GT(world->stats(1).bytes, 0u);
}

TEST_F(test_pipeline, copies_register_nothing)
{
    start(UCX_PIPELINE_MODE_COPY);
    transfer();
    EXPECT_EQ(0u, world->stats(0).registrations);
    EXPECT_EQ(0u, world->stats(1).registrations);
    EXPECT_EQ(100000u, world->pipeline_stats(0).copied);
}

TEST_F(test_pipeline, a_fragment_that_cannot_be_registered_is_copied)
{
    start(UCX_PIPELINE_MODE_PIPELINE);
    ucp_wire_sim_fail_reg(world->sim, 0, 2);
    ucp_wire_sim_fail_reg(world->sim, 1, 4);
    transfer();
    EXPECT_EQ(1u, world->pipeline_stats(0).failed);
    EXPECT_EQ(1u, world->pipeline_stats(1).failed);
    EXPECT_EQ(2048u + 2 * 4096, world->pipeline_stats(0).copied);
}

TEST_F(test_pipeline, a_longer_message_is_truncated_and_the_sender_ends)
{
    start(UCX_PIPELINE_MODE_PIPELINE);
    std::vector<char> room(60000), next(100000);
    auto in = recv(room, 1), in_next = recv(next, 1);
    auto out = send(source, 1), out_next = send(source, 1);
    world->run();
    EXPECT_EQ(UCS_OK, end(out));
    EXPECT_EQ(UCS_ERR_MESSAGE_TRUNCATED, end(in));
    EXPECT_EQ(UCS_OK, end(out_next));
    EXPECT_EQ(UCS_OK, end(in_next));
    EXPECT_EQ(source, next);
}

TEST_F(test_pipeline, a_canceled_receive_takes_nothing)
{
    start(UCX_PIPELINE_MODE_PIPELINE);
    std::vector<char> other(100000);
    auto gone = recv(other, 1), in = recv(target, 1);
    EXPECT_EQ(UCS_OK, ucx_pipeline_cancel(gone));
    EXPECT_EQ(UCS_ERR_BUSY, ucx_pipeline_cancel(gone));
    auto out = send(source, 1);
    EXPECT_EQ(UCS_ERR_UNSUPPORTED, ucx_pipeline_cancel(out));
    EXPECT_EQ(UCS_ERR_BUSY, ucx_pipeline_request_free(out));
    EXPECT_EQ(UCS_ERR_BUSY, ucx_pipeline_destroy(world->nodes[0]));
    world->run();
    EXPECT_EQ(UCS_ERR_CANCELED, end(gone));
    EXPECT_EQ(UCS_OK, end(in));
    EXPECT_EQ(UCS_OK, end(out));
    EXPECT_EQ(source, target);
}

TEST_F(test_pipeline, who_waits_for_a_dead_peer_is_told)
{
    start(UCX_PIPELINE_MODE_PIPELINE, 3);
    std::vector<char> other(100);
    auto named = recv(target, 1), any = recv(other, 2, UCX_PIPELINE_ANY_SOURCE);
    world->kill(0);
    world->run();
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, end(named));
    EXPECT_FALSE(ucx_pipeline_test(any, NULL)); /* node 2 may still send */
    ucx_pipeline_request_h req;
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET,
              ucx_pipeline_send(world->nodes[1], 0, 1, source.data(), 8, &req));
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET,
              ucx_pipeline_recv(world->nodes[1], 0, 1, 0, source.data(), 8,
                                &req));
    EXPECT_EQ(UCS_OK, ucx_pipeline_cancel(any));
    EXPECT_EQ(UCS_ERR_CANCELED, end(any));
}

TEST_F(test_pipeline, empty_messages_and_messages_to_oneself)
{
    start(UCX_PIPELINE_MODE_PIPELINE);
    std::vector<char> nothing;
    auto in = recv(nothing, 7);
    auto out = send(nothing, 7);
    ucx_pipeline_request_h self_out, self_in;
    EXPECT_EQ(UCS_OK, ucx_pipeline_send(world->nodes[1], 1, 3, source.data(),
                                        source.size(), &self_out));
    EXPECT_EQ(UCS_OK, ucx_pipeline_recv(world->nodes[1], 1, 3, ~0ull,
                                        target.data(), target.size(),
                                        &self_in));
    world->run();
    EXPECT_EQ(UCS_OK, end(in));
    EXPECT_EQ(UCS_OK, end(out));
    EXPECT_EQ(UCS_OK, end(self_in));
    EXPECT_EQ(UCS_OK, end(self_out));
    EXPECT_EQ(source, target);
}

TEST(test_pipeline_options, what_is_not_allowed_is_refused)
{
    ucx_pipeline_options_t options;
    ucx_pipeline_h pipeline = NULL;
    auto refused = [&](void (*change)(ucx_pipeline_options_t &)) {
        ucx_pipeline_options_init(&options);
        change(options);
        testing::internal::CaptureStderr();
        ucs_status_t status = ucx_pipeline_create(0, 1, &options, &pipeline);
        std::string line = testing::internal::GetCapturedStderr();
        return (status == UCS_ERR_INVALID_PARAM) &&
               (line.find("option") != std::string::npos);
    };
    EXPECT_TRUE(refused([](ucx_pipeline_options_t &o) { o.depth = 0; }));
    EXPECT_TRUE(refused([](ucx_pipeline_options_t &o) { o.depth = 1025; }));
    EXPECT_TRUE(refused([](ucx_pipeline_options_t &o) { o.eager = 65537; }));
    EXPECT_TRUE(refused([](ucx_pipeline_options_t &o) { o.fragment = 5000; }));
    EXPECT_TRUE(refused([](ucx_pipeline_options_t &o) { o.fragment = 2048; }));
    EXPECT_TRUE(refused([](ucx_pipeline_options_t &o) { o.size = 3; }));
    EXPECT_TRUE(refused([](ucx_pipeline_options_t &o) {
        o.mode = (ucx_pipeline_mode_t)3;
    }));
}
