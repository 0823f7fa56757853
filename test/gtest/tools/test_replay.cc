/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <tools/replay/replay_accuracy.h>
#include <tools/replay/replay_model.h>
#include <tools/replay/replay_offline.h>
#include <tools/replay/replay_trace.h>
#include <tools/replay/replay_warp.h>
#include <tools/replay/replay_world.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <unistd.h>

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
        m_events.push_back({time_ns, address, length, 77, 0, kind, 0});
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

    /* Each buffer at a place of the program of its own */
    void set_paths()
    {
        for (ucs_trace_event_t &event : m_events) {
            event.signature = event.address / 0x1000;
        }
    }

    void prepare(uint64_t min_size = 0)
    {
        ucs_trace_t raw = {};

        if (m_is_prepared) {
            replay_trace_cleanup(&m_trace);
        }
        raw.header.page_size = PAGE;
        raw.count            = m_events.size();
        raw.events           = (ucs_trace_event_t*)malloc(
                (raw.count + 1) * sizeof(*raw.events));
        std::copy(m_events.begin(), m_events.end(), raw.events);
        replay_trace_sort(&raw);
        ASSERT_EQ(0, replay_warp_apply(&m_warp, "test", &raw));
        replay_trace_prepare(&raw, "test", min_size, &m_trace);
        ucs_trace_cleanup(&raw);
        m_is_prepared = true;
    }

    replay_figures_t cache(replay_victim_t victim, uint64_t capacity)
    {
        replay_figures_t figures;

        replay_model_cache(&m_trace, victim, capacity, &figures);
        EXPECT_EQ(figures.uses,
                  figures.on_time + figures.missed + figures.cold);
        return figures;
    }

    replay_params_t params(ucs_regcache_policy_t policy)
    {
        replay_params_t result = {};

        result.policy                  = policy;
        result.max_pinned              = UINT64_MAX;
        result.register_cost.base_ns   = 500;
        result.register_cost.page_ns   = 50;
        result.deregister_cost.base_ns = 170;
        result.deregister_cost.page_ns = 17;
        result.seed                    = 1;
        return result;
    }

    ucs_regcache_stats_t run(const replay_params_t &p)
    {
        ucs_regcache_stats_t stats;

        EXPECT_EQ(UCS_OK, replay_world_run(&m_trace, &p, &stats, nullptr,
                                           &m_spent));
        EXPECT_EQ(stats.uses, stats.on_time + stats.late + stats.missed +
                                      stats.cold);
        EXPECT_EQ(m_trace.use_count, stats.uses);
        return stats;
    }

    std::vector<ucs_trace_event_t> m_events;
    replay_warp_t                  m_warp        = {};
    replay_trace_t                 m_trace       = {};
    replay_spent_t                 m_spent       = {};
    bool                           m_is_prepared = false;
};

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
    std::mt19937 random(4);
    std::vector<unsigned> sequence;
    replay_figures_t leave, lru;

    for (unsigned i = 0; i < 500; ++i) {
        sequence.push_back(random() % 20);
    }
    use_all(sequence);
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

TEST_F(test_replay, small_and_broken_uses_are_left_out)
{
    use(0, 10, 0, PAGE);
    use(20, 30, 1, PAGE - 1);
    add(UCS_TRACE_RELEASE, 40, buffer(2), PAGE);
    add(UCS_TRACE_USE, 50, buffer(3), PAGE);
    add(UCS_TRACE_LOST, 60, 0, 5);
    add(UCS_TRACE_UNMAP, 70, buffer(9), PAGE);
    prepare(PAGE);
    EXPECT_EQ(2u, m_trace.use_count);
    EXPECT_EQ(1u, m_trace.small);
    EXPECT_EQ(1u, m_trace.unmatched);
    EXPECT_EQ(1u, m_trace.open);
    EXPECT_EQ(5u, m_trace.lost);
    EXPECT_EQ(4u, m_trace.event_count); /* the unmap touches no use */
    EXPECT_EQ(70u, m_trace.uses[1].end_ns);
}

/* Once the engine has learned what a registration costs it begins in time; a
 * use that comes before its time then finds the registration under way */
