/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "replay_fixture.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <random>
#include <set>

/* Fewest misses of any cache of @a capacity items, by trying every victim */
static unsigned fewest_misses(const std::vector<unsigned> &sequence,
                              size_t at, std::set<unsigned> held,
                              size_t capacity,
                              std::map<std::pair<size_t, std::set<unsigned>>,
                                       unsigned> &known)
{
    while ((at < sequence.size()) && held.count(sequence[at])) {
        ++at;
    }
    if (at == sequence.size()) {
        return 0;
    }
    auto found = known.find({at, held});
    if (found != known.end()) {
        return found->second;
    }

    unsigned best = UINT32_MAX;
    if (held.size() < capacity) {
        std::set<unsigned> next = held;
        next.insert(sequence[at]);
        best = fewest_misses(sequence, at + 1, next, capacity, known);
    } else {
        for (unsigned victim : held) {
            std::set<unsigned> next = held;
            next.erase(victim);
            next.insert(sequence[at]);
            best = std::min(best, fewest_misses(sequence, at + 1, next,
                                                capacity, known));
        }
    }
    known[{at, held}] = best + 1;
    return best + 1;
}

static unsigned lru_misses(const std::vector<unsigned> &sequence,
                           size_t capacity)
{
    std::list<unsigned> held;
    unsigned misses = 0;

    for (unsigned item : sequence) {
        auto found = std::find(held.begin(), held.end(), item);
        if (found != held.end()) {
            held.erase(found);
        } else {
            ++misses;
            if (held.size() == capacity) {
                held.pop_front();
            }
        }
        held.push_back(item);
    }
    return misses;
}

TEST_F(test_replay, opt_misses_as_little_as_any_cache_can)
{
    std::mt19937 random(1);
    unsigned better = 0;

    for (unsigned round = 0; round < 200; ++round) {
        std::vector<unsigned> sequence;
        unsigned items  = 3 + random() % 4;
        size_t capacity = 1 + random() % (items - 1);
        std::map<std::pair<size_t, std::set<unsigned>>, unsigned> known;

        for (unsigned i = 0; i < 24; ++i) {
            sequence.push_back(random() % items);
        }
        m_events.clear();
        use_all(sequence);
        prepare();

        auto opt = cache(REPLAY_VICTIM_OPT, capacity * PAGE);
        auto lru = cache(REPLAY_VICTIM_LRU, capacity * PAGE);
        ASSERT_EQ(fewest_misses(sequence, 0, {}, capacity, known),
                  opt.missed + opt.cold) << round;
        ASSERT_EQ(lru_misses(sequence, capacity), lru.missed + lru.cold)
                << round;
        EXPECT_LE(opt.pinned_peak_bytes, capacity * PAGE);
        better += (opt.missed < lru.missed);
    }
    EXPECT_GT(better, 50u);
}

TEST_F(test_replay, lru_model_agrees_with_the_engine)
{
    std::mt19937 random(2);
    std::vector<unsigned> sequence;

    for (unsigned i = 0; i < 2000; ++i) {
        sequence.push_back(random() % 12);
    }
    use_all(sequence);
    prepare();
    for (uint64_t pages : {1, 3, 7, 11, 12}) {
        replay_params_t p  = params(UCS_REGCACHE_POLICY_LRU);
        replay_figures_t f = cache(REPLAY_VICTIM_LRU, pages * PAGE);

        p.max_pinned = pages * PAGE;
        auto stats   = run(p);
        EXPECT_EQ(f.on_time, stats.on_time) << pages;
        EXPECT_EQ(f.missed, stats.missed) << pages;
        EXPECT_EQ(f.cold, stats.cold) << pages;
        EXPECT_EQ(f.pinned_peak_bytes, stats.pinned_peak_bytes) << pages;
    }
}

