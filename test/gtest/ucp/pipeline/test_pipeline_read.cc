/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "pipeline_fixture.h"

#include <cstring>

/* Messages between the same two buffers, short and long ones */
class test_pipeline_read : public test_pipeline {
protected:
    void SetUp() override
    {
        PIPELINE_TEST_NEEDS_UCM();
        begin();
    }

    void begin(uint64_t reg_base = 100000)
    {
        options = pipeline_world::options(UCX_PIPELINE_MODE_CACHE);
        start_reading(reg_base);
    }

    /* Both ends are registered; true once a message was read */
    bool warm_up()
    {
        for (int i = 0; (i < 10) && (world->stats(1).gets == 0); ++i) {
            transfer();
        }
        return world->stats(1).gets > 0;
    }

    /* Both ends have registered a message of `length` bytes, fragment by
     * fragment */
    void begin_long(size_t length)
    {
        begin();
        source.resize(length);
        for (size_t i = 0; i < length; ++i) {
            source[i] = (char)(i * 2654435761u >> 24);
        }
        target.resize(length);
        transfer();
        transfer();
        ASSERT_GE(kept(0), length); /* one fragment may lie otherwise there */
        ASSERT_EQ(length, kept(1));
    }

    size_t kept(unsigned node) const
    {
        return world->pipeline_stats(node).kept;
    }

    /* One more transfer is two messages and these reads, and nothing else */
    uint64_t reads_alone()
    {
        auto sender = world->stats(0), receiver = world->stats(1);
        uint64_t copied = world->pipeline_stats(0).copied;
        target.assign(target.size(), 't');
        transfer();
        EXPECT_EQ(sender.messages + 1, world->stats(0).messages);
        EXPECT_EQ(receiver.messages + 1, world->stats(1).messages);
        EXPECT_EQ(sender.puts, world->stats(0).puts);
        EXPECT_EQ(copied, world->pipeline_stats(0).copied);
        EXPECT_EQ(sender.registrations, world->stats(0).registrations);
        EXPECT_EQ(receiver.registrations, world->stats(1).registrations);
        return world->stats(1).gets - receiver.gets;
    }
};

TEST_F(test_pipeline_read, what_both_ends_have_registered_is_read)
{
    ASSERT_TRUE(warm_up());
    EXPECT_EQ(1u, reads_alone());
    EXPECT_EQ(2 * source.size(), world->pipeline_stats(1).read);
}

TEST_F(test_pipeline_read, both_ends_register_at_once)
{
    bool is_sender_first = false;
    transfer(); /* these are copied */
    transfer();
    auto sender = world->stats(0), receiver = world->stats(1);
    auto in = recv(target, 1), out = send(source, 1);
    while (world->stats(0).puts == 0) {
        ASSERT_TRUE(world->step());
        /* it is not asked for a fragment by then, the receiver registers */
        is_sender_first |= (world->stats(0).puts == 0) &&
                           (world->stats(0).registrations >
                            sender.registrations);
    }
    finish(in, out);
    EXPECT_TRUE(is_sender_first);
    EXPECT_EQ(sender.registrations + 1, world->stats(0).registrations);
    EXPECT_EQ(receiver.registrations + 1, world->stats(1).registrations);
    EXPECT_EQ(source.size(), kept(0)); /* all of it, so that it can be read */
    EXPECT_EQ(target.size(), kept(1));
}

TEST_F(test_pipeline_read, a_short_buffer_that_is_new_is_copied_at_any_cost)
{
    begin(100);
    std::vector<char> memory(20 * target.size());
    uint64_t before = world->stats(1).registrations;
    for (unsigned i = 0; i < 20; ++i) {
        transfer(source.data(), &memory[i * source.size()], source.size());
    }
    EXPECT_EQ(before, world->stats(1).registrations);
}

TEST_F(test_pipeline_read, short_buffers_that_come_in_turn_are_all_registered)
{
    std::vector<char> memory(48 * source.size());
    for (unsigned round = 0; round < 8; ++round) {
        for (size_t at = 0; at < memory.size(); at += source.size()) {
            transfer(source.data(), &memory[at], source.size());
        }
    }
    EXPECT_EQ(memory.size(), kept(1));
}