TEST_F(test_replay, use_during_the_helpers_registration_is_late)
{
    replay_params_t p = params(UCS_REGCACHE_POLICY_PAPER);

    p.register_cost.base_ns = 20 * MS;
    for (unsigned i = 0; i < 60; ++i) {
        use(MS + i * 100 * MS, 2 * MS + i * 100 * MS, 0);
    }
    prepare();
    auto regular = run(p);
    EXPECT_EQ(1u, regular.cold);
    EXPECT_GT(regular.on_time, 30u);

    use(MS + 60 * 100 * MS - 10 * MS, MS + 60 * 100 * MS, 0);
    prepare();
    auto early = run(p);
    EXPECT_EQ(regular.late + 1, early.late);
    EXPECT_EQ(regular.on_time, early.on_time);

    /* It waited for what was left, not for a registration of its own */
    EXPECT_EQ(regular.missed, early.missed);
}

/* What else happens during that registration is not delayed by it */
TEST_F(test_replay, other_buffers_are_used_during_the_helpers_registration)
{
    replay_params_t p = params(UCS_REGCACHE_POLICY_PAPER);

    p.register_cost.base_ns = 20 * MS;
    for (unsigned i = 0; i < 20; ++i) {
        use(MS + i * 100 * MS, 2 * MS + i * 100 * MS, 0);
    }
    prepare();
    uint64_t alone = run(p).on_time;

    for (unsigned i = 0; i < 2000; ++i) {
        use(MS + i * MS, MS + i * MS + 1000, 1 + i % 3);
    }
    prepare();
    auto stats = run(p);
    EXPECT_EQ(2020u, stats.uses);
    EXPECT_GE(stats.on_time, alone);
}

TEST_F(test_replay, same_seed_same_outcome)
{
    std::mt19937 random(5);
    uint64_t now = 0;

    for (unsigned i = 0; i < 3000; ++i) {
        now += 20000 + random() % 200000;
        use(now, now + random() % 100000, i % 7, PAGE * (1 + i % 7));
    }
    prepare();
    for (unsigned policy = 0; policy < UCS_REGCACHE_POLICY_LAST; ++policy) {
        replay_params_t p = params(ucs_regcache_policy_t(policy));

        p.lateness_ns = 30000;
        auto first    = run(p);
        auto second   = run(p);
        EXPECT_EQ(0, memcmp(&first, &second, sizeof(first)))
                << ucs_regcache_policy_names[policy];
    }
}

/* A use that needs room waits for what the helper is just deregistering */
TEST_F(test_replay, ceilings_end_in_every_policy)
{
    std::mt19937 random(6);
    uint64_t now = 0;

    alarm(60); /* a wait that does not end must not hang the others */

    for (unsigned i = 0; i < 3000; ++i) {
        now += random() % 30000;
        use(now, now + random() % 60000, i % 7, PAGE * (1 + i % 7));
    }
    prepare();
    for (unsigned policy = 0; policy < UCS_REGCACHE_POLICY_LAST; ++policy) {
        for (uint64_t pages : {0, 3, 8, 20}) {
            replay_params_t p = params(ucs_regcache_policy_t(policy));

            p.lateness_ns = 3000;
            p.max_pinned  = pages * PAGE;
            run(p);
        }
    }
    alarm(0);
}

