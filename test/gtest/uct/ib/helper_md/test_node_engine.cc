/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/regcache/regcache_fixture.h>

#include <vector>

/*
 * The cache below a ceiling that it shares with others, under the virtual clock
 */

class test_node_engine : public test_regcache {
protected:
    /* @a others is what the rest of the node has */
    void start(ucs_regcache_policy_t policy, size_t budget)
    {
        m_budget    = budget;
        w           = std::make_unique<regcache_world>(policy);
        w->on_claim = [this](size_t length, ucs_claim_t why) {
            if (why == UCS_CLAIM_FORCE) {
                ++m_forced;
            } else if (m_mine + m_others + length > m_budget) {
                ++m_refused[why];
                return false;
            }
            m_mine += length;
            return true;
        };
        w->on_unclaim = [this](size_t length) { m_mine -= length; };
        w->on_ask     = [this](size_t length, ucs_ask_t all) {
            m_asked.push_back(all);
            return m_answer ? m_answer(length, all) : UCS_REGCACHE_ANSWER_NONE;
        };
        w->on_reg = [this](regcache_world::registration) {
            m_peak = std::max(m_peak, m_mine);
            return UCS_OK;
        };
        w->open();
    }

    void TearDown() override
    {
        w.reset();
        EXPECT_EQ(0u, m_mine) << "claimed and not given back";
    }

    /* Uses every 100 ms until the helper expects the buffer */
    void learn(unsigned i)
    {
        for (unsigned n = 0; n < 6; ++n) {
            w->use(buffer(i), MB, MS);
            w->advance(99 * MS);
        }
    }

    size_t                        m_budget = 0;
    size_t                        m_mine   = 0;
    size_t                        m_others = 0;
    size_t                        m_peak   = 0;
    unsigned                      m_forced = 0;
    unsigned                      m_refused[2] = {0, 0};
    std::vector<int>              m_asked;
    std::function<ucs_regcache_answer_t(size_t, ucs_ask_t)> m_answer;
};

TEST_F(test_node_engine, bytes_are_claimed_before_and_given_back_after)
{
    start(UCS_REGCACHE_POLICY_LEAVE_PINNED, 8 * MB);
    w->use(buffer(0), MB);
    EXPECT_EQ(MB, m_mine);
    EXPECT_EQ(MB, m_peak) << "claimed when it was registered";
    w->on_reg = [](regcache_world::registration) {
        return UCS_ERR_INVALID_ADDR;
    };
    ucs_regcache_memh_t memh;
    EXPECT_NE(UCS_OK, ucs_regcache_get(w->cache, (void *)buffer(1), MB,
                                       regcache_world::ACCESS, 1, &memh));
    EXPECT_EQ(MB, m_mine) << "given back after a failure";
    ucs_regcache_unmapped(w->cache, buffer(0), MB);
    w->step();
    EXPECT_EQ(0u, m_mine);
}

/* Those above their share are asked first, then what is idle here goes, then
 * all are asked, and only then the budget is passed */
TEST_F(test_node_engine, a_use_exhausts_what_there_is_in_order)
{
    start(UCS_REGCACHE_POLICY_LEAVE_PINNED, 4 * MB);
    w->use(buffer(0), MB);
    m_others = 3 * MB;
    m_answer = [&](size_t, ucs_ask_t all) {
        EXPECT_EQ(all ? 0u : MB, m_mine) << "own idle memory";
        return UCS_REGCACHE_ANSWER_NONE;
    };
    w->use(buffer(1), 2 * MB);
    EXPECT_EQ((std::vector<int>{0, 1}), m_asked);
    EXPECT_EQ(1u, m_forced);
    EXPECT_EQ(1u, w->stats().over_ceiling);
    EXPECT_FALSE(w->is_registered(buffer(0), MB));
}

TEST_F(test_node_engine, what_is_granted_is_not_claimed_again)
{
    start(UCS_REGCACHE_POLICY_LEAVE_PINNED, 4 * MB);
    m_others = 4 * MB;
    m_answer = [&](size_t length, ucs_ask_t) {
        m_others -= length;
        m_mine   += length;
        return UCS_REGCACHE_ANSWER_GRANTED;
    };
    w->use(buffer(0), 2 * MB);
    EXPECT_EQ(std::vector<int>{0}, m_asked);
    EXPECT_EQ(2 * MB, m_mine);
    EXPECT_EQ(0u, m_forced);
    EXPECT_EQ(0u, w->stats().over_ceiling);
}

/* A ceiling of the domain's own is not the others' business */
TEST_F(test_node_engine, nobody_is_asked_where_the_own_ceiling_is_in_the_way)
{
    w = nullptr;
    start(UCS_REGCACHE_POLICY_LRU, 64 * MB);
    w->close();
    w->params.max_pinned = 2 * MB;
    w->open();
    for (unsigned i = 0; i < 6; ++i) {
        w->use(buffer(i), MB);
    }
    EXPECT_TRUE(m_asked.empty());
    EXPECT_EQ(2 * MB, m_mine);
    EXPECT_EQ(0u, m_forced);
}

/* What nobody asked for neither asks others nor drops what is registered */
TEST_F(test_node_engine, the_helper_asks_nobody)
{
    start(UCS_REGCACHE_POLICY_PAPER, 64 * MB);
    learn(0);
    w->use(buffer(0), MB, MS);
    m_others = 64 * MB;
    m_asked.clear();
    w->advance(300 * MS);
    EXPECT_GT(m_refused[UCS_CLAIM_HELPER], 0u);
    EXPECT_TRUE(m_asked.empty());
    EXPECT_EQ(0u, m_forced);
    EXPECT_EQ(0u, w->stats().failed);
}

