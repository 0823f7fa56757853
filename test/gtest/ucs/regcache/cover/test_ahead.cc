/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "../regcache_world.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace {

constexpr size_t    KB    = 1024;
constexpr size_t    MB    = 1024 * KB;
constexpr uint64_t  MS    = 1000000;
constexpr uint64_t  US    = 1000;
constexpr uintptr_t BASE  = 0x10000000000;

/** A program that walks through an array, at a NIC's modelled cost. */
class test_ahead : public ::testing::Test {
protected:
    static constexpr unsigned LOCAL = regcache_world::LOCAL_READ |
                                      regcache_world::LOCAL_WRITE;
    static constexpr unsigned REMOTE = regcache_world::ACCESS;

    void SetUp() override
    {
        make(UCS_REGCACHE_COVER_REMOTE);
    }

    void make(ucs_regcache_cover_kind_t kind)
    {
        w = std::make_unique<regcache_world>(UCS_REGCACHE_POLICY_PREDICT);
        w->params.cover.kind        = kind;
        w->params.cover.remote_mask = regcache_world::REMOTE_GET |
                                      regcache_world::REMOTE_PUT;
        w->on_reg = [&](regcache_world::registration reg) {
            pinned    += reg.length;
            most       = std::max(most, pinned);
            largest    = std::max(largest, reg.length);
            w->now += 20 * US + 250 * reg.length / regcache_world::PAGE;
            return on_reg ? on_reg(reg) : UCS_OK;
        };
    }

    uintptr_t piece(intptr_t i) const
    {
        return BASE + i * stride;
    }

    void step(intptr_t i, unsigned flags = REMOTE)
    {
        w->use(piece(i), length, 100 * US, 1, flags);
        w->advance(pause);
    }

    void walk(intptr_t from, intptr_t to, unsigned flags = REMOTE)
    {
        for (intptr_t i = from; i != to; i += (from < to) ? 1 : -1) {
            step(i, flags);
        }
    }

    /* Windows that are registered */
    size_t live() const
    {
        return w->live.size();
    }

    std::unique_ptr<regcache_world> w;
    std::function<ucs_status_t(regcache_world::registration)> on_reg;
    intptr_t stride = 64 * KB;
    size_t length   = 64 * KB;
    uint64_t pause  = MS;
    size_t pinned   = 0; /* ever */
    size_t most     = 0;
    size_t largest  = 0;
};

TEST_F(test_ahead, a_march_costs_few_registrations)
{
    w->open();
    walk(0, 2048);
    ucs_regcache_stats_t first = w->stats();
    EXPECT_GE(100u, w->regs);
    EXPECT_LE(2048u * 95 / 100, first.on_time);
    EXPECT_LE(2047u * 64 * KB, first.leave_pinned_bytes);
    EXPECT_GE(8 * MB, largest);

    for (unsigned round = 0; round < 2; ++round) {
        w->advance(10 * MS);
        walk(0, 2048);
    }
    ucs_regcache_stats_t all = w->stats();
    EXPECT_GE(240u, w->regs);
    EXPECT_LE(2 * 2048u * 97 / 100, all.on_time - first.on_time);
    EXPECT_GE(0.08 * all.leave_pinned_byte_ns, all.pinned_byte_ns);
    /* Of two rounds it is not known how much they differ. So what the next one begins with
     * is registered by now, a twentieth of a round before it: nine windows beside those
     * that the walk has just left. After some more rounds it is better known. */
    EXPECT_GE(12u, live());
    for (unsigned round = 0; round < 4; ++round) {
        w->advance(10 * MS);
        walk(0, 2048);
    }
    EXPECT_GE(8u, live());
}

/* A piece as four ranks reduce it: a half, the quarters of the other half, both halves. The
 * first pass registers what others are given, one by one. Later ones make windows, which
 * begin and end where the longest steps do: nothing lies across or between. */