TEST_F(test_replay, warps_change_times_and_keep_uses)
{
    for (unsigned i = 0; i < 100; ++i) {
        use(MS + i * MS, MS + i * MS + 1000, i % 5);
    }
    prepare();
    uint64_t span = m_trace.end_ns - m_trace.start_ns;

    m_warp.is_scaled = 1;
    m_warp.seed      = 9;
    prepare();
    EXPECT_EQ(100u, m_trace.use_count);
    EXPECT_NE(span, m_trace.end_ns - m_trace.start_ns);
    EXPECT_GT(m_trace.end_ns - m_trace.start_ns, span / 2);
    EXPECT_LT(m_trace.end_ns - m_trace.start_ns, span * 2);

    m_warp      = {};
    m_warp.drop = 1;
    prepare();
    EXPECT_EQ(95u, m_trace.use_count);
    EXPECT_EQ(span - 5 * MS, m_trace.end_ns - m_trace.start_ns);

    m_warp       = {};
    m_warp.noise = 0.1;
    m_warp.seed  = 2;
    prepare();
    EXPECT_EQ(100u, m_trace.use_count);
    EXPECT_NE(span, m_trace.end_ns - m_trace.start_ns);
    EXPECT_NEAR(span, m_trace.end_ns - m_trace.start_ns, 0.05 * span);

    m_warp        = {};
    m_warp.insert = 1;
    prepare();
    EXPECT_EQ(200u, m_trace.use_count);
    EXPECT_EQ(9u, m_trace.item_count);
    EXPECT_EQ(span + 100 * MS, m_trace.end_ns - m_trace.start_ns);
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

TEST_F(test_replay, periodicity_holds_one_lead_of_what_is_periodic)
{
    replay_params_t p = params(UCS_REGCACHE_POLICY_PREDICT);
    std::vector<unsigned> sequence;
    replay_figures_t limit, figures;

    for (unsigned i = 0; i < 300; ++i) {
        sequence.push_back(i % 3);
    }
    use_all(sequence);
    prepare();
    replay_model_limit(&m_trace, &limit, nullptr);
    replay_model_periodicity(&m_trace, &p, 4, &figures);
    EXPECT_EQ(300u, figures.uses);
    EXPECT_EQ(3u, figures.cold);
    EXPECT_EQ(300u, figures.on_time + figures.missed + figures.cold);
    /* Two windows of four, three apart, and each buffer once more */
    EXPECT_GE(figures.on_time, 290u);
    EXPECT_GT(figures.pinned_byte_ns, limit.pinned_byte_ns);
    EXPECT_LE(figures.pinned_byte_ns,
              limit.pinned_byte_ns + replay_model_lead(&m_trace, &p) +
                      3 * PAGE * 0.05 * 3 * MS);
    EXPECT_LE(figures.wasted, 3u); /* what the end has cut off */
    EXPECT_EQ(PAGE, figures.pinned_peak_bytes);
}

TEST_F(test_replay, time_lost_is_what_the_main_thread_is_kept_for)
{
    use_all({0, 1, 0, 1, 0, 1, 0, 1, 0, 1});
    prepare();
    run(params(UCS_REGCACHE_POLICY_ON_DEMAND));
    EXPECT_EQ(10u * (550 + 187), m_spent.lost_ns);
    run(params(UCS_REGCACHE_POLICY_LEAVE_PINNED));
    EXPECT_EQ(2u * 550, m_spent.lost_ns);
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
    replay_params_t p = params(UCS_REGCACHE_POLICY_PREDICT);
    replay_model_periodicity(&m_trace, &p, 64, &figures);
    EXPECT_EQ(550u * (figures.missed + figures.cold), figures.lost_ns);
}

TEST_F(test_replay, periodicity_without_a_period_registers_on_demand)
{
    replay_params_t p = params(UCS_REGCACHE_POLICY_PREDICT);
    std::mt19937 random(3);
    std::vector<unsigned> sequence;
    replay_figures_t limit, figures;

    for (unsigned i = 0; i < 500; ++i) {
        sequence.push_back(random() % 20);
    }
    use_all(sequence);
    prepare();
    replay_model_limit(&m_trace, &limit, nullptr);
    replay_model_periodicity(&m_trace, &p, 64, &figures);
    EXPECT_LE(figures.on_time, 5u);
    EXPECT_LE(figures.pinned_byte_ns, 1.05 * limit.pinned_byte_ns);
}

TEST_F(test_replay, periodicity_drops_what_does_not_come)
{
    replay_params_t p = params(UCS_REGCACHE_POLICY_PREDICT);
    std::vector<unsigned> sequence(40, 0);
    replay_figures_t before, after, gone;

    use_all(sequence);
    prepare();
    replay_model_periodicity(&m_trace, &p, 4, &before);

    /* One more use, of another buffer, after a long time */
    use(1000 * MS, 1000 * MS + 10000, 1);
    prepare();
    replay_model_periodicity(&m_trace, &p, 4, &after);
    EXPECT_EQ(1u, after.wasted);
    EXPECT_GT(after.pinned_byte_ns, before.pinned_byte_ns);
    EXPECT_LE(after.pinned_byte_ns - before.pinned_byte_ns,
              PAGE * (10000 + 0.1 * MS));

    /* Unmapped before it would have been registered again */
    add(UCS_TRACE_UNMAP, 40 * MS + 20000, buffer(0), PAGE);
    prepare();
    replay_model_periodicity(&m_trace, &p, 4, &gone);
    EXPECT_EQ(0u, gone.wasted);
    EXPECT_DOUBLE_EQ(before.pinned_byte_ns + 10000 * PAGE, gone.pinned_byte_ns);
}

TEST_F(test_replay, accuracy_of_the_order_does_not_peek)
{
    replay_accuracy_t rated[REPLAY_PREDICTORS];
    uint64_t now = MS;

    /* Nothing tells when: the order is all that repeats */
    std::mt19937 random(4);
    for (unsigned i = 0; i < 400; ++i) {
        now += MS + random() % (10 * MS);
        use(now, now + 1000, i % 2);
    }
    set_paths();
    prepare();
    replay_accuracy_rate(&m_trace, 16, rated);
    for (const replay_accuracy_t &one : rated) {
        EXPECT_EQ(400u, one.uses) << one.name;
        EXPECT_LT(one.five, 100u) << one.name;
        if (!strncmp(one.name, "order", 5)) {
            EXPECT_EQ(398u, one.repeated) << one.name;
            EXPECT_GT(one.predicted, 380u) << one.name;
        }
    }
}

TEST_F(test_replay, accuracy_of_the_order_where_times_repeat)
{
    replay_accuracy_t rated[REPLAY_PREDICTORS];
    unsigned found = 0;
    std::vector<unsigned> sequence;

    /* From the third use of each on */
    for (unsigned i = 0; i < 2100; ++i) {
        sequence.push_back(i % 7);
    }
    use_all(sequence);
    set_paths();
    prepare();
    replay_accuracy_rate(&m_trace, 16, rated);
    for (const replay_accuracy_t &one : rated) {
        if (!strncmp(one.name, "order", 5)) {
            ++found;
            EXPECT_GE(one.five, 7u * (300 - 3)) << one.name;
        }
    }
    EXPECT_EQ(2u, found);
}

/* Keep or drop: a page for which leave pinned's whole is worth a tenth of the
 * time, and that takes 100 us to register, is kept for up to 1 ms */
class test_keep_or_drop : public test_replay {
protected:
    static constexpr uint64_t COST = 100000;

    replay_figures_t model(double max_slowdown = 0.1)
    {
        replay_params_t p = params(UCS_REGCACHE_POLICY_ON_DEMAND);
        replay_figures_t figures;

        p.register_cost = {COST - 50.0, 50};
        p.max_slowdown  = max_slowdown;
        replay_model_keep_or_drop(&m_trace, &p, &figures, &m_lost);
        EXPECT_EQ(figures.uses,
                  figures.on_time + figures.missed + figures.cold);
        return figures;
    }

    replay_lost_t m_lost;
};

TEST_F(test_keep_or_drop, a_gap_is_kept_as_long_as_that_is_cheaper)
{
    replay_figures_t figures;

    use(0, 1000, 0);
    use(MS + 1000, MS + 3000, 0);         /* after 1 ms */
    use(2 * MS + 4000, 2 * MS + 5000, 0); /* after 1 ms and 1 us */
    prepare();
    figures = model();
    EXPECT_EQ(1u, figures.cold);
    EXPECT_EQ(1u, figures.on_time);
    EXPECT_EQ(1u, figures.missed);
    EXPECT_EQ(2.0 * COST, m_lost.all_ns);
    EXPECT_EQ(1.0 * COST, m_lost.first_ns);
    EXPECT_EQ(PAGE * (MS + 3000 + 1000.0), figures.pinned_byte_ns);
    EXPECT_EQ(PAGE, figures.pinned_peak_bytes);
}

TEST_F(test_keep_or_drop, what_is_in_use_is_held)
{
    replay_figures_t figures, limit;

    use(0, 9 * MS, 0);
    use(MS, 20 * MS, 0); /* meets the first, and goes on */
    use(30 * MS, 31 * MS, 0);
    use(5 * MS, 6 * MS, 1);
    prepare();
    figures = model();
    replay_model_limit(&m_trace, &limit, nullptr);
    EXPECT_EQ(2u, figures.cold);
    EXPECT_EQ(1u, figures.on_time);
    EXPECT_EQ(1u, figures.missed);
    EXPECT_EQ(limit.pinned_byte_ns, figures.pinned_byte_ns);
    EXPECT_EQ(limit.pinned_peak_bytes, figures.pinned_peak_bytes);
}

TEST_F(test_keep_or_drop, what_is_unmapped_is_not_held_for_its_next_use)
{
    replay_figures_t figures;

    use(0, 1000, 0);
    add(UCS_TRACE_UNMAP, 2000, buffer(0), PAGE);
    use(3000, 4000, 0);
    use(5000, 7000, 0);
    add(UCS_TRACE_UNMAP, 6000, buffer(0), PAGE); /* in use */
    use(8000, 9000, 0);
    prepare();
    figures = model();
    EXPECT_EQ(3u, figures.cold);
    EXPECT_EQ(1u, figures.on_time);
    EXPECT_EQ(3.0 * COST, m_lost.first_ns);
    EXPECT_EQ(PAGE * (1000.0 + 4000 + 1000), figures.pinned_byte_ns);
}

/* Its price is the sum over all gaps of the cheaper of two things, and what is
 * in use: neither keeping all nor dropping all is below it */
TEST_F(test_keep_or_drop, no_other_choice_is_cheaper)
{
    for (unsigned seed = 1; seed <= 20; ++seed) {
        std::mt19937 random(seed);
        std::lognormal_distribution<double> gap(std::log(1e6), 1.5);
        std::map<unsigned, uint64_t> ended;
        double price = 0, all = 0, none = 0;
        uint64_t now = MS;
        replay_figures_t figures;

        m_events.clear();
        for (unsigned i = 0; i < 300; ++i) {
            unsigned index = random() % 5;
            uint64_t end   = now + 1 + random() % 100000;

            use(now, end, index);
            if (ended.count(index)) {
                double hold = 0.1 / 5 * (now - ended[index]);
                price += std::min(hold, double(COST));
                all   += hold;
                none  += COST;
            }
            price       += 0.1 / 5 * (end - now);
            all         += 0.1 / 5 * (end - now);
            none        += 0.1 / 5 * (end - now);
            ended[index] = end;
            now          = end + 1 + uint64_t(gap(random));
        }
        prepare();
        figures = model();
        ASSERT_EQ(5u, figures.cold) << "seed " << seed;

        double found = m_lost.all_ns - m_lost.first_ns +
                       0.1 / (5 * PAGE) * figures.pinned_byte_ns;
        EXPECT_NEAR(price, found, 1e-6 * price) << "seed " << seed;
        EXPECT_LE(found, 1.000001 * std::min(all, none)) << "seed " << seed;
    }
}

/*
 * Rent: held for as long as holding costs what registering costs, then dropped.
 * Programs that know that rule as well as we do, replayed by the engine.
 */
class test_rent : public test_replay {
protected:
    static constexpr unsigned BUFFERS = 8;
    static constexpr unsigned USES    = 60; /* of each */
    static constexpr uint64_t PAGES   = 16;

    /* Longer than any wake-up: what is to be dropped is held so much longer */
    static constexpr double DELAY = MS;

    /* The policy of this name, or LAST */
    static ucs_regcache_policy_t find(const char *name)
    {
        int policy = 0;

        while ((policy < UCS_REGCACHE_POLICY_LAST) &&
               strcmp(ucs_regcache_policy_names[policy], name)) {
            ++policy;
        }
        return (ucs_regcache_policy_t)policy;
    }

    /* What a NIC takes, which is what the engine believes at first */
    static replay_params_t nic(ucs_regcache_policy_t policy, unsigned seed)
    {
        replay_params_t result = {};

        result.policy          = policy;
        result.max_pinned      = UINT64_MAX;
        result.register_cost   = {20000, 250};
        result.deregister_cost = {10000, 100};
        result.lateness_ns     = 30000;
        result.max_slowdown    = 0.005;
        result.seed            = seed;
        return result;
    }

    static double cost_ns()
    {
        return 20000 + 250 * PAGES;
    }

    /* A nanosecond of a buffer, in nanoseconds lost */
    static double lambda()
    {
        return 0.005 / BUFFERS;
    }

    static double gap(std::mt19937 &random, unsigned kind, unsigned i)
    {
        std::uniform_real_distribution<double> uniform(0, 1);
        double rent = cost_ns() / lambda();

        switch (kind) {
        case 0: /* around the end of the rent */
            return rent * (0.98 + 0.04 * uniform(random));
        case 1: /* as soon as the helper has it dropped, or just not */
            return rent * (1 + 0.01 * uniform(random)) +
                   ((i % 2) ? DELAY : 0);
        case 2:
            return rent * ((i % 2) ? 1.1 : 0.001);
        case 3: /* growing */
            return rent * 0.01 * std::pow(1.2, i % 40);
        case 4: /* bursts */
            return rent * ((i % 10) ? 0.002 * uniform(random) :
                                      5 * uniform(random));
        default:
            return rent * 3 * uniform(random);
        }
    }

    /* All are used once at the start, so that it is known what there is */
    void make(unsigned seed)
    {
        std::mt19937 random(seed);

        m_events.clear();
        for (unsigned index = 0; index < BUFFERS; ++index) {
            unsigned kind = random() % 6;
            double now    = MS * (index + 1);

            for (unsigned i = 0; i < USES; ++i) {
                use(now, now + 20000, index, PAGES * PAGE);
                now += 20000 + 1000 + gap(random, kind, i);
            }
        }
        prepare();
    }

    /* Without first uses; in nanoseconds */
    double price(double lost_ns, double first_ns, double pinned_byte_ns)
    {
        return lost_ns - first_ns +
               lambda() * pinned_byte_ns / (PAGES * PAGE);
    }

    double best(unsigned seed)
    {
        replay_params_t p = nic(UCS_REGCACHE_POLICY_ON_DEMAND, seed);
        replay_figures_t figures;
        replay_lost_t lost;

        replay_model_keep_or_drop(&m_trace, &p, &figures, &lost);
        return price(lost.all_ns, lost.first_ns, figures.pinned_byte_ns);
    }

    /* For each use that was not there the helper may have come late to the drop
     * before it, and a late one waits for a deregistration or a registration
     * that is under way; after its last use each buffer is rented once more */
    double allowance(const ucs_regcache_stats_t &stats)
    {
        return (stats.missed + stats.late) * lambda() * DELAY +
               stats.late * (10000 + 100 * PAGES) +
               lambda() * stats.uses * cost_ns() /* held while registering */ +
               BUFFERS * (cost_ns() + lambda() * DELAY);
    }

    std::string compare(ucs_regcache_policy_t policy, unsigned seed)
    {
        make(seed);

        ucs_regcache_stats_t stats = run(nic(policy, seed));
        double found = price(m_spent.lost_ns, m_spent.first_ns,
                             stats.pinned_byte_ns);
        double bound = 2 * best(seed) + allowance(stats);

        return (found <= bound) ? "" :
               "seed " + std::to_string(seed) + ": " + std::to_string(found) +
               " ns for at most " + std::to_string(bound) + ", " +
               std::to_string(stats.missed) + " missed, " +
               std::to_string(stats.late) + " late";
    }
};

TEST_F(test_rent, at_most_twice_as_dear_as_who_knows_the_gaps)
{
    ucs_regcache_policy_t rent = find("rent");

    if (rent == UCS_REGCACHE_POLICY_LAST) {
        GTEST_SKIP() << "no policy rent";
    }
    for (unsigned seed = 1; seed <= 100; ++seed) {
        ASSERT_EQ("", compare(rent, seed));
    }
}

/* The bound is no formality: who keeps all, or nothing, passes it */
TEST_F(test_rent, others_are_dearer)
{
    unsigned kept = 0, dropped = 0;

    for (unsigned seed = 1; seed <= 100; ++seed) {
        kept    += !compare(UCS_REGCACHE_POLICY_LEAVE_PINNED, seed).empty();
        dropped += !compare(UCS_REGCACHE_POLICY_ON_DEMAND, seed).empty();
    }
    EXPECT_GT(kept, 0u);
    EXPECT_GT(dropped, 0u);
}