/* One of two fragments is no faster in fragments, and one of more than some is */
TEST_F(test_pipeline_read, a_message_of_some_fragments_is_copied_as_a_whole)
{
    for (bool is_short : {true, false}) {
        begin();
        source.assign((is_short ? 3 : 5) << 17, 's');
        target.resize(source.size());
        uint64_t before = world->stats(1).registrations;
        transfer();
        EXPECT_EQ(is_short, world->stats(1).registrations == before);
        EXPECT_EQ(is_short,
                  world->pipeline_stats(0).copied == source.size());
        for (int i = 0; (i < 10) && (world->stats(1).gets == 0); ++i) {
            transfer();
        }
        uint64_t gets = world->stats(1).gets;
        transfer();
        EXPECT_EQ(is_short, world->stats(1).gets == gets + 1);
    }
}

/* Also across what is an end of a long message's fragments */
TEST_F(test_pipeline_read, a_short_buffer_is_one_registration_wherever_it_lies)
{
    std::vector<char> memory(4 << 17);
    uintptr_t edge = ((uintptr_t)memory.data() + (1 << 18)) & ~((1ul << 17) - 1);
    char *room     = (char*)(edge - 40000);
    for (int i = 0; i < 6; ++i) {
        transfer(source.data(), room, source.size());
    }
    EXPECT_GT(world->stats(1).gets, 0u);
    EXPECT_EQ(1u, world->stats(1).registered);
    EXPECT_EQ(source.size(), kept(1));
}

/* What a longer message left here are two segments: both are read into, and
 * nothing is registered again */
TEST_F(test_pipeline_read, what_is_kept_in_segments_is_read_in_pieces)
{
    ASSERT_TRUE(warm_up()); /* the sender's is registered as a whole */
    std::vector<char> memory(8 << 17), longer(6 << 17, 'l');
    uintptr_t edge = ((uintptr_t)memory.data() + (1 << 18)) & ~((1ul << 17) - 1);
    char *room     = (char*)(edge - 40000);
    uint64_t gets  = 0, registrations = 0;
    for (int i = 0; i < 4; ++i) {
        auto &from = (i < 3) ? longer : source;
        gets          = world->stats(1).gets;
        registrations = world->stats(1).registrations;
        transfer(from.data(), room, from.size());
    }
    EXPECT_EQ(gets + 2, world->stats(1).gets);
    EXPECT_EQ(registrations, world->stats(1).registrations);
}

/* Both ends have a message of eight fragments registered by these */
TEST_F(test_pipeline_read, a_long_message_is_read_fragment_by_fragment)
{
    begin_long(1 << 20);
    uint64_t reads = reads_alone();
    EXPECT_GE(reads, 8u);
    EXPECT_LE(reads, 9u); /* as it lies */
    EXPECT_EQ(target.size(), kept(1));
    EXPECT_EQ(0u, world->stats(1).keys);
}

/* Also where the bytes that went with the header are all of its first segment */
TEST_F(test_pipeline_read, a_long_message_is_read_wherever_it_begins)
{
    const size_t segment = 1 << 17, length = 8 * segment;
    std::vector<char> memory(length + 2 * segment);
    uintptr_t edge = ((uintptr_t)memory.data() + 2 * segment - 1) &
                     ~(segment - 1);
    source.assign(length, 's');
    for (size_t before : {1, 128, 1023, 1024, 1025, 40000}) {
        begin();
        char *room = (char*)(edge - before);
        for (int i = 0; i < 3; ++i) {
            memset(room, 't', length);
            transfer(source.data(), room, length);
        }
        EXPECT_EQ(length, kept(1)) << before;
        EXPECT_GT(world->stats(1).gets, 0u) << before;
    }
}

