/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "regcache_world.h"

#include <random>
#include <vector>

static constexpr uint64_t US = 1000;
static constexpr uint64_t MS = 1000000;
static constexpr size_t   MB = 1 << 20;

class test_regcache_order : public ::testing::Test {
protected:
    void SetUp() override
    {
        w = std::make_unique<regcache_world>(UCS_REGCACHE_POLICY_PREDICT);
    }

    static uintptr_t buffer(unsigned i)
    {
        return 0x10000000 + i * 16 * MB;
    }

    /* Of the time, what the helper spends on registering 1 MB for nothing:
     * a use is put off as others come, but not for any price */
    double wasted_share(const ucs_regcache_stats_t &s)
    {
        double pages = (double)MB / regcache_world::PAGE;
        double cost  = regcache_world::REG_BASE_NS +
                      regcache_world::REG_PAGE_NS * pages;
        return s.wasted * cost * 4 / 3 / w->now.load();
    }

    /* Of the helper in the second after a buffer that is used every ten of them
     * was to be used */
    unsigned steps_while_late()
    {
        w->open();
        for (unsigned i = 0; i < 20; ++i) {
            w->use(buffer(0), MB, MS, 0);
            w->advance(10000 * MS);
        }
        w->advance(100 * MS);
        EXPECT_TRUE(w->is_registered(buffer(0), MB));
        unsigned steps = w->steps;
        w->advance(1000 * MS);
        EXPECT_TRUE(w->is_registered(buffer(0), MB));
        return w->steps - steps;
    }

    std::unique_ptr<regcache_world> w;
};

/* A bound is the time itself once it was seen a hundred times */
TEST_F(test_regcache_order, fig1_loop_is_on_time_and_unpinned_in_gaps)
{
    const unsigned learning   = 2;
    const unsigned iterations = 50;
    unsigned pinned_gaps      = 0;

    w->open();
    for (unsigned i = 0; i < iterations; ++i) {
        for (unsigned b = 0; b < 3; ++b) {
            w->use(buffer(b), 4 * MB, MS, b);
            w->advance(50 * MS);
            pinned_gaps += (i >= learning) && (w->stats().pinned_bytes > 0);
            w->advance(49 * MS);
        }
    }

    ucs_regcache_stats_t s = w->stats();
    EXPECT_EQ(3u, s.cold);
    EXPECT_EQ(1u, s.missed); /* the first to come again, foretold by nobody */
    EXPECT_EQ(0u, s.wasted);
    EXPECT_EQ(0u, pinned_gaps);
    EXPECT_EQ(4 * MB, s.pinned_peak_bytes);
}

/* Where the shortest period fails: each gap is scaled by 0.5 to 2 */
TEST_F(test_regcache_order, warped_gaps_are_on_time)
{
    std::mt19937 random(1);
    std::uniform_real_distribution<double> scale(0.5, 2);

    w->open();
    for (unsigned i = 0; i < 400; ++i) {
        for (unsigned b = 0; b < 4; ++b) {
            w->use(buffer(b), MB, MS, b);
            w->advance(20 * MS * scale(random));
        }
    }
    ucs_regcache_stats_t s = w->stats();
    EXPECT_GE(s.on_time, 0.97 * (s.uses - s.cold));
    EXPECT_LE(wasted_share(s), 0.01);
    EXPECT_LE(s.pinned_byte_ns, 0.5 * s.leave_pinned_byte_ns);
}

/* What cannot be predicted is held: no worse than leaving it pinned */
TEST_F(test_regcache_order, random_uses_are_on_time)
{
    std::mt19937 random(1);

    w->open();
    for (unsigned i = 0; i < 4000; ++i) {
        w->use(buffer(random() % 12), MB, 100 * US, random() % 3);
        w->advance((1 + random() % 5) * MS);
    }
    ucs_regcache_stats_t s = w->stats();
    EXPECT_GE(s.on_time, 0.95 * (s.uses - s.cold));
    EXPECT_LE(wasted_share(s), 0.01);
}

TEST_F(test_regcache_order, a_struck_buffer_is_not_registered_again)
{
    w->open();
    for (unsigned i = 0; i < 20; ++i) {
        for (unsigned b = 0; b < 3; ++b) {
            w->use(buffer(b), MB, MS, b);
            w->advance(30 * MS);
        }
    }
    ucs_regcache_unmapped(w->cache, buffer(1), MB);
    EXPECT_FALSE(w->is_registered(buffer(1), MB));
    w->use(buffer(0), MB, MS, 0);
    w->advance(60 * MS);
    EXPECT_FALSE(w->is_registered(buffer(1), MB));
}

TEST_F(test_regcache_order, a_use_that_never_comes_is_given_up)
{
    w->open();
    for (unsigned i = 0; i < 20; ++i) {
        for (unsigned b = 0; b < 3; ++b) {
            w->use(buffer(b), MB, MS, b);
            w->advance(10 * MS);
        }
    }
    w->advance(1000 * MS);
    EXPECT_EQ(0u, w->stats().pinned_bytes);
}

/* A buffer, one that contains it and is registered for less access, and
 * another: what waits for its use at another's region, or is used twice at the
 * same time, keeps nothing registered for ever */