TEST_F(test_node_engine, release_stops_at_what_was_asked_for)
{
    start(UCS_REGCACHE_POLICY_LEAVE_PINNED, 64 * MB);
    for (unsigned i = 0; i < 4; ++i) {
        w->use(buffer(i), MB);
        w->advance(MS);
    }
    ucs_regcache_memh_t memh = w->get(buffer(3), MB);
    EXPECT_EQ(2 * MB, ucs_regcache_shrink(w->cache, MB + 1));
    EXPECT_EQ(2 * MB, m_mine);
    EXPECT_EQ(MB, ucs_regcache_shrink(w->cache, SIZE_MAX));
    EXPECT_EQ(MB, m_mine) << "in use";
    w->put(memh);
}

TEST_F(test_node_engine, release_counts_registrations_as_well)
{
    start(UCS_REGCACHE_POLICY_LEAVE_PINNED, 64 * MB);
    for (unsigned i = 0; i < 4; ++i) {
        w->use(buffer(i), (i + 1) * MB);
        w->advance(MS);
    }
    EXPECT_EQ(2u, ucs_regcache_shrink_regions(w->cache, 2));
    EXPECT_EQ(7 * MB, m_mine);
    EXPECT_EQ(2u, ucs_regcache_shrink_regions(w->cache, 5));
    EXPECT_EQ(0u, m_mine);
}

/* What the device refuses is told before anything goes. Others are asked if nothing here
 * is idle. It is a limit if the device does not refuse once more. */
TEST_F(test_node_engine, what_the_device_refuses_is_learned_from)
{
    size_t allowed = 2;
    std::vector<size_t> told;
    std::vector<uint64_t> asked_back, learned;
    unsigned tries = 0;

    start(UCS_REGCACHE_POLICY_LEAVE_PINNED, 64 * MB);
    w->on_refused = [&] {
        told.push_back(w->live.size());
        return 77;
    };
    w->on_ask_back = [&](uint64_t limit) {
        asked_back.push_back(limit);
        ++allowed;
    };
    w->on_learn    = [&](uint64_t limit) { learned.push_back(limit); };
    w->on_reg      = [&](regcache_world::registration) {
        ++tries;
        return (w->live.size() < allowed) ? UCS_OK : UCS_ERR_NO_MEMORY;
    };
    w->use(buffer(0), MB);
    w->use(buffer(1), MB);
    w->use(buffer(2), MB);
    EXPECT_EQ(std::vector<size_t>{2}, told);
    EXPECT_EQ(std::vector<uint64_t>{77}, learned);
    EXPECT_TRUE(asked_back.empty());
    EXPECT_EQ(4u, tries);

    /* All here is in use */
    ucs_regcache_memh_t one = w->get(buffer(3), MB);
    ucs_regcache_memh_t two = w->get(buffer(4), MB);
    told.clear();
    learned.clear();
    w->use(buffer(5), MB);
    EXPECT_EQ(std::vector<size_t>{2}, told);
    EXPECT_EQ(std::vector<uint64_t>{77}, asked_back);
    EXPECT_EQ(std::vector<uint64_t>{77}, learned);

    w->on_ask_back = nullptr;
    allowed        = 0;
    ucs_regcache_memh_t memh;
    EXPECT_EQ(UCS_ERR_NO_MEMORY,
              ucs_regcache_get(w->cache, (void *)buffer(6), MB,
                               regcache_world::ACCESS, 1, &memh));
    EXPECT_EQ(1u, learned.size()) << "it was for something else";
    w->put(one);
    w->put(two);
}

/*
 * Rest
 */

TEST_F(test_node_engine, at_rest_registrations_stay_and_uses_wake_nobody)
{
    start(UCS_REGCACHE_POLICY_PAPER, 64 * MB);
    learn(0);
    ucs_regcache_memh_t in_use = w->get(buffer(2), MB);
    ucs_regcache_rest(w->cache);
    EXPECT_FALSE(ucs_regcache_needs_helper(w->cache));
    w->use(buffer(0), MB);
    w->use(buffer(1), MB);
    w->put(in_use);
    ucs_regcache_rested(w->cache);
    w->wakes = 0;
    for (unsigned i = 0; i < 10; ++i) {
        w->now += 100 * MS;
        for (unsigned j = 0; j < 3; ++j) {
            w->use(buffer(j), MB);
        }
        ucs_regcache_rested(w->cache);
    }
    EXPECT_EQ(0u, w->wakes);
    EXPECT_EQ(3u, w->live.size());
    EXPECT_EQ(3 * MB, m_mine);
}

TEST_F(test_node_engine, after_rest_what_is_idle_goes_and_is_expected_again)
{
    start(UCS_REGCACHE_POLICY_PAPER, 64 * MB);
    learn(0);
    ucs_regcache_rest(w->cache);
    for (unsigned i = 0; i < 3; ++i) {
        w->use(buffer(i), MB);
    }
    w->now += 100 * MS;
    ucs_regcache_resume(w->cache);
    EXPECT_TRUE(ucs_regcache_needs_helper(w->cache));
    w->step();
    w->advance(200 * MS);
    EXPECT_TRUE(w->live.empty()) << w->live.size();
    learn(0);
    uint64_t on_time = w->stats().on_time;
    w->use(buffer(0), MB);
    EXPECT_EQ(on_time + 1, w->stats().on_time);
}
