/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "pipeline_fixture.h"

#include <algorithm>
#include <cstring>
#include <string>

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

/* What the policy overlap does beside UCP's own rendezvous: the receiver's first
 * fragment is registered during the handshake, the sender's next ones while data
 * moves */
TEST_F(test_pipeline, registrations_overlap_handshake_and_data)
{
    bool is_moving = false, is_met = false;

    start(UCX_PIPELINE_MODE_PIPELINE);
    uint64_t before_out = world->stats(0).registrations;
    uint64_t before_in  = world->stats(1).registrations;
    size_t fragments    = (source.size() - options.rdma_offset +
                           options.fragment - 1) / options.fragment;
    auto in  = recv(target, 1);
    auto out = send(source, 1);
    for (int quiet = 0; quiet < 20; quiet = world->step() ? 0 : quiet + 1) {
        uint64_t sent = world->stats(0).registrations - before_out;
        if (!is_met && (world->stats(1).registrations > before_in)) {
            is_met = true;
            /* What came with the match is there, and nothing else yet */
            EXPECT_EQ('t', target[options.eager]);
            EXPECT_EQ(0u, sent);
        }
        is_moving |= (sent > 0) && (sent < fragments) &&
                     (target[options.rdma_offset] == 's');
    }
    EXPECT_TRUE(is_met);
    EXPECT_TRUE(is_moving);
    EXPECT_EQ(UCS_OK, end(out));
    EXPECT_EQ(UCS_OK, end(in));
    EXPECT_EQ(source, target);
}

TEST_F(test_pipeline, the_cache_forgets_what_is_unmapped)
{
    PIPELINE_TEST_NEEDS_UCM();
    start(UCX_PIPELINE_MODE_CACHE);
    uint64_t probes = world->stats(1).registrations;
    transfer();
    ucp_pipeline_unmapped(world->nodes[1], target.data(), target.size());
    ucp_wire_sim_stats_t before = world->stats(1);
    transfer();
    EXPECT_EQ(2 * before.registrations - probes,
              world->stats(1).registrations);
}

TEST_F(test_pipeline, what_is_not_worth_its_rent_goes)
{
    PIPELINE_TEST_NEEDS_UCM();
    start(UCX_PIPELINE_MODE_CACHE);
    transfer();
    EXPECT_GT(world->pipeline_stats(1).kept, 0u);
    /* a registration takes 2 us; 25 of them are kept, which may cost half a
     * percent: 10 ms, and longer for the short one at the end */
    for (uint64_t ms : {2, 3, 1000}) {
        ucp_wire_sim_work(world->sim, 1, ms * 1000000);
        ucx_pipeline_progress(world->nodes[1]);
        EXPECT_EQ(ms < 1000, world->pipeline_stats(1).kept > 0) << ms;
    }
    EXPECT_EQ(0u, world->stats(1).registered);
    transfer();
}

TEST_F(test_pipeline, what_has_no_rent_stays)
{
    PIPELINE_TEST_NEEDS_UCM();
    options              = pipeline_world::options(UCX_PIPELINE_MODE_CACHE);
    options.max_slowdown = 0;
    open();
    transfer();
    size_t kept = world->pipeline_stats(1).kept;
    EXPECT_GT(kept, 0u);
    ucp_wire_sim_work(world->sim, 1, 1000000000000);
    ucx_pipeline_progress(world->nodes[1]);
    EXPECT_EQ(kept, world->pipeline_stats(1).kept);
}

TEST_F(test_pipeline, a_buffer_that_comes_again_is_not_copied)
{
    PIPELINE_TEST_NEEDS_UCM();
    options             = pipeline_world::options(UCX_PIPELINE_MODE_CACHE);
    options.rdma_offset = UCX_PIPELINE_DERIVED;
    open();
    transfer();
    EXPECT_EQ(options.fragment, world->pipeline_stats(0).copied);
    transfer(); /* only what goes with the header */
    EXPECT_EQ(options.fragment + options.eager,
              world->pipeline_stats(0).copied);
    uint64_t before = world->stats(0).registrations;
    transfer();
    EXPECT_EQ(before, world->stats(0).registrations);
}

/* Virtual nanoseconds of a message, once another has shown what costs are */
uint64_t test_pipeline::time_of_second(const ucp_wire_sim_params_t &network,
                                       size_t fragment)
{
    ucx_pipeline_options_init(&options);
    options.mode     = UCX_PIPELINE_MODE_PIPELINE;
    options.fragment = fragment;
    open(network);
    transfer();
    uint64_t start = ucp_wire_sim_time(world->sim, 1);
    transfer();
    return ucp_wire_sim_time(world->sim, 1) - start;
}