TEST_F(test_ahead, a_reduction_costs_as_few_as_one_walk)
{
    for (intptr_t by : {1, -1}) {
        make(UCS_REGCACHE_COVER_LOCAL);
        stride = by * intptr_t(64 * KB);
        w->open();
        for (unsigned round = 0; round < 4; ++round) {
            const unsigned before = w->regs;
            const uint64_t missed = w->stats().missed;
            size_t at_once        = 0;
            for (unsigned i = 0; i < 1024; ++i) {
                for (auto part : {std::pair{0 * KB, 32 * KB}, {32 * KB, 16 * KB},
                                  {48 * KB, 16 * KB}, {32 * KB, 32 * KB},
                                  {0 * KB, 32 * KB}}) {
                    w->use(piece(2048 + i) + part.first, part.second, 20 * US,
                           1 + part.first + part.second);
                }
                w->advance(pause);
                at_once = std::max(at_once, live());
            }
            if (round > 0) {
                EXPECT_GE(40u, w->regs - before) << by << ' ' << round;
                EXPECT_GE(20u, w->stats().missed - missed) << by << ' ' << round;
                EXPECT_GE(16u, at_once) << by << ' ' << round;
            }
            w->advance(1000 * MS);
        }
        EXPECT_EQ(nullptr, w->invalid());
        w.reset();
    }
}

/* From its first step on */
TEST_F(test_ahead, a_walk_that_comes_again_has_its_window)
{
    for (intptr_t by : {1, -1}) {
        make(UCS_REGCACHE_COVER_LOCAL);
        stride = by * intptr_t(64 * KB);
        w->open();
        walk(2000, 2200);
        w->advance(60000 * MS);
        EXPECT_EQ(0u, live());
        step(2000);
        EXPECT_TRUE(w->is_registered(piece(2004), length)) << by;
        EXPECT_EQ(1u, live());
        w->advance(60000 * MS);
        /* In vain: that is not expected again */
        step(2000);
        EXPECT_FALSE(w->is_registered(piece(2001), length)) << by;
        w->advance(60000 * MS);
        w.reset();
    }
}

/* Beyond where it ended nothing is registered */
TEST_F(test_ahead, a_walk_ends_where_it_ended)
{
    w->open();
    for (unsigned round = 0; round < 2; ++round) {
        walk(0, 200);
        w->advance(60000 * MS);
    }
    for (unsigned i = 0; i < 200; ++i) {
        step(i);
        EXPECT_FALSE(w->is_registered(piece(202), 1)) << i;
    }
    walk(200, 400); /* it goes on after all */
    EXPECT_LE(800u * 85 / 100, w->stats().on_time);
}

/* Leave pinned holds what was used. What is registered ahead of a walk that ends
 * is not, and does not make memory look cheaper. */
TEST_F(test_ahead, leave_pinned_holds_what_was_used)
{
    for (auto kind : {UCS_REGCACHE_COVER_LOCAL, UCS_REGCACHE_COVER_REMOTE}) {
        make(kind);
        w->open();
        walk(0, 64);
        ucs_regcache_stats_t stats = w->stats();
        EXPECT_EQ(64u * 64 * KB, stats.leave_pinned_bytes) << kind;
        EXPECT_EQ(64u * 64 * KB, stats.leave_pinned_peak_bytes) << kind;
        EXPECT_LE(32u, stats.on_time) << kind;
        w.reset();
    }
}

TEST_F(test_ahead, downwards_and_with_gaps)
{
    for (intptr_t by : {-64, 96, -256, 1024}) {
        make(UCS_REGCACHE_COVER_REMOTE);
        stride = by * intptr_t(KB);
        w->open();
        walk(4096, 5120);
        EXPECT_LE(1024u * 95 / 100, w->stats().on_time) << by;
        EXPECT_GE(8u, live()) << by;
        if (by < 1024) {
            EXPECT_GE(1024u / 4, w->regs) << by;
        }
        w.reset();
    }
}