TEST_F(test_replay, yardsticks_of_a_small_trace)
{
    replay_figures_t limit, leave;

    use(0, 10, 0, 2 * PAGE);
    use(5, 20, 1, PAGE);
    use(30, 40, 0, PAGE);        /* inside the first */
    add(UCS_TRACE_UNMAP, 50, buffer(0) + PAGE, PAGE);
    use(60, 70, 0, 2 * PAGE);    /* half of it is new */
    prepare();
    replay_model_limit(&m_trace, &limit, nullptr);
    replay_model_leave(&m_trace, &leave, nullptr);

    EXPECT_EQ(4u, limit.uses);
    EXPECT_EQ(3u, limit.cold);
    EXPECT_EQ(1u, limit.on_time);
    EXPECT_EQ(3 * PAGE, limit.pinned_peak_bytes);
    EXPECT_EQ(PAGE * (2.0 * 10 + 15 + 10 + 2 * 10), limit.pinned_byte_ns);
    EXPECT_EQ(3 * PAGE, leave.pinned_peak_bytes);
    EXPECT_EQ(PAGE * (2.0 * 5 + 3 * 45 + 2 * 10 + 3 * 10),
              leave.pinned_byte_ns);

    auto none = cache(REPLAY_VICTIM_LRU, 0);
    EXPECT_EQ(limit.pinned_byte_ns, none.pinned_byte_ns);
    EXPECT_EQ(0u, none.on_time);
    auto all = cache(REPLAY_VICTIM_OPT, UINT64_MAX);
    EXPECT_EQ(1u, all.on_time);
    EXPECT_EQ(3u, all.cold);
}

/* A use of a part is a use of the whole, so that is worth keeping */
TEST_F(test_replay, opt_keeps_what_a_part_of_is_used_next)
{
    use(0, 1, 0, 2 * PAGE);
    use(10, 11, 1, 2 * PAGE);
    use(20, 21, 2, 2 * PAGE);
    use(30, 31, 0, PAGE);
    prepare();
    EXPECT_EQ(1u, cache(REPLAY_VICTIM_OPT, 4 * PAGE).on_time);
    EXPECT_EQ(0u, cache(REPLAY_VICTIM_LRU, 4 * PAGE).on_time);
}

TEST_F(test_replay, cache_at_does_not_spend_more_than_is_asked)
{
    replay_figures_t leave, lru;

    use_at_random(4);
    prepare();
    replay_model_leave(&m_trace, &leave, nullptr);
    for (double share : {0.2, 0.5, 0.9}) {
        uint64_t capacity = replay_model_cache_at(
                &m_trace, REPLAY_VICTIM_LRU, share * leave.pinned_byte_ns,
                &lru);
        EXPECT_LE(lru.pinned_byte_ns, share * leave.pinned_byte_ns);
        EXPECT_GT(cache(REPLAY_VICTIM_LRU, capacity + PAGE).pinned_byte_ns,
                  share * leave.pinned_byte_ns);
    }
}

/* Of yardsticks it is what their uses register; that takes no time there */
TEST_F(test_replay, time_lost_of_yardsticks)
{
    replay_figures_t figures;

    use_all({0, 1, 0, 1, 0, 1, 0, 1, 0, 1});
    prepare();
    EXPECT_EQ(0u, cache(REPLAY_VICTIM_LRU, 0).lost_ns) << "no cost is set";
    m_trace.register_ns      = 500;
    m_trace.register_page_ns = 50;
    EXPECT_EQ(10u * 550, cache(REPLAY_VICTIM_LRU, 0).lost_ns);
    EXPECT_EQ(10u * 550, cache(REPLAY_VICTIM_LRU, PAGE).lost_ns);
    EXPECT_EQ(2u * 550, cache(REPLAY_VICTIM_LRU, 2 * PAGE).lost_ns);
    replay_model_limit(&m_trace, &figures, nullptr);
    EXPECT_EQ(2u * 550, figures.lost_ns) << "first uses alone";
    replay_model_leave(&m_trace, &figures, nullptr);
    EXPECT_EQ(2u * 550, figures.lost_ns);
}

/* Where every use but the first could be early by the whole lead */
TEST_F(test_replay, lead_is_paid_once_a_warm_use_and_not_beyond_the_gap)
{
    replay_params_t p = params(UCS_REGCACHE_POLICY_PREDICT);
    double lead       = 550 + 100000 * exp(0.6 * 2.0537);

    p.lateness_ns = 100000;
    use(10 * MS, 11 * MS, 0);
    use(20 * MS, 21 * MS, 0);
    use(20 * MS + 10, 21 * MS - 10, 0);      /* in use: nothing to pay */
    use(21 * MS + 20000, 22 * MS, 0);        /* idle for less than the lead */
    prepare();
    EXPECT_DOUBLE_EQ(lead, replay_model_lead_ns(&m_trace, &p, PAGE));
    EXPECT_DOUBLE_EQ(PAGE * (lead + 20000), replay_model_lead(&m_trace, &p));

    add(UCS_TRACE_UNMAP, 30 * MS, buffer(0), PAGE);
    use(40 * MS, 41 * MS, 0);                /* cold */
    prepare();
    EXPECT_DOUBLE_EQ(PAGE * (lead + 20000), replay_model_lead(&m_trace, &p));
}
