/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "pipeline_fixture.h"

#include <algorithm>
#include <cstdlib>

/* Every node of a ring sends to both its neighbours and receives from both */
class test_pipeline_ring : public test_pipeline {
protected:
    /* Segments lie at multiples of their length, so how many a message has is
     * the same in each run only for messages that do, too */
    template<typename T> struct aligned {
        using value_type = T;
        aligned() = default;
        template<typename U> aligned(const aligned<U>&) {}
        T *allocate(size_t count)
        {
            size_t length = (count * sizeof(T) + ALIGN - 1) & ~(ALIGN - 1);
            return static_cast<T*>(std::aligned_alloc(ALIGN, length));
        }
        void deallocate(T *memory, size_t)
        {
            std::free(memory);
        }
        bool operator==(const aligned&) const
        {
            return true;
        }
        bool operator!=(const aligned&) const
        {
            return false;
        }
    };

    using message = std::vector<char, aligned<char>>;
    static constexpr size_t ALIGN = 1 << 20;

    void start_ring(ucx_pipeline_mode_t mode, unsigned count, double wire,
                    double page, uint64_t base, double copy = 0)
    {
        auto network           = pipeline_world::network(count, 1);
        network.jitter         = 0;
        network.send_cost      = 500;
        network.copy_per_byte  = copy;
        network.ns_per_byte    = wire;
        network.reg_base       = base;
        network.reg_per_page   = page;
        network.dereg_base     = base / 2;
        network.dereg_per_page = page / 2;
        ucx_pipeline_options_init(&options);
        options.mode = mode;
        open(network);
    }

    void set_length(size_t length)
    {
        out.assign(2 * world->nodes.size(), message(length, 'o'));
        in.assign(2 * world->nodes.size(), message(length, 'i'));
    }

    uint64_t now() const
    {
        uint64_t time = 0;
        for (unsigned node = 0; node < world->nodes.size(); ++node) {
            time = std::max(time, ucp_wire_sim_time(world->sim, node));
        }
        return time;
    }

    /* How long it takes, in nanoseconds */
    uint64_t turn()
    {
        std::vector<ucx_pipeline_request_h> reqs;
        unsigned count = world->nodes.size();
        uint64_t start = now();
        for (unsigned node = 0; node < count; ++node) {
            ucp_wire_sim_work(world->sim, node,
                              start - ucp_wire_sim_time(world->sim, node));
        }
        for (unsigned node = 0; node < count; ++node) {
            for (unsigned side = 0; side < 2; ++side) {
                unsigned peer = (node + ((side == 0) ? 1 : count - 1)) % count;
                auto &to      = in[2 * node + side];
                auto &from    = out[2 * node + side];
                reqs.resize(reqs.size() + 2);
                EXPECT_EQ(UCS_OK,
                          ucx_pipeline_recv(world->nodes[node], peer, 1, ~0ull,
                                            to.data(), to.size(),
                                            &reqs[reqs.size() - 2]));
                EXPECT_EQ(UCS_OK,
                          ucx_pipeline_send(world->nodes[node], peer, 1,
                                            from.data(), from.size(),
                                            &reqs[reqs.size() - 1]));
            }
        }
        world->run();
        for (auto req : reqs) {
            EXPECT_EQ(UCS_OK, end(req));
        }
        EXPECT_EQ(out, in);
        return now() - start;
    }

    std::vector<message> out, in;
};

TEST_F(test_pipeline_ring, a_short_buffer_that_comes_often_is_registered)
{
    PIPELINE_TEST_NEEDS_UCM();
    start_ring(UCX_PIPELINE_MODE_CACHE, 2, 1.346, 1980, 7000, 1.28);
    set_length(64 << 10);
    uint64_t before = world->stats(0).registrations; /* of the probes */
    turn();
    EXPECT_EQ(before, world->stats(0).registrations);
    for (int i = 0; i < 10; ++i) {
        turn();
    }
    EXPECT_LT(before, world->stats(0).registrations);
    before        = world->stats(0).registrations;
    size_t copied = world->pipeline_stats(0).copied;
    turn();
    EXPECT_EQ(before, world->stats(0).registrations);
    EXPECT_EQ(copied, world->pipeline_stats(0).copied);
}

/* What a copy loses is a processor's time, and not that of all the messages that
 * are under way with it */
TEST_F(test_pipeline_ring, many_messages_at_once_do_not_make_a_copy_dearer)
{
    PIPELINE_TEST_NEEDS_UCM();
    start_ring(UCX_PIPELINE_MODE_CACHE, 8, 0.08, 250, 20000, 0.1);
    set_length(64 << 10);
    uint64_t before = world->stats(0).registrations;
    for (int i = 0; i < 3; ++i) {
        turn();
    }
    EXPECT_EQ(before, world->stats(0).registrations);
    for (int i = 0; i < 20; ++i) {
        turn();
    }
    EXPECT_LT(before, world->stats(0).registrations);
}

TEST_F(test_pipeline_ring, a_message_does_not_hold_up_what_is_answered)
{
    /* While a message moves to node 1, one comes from there. What node 0 answers
     * is not to wait until its own message has left: one that is read, and one of
     * so many fragments that it is written. */
    PIPELINE_TEST_NEEDS_UCM();
    for (size_t length : {4u << 20, 32u << 20}) {
        start_ring(UCX_PIPELINE_MODE_CACHE, 2, 1.346, 1980, 7000);
        set_length(length);
        for (int i = 0; i < 3; ++i) {
            turn(); /* all is kept then */
        }
        uint64_t start = now(), gets = world->stats(0).gets;
        ucx_pipeline_request_h reqs[2][2];
        for (unsigned node = 0; node < 2; ++node) {
            EXPECT_EQ(UCS_OK, ucx_pipeline_recv(world->nodes[1 - node], node, 1,
                                                ~0ull, in[2 - 2 * node].data(),
                                                length, &reqs[node][0]));
            EXPECT_EQ(UCS_OK, ucx_pipeline_send(world->nodes[node], 1 - node, 1,
                                                out[2 * node].data(), length,
                                                &reqs[node][1]));
            while ((node == 0) && (now() - start < 1000000) && world->step()) {
            }
        }
        world->run();
        EXPECT_LT(now() - start, 1.346 * length * 1.5);
        EXPECT_EQ(length == 4u << 20, world->stats(0).gets > gets);
        for (auto &pair : reqs) {
            EXPECT_EQ(UCS_OK, end(pair[0]));
            EXPECT_EQ(UCS_OK, end(pair[1]));
        }
    }
}