/* Halves of each piece, as a reduction sends and receives them */
TEST_F(test_ahead, pieces_in_parts)
{
    w->open();
    for (unsigned i = 0; i < 1024; ++i) {
        for (uintptr_t part : {32 * KB, 0 * KB, 32 * KB}) {
            w->use(piece(i) + part + 16, 32 * KB, 20 * US, 1 + part);
        }
        w->use(piece(i) + 16, 64 * KB, 20 * US, 7);
        w->advance(MS);
    }
    EXPECT_GE(120u, w->regs);
    EXPECT_LE(4096u * 95 / 100, w->stats().on_time);
}

TEST_F(test_ahead, what_gives_others_access_only_if_the_user_says_so)
{
    make(UCS_REGCACHE_COVER_LOCAL);
    w->open();
    walk(0, 200, REMOTE);
    EXPECT_EQ(length, largest);
    EXPECT_EQ(0u, w->stats().covers);
    EXPECT_LE(180u, w->stats().on_time); /* one by one */
    EXPECT_GE(210u, w->regs);
    walk(1000, 1200, LOCAL);
    EXPECT_LT(8 * length, largest);
    /* A key of a piece in a window is of a registration of its own */
    const unsigned regs = w->regs;
    ucs_regcache_memh_t memh = w->get(piece(1199), length, 1, REMOTE);
    EXPECT_EQ(regs + 1, w->regs);
    EXPECT_EQ(length, w->live.at((uintptr_t)memh).length);
    w->put(memh);
}

/* What the program has given others access to itself is registered together when the
 * walk comes again, in either direction, and not a byte beyond it */
TEST_F(test_ahead, what_others_had_access_to_is_registered_together)
{
    for (intptr_t by : {1, -1}) {
        uintptr_t least = UINTPTR_MAX, end = 0;
        make(UCS_REGCACHE_COVER_LOCAL);
        largest = 0;
        on_reg = [&](regcache_world::registration reg) {
            least = std::min(least, reg.start);
            end   = std::max(end, reg.start + reg.length);
            return UCS_OK;
        };
        stride = length = 64 * KB;
        w->open();
        for (unsigned round = 0; round < 4; ++round) {
            const unsigned before = w->regs;
            w->advance(5000 * MS);
            if (by > 0) {
                walk(3000, 4024, REMOTE);
            } else {
                walk(4023, 2999, REMOTE);
            }
            if (round == 0) {
                EXPECT_EQ(length, largest) << by;
                EXPECT_LE(1024u * 95 / 100, w->stats().on_time) << by;
            } else {
                EXPECT_GE(1024u / 8, w->regs - before) << by << ' ' << round;
            }
        }
        EXPECT_LE(8 * length, largest) << by;
        EXPECT_LE(piece(3000) - 8 * length, least); /* steps ahead of its end */
        EXPECT_GE(piece(4024) + 8 * length, end);
        EXPECT_EQ(nullptr, w->invalid());
        w.reset();
        on_reg = nullptr;
    }
}

/* What a registration may have at most is no multiple of a step: the step across its end is
 * the next window's, and pinned once */
TEST_F(test_ahead, windows_of_what_others_had_access_to_end_with_a_step)
{
    ucs_regcache_tuning_t tuning = ucs_regcache_tuning_default;

    tuning.cover_max = 7 * length / 2; /* beyond the first step */
    for (intptr_t by : {1, -1}) {
        make(UCS_REGCACHE_COVER_LOCAL);
        w->params.tuning = &tuning;
        stride           = by * intptr_t(64 * KB);
        w->open();
        walk(4000, 4300, REMOTE);
        for (unsigned round = 1; round < 3; ++round) {
            w->advance(60000 * MS);
            pinned = 0;
            walk(4000, 4300, REMOTE);
            EXPECT_EQ(300 * length, pinned) << by << ' ' << round;
        }
        EXPECT_EQ(4 * length, largest) << by;
        w.reset();
    }
}

/* What lies between steps was given to nobody, and neither was what has been mapped
 * since; nor with an access that it was not given with */
