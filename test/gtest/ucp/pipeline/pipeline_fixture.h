/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef TEST_PIPELINE_FIXTURE_H_
#define TEST_PIPELINE_FIXTURE_H_

#include "pipeline_world.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

class test_pipeline : public ::testing::Test {
protected:
    void start(ucx_pipeline_mode_t mode, unsigned send_fails = 0,
               unsigned num_nodes = 2)
    {
        auto network       = pipeline_world::network(num_nodes, 1);
        network.send_fails = send_fails;
        options            = pipeline_world::options(mode);
        open(network);
    }

    /* With these options */
    void open(const ucp_wire_sim_params_t &network =
                      pipeline_world::network(2, 1))
    {
        world.reset(new pipeline_world(network, options));
    }

    /* What is kept is short, and read once it was seen often: copies are dear */
    void start_reading(uint64_t reg_base)
    {
        auto network          = pipeline_world::network(3, 1);
        network.copy_per_byte = 1;
        network.reg_base      = reg_base;
        options.rdma_offset   = UCX_PIPELINE_DERIVED;
        options.fragment      = 1 << 17;
        open(network);
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

    void finish(ucx_pipeline_request_h in, ucx_pipeline_request_h out)
    {
        world->run();
        EXPECT_EQ(UCS_OK, end(out));
        EXPECT_EQ(UCS_OK, end(in));
    }

    /* One message from one node to another, to which all of it comes */
    void transfer(const void *from, void *to, size_t length,
                  unsigned sender = 0, unsigned receiver = 1)
    {
        ucx_pipeline_request_h in, out;
        ASSERT_EQ(UCS_OK, ucx_pipeline_recv(world->nodes[receiver], sender, 1,
                                            ~0ull, to, length, &in));
        ASSERT_EQ(UCS_OK, ucx_pipeline_send(world->nodes[sender], receiver, 1,
                                            from, length, &out));
        finish(in, out);
        EXPECT_EQ(0, memcmp(from, to, length));
    }

    void transfer()
    {
        ASSERT_EQ(source.size(), target.size());
        transfer(source.data(), target.data(), source.size());
    }

    /* Two messages, one each way; a node dies after some steps. True if they
     * were over before. */
    bool die_after(unsigned dying, unsigned steps)
    {
        unsigned lives = 1 - dying;
        std::vector<char> back(50000), to_back(50000);
        ucx_pipeline_request_h reqs[2][2];
        world->mortal = dying;
        for (unsigned node = 0; node < 2; ++node) {
            pipeline_leak_is_allowed of_the_dead(node == dying);
            auto &from = (node == 0) ? source : back;
            auto &to   = (node == 0) ? to_back : target;
            EXPECT_EQ(UCS_OK,
                      ucx_pipeline_recv(world->nodes[node], 1 - node, 1, ~0ull,
                                        to.data(), to.size(), &reqs[node][0]));
            EXPECT_EQ(UCS_OK,
                      ucx_pipeline_send(world->nodes[node], 1 - node, 1,
                                        from.data(), from.size(),
                                        &reqs[node][1]));
        }
        bool is_over = false;
        for (unsigned i = 0; (i < steps) && !is_over; ++i) {
            is_over = !world->step();
        }
        world->kill(dying);
        world->run();
        EXPECT_EQ(world->pipeline_stats(lives).kept, world->stats(lives).bytes);
        EXPECT_EQ(0u, world->stats(lives).keys);
        if (options.mode != UCX_PIPELINE_MODE_CACHE) {
            EXPECT_EQ(0u, world->stats(lives).registered);
        }
        for (auto req : reqs[lives]) {
            ucs_status_t status = end(req);
            EXPECT_TRUE((status == UCS_OK) ||
                        (status == UCS_ERR_CONNECTION_RESET))
                    << ucs_status_string(status);
            m_lost += status != UCS_OK;
        }
        return is_over;
    }

    uint64_t time_of_second(const ucp_wire_sim_params_t &network,
                            size_t fragment);

    ucx_pipeline_options_t options;
    std::unique_ptr<pipeline_world> world;
    unsigned m_lost = 0;
    std::vector<char> source = std::vector<char>(100000, 's');
    std::vector<char> target = std::vector<char>(100000, 't');
};

#endif