TEST_F(test_pipeline, fragments_follow_from_costs)
{
    /* costs of 2006 and of today, see docs/paper_b.md */
    struct {
        double wire, page;
        uint64_t base;
    } rows[] = {{1.346, 1980, 7000}, {0.08, 250, 20000}};
    source.assign(8 << 20, 's');
    target.assign(8 << 20, 't');
    for (auto &row : rows) {
        auto network           = pipeline_world::network(2, 1);
        network.jitter         = 0;
        network.ns_per_byte    = row.wire;
        network.reg_base       = row.base;
        network.reg_per_page   = row.page;
        network.dereg_base     = row.base / 2;
        network.dereg_per_page = row.page / 2;
        uint64_t best          = UINT64_MAX;
        for (size_t fragment = 64 << 10; fragment <= (4 << 20); fragment *= 2) {
            best = std::min(best, time_of_second(network, fragment));
        }
        EXPECT_LE(time_of_second(network, 0), 1.03 * best) << row.wire;
    }
}

TEST_F(test_pipeline, copies_of_a_short_message_overlap)
{
    auto network          = pipeline_world::network(2, 1);
    network.jitter        = 0;
    network.ns_per_byte   = 1;
    network.copy_per_byte = 1;
    ucx_pipeline_options_init(&options);
    options.mode = UCX_PIPELINE_MODE_COPY;
    open(network);
    source.assign(64 << 10, 's');
    target.assign(64 << 10, 't');
    uint64_t start = ucp_wire_sim_time(world->sim, 1);
    transfer();
    /* out, across and in, one after the other, would be three times as long */
    EXPECT_LT(ucp_wire_sim_time(world->sim, 1) - start,
              1.5 * source.size());
}