TEST_F(test_ahead, what_others_had_no_access_to_is_not)
{
    make(UCS_REGCACHE_COVER_LOCAL);
    stride = 96 * KB;
    w->open();
    for (unsigned round = 0; round < 3; ++round) {
        walk(0, 200, REMOTE);
        w->advance(5000 * MS);
    }
    EXPECT_EQ(length, largest) << "with gaps";

    stride = length;
    for (unsigned round = 0; round < 3; ++round) {
        walk(5000, 5200, REMOTE);
        w->advance(5000 * MS);
        ucs_regcache_unmapped(w->cache, piece(5000), 200 * length);
        ucs_regcache_mapped(w->cache, piece(5000), 200 * length);
    }
    EXPECT_EQ(length, largest) << "mapped anew";

    for (unsigned round = 0; round < 3; ++round) {
        walk(9000, 9200, LOCAL | regcache_world::REMOTE_GET);
        w->advance(5000 * MS);
        if (round == 0) {
            EXPECT_EQ(length, largest);
        }
    }
    EXPECT_LE(4 * length, largest) << "given to be read";
    largest = 0;
    walk(9000, 9200, LOCAL | regcache_world::REMOTE_PUT);
    EXPECT_EQ(length, largest) << "not given to be written";
}

/* Nor when it is registered anew */
TEST_F(test_ahead, a_window_gains_no_access)
{
    make(UCS_REGCACHE_COVER_LOCAL);
    w->open();
    for (unsigned round = 0; round < 3; ++round) {
        walk(0, 200, LOCAL | regcache_world::REMOTE_GET);
        w->advance(5000 * MS);
    }
    /* Windows of 6 and 7 steps are registered ahead of one that may only be read,
     * and serve whoever asks for half of one */
    largest = 0;
    length  = 4 * length;
    for (intptr_t i = 0; i + 4 < 200; i += 4) {
        step(i);
    }
    EXPECT_EQ(length, largest);
}

TEST_F(test_ahead, off_is_off)
{
    make(UCS_REGCACHE_COVER_OFF);
    w->open();
    walk(0, 200);
    EXPECT_EQ(200u, w->regs);
}

TEST_F(test_ahead, below_a_ceiling_nothing_that_nobody_asked_for)
{
    w->params.max_pinned = 64 * MB;
    w->open();
    walk(0, 200);
    EXPECT_EQ(length, largest);
}

/* It costs what has been walked, at most, for as long as that is worth */
TEST_F(test_ahead, a_walk_that_ends_costs_a_window)
{
    w->open();
    walk(0, 100);
    EXPECT_LT(0u, live());
    EXPECT_GE(2 * 100 * length, largest);
    w->advance(60000 * MS);
    EXPECT_EQ(0u, live());
    EXPECT_EQ(nullptr, w->invalid());
}

/* The blocks of an all-to-all are a walk, and stand still while the ranks compute */
TEST_F(test_ahead, blocks_that_come_again_after_a_pause)
{
    stride = length = 4 * MB;
    pause           = 50 * US;
    w->open();
    for (unsigned round = 0; round < 8; ++round) {
        walk(0, 63);
        w->advance(20000 * MS);
    }
    ucs_regcache_stats_t stats = w->stats();
    EXPECT_GE(0.005 * stats.leave_pinned_byte_ns, stats.pinned_byte_ns);
    EXPECT_LE(5 * 63u, stats.on_time);
}

TEST_F(test_ahead, an_event_dooms_the_window)
{
    w->open();
    for (unsigned i = 0; i < 400; ++i) {
        step(i);
        if (i % 50 == 49) {
            ucs_regcache_unmapped(w->cache, piece(i + 3), length);
            EXPECT_FALSE(ucs_regcache_has_region(w->cache, piece(i + 3),
                                                 piece(i + 4)));
            w->advance(0);
            EXPECT_FALSE(w->is_registered(piece(i + 3), length)) << i;
            ucs_regcache_mapped(w->cache, piece(i + 3), length);
        }
    }
    EXPECT_LE(400u * 85 / 100, w->stats().on_time);
    EXPECT_EQ(nullptr, w->invalid());
}