TEST_F(test_regcache_order, overlapping_uses_of_any_order_are_given_up)
{
    const unsigned read_only = regcache_world::REMOTE_GET |
                               regcache_world::LOCAL_READ;
    const struct {
        uintptr_t start;
        size_t    length;
        unsigned  access;
    } buffers[] = {
        {buffer(1), MB, regcache_world::REMOTE_PUT | read_only},
        {buffer(0) + MB / 2, MB, regcache_world::REMOTE_PUT | read_only},
        {buffer(0), 2 * MB, read_only}
    };

    for (unsigned seed = 0; seed < 4000; ++seed) {
        std::mt19937 random(seed);
        std::vector<ucs_regcache_memh_t> held;
        auto pause = [&]() { return (random() % 3 == 0 ? 10 : random() % 3) * MS; };

        SetUp();
        w->open();
        for (unsigned uses = 6 + random() % 12; uses > 0; --uses) {
            unsigned i = random() % 3;
            held.push_back(w->get(buffers[i].start, buffers[i].length, i,
                                  buffers[i].access));
            w->advance(pause());
            while (held.size() > random() % 3) {
                w->put(held.back());
                held.pop_back();
            }
            w->advance(pause());
        }
        for (ucs_regcache_memh_t memh : held) {
            w->put(memh);
        }
        w->advance(60000 * MS);
        ASSERT_EQ(0u, w->stats().pinned_bytes) << "seed " << seed;
    }
}

/* It is watched while it lasts; its end finds the queue full, and nobody ever
 * learns of it */
TEST_F(test_regcache_order, lost_end_of_a_use_under_way)
{
    w->params.dq_length = 8;
    w->open();
    for (unsigned i = 0; i < 6; ++i) {
        w->use(buffer(100), MB, MS);
        w->advance(99 * MS);
    }
    w->use(buffer(100), MB, MS);
    w->advance(20 * MS);
    ASSERT_FALSE(w->is_registered(buffer(100), MB));

    ucs_regcache_memh_t memh = w->get(buffer(100), MB); /* sooner than ever */
    w->advance(MS);
    w->step();
    for (unsigned i = 0; i < 8; ++i) {
        w->touch(buffer(i), MB);
    }
    w->put(memh);
    w->advance(3000 * MS);
    EXPECT_TRUE(w->live.empty());
}

/* What follows it by little is put off as long as it does not come, but not
 * every few microseconds */
TEST_F(test_regcache_order, late_use_is_looked_for_ever_less_often)
{
    w->open();
    for (unsigned i = 0; i < 50; ++i) {
        w->advance(20 * MS);
        for (unsigned b = 0; b < 12; ++b) {
            w->use(buffer(b), 64 * 1024, 10 * US, b);
            w->advance(300 * US);
        }
    }
    unsigned steps = w->steps;
    w->advance(10000 * MS);
    EXPECT_LT(w->steps - steps, 200u);
    EXPECT_EQ(0u, w->stats().pinned_bytes);
    EXPECT_EQ(UCS_REGCACHE_TIME_NEVER, w->next);
}

TEST_F(test_regcache_order, what_is_used_rarely_is_looked_for_at_leisure)
{
    EXPECT_LE(steps_while_late(), 20u);
}

/* There it is not held for being late, and what is known of it decides what
 * goes */
TEST_F(test_regcache_order, under_a_ceiling_it_is_looked_for_often)
{
    w->params.max_pinned = 64 * MB;
    EXPECT_GE(steps_while_late(), 150u);
}

/* As where all cores are busy: one wake-up in twenty waits for the end of a
 * time slice. Uses are as regular as can be, so nothing else is missed. */
TEST_F(test_regcache_order, late_wake_ups_are_allowed_for)
{
    std::mt19937 random(1);

    w->on_sleep = [&]() { return (random() % 20 == 0) ? 3 * MS : 30 * US; };
    w->open();
    for (unsigned j = 0; j < 3000; ++j) {
        w->use(buffer(j % 3), MB, MS, j % 3);
        w->advance(19 * MS);
    }
    ucs_regcache_stats_t s = w->stats();
    EXPECT_LT(double(s.late + s.missed) / (s.uses - s.cold), 0.02);
}

/* A small buffer is looked for ten times a second once it is late for long; a
 * large one that is used meanwhile is not held for that */
TEST_F(test_regcache_order, what_is_late_for_long_does_not_hide_what_is_late)
{
    w->open();
    for (unsigned i = 0; i < 20; ++i) {
        w->use(buffer(0), 16 * 1024, 100 * US, 0);
        w->advance(500 * MS);
    }
    /* From a place of its own, so that it does not announce the small one */
    for (unsigned i = 0; i < 40; ++i) {
        w->use(buffer(1), MB, 100 * US, 1);
        w->advance(8 * MS);
        if (i >= 20) {
            EXPECT_TRUE(w->is_registered(buffer(0), 16 * 1024)) << i;
            EXPECT_FALSE(w->is_registered(buffer(1), MB)) << i;
        }
        w->advance((i & 1) ? 15 * MS : 12 * MS);
    }
}

/* Five buffers in turn, room for three: a cache that evicts the least recently
 * used and registers nothing ahead finds none of them, Belady's half of them */
TEST_F(test_regcache_order, ceiling_evicts_the_farthest)
{
    w->params.max_pinned = 3 * MB;
    w->open();
    for (unsigned i = 0; i < 200; ++i) {
        for (unsigned b = 0; b < 5; ++b) {
            w->use(buffer(b), MB, 100 * US, b);
            w->advance(100 * US);
        }
        EXPECT_LE(w->stats().pinned_bytes, 3 * MB);
    }
    ucs_regcache_stats_t s = w->stats();
    EXPECT_GE(s.on_time, 0.48 * (s.uses - s.cold));
    EXPECT_LE(s.pinned_peak_bytes, 3 * MB);
}

TEST_F(test_regcache_order, buffers_forgotten_by_the_predictor_are_let_go)
{
    w->params.max_contexts = 8;
    w->open();
    for (unsigned i = 0; i < 200; ++i) {
        w->use(buffer(i % 100), MB, 100 * US, i);
        w->advance(MS);
    }
    w->advance(10000 * MS);
    EXPECT_EQ(0u, w->stats().pinned_bytes);
}
