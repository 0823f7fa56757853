/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef REPLAY_FIXTURE_H_
#define REPLAY_FIXTURE_H_

#include <tools/replay/replay_trace.h>
#include <tools/replay/replay_world.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

/** A trace written by hand, and what the engine makes of it. */
class test_replay : public ::testing::Test {
protected:
    static constexpr uint64_t PAGE = 4096;
    static constexpr uint64_t MS   = 1000000;

    ~test_replay()
    {
        if (m_is_prepared) {
            replay_trace_cleanup(&m_trace);
        }
    }

    static uint64_t buffer(unsigned index)
    {
        return 0x10000000 + uint64_t(index) * 0x100000;
    }

    void add(ucs_trace_kind_t kind, uint64_t time_ns, uint64_t address,
             uint64_t length)
    {
        m_events.push_back({time_ns, address, length, 77,
                            UCS_TRACE_ACCESS_REMOTE, kind, 0});
    }

    void use(uint64_t start_ns, uint64_t end_ns, unsigned index,
             uint64_t length = PAGE)
    {
        add(UCS_TRACE_USE, start_ns, buffer(index), length);
        add(UCS_TRACE_RELEASE, end_ns, buffer(index), length);
    }

    /* One use after the other, each over before the next begins */
    void use_all(const std::vector<unsigned> &sequence)
    {
        uint64_t now = MS;

        for (unsigned index : sequence) {
            use(now, now + 10000, index);
            now += MS;
        }
    }

    void prepare(uint64_t min_size = 0)
    {
        tool_trace_t raw = {};

        if (m_is_prepared) {
            replay_trace_cleanup(&m_trace);
        }
        raw.header.page_size = PAGE;
        raw.count            = m_events.size();
        raw.events           = (ucs_trace_event_t*)malloc(
                (raw.count + 1) * sizeof(*raw.events));
        std::copy(m_events.begin(), m_events.end(), raw.events);
        replay_trace_sort(&raw);
        m_is_prepared = replay_trace_prepare(&raw, "test", min_size, &m_repeat,
                                             &m_trace) == 0;
        tool_trace_cleanup(&raw);
    }

    replay_params_t params(ucs_regcache_policy_t policy)
    {
        replay_params_t result = {};

        result.policy                  = policy;
        result.max_pinned              = UINT64_MAX;
        result.register_cost           = m_cost;
        result.deregister_cost.base_ns = 170;
        result.deregister_cost.page_ns = 17;
        result.seed                    = 1;
        return result;
    }

    ucs_regcache_stats_t run(const replay_params_t &p)
    {
        ucs_regcache_stats_t stats = {};

        EXPECT_EQ(UCS_OK, replay_world_run(&m_trace, &p, nullptr, &m_once,
                                           &stats));
        EXPECT_EQ(stats.uses, stats.on_time + stats.late + stats.missed +
                                      stats.cold);
        EXPECT_EQ(m_trace.use_count, stats.uses);
        return stats;
    }

    const replay_cost_t            m_cost        = {500, 50};
    std::vector<ucs_trace_event_t> m_events;
    replay_repeat_t                m_repeat      = {};
    replay_trace_t                 m_trace       = {};
    ucs_regcache_stats_t           m_once        = {}; /* of the latest run */
    bool                           m_is_prepared = false;
};

#endif