TEST_F(test_ahead, nothing_that_an_event_has_touched)
{
    w->open();
    ucs_regcache_unmapped(w->cache, piece(100), length);
    walk(0, 100);
    EXPECT_FALSE(w->is_registered(piece(100), 1));
    EXPECT_EQ(nullptr, w->invalid());
    step(100); /* asked for */
    walk(101, 200);
    EXPECT_LE(200u * 85 / 100, w->stats().on_time);
}

/* Nor what lies between two steps: a window reaches back to the one before */
TEST_F(test_ahead, nothing_that_an_event_has_touched_between_steps)
{
    for (intptr_t by : {256, -256}) {
        make(UCS_REGCACHE_COVER_REMOTE);
        stride = by * intptr_t(KB);
        w->open();
        for (unsigned i = 0; i < 300; ++i) {
            step(5000 + i);
            if (i % 8 == 4) {
                /* Between the next step and the one behind it */
                const uintptr_t gap = piece(5000 + i + 1) + stride / 2;
                ucs_regcache_unmapped(w->cache, gap, regcache_world::PAGE);
                for (unsigned k = i + 1; k < i + 4; ++k) {
                    step(5000 + k);
                    EXPECT_FALSE(w->is_registered(gap, 1)) << by << " " << i;
                }
                i += 3;
                ucs_regcache_mapped(w->cache, gap, regcache_world::PAGE);
            }
        }
        EXPECT_EQ(nullptr, w->invalid());
        w.reset();
    }
}

/* One mapping, and what is in memory */
TEST_F(test_ahead, within_what_may_be_kept)
{
    const uintptr_t end      = piece(150) + length / 2;
    const uintptr_t resident = piece(75);

    w->on_inspect = [&](unsigned flags, uintptr_t *start_p, uintptr_t *end_p) {
        if ((*end_p > end) || ((flags & UCS_REGCACHE_INSPECT_SPECULATE) &&
                               (*end_p > resident))) {
            return false;
        }
        *start_p = BASE;
        *end_p   = end;
        return true;
    };
    unsigned beyond = 0;
    on_reg = [&](regcache_world::registration reg) {
        beyond += (reg.start + reg.length > end) ||
                  ((reg.length > length) &&
                   (reg.start + reg.length > resident));
        return UCS_OK;
    };
    w->open();
    walk(0, 150);
    EXPECT_EQ(0u, beyond);
    EXPECT_LE(60u, w->stats().on_time);
    EXPECT_GE(110u, w->regs);
    EXPECT_EQ(nullptr, w->invalid());
}

/* What is refused is asked for rarely */
TEST_F(test_ahead, refused_windows_cost_little)
{
    unsigned refused = 0;

    w->on_inspect = [&](unsigned flags, uintptr_t*, uintptr_t*) {
        refused += !!(flags & UCS_REGCACHE_INSPECT_SPECULATE);
        return !(flags & UCS_REGCACHE_INSPECT_SPECULATE);
    };
    w->open();
    walk(0, 2000);
    EXPECT_EQ(2000u, w->stats().registrations);
    EXPECT_GE(30u, refused);
}

/* While the helper does not come the uses register windows themselves. A use waits at
 * most twice as long as for its own step, which takes 24 us: six or seven steps. */
TEST_F(test_ahead, without_the_helper)
{
    w->open();
    w->on_sleep = [] { return 3600000 * MS; };
    w->step();
    walk(0, 512);
    EXPECT_GE(8 + 512u / 6, w->regs);
    EXPECT_LE(512u * 5 / 6 - 8, w->stats().on_time);
    EXPECT_GE(7 * length, largest);
    EXPECT_EQ(nullptr, w->invalid());
}

/* A walk that begins again comes to its next steps soon. Its first use registers three, in
 * 68 us, where one takes 36. Ahead of it there are more, as many as it is away from. */