/* What this node says to others travels behind what they read of it */
TEST_F(test_pipeline_read, a_long_message_is_read_some_fragments_at_a_time)
{
    begin_long(1 << 20);
    uint64_t before = world->stats(1).gets, at_once;
    auto in = recv(target, 1), out = send(source, 1);
    while (world->stats(1).gets == before) {
        ASSERT_TRUE(world->step());
    }
    at_once = world->stats(1).gets - before;
    finish(in, out);
    EXPECT_GE(at_once, 2u);
    EXPECT_LT(at_once, 8u);
    EXPECT_GE(world->stats(1).gets, before + 8);
}

/* Part of it is not registered any more at one of the ends: it is asked for, and
 * only that part is registered again */
TEST_F(test_pipeline_read, a_long_message_that_lacks_a_part_is_asked_for)
{
    for (unsigned node = 0; node < 2; ++node) {
        begin_long(1 << 20);
        auto &bytes = (node == 0) ? source : target;
        ucp_pipeline_unmapped(world->nodes[node], &bytes[600000], 1);
        auto before       = world->stats(node);
        uint64_t gets     = world->stats(1).gets;
        target.assign(target.size(), 't');
        transfer();
        EXPECT_EQ(gets, world->stats(1).gets);
        EXPECT_EQ(before.registrations + 1, world->stats(node).registrations);
        EXPECT_EQ(0u, world->stats(1).keys);
        target.assign(target.size(), 't');
        transfer();
        EXPECT_GE(world->stats(1).gets, gets + 8);
    }
}

/* Where the keys of all of it find no room nothing is offered */
TEST_F(test_pipeline_read, a_message_of_too_many_fragments_is_written)
{
    begin_long(100 << 17);
    auto before = world->stats(1);
    transfer();
    EXPECT_EQ(before.gets, world->stats(1).gets);
    EXPECT_EQ(before.registrations, world->stats(1).registrations);
    EXPECT_GE(world->stats(0).puts, 100u);
}

/* The ends of one end's registrations are not those of the other's */
TEST_F(test_pipeline_read, what_either_end_registered_otherwise_is_cut_for_both)
{
    begin_long(1 << 20);
    auto registrations = world->stats(0).registrations +
                         world->stats(1).registrations;
    size_t offset      = 3 << 16;
    for (int i = 0; i < 2; ++i) { /* part of it, to where it did not go */
        uint64_t gets = world->stats(1).gets;
        std::fill(target.begin(), target.end(), 't');
        transfer(&source[i * 12345], &target[offset], 500000);
        EXPECT_GE(world->stats(1).gets, gets + 4);
        EXPECT_LE(world->stats(1).gets, gets + 10);
    }
    EXPECT_EQ(registrations, world->stats(0).registrations +
                             world->stats(1).registrations);
}

/* It came back before it was registered at all */
TEST_F(test_pipeline_read, a_short_buffer_is_kept_where_new_ones_are_not)
{
    std::vector<char> memory(8 << 20);
    std::vector<char> out(1 << 20);
    for (unsigned i = 0; i < 8; ++i) {
        transfer(out.data(), &memory[i << 20], out.size());
        ucp_pipeline_unmapped(world->nodes[1], &memory[i << 20], 1 << 20);
    }
    EXPECT_EQ(0u, kept(1));
    for (int i = 0; (i < 8) && (kept(1) == 0); ++i) {
        uint64_t before = world->stats(1).registrations;
        transfer();
        EXPECT_EQ(kept(1) > 0, world->stats(1).registrations > before);
    }
    EXPECT_EQ(target.size(), kept(1));
}

TEST_F(test_pipeline_read, an_unexpected_message_is_read)
{
    ASSERT_TRUE(warm_up());
    uint64_t before = world->stats(1).gets;
    target.assign(target.size(), 't');
    auto out = send(source, 1);
    world->run();
    auto in = recv(target, 1, UCX_PIPELINE_ANY_SOURCE);
    finish(in, out);
    EXPECT_EQ(source, target);
    EXPECT_EQ(before + 1, world->stats(1).gets);
}