TEST_F(test_pipeline, the_cache_keeps_within_its_bytes)
{
    PIPELINE_TEST_NEEDS_UCM();
    options = pipeline_world::options(UCX_PIPELINE_MODE_CACHE);
    options.cache_bytes = 20000;
    open();
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

/* Whoever cannot send has lost the peer, and ends; the peer hears of it when this
 * process is gone */
TEST_F(test_pipeline, what_cannot_be_sent_ends_its_peer)
{
    unsigned lost = 0;
    for (unsigned fails = 50000; fails < 500000; fails += 50000) {
        start(UCX_PIPELINE_MODE_PIPELINE, fails);
        ucx_pipeline_request_h reqs[2];
        int waits = -1;
        reqs[1]   = recv(target, 1);
        while (ucx_pipeline_send(world->nodes[0], 1, 1, source.data(),
                                 source.size(), &reqs[0]) != UCS_OK) {
        }
        world->run();
        for (int node : {0, 1}) {
            if (!ucx_pipeline_test(reqs[node], NULL)) {
                ASSERT_EQ(-1, waits) << "both wait for the other";
                waits = node;
            }
        }
        if (waits >= 0) {
            EXPECT_EQ(UCS_ERR_NO_MEMORY, end(reqs[1 - waits]));
            EXPECT_EQ(0u, world->stats(1 - waits).registered);
            world->kill(1 - waits);
            world->run();
            EXPECT_EQ(UCS_ERR_CONNECTION_RESET, end(reqs[waits]));
            EXPECT_EQ(0u, world->stats(waits).registered);
            ++lost;
        } else {
            EXPECT_EQ(end(reqs[0]) == UCS_OK, end(reqs[1]) == UCS_OK);
        }
    }
    EXPECT_GT(lost, 3u);
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

TEST_F(test_pipeline, a_probe_tells_of_the_oldest_that_a_receive_would_take)
{
    start(UCX_PIPELINE_MODE_PIPELINE);
    ucx_pipeline_status_t status = {UCS_INPROGRESS, 0, 0, 0};
    ucx_pipeline_h node          = world->nodes[1];
    EXPECT_FALSE(ucx_pipeline_probe(node, UCX_PIPELINE_ANY_SOURCE, 0, 0,
                                    &status));
    std::vector<char> other(5000, 'o');
    auto first  = send(source, 0x17);
    auto second = send(other, 0x27);
    world->run();
    EXPECT_FALSE(ucx_pipeline_probe(node, 0, 0x18, ~0ull, &status));
    EXPECT_FALSE(ucx_pipeline_probe(node, 1, 0x17, ~0ull, &status));
    EXPECT_TRUE(ucx_pipeline_probe(node, 0, 7, 0xf, &status));
    EXPECT_EQ(source.size(), status.length);
    EXPECT_EQ(0x17u, status.tag);
    EXPECT_EQ(0u, status.peer);
    EXPECT_TRUE(ucx_pipeline_probe(node, 0, 0x27, ~0ull, &status));
    EXPECT_EQ(other.size(), status.length);

    auto in = recv(target, 0x17); /* taken: no probe finds it any more */
    EXPECT_TRUE(ucx_pipeline_probe(node, 0, 7, 0xf, &status));
    EXPECT_EQ(other.size(), status.length);
    auto last = recv(other, 0x27);
    EXPECT_FALSE(ucx_pipeline_probe(node, UCX_PIPELINE_ANY_SOURCE, 0, 0, NULL));
    world->run();
    for (auto req : {first, second, in, last}) {
        EXPECT_EQ(UCS_OK, end(req));
    }
}

TEST_F(test_pipeline, what_a_matched_probe_took_no_receive_finds)
{
    start(UCX_PIPELINE_MODE_PIPELINE);
    ucx_pipeline_message_h message;
    ucx_pipeline_status_t status;
    ucx_pipeline_request_h taken;
    ucx_pipeline_h node = world->nodes[1];
    std::vector<char> other(5000, 'o'), room(source.size());
    auto first = send(source, 1), second = send(other, 1);
    world->run();
    EXPECT_FALSE(ucx_pipeline_mprobe(node, 0, 2, ~0ull, &message, &status));
    EXPECT_TRUE(ucx_pipeline_mprobe(node, 0, 1, ~0ull, &message, &status));
    EXPECT_EQ(source.size(), status.length);
    EXPECT_TRUE(ucx_pipeline_probe(node, 0, 1, ~0ull, &status));
    EXPECT_EQ(other.size(), status.length);

    auto in = recv(target, 1);
    EXPECT_FALSE(ucx_pipeline_probe(node, 0, 1, ~0ull, &status));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              ucx_pipeline_mrecv(node, message, NULL, 1, &taken));
    EXPECT_EQ(UCS_OK, ucx_pipeline_mrecv(node, message, room.data(),
                                         room.size(), &taken));
    world->run();
    for (auto req : {first, second, in, taken}) {
        EXPECT_EQ(UCS_OK, end(req));
    }
    EXPECT_EQ(source, room);
    EXPECT_EQ(0, memcmp(other.data(), target.data(), other.size()));
}

TEST_F(test_pipeline, what_a_matched_probe_took_of_a_dead_peer_is_lost)
{
    start(UCX_PIPELINE_MODE_PIPELINE);
    ucx_pipeline_message_h message, whole;
    ucx_pipeline_request_h taken;
    ucx_pipeline_h node = world->nodes[1];
    std::vector<char> small(10, 's'), room(10);
    send(small, 1);
    send(source, 1);
    world->run();
    EXPECT_TRUE(ucx_pipeline_mprobe(node, 0, 1, ~0ull, &whole, NULL));
    EXPECT_TRUE(ucx_pipeline_mprobe(node, 0, 1, ~0ull, &message, NULL));
    EXPECT_EQ(UCS_ERR_BUSY, ucx_pipeline_destroy(node));
    world->kill(0);
    world->run();
    EXPECT_NE(UCS_OK, ucx_pipeline_mrecv(node, message, target.data(),
                                         target.size(), &taken));
    EXPECT_EQ(UCS_OK, ucx_pipeline_mrecv(node, whole, room.data(), room.size(),
                                         &taken));
    EXPECT_EQ(UCS_OK, end(taken)); /* it was here when the peer died */
    EXPECT_EQ(small, room);
}

TEST_F(test_pipeline, what_a_lost_peer_leaves_is_not_pinned)
{
    /* In each mode either node dies after each number of steps in turn, while
     * it sends and receives: once the other was told, nothing of its messages
     * is registered or unpacked, and a sanitizer finds nothing left allocated
     * that the other one made. */
    PIPELINE_TEST_NEEDS_UCM();
    for (auto mode : {UCX_PIPELINE_MODE_PIPELINE, UCX_PIPELINE_MODE_CACHE,
                      UCX_PIPELINE_MODE_COPY}) {
        for (unsigned dying = 0; dying < 2; ++dying) {
            bool is_over = false;
            for (unsigned steps = 0; !is_over; ++steps) {
                SCOPED_TRACE(testing::Message() << "mode " << mode << ", node "
                             << dying << " dies after " << steps << " steps");
                start(mode);
                is_over = die_after(dying, steps);
                if (HasFailure()) {
                    return;
                }
            }
        }
    }
    EXPECT_GT(m_lost, 50u);
}

TEST_F(test_pipeline, what_a_lost_peer_wrote_is_in_no_later_message)
{
    /* What it put on its way arrives after this node was told of its death, and
     * after the receive that it was for: the buffer is another message's then */
    PIPELINE_TEST_NEEDS_UCM();
    unsigned lost      = 0;
    ucs_status_t ended = UCS_INPROGRESS;
    for (unsigned steps = 1; ended != UCS_OK; ++steps) {
        start(UCX_PIPELINE_MODE_CACHE);
        target.assign(target.size(), 't');
        auto in       = recv(target, 1);
        world->mortal = 0;
        {
            pipeline_leak_is_allowed of_the_dead(true);
            send(source, 1);
        }
        for (unsigned i = 0; (i < steps) && world->step(); ++i) {
        }
        world->kill(0);
        while (!ucx_pipeline_test(in, NULL) && world->step()) {
        }
        ended = end(in);
        target.assign(target.size(), 'x');
        world->run();
        ASSERT_EQ(std::string::npos,
                  std::string(target.begin(), target.end()).find('s'))
                << steps << " steps";
        lost += ended != UCS_OK;
    }
    EXPECT_GT(lost, 20u);
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