TEST_F(test_ahead, no_longer_than_until_the_walk_comes)
{
    std::vector<size_t> lengths;

    length = stride = 256 * KB;
    pause           = 10 * US;
    w->open();
    w->use(BASE - 512 * MB, 256 * MB);
    walk(0, 200);
    w->advance(60000 * MS);
    on_reg = [&](regcache_world::registration reg) {
        lengths.push_back(reg.length / length);
        return UCS_OK;
    };
    walk(0, 200);
    ASSERT_LE(4u, lengths.size());
    EXPECT_EQ(3u, lengths[0]);
    EXPECT_LT(3u, lengths[1]);
    EXPECT_GE(12u, lengths[1]);
    EXPECT_LT(24 * length, largest);
    EXPECT_EQ(nullptr, w->invalid());
}

/* A window that was late is foretold the next times, as what a use has registered is */
TEST_F(test_ahead, a_late_window_is_foretold)
{
    constexpr unsigned ROUNDS = 20, STEPS = 48;
    std::atomic<bool> is_waited_for{false};
    unsigned round = 0, at = 0, jump = 0;
    std::thread user;

    w->open();
    w->use(BASE - 512 * MB, 64 * MB);
    w->on_wait = [&] {
        if (!is_waited_for) {
            w->now       += US;
            is_waited_for = true;
        }
        std::this_thread::yield();
    };
    /* The program goes on to what is just being registered, each time at this step */
    on_reg = [&](regcache_world::registration reg) {
        jump = ((round == 4) && (at > 16) && (jump == 0)) ? at : jump;
        if ((at == 0) || (at != jump) || user.joinable()) {
            return UCS_OK;
        }
        is_waited_for = false;
        user = std::thread([this, reg] { w->touch(reg.start, length); });
        while (!is_waited_for) {
            std::this_thread::yield();
        }
        return UCS_OK;
    };
    for (; round < ROUNDS; ++round) {
        for (at = 1; at <= STEPS; ++at) {
            step(at);
            if (user.joinable()) {
                user.join();
            }
        }
        at = 0;
        w->advance(500 * MS);
    }
    EXPECT_LT(0u, w->stats().late);
    EXPECT_GE(2u, w->stats().late);
}

/* Few buffers in a row that are used again and again are foretold one by one */
TEST_F(test_ahead, short_rows_are_no_walks)
{
    w->open();
    for (unsigned i = 0; i < 60; ++i) {
        walk(0, 7);
        w->advance(500 * MS);
    }
    EXPECT_EQ(length, largest);
    EXPECT_EQ(0u, w->stats().covers);
}

/* Longer ones come as windows, which are foretold as any buffer is */
TEST_F(test_ahead, rows_that_come_again)
{
    pause = 10 * US;
    w->open();
    for (unsigned i = 0; i < 60; ++i) {
        walk(0, 24);
        w->advance(500 * MS);
        if (i == 39) {
            pinned = w->stats().on_time;
        }
    }
    EXPECT_LE(20u * 24 * 95 / 100, w->stats().on_time - pinned);
    EXPECT_EQ(nullptr, w->invalid());
}

TEST_F(test_ahead, a_small_array_that_is_walked_all_the_time)
{
    w->open();
    for (unsigned i = 0; i < 100; ++i) {
        walk(0, 64);
    }
    ucs_regcache_stats_t stats = w->stats();
    EXPECT_LE(6400u * 95 / 100, stats.on_time);
    EXPECT_GE(1600u, w->regs);
    EXPECT_GE(100u * 200, w->steps);
}

TEST_F(test_ahead, two_walks_at_once)
{
    w->open();
    for (unsigned i = 0; i < 1000; ++i) {
        w->use(piece(i), length, 20 * US, 1);
        w->use(piece(20000 - i), length, 20 * US, 2);
        w->advance(MS);
    }
    EXPECT_LE(2000u * 95 / 100, w->stats().on_time);
    EXPECT_GE(200u, w->regs);
    EXPECT_GE(10u, live());
}

}