TEST_F(test_pipeline_read, one_buffer_is_read_by_two_receives)
{
    ASSERT_TRUE(warm_up());
    uint64_t gets = world->stats(1).gets, regs = world->stats(0).registrations;
    uint64_t reused = world->pipeline_stats(0).reused;
    std::vector<char> other(source.size());
    auto first = send(source, 1), second = send(source, 2);
    auto in = recv(target, 1), in_other = recv(other, 2);
    world->run();
    for (auto req : {first, second, in, in_other}) {
        EXPECT_EQ(UCS_OK, end(req));
    }
    EXPECT_EQ(source, other); /* a new buffer: it was copied */
    EXPECT_EQ(gets + 1, world->stats(1).gets);
    EXPECT_EQ(regs, world->stats(0).registrations);
    EXPECT_EQ(reused + 2, world->pipeline_stats(0).reused); /* both offered */
    EXPECT_EQ(source.size(), kept(0));
}

TEST_F(test_pipeline_read, a_receive_that_is_too_short_reads_nothing)
{
    ASSERT_TRUE(warm_up());
    uint64_t before = world->stats(1).gets;
    std::vector<char> room(target.size() - 1);
    auto in = recv(room, 1);
    auto out = send(source, 1);
    world->run();
    EXPECT_EQ(UCS_OK, end(out));
    EXPECT_EQ(UCS_ERR_MESSAGE_TRUNCATED, end(in));
    EXPECT_EQ(before, world->stats(1).gets);
    EXPECT_EQ(source.size(), kept(0));
    EXPECT_EQ(0u, world->stats(1).keys);
}

TEST_F(test_pipeline_read, what_was_unmapped_at_either_end_is_not_read)
{
    for (unsigned node = 0; node < 2; ++node) {
        begin();
        ASSERT_TRUE(warm_up());
        auto &gone = (node == 0) ? source : target;
        ucp_pipeline_unmapped(world->nodes[node], gone.data(), gone.size());
        uint64_t before = world->stats(1).gets;
        target.assign(target.size(), 't');
        transfer();
        EXPECT_EQ(before, world->stats(1).gets) << node;
        target.assign(target.size(), 't');
        EXPECT_TRUE(warm_up());
        transfer();
    }
}

TEST_F(test_pipeline_read, what_cannot_be_registered_for_it_is_asked_for)
{
    ASSERT_TRUE(warm_up());
    ucp_pipeline_unmapped(world->nodes[1], target.data(), target.size());
    transfer(); /* copied */
    uint64_t before = world->stats(1).gets;
    ucp_wire_sim_fail_reg(world->sim, 1, 0);
    target.assign(target.size(), 't');
    transfer();
    EXPECT_EQ(1u, world->pipeline_stats(1).failed);
    EXPECT_EQ(before, world->stats(1).gets);
    EXPECT_EQ(0u, world->stats(1).keys);
    transfer();
    EXPECT_EQ(before + 1, world->stats(1).gets);
}

/* Until a read ends the buffer is written to, whatever becomes of the peer */
TEST_F(test_pipeline_read, it_ends_whoever_dies)
{
    unsigned lost = 0;
    for (unsigned dying = 0; dying < 2; ++dying) {
        bool is_over = false;
        for (unsigned steps = 0; !is_over; ++steps) {
            SCOPED_TRACE(testing::Message() << "node " << dying
                         << " dies after " << steps << " steps");
            begin();
            world->mortal = dying;
            ASSERT_TRUE(warm_up());
            ucx_pipeline_request_h reqs[2];
            for (unsigned node = 0; node < 2; ++node) {
                pipeline_leak_is_allowed of_the_dead(node == dying);
                reqs[node] = (node == 0) ? send(source, 1) : recv(target, 1);
            }
            for (unsigned i = 0; (i < steps) && !is_over; ++i) {
                is_over = !world->step();
            }
            world->kill(dying);
            world->run();
            EXPECT_EQ(0u, world->stats(1 - dying).keys);
            EXPECT_EQ(kept(1 - dying), world->stats(1 - dying).bytes);
            ucs_status_t status = end(reqs[1 - dying]);
            EXPECT_TRUE((status == UCS_OK) ||
                        (status == UCS_ERR_CONNECTION_RESET))
                    << ucs_status_string(status);
            lost += status != UCS_OK;
        }
    }
    EXPECT_GE(lost, 4u);
}
