/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef TEST_PIPELINE_WORLD_H_
#define TEST_PIPELINE_WORLD_H_

#include <test/inside/pipeline_inside.h>
#include <bench/wire/wire_sim.h>

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#  include <sanitizer/lsan_interface.h>
#endif

/* While it lives, what is allocated may be left behind, if it was told so: a
 * process that dies does not free */
class pipeline_leak_is_allowed {
public:
    explicit pipeline_leak_is_allowed(bool is_allowed)
    {
#if defined(__SANITIZE_ADDRESS__)
        if (is_allowed) {
            m_disabler.reset(new __lsan::ScopedDisabler);
        }
#else
#endif
    }

private:
#if defined(__SANITIZE_ADDRESS__)
    std::unique_ptr<__lsan::ScopedDisabler> m_disabler;
#endif
};

/* First line of a test in which UCM's hooks are installed: by a cache, or by UCP.
 * UCM takes malloc() and operator delete over from ThreadSanitizer one by one,
 * and that ends in its allocator. */
#if defined(__SANITIZE_THREAD__)
#  define PIPELINE_TEST_NEEDS_UCM() \
    GTEST_SKIP() << "UCM's hooks and ThreadSanitizer exclude each other"
#else
#  define PIPELINE_TEST_NEEDS_UCM() (void)0
#endif

/* Some nodes of a virtual network, with a pipeline on each */
class pipeline_world {
public:
    pipeline_world(const ucp_wire_sim_params_t &params,
                   const ucx_pipeline_options_t &options)
        : m_dead(params.num_nodes, false)
    {
        sim = ucp_wire_sim_create(&params);
        for (unsigned i = 0; i < params.num_nodes; ++i) {
            ucx_pipeline_h pipeline;
            ucp_wire_t *wire;
            EXPECT_EQ(UCS_OK, ucp_wire_sim_open(sim, i, nullptr, &wire));
            EXPECT_EQ(UCS_OK, ucp_pipeline_create(wire, &options, &pipeline));
            nodes.push_back(pipeline);
        }
    }

    ~pipeline_world()
    {
        for (unsigned i = 0; i < nodes.size(); ++i) {
            if (m_dead[i]) {
                ucp_pipeline_abandon(nodes[i]);
            } else {
                EXPECT_EQ(UCS_OK, ucx_pipeline_destroy(nodes[i])) << i;
            }
        }
        EXPECT_EQ(0u, ucp_wire_sim_errors(sim)) << ucp_wire_sim_error(sim);
        ucp_wire_sim_destroy(sim);
    }

    /* One node does one thing; false if nothing is under way */
    bool step()
    {
        int node = ucp_wire_sim_next(sim);
        if (node >= 0) {
            pipeline_leak_is_allowed of_the_dead(node == mortal);
            ucx_pipeline_progress(nodes[node]);
            return true;
        }
        /* what the wire refused once may still wait for another try */
        for (unsigned i = 0; i < nodes.size(); ++i) {
            if (!m_dead[i]) {
                ucx_pipeline_progress(nodes[i]);
            }
        }
        return ucp_wire_sim_next(sim) >= 0;
    }

    void run()
    {
        for (int quiet = 0; quiet < 20; quiet = step() ? 0 : quiet + 1) {
        }
    }

    void kill(unsigned node)
    {
        ucp_wire_sim_kill(sim, node);
        m_dead[node] = true;
    }

    bool is_dead(unsigned node) const
    {
        return m_dead[node];
    }

    ucp_wire_sim_stats_t stats(unsigned node) const
    {
        ucp_wire_sim_stats_t stats;
        ucp_wire_sim_get_stats(sim, node, &stats);
        return stats;
    }

    ucx_pipeline_stats_t pipeline_stats(unsigned node) const
    {
        ucx_pipeline_stats_t stats;
        stats.size = sizeof(stats);
        ucx_pipeline_get_stats(nodes[node], &stats);
        return stats;
    }

    static ucp_wire_sim_params_t network(unsigned num_nodes, uint64_t seed)
    {
        ucp_wire_sim_params_t params = {};
        params.num_nodes   = num_nodes;
        params.seed        = seed;
        params.latency     = 1000;
        params.jitter      = 3000;
        params.ns_per_byte = 0.1;
        params.reg_base    = 2000;
        params.send_cost   = 100;
        return params;
    }

    /* Small enough that some kilobytes are a long message */
    static ucx_pipeline_options_t options(ucx_pipeline_mode_t mode)
    {
        ucx_pipeline_options_t options;
        ucx_pipeline_options_init(&options);
        options.mode        = mode;
        options.eager       = 512;
        options.rdma_offset = 2048;
        options.fragment    = 4096;
        options.depth       = 3;
        return options;
    }

    ucp_wire_sim_t *sim;
    std::vector<ucx_pipeline_h> nodes;
    int mortal = -1; /* the node that will die, if a test minds leaks */

private:
    std::vector<bool> m_dead;
};

#endif
