/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef TEST_FIREHOSE_WORLD_H_
#define TEST_FIREHOSE_WORLD_H_

#include <test/inside/firehose_inside.h>
#include <bench/wire/wire_sim.h>

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <vector>

/* Nodes over a virtual network in one process. Each has a piece of memory that
 * the others reach; invariants, the network's complaints and the bound of
 * pinned memory are looked at after every step. */
class firehose_world {
public:
    static constexpr size_t PAGE = 4096;

    struct options {
        unsigned nodes     = 2;
        size_t memory      = 16; /* M, MAXVICTIM in buckets */
        size_t victims     = 4;
        size_t bucket      = PAGE;
        size_t arena       = 64; /* pages of each node */
        unsigned flags     = 0;
        uint64_t seed      = 1;
        uint64_t latency   = 1000;
        uint64_t jitter    = 3000;
        unsigned reg_fails = 0;
        unsigned send_fails = 0;
        unsigned inline_chance = 300000;
        uint64_t reg_cost = 0;
        std::function<ucp_wire_t *(ucp_wire_t *)> wrap; /* each node's wire */
    };

    explicit firehose_world(const options &wanted) : opts(wanted)
    {
        ucp_wire_sim_params_t params = {};

        params.num_nodes     = opts.nodes;
        params.seed          = opts.seed;
        params.latency       = opts.latency;
        params.jitter        = opts.jitter;
        params.reg_fails     = opts.reg_fails;
        params.send_fails    = opts.send_fails;
        params.inline_chance = opts.inline_chance;
        params.reg_base      = opts.reg_cost;
        params.dereg_base    = opts.reg_cost;
        sim                  = ucp_wire_sim_create(&params);
        EXPECT_NE(nullptr, sim);
        for (unsigned node = 0; node < opts.nodes; ++node) {
            make(node);
        }
        for (unsigned node = 0; node < opts.nodes; ++node) {
            for (unsigned peer = 0; peer < opts.nodes; ++peer) {
                if (peer != node) {
                    ucp_firehose_greet(nodes[node], peer);
                }
            }
        }
    }

    ~firehose_world()
    {
        run();
        for (auto node : nodes) {
            ucp_firehose_stop(node);
        }
        run();
        for (unsigned node = 0; node < opts.nodes; ++node) {
            EXPECT_TRUE(ucp_firehose_is_idle(nodes[node]));
            ucp_firehose_destroy(nodes[node]);
            munmap(arenas[node], opts.arena * PAGE);
            munmap(locals[node], opts.arena * PAGE);
        }
        EXPECT_EQ(0u, ucp_wire_sim_errors(sim)) << ucp_wire_sim_error(sim);
        ucp_wire_sim_destroy(sim);
    }

    /* @return Zero: nothing is under way, and nothing is to be done */
    bool step()
    {
        int node = ucp_wire_sim_next(sim);
        unsigned count = 0;

        if (node >= 0) {
            count = 1;
            ucx_firehose_progress(nodes[node]);
            check(node);
        } else {
            for (unsigned i = 0; i < opts.nodes; ++i) {
                count += ucx_firehose_progress(nodes[i]);
                check(i);
            }
            count += ucp_wire_sim_next(sim) >= 0;
        }
        return count > 0;
    }

    void run()
    {
        while (step()) {
        }
    }

    void check(unsigned node)
    {
        ucp_wire_sim_stats_t stats;

        ++checks;
        ucp_wire_sim_get_stats(sim, node, &stats);
        ASSERT_EQ(0u, ucp_wire_sim_errors(sim)) << ucp_wire_sim_error(sim);
        ASSERT_LE(stats.registered_peak, opts.memory + opts.victims);
        ASSERT_LE(stats.bytes_peak,
                  (opts.memory + opts.victims) * opts.bucket);
        ASSERT_TRUE(ucp_firehose_is_valid(nodes[node]));
    }

    ucx_firehose_attr_t attr(unsigned node)
    {
        ucx_firehose_attr_t attr;

        ucx_firehose_query(nodes[node], &attr);
        return attr;
    }

    /* The address of a byte of what others reach of a node */
    uint64_t at(unsigned node, size_t offset)
    {
        return reinterpret_cast<uint64_t>(arenas[node] + offset);
    }

    const options opts;
    ucp_wire_sim_t *sim;
    std::vector<ucx_firehose_h> nodes;
    std::vector<char *> arenas, locals;
    uint64_t checks = 0;

private:
    static char *map(size_t length)
    {
        void *memory = mmap(nullptr, length, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        EXPECT_NE(MAP_FAILED, memory);
        return static_cast<char *>(memory);
    }

    void make(unsigned node)
    {
        ucx_firehose_params_t params = {};
        ucx_firehose_h firehose      = nullptr;
        ucp_wire_t *wire;

        params.field_mask = UCX_FIREHOSE_PARAM_FIELD_VICTIMS |
                            UCX_FIREHOSE_PARAM_FIELD_BUCKET |
                            UCX_FIREHOSE_PARAM_FIELD_FLAGS;
        params.node       = node;
        params.num_nodes  = opts.nodes;
        params.memory     = opts.memory * opts.bucket;
        params.victims    = opts.victims * opts.bucket;
        params.bucket     = opts.bucket;
        params.flags      = opts.flags;
        EXPECT_EQ(UCS_OK, ucp_wire_sim_open(sim, node, nullptr, &wire));
        wire = opts.wrap ? opts.wrap(wire) : wire;
        EXPECT_EQ(UCS_OK, ucp_firehose_create(&params, wire, &firehose));
        nodes.push_back(firehose);
        arenas.push_back(map(opts.arena * PAGE));
        locals.push_back(map(opts.arena * PAGE));
    }
};

/* How an operation ended, and whether */
struct firehose_result {
    ucs_status_t status = UCS_INPROGRESS;
    unsigned calls      = 0;

    static void done(void *arg, ucs_status_t status)
    {
        auto self    = static_cast<firehose_result *>(arg);
        self->status = status;
        ++self->calls;
    }

    /* Takes what the function returned */
    void begin(ucs_status_t returned)
    {
        if (returned != UCS_INPROGRESS) {
            status = returned;
        }
    }
};

#endif
