/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <bench/wire/wire_sim.h>

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

/* The virtual network itself: it delivers, and it finds what is wrong */
class test_wire_sim : public ::testing::Test {
protected:
    void SetUp() override
    {
        ucp_wire_sim_params_t params = {};
        params.num_nodes   = 2;
        params.seed        = 7;
        params.latency     = 1000;
        params.jitter      = 5000;
        params.ns_per_byte = 1;
        sim = ucp_wire_sim_create(&params);
        for (unsigned i = 0; i < 2; ++i) {
            ucp_wire_handlers_t handlers = {arrived, failed, this};
            ASSERT_EQ(UCS_OK, ucp_wire_sim_open(sim, i, &handlers, &wire[i]));
        }
    }

    void TearDown() override
    {
        ucp_wire_destroy(wire[0]);
        ucp_wire_destroy(wire[1]);
        ucp_wire_sim_destroy(sim);
    }

    void run()
    {
        int node;
        while ((node = ucp_wire_sim_next(sim)) >= 0) {
            ucp_wire_progress(wire[node]);
        }
    }

    /* Register both ends and write from the first to the second */
    void put()
    {
        const void *packed;
        size_t length;
        ASSERT_EQ(UCS_OK, ucp_wire_mem_reg(wire[0], from, sizeof(from),
                                           &mem[0]));
        ASSERT_EQ(UCS_OK, ucp_wire_mem_reg(wire[1], to, sizeof(to), &mem[1]));
        ASSERT_EQ(UCS_OK, ucp_wire_mem_pack(wire[1], mem[1], &packed, &length));
        ASSERT_EQ(UCS_OK, ucp_wire_key_unpack(wire[0], 1, packed, length,
                                              &key));
        EXPECT_EQ(UCS_INPROGRESS,
                  ucp_wire_move(wire[0], 1, 1, mem[0], from, sizeof(from),
                                (uintptr_t)to, key, count, &num_done));
    }

    void release()
    {
        ucp_wire_key_release(wire[0], key);
        ucp_wire_mem_dereg(wire[0], mem[0]);
        ucp_wire_mem_dereg(wire[1], mem[1]);
    }

    static void arrived(void *arg, unsigned, const void *header,
                        size_t header_length, const void *payload,
                        size_t length)
    {
        test_wire_sim *self = static_cast<test_wire_sim*>(arg);
        self->text += std::string((const char*)header, header_length) +
                      std::string((const char*)payload, length);
    }

    static void failed(void *arg, unsigned peer, ucs_status_t)
    {
        static_cast<test_wire_sim*>(arg)->num_failed += (peer == 1);
    }

    static void count(void *arg, ucs_status_t status)
    {
        *static_cast<int*>(arg) += (status == UCS_OK) ? 1 : 100;
    }

    ucp_wire_sim_t *sim;
    ucp_wire_t *wire[2];
    ucp_wire_mem_t *mem[2];
    ucp_wire_key_t *key;
    char from[100] = "data", to[100] = "";
    std::string text;
    int num_done = 0, num_failed = 0;
};

TEST_F(test_wire_sim, a_put_to_memory_that_was_deregistered_is_found)
{
    put();
    release();
    run();
    EXPECT_GT(ucp_wire_sim_errors(sim), 0u);
    EXPECT_NE(nullptr, strstr(ucp_wire_sim_error(sim), "registration is gone"));
    EXPECT_STREQ("", to);
}

TEST_F(test_wire_sim, a_put_to_memory_that_was_unmapped_is_found)
{
    put();
    ucp_wire_sim_unmap(sim, 1, to + 50, 1);
    run();
    release();
    EXPECT_NE(nullptr, strstr(ucp_wire_sim_error(sim), "unmapped"));
}

TEST_F(test_wire_sim, garbage_is_no_key)
{
    char garbage[24] = "garbage";
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              ucp_wire_key_unpack(wire[0], 1, garbage, sizeof(garbage), &key));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              ucp_wire_key_unpack(wire[0], 1, garbage, 3, &key));
}

TEST(test_wire_sim_links, what_waits_for_its_sender_holds_up_nobody_else)
{
    /* Node 0 sends to 1, then to 2. While the second message waits for the
     * first, node 2 hears of node 3. */
    ucp_wire_sim_params_t params = {};
    params.num_nodes   = 4;
    params.latency     = 1000;
    params.ns_per_byte = 1;
    ucp_wire_sim_t *sim = ucp_wire_sim_create(&params);
    std::vector<ucp_wire_t*> wires(4);
    std::vector<std::pair<unsigned, uint64_t>> came;
    struct node {
        ucp_wire_sim_t *sim;
        std::vector<std::pair<unsigned, uint64_t>> *came;

        static void arrived(void *arg, unsigned peer, const void*, size_t,
                            const void*, size_t)
        {
            node *self = static_cast<node*>(arg);
            self->came->emplace_back(peer, ucp_wire_sim_time(self->sim, 2));
        }

        static void ignored(void*, unsigned, const void*, size_t, const void*,
                            size_t)
        {
        }

        static void failed(void*, unsigned, ucs_status_t)
        {
        }
    } two = {sim, &came};
    for (unsigned i = 0; i < 4; ++i) {
        auto arrived = (i == 2) ? node::arrived : node::ignored;
        ucp_wire_handlers_t handlers = {arrived, node::failed, &two};
        ASSERT_EQ(UCS_OK, ucp_wire_sim_open(sim, i, &handlers, &wires[i]));
    }
    std::string bytes(60000, '.');
    char header = 'h';
    for (unsigned to : {1, 2}) {
        EXPECT_EQ(UCS_OK, ucp_wire_am_send(wires[0], to, &header, 1,
                                           bytes.data(), bytes.size(), NULL,
                                           NULL));
    }
    EXPECT_EQ(UCS_OK, ucp_wire_am_send(wires[3], 2, &header, 1, bytes.data(),
                                       100, NULL, NULL));
    for (int next; (next = ucp_wire_sim_next(sim)) >= 0;) {
        ucp_wire_progress(wires[next]);
    }
    ASSERT_EQ(2u, came.size());
    EXPECT_EQ(3u, came[0].first);
    EXPECT_LT(came[0].second, 2000u);
    for (auto wire : wires) {
        ucp_wire_destroy(wire);
    }
    ucp_wire_sim_destroy(sim);
}
