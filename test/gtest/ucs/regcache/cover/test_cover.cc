/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "../regcache_world.h"

#include <algorithm>
#include <random>
#include <vector>

namespace {

constexpr size_t    KB    = 1024;
constexpr size_t    MB    = 1024 * KB;
constexpr size_t    PIECE = 64 * KB;
constexpr uintptr_t BASE  = 0x10000000;

/** Pieces of one range, each mapped by itself as the program does it. */
class test_cover : public ::testing::Test {
protected:
    static constexpr unsigned OWN = regcache_world::ACCESS;
    static constexpr unsigned MESSAGE = regcache_world::ACCESS |
                                        regcache_world::NOT_ACCESS;
    static constexpr unsigned LOCAL = regcache_world::LOCAL_READ |
                                      regcache_world::LOCAL_WRITE;

    explicit test_cover(
            ucs_regcache_cover_kind_t kind = UCS_REGCACHE_COVER_REMOTE)
    {
        m_world.params.cover.kind        = kind;
        m_world.params.cover.remote_mask = regcache_world::REMOTE_GET |
                                           regcache_world::REMOTE_PUT;
        m_world.params.cover.own_set     = OWN;
        m_world.params.cover.own_clear   = regcache_world::NOT_ACCESS;
    }

    static uintptr_t piece(unsigned i)
    {
        return BASE + i * PIECE;
    }

    void map(unsigned i, unsigned flags = OWN)
    {
        ucs_regcache_memh_t memh = m_world.get(piece(i), PIECE, 1, flags);
        m_memhs.push_back(memh);
        const auto &found = m_world.live.at((uintptr_t)memh);
        EXPECT_LE(found.start, piece(i));
        EXPECT_GE(found.start + found.length, piece(i + 1));
    }

    /* From the first on */
    void map_all(unsigned count, unsigned flags = OWN)
    {
        for (unsigned i = 0; i < count; ++i) {
            map(i, flags);
        }
    }

    /* Each by itself: nothing is registered behind it */
    void map_all_alone(unsigned count, unsigned flags = OWN)
    {
        for (unsigned i = 0; i < count; ++i) {
            map(i, flags);
            EXPECT_EQ(piece(i + 1), end());
        }
    }

    void unmap_all(unsigned seed)
    {
        std::shuffle(m_memhs.begin(), m_memhs.end(), std::mt19937(seed));
        for (ucs_regcache_memh_t memh : m_memhs) {
            EXPECT_EQ(1u, m_world.live.count((uintptr_t)memh));
            m_world.put(memh);
        }
        m_memhs.clear();
    }

    /** What neighbours wait and are spared is what each by itself takes at a
     *  modelled cost, ns, as nearly as this. @return Of that what they wait. */
    double waited(uint64_t base, uint64_t page, double least, double most)
    {
        const double alone = 1265.0 *
                             (base + page * PIECE / regcache_world::PAGE);

        m_world.on_reg = [this, base, page](regcache_world::registration reg) {
            m_world.now += base + page * reg.length / regcache_world::PAGE;
            return UCS_OK;
        };
        m_world.open();
        map_all(1265);
        const ucs_regcache_stats_t stats = m_world.stats();
        EXPECT_LT(least * alone, stats.lost_ns + stats.spared_ns);
        EXPECT_GT(most * alone, stats.lost_ns + stats.spared_ns);
        unmap_all(1);
        return stats.lost_ns / alone;
    }

    /** First byte behind all that is registered. */
    uintptr_t end()
    {
        uintptr_t last = 0;
        for (const auto &entry : m_world.live) {
            last = std::max(last, entry.second.start + entry.second.length);
        }
        return last;
    }

    regcache_world m_world{UCS_REGCACHE_POLICY_LEAVE_PINNED};
    std::vector<ucs_regcache_memh_t> m_memhs;
};

class test_cover_local : public test_cover {
protected:
    test_cover_local() : test_cover(UCS_REGCACHE_COVER_LOCAL) {}
};

TEST_F(test_cover, neighbours_cost_as_many_as_their_number_has_digits)
{
    m_world.open();
    map_all(1265);
    EXPECT_EQ(11u, m_world.regs); /* 1 + 2 + 4 + ... + 1024 */
    EXPECT_EQ(10u, m_world.stats().covers);
    /* Less those that a hint led there, which counts nothing */
    EXPECT_LT(1265u - 100, m_world.stats().spared);
    EXPECT_GE(1265u - 11, m_world.stats().spared);
    EXPECT_LT(0u, m_world.stats().spared_ns);
    unmap_all(1);
}

/* At a NIC's modelled cost, which is far from what the model begins with */
TEST_F(test_cover, would_have_waited_what_each_by_itself_takes)
{
    EXPECT_GT(1 / 20.0, waited(1880000, 32, 2 / 3.0, 3 / 2.0));
}

/* Where pages are all that counts nothing is spared */
TEST_F(test_cover, pages_that_were_waited_for_are_not_spared)
{
    waited(0, 10000, 2 / 3.0, 5 / 3.0);
}

TEST_F(test_cover, downwards_too)
{
    m_world.open();
    for (unsigned i = 1265; i > 0; --i) {
        map(i);
    }
    EXPECT_EQ(11u, m_world.regs);
    unmap_all(2);
}

/* With a helper they come and go as any region does */
TEST_F(test_cover, by_a_policy_with_a_helper)
{
    m_world.params.policy = UCS_REGCACHE_POLICY_PREDICT;
    m_world.open();
    for (unsigned round = 0; round < 3; ++round) {
        map_all(300);
        m_world.advance(1000000);
        unmap_all(round);
        m_world.advance(60000000000ul);
    }
    EXPECT_GT(100u, m_world.regs);
}

/* What others may be given a key of is what the program has mapped: a read of
 * the byte behind it finds nothing */
TEST_F(test_cover_local, a_key_grants_no_more_than_was_mapped)
{
    m_world.open();
    for (unsigned i = 0; i < 64; ++i) {
        map(2 * i); /* with gaps */
        EXPECT_FALSE(m_world.is_registered(piece(2 * i + 1), 1));
        map(1000 + i);
        EXPECT_FALSE(m_world.is_registered(piece(1001 + i), 1));
    }
    EXPECT_EQ(128u, m_world.regs);
    unmap_all(5);
}

TEST_F(test_cover_local, uses_of_the_program_alone_are_covered)
{
    m_world.open();
    map_all(64, LOCAL);
    EXPECT_EQ(7u, m_world.regs);

    /* and what a key is given of is not found in a cover */
    map(10, OWN);
    EXPECT_EQ(8u, m_world.regs);
    unmap_all(6);
}

/* Nor does a use that lies in one give others access to the rest */
TEST_F(test_cover_local, a_key_grants_nothing_of_an_idle_cover)
{
    m_world.open();
    map_all(64, LOCAL);
    unmap_all(8);
    map(10, OWN);
    const auto &own = m_world.live.at((uintptr_t)m_memhs.back());
    EXPECT_EQ(piece(10), own.start);
    EXPECT_EQ(PIECE, own.length);
    unmap_all(9);
}

/* Nor one that lies across its end and across what others may reach */
TEST_F(test_cover_local, a_key_grants_nothing_of_a_cover_by_way_of_a_third)
{
    for (unsigned begin : {0, 3}) {
        m_world.open();
        map(2, LOCAL);
        map(3, LOCAL);
        EXPECT_EQ(piece(5), end()); /* a cover of 3 and 4 */
        unmap_all(10);
        m_world.touch(piece((begin == 0) ? 0 : 5), PIECE);
        m_world.use(piece(begin) + PIECE / 2,
                    ((begin == 0) ? 3 : 2) * PIECE, 0, 1, LOCAL);
        for (const auto &entry : m_world.live) {
            if (entry.second.flags & regcache_world::REMOTE_GET) {
                EXPECT_TRUE((entry.second.start >= piece(5)) ||
                            (entry.second.start + entry.second.length <=
                             piece(3) + PIECE / 2));
            }
        }
        m_world.close();
    }
}

TEST_F(test_cover, not_of_neighbours_with_other_access)
{
    m_world.open();
    map(0);
    map(1, regcache_world::LOCAL_READ);
    EXPECT_EQ(piece(2), end());
    EXPECT_EQ(0u, m_world.stats().covers);
    unmap_all(7);
}

TEST_F(test_cover, not_below_a_ceiling)
{
    m_world.params.max_pinned = 64 * MB;
    m_world.open();
    map_all(64);
    EXPECT_EQ(64u, m_world.regs);
    unmap_all(8);
}

TEST_F(test_cover, no_longer_than_they_may_be)
{
    ucs_regcache_tuning_t tuning = ucs_regcache_tuning_default;

    tuning.cover_max      = 8 * PIECE;
    m_world.params.tuning = &tuning;
    m_world.open();
    map_all(128);
    for (const auto &entry : m_world.live) {
        EXPECT_GE(8 * PIECE, entry.second.length);
    }
    EXPECT_GE(4u + 128 / 8, m_world.regs);
    unmap_all(9);
}

/* Nothing is pinned twice for a cover */
TEST_F(test_cover, ends_where_the_next_registration_begins)
{
    m_world.open();
    map(10);
    map_all(10);
    EXPECT_EQ(11 * PIECE, m_world.live_bytes());
    unmap_all(10);
}

/* The event comes before the unmapping: a cover that is begun in between would
 * outlive it */
TEST_F(test_cover, nothing_that_an_event_has_touched)
{
    m_world.open();
    ucs_regcache_unmapped(m_world.cache, piece(5), 1);
    for (unsigned i = 0; i < 5; ++i) {
        map(i);
        EXPECT_FALSE(m_world.is_registered(piece(5), 1)) << i;
    }
    map(5); /* asked for: what became of it is over */
    EXPECT_TRUE(m_world.is_registered(piece(6), 1));
    unmap_all(11);
}

/* A page that is mapped was unmapped before, whoever did that: a program that
 * maps its range late, or gives it back and maps it anew, has its covers */
TEST_F(test_cover, what_is_mapped_anew_is_covered_again)
{
    m_world.open();
    for (unsigned cycle = 0; cycle < 4; ++cycle) {
        const unsigned before = m_world.regs;

        ucs_regcache_unmapped(m_world.cache, BASE, 1000 * PIECE);
        ucs_regcache_mapped(m_world.cache, BASE, 1000 * PIECE);
        map_all(1000);
        EXPECT_EQ(before + 10, m_world.regs) << cycle;
        unmap_all(cycle);
    }
}

/* The kernel's word of an unmapping may come after the next mapping */
TEST_F(test_cover, what_has_gone_before_does_not_spoil_what_is_mapped)
{
    m_world.open();
    ucs_regcache_unmapped(m_world.cache, BASE, 256 * PIECE);
    ucs_regcache_mapped(m_world.cache, BASE, 256 * PIECE);
    ASSERT_TRUE(ucs_regcache_try_unmapped(m_world.cache, BASE, 256 * PIECE, 1));
    map_all(256);
    EXPECT_EQ(9u, m_world.regs);
    unmap_all(3);
}

/* It is told of a range as large as there is, or of none */
TEST_F(test_cover, what_is_mapped_may_be_everything_or_nothing)
{
    m_world.open();
    ucs_regcache_mapped(m_world.cache, 0, SIZE_MAX);
    ucs_regcache_mapped(m_world.cache, BASE, 0);
    EXPECT_EQ(nullptr, m_world.invalid());
    map(0);
    unmap_all(1);
}

/* While events are missed an unmapping of the same page may be under way */
TEST_F(test_cover, what_is_mapped_while_memory_is_distrusted_is_not_covered)
{
    m_world.open();
    ucs_regcache_distrust(m_world.cache, UCS_REGCACHE_DISTRUST_EVENTS);
    ucs_regcache_mapped(m_world.cache, BASE, 16 * PIECE);
    ucs_regcache_trust(m_world.cache, UCS_REGCACHE_DISTRUST_EVENTS);
    map_all_alone(16);
    unmap_all(13);
}

/* Nor after a time of distrust, for events were missed */
TEST_F(test_cover, nothing_after_distrust_but_what_is_asked_for)
{
    m_world.open();
    ucs_regcache_distrust(m_world.cache, UCS_REGCACHE_DISTRUST_EVENTS);
    ucs_regcache_trust(m_world.cache, UCS_REGCACHE_DISTRUST_EVENTS);
    map_all_alone(16);
    unmap_all(13);
}

/* What is not to be had costs a use nothing but the attempt, evicts nothing,
 * and is not tried for ever */
TEST_F(test_cover, refused_covers_leave_what_was_asked_for)
{
    unsigned refused = 0;

    m_world.open();
    m_world.touch(BASE + 1024 * MB, PIECE);
    m_world.on_reg = [&](regcache_world::registration reg) {
        refused += reg.length > PIECE;
        return (reg.length > PIECE) ? UCS_ERR_NO_MEMORY : UCS_OK;
    };
    map_all(64);
    EXPECT_EQ(8u, refused);
    EXPECT_EQ(0u, m_world.stats().evicted);
    EXPECT_EQ(65u, m_world.regs);
    unmap_all(16);
}

class test_cover_memory : public test_cover {
protected:
    test_cover_memory()
    {
        m_world.on_inspect = [this](unsigned flags, uintptr_t *start_p,
                                    uintptr_t *end_p) {
            m_speculations += !!(flags & UCS_REGCACHE_INSPECT_SPECULATE);
            if (!(flags & UCS_REGCACHE_INSPECT_SPECULATE)) {
                *start_p = std::min(*start_p, m_start);
                *end_p   = std::max(*end_p, m_end);
                return m_may_keep;
            }
            return m_is_resident;
        };
    }

    uintptr_t m_start        = BASE;
    uintptr_t m_end          = BASE + 100 * PIECE;
    bool      m_may_keep     = true;
    bool      m_is_resident  = true;
    unsigned  m_speculations = 0;
};

TEST_F(test_cover_memory, ends_with_the_mapping)
{
    m_world.open();
    map_all(100);
    EXPECT_EQ(m_end, end());
    EXPECT_EQ(7u, m_world.regs);
    EXPECT_EQ(0u, m_speculations);
    unmap_all(17);
}

/* Pieces that share a page come in order as well: no look at what lies around
 * them is needed */
TEST_F(test_cover_memory, in_order_by_neighbours_alone)
{
    const size_t length = 40 * KB + 512;

    m_world.open();
    for (unsigned i = 0; i < 100; ++i) {
        m_memhs.push_back(m_world.get(BASE + i * length, length, 1, OWN));
    }
    EXPECT_EQ(0u, m_speculations);
    EXPECT_GE(10u, m_world.regs);
    unmap_all(26);
}

class test_cover_scattered : public test_cover_memory {
protected:
    test_cover_scattered()
    {
        m_end = piece(PIECES);
        for (unsigned i = 0; i < PIECES; ++i) {
            m_order.push_back(i);
        }
        std::shuffle(m_order.begin(), m_order.end(), std::mt19937(4));
    }

    void map_in_order()
    {
        for (unsigned i : m_order) {
            map(i);
        }
    }

    static constexpr unsigned PIECES = 1265;
    std::vector<unsigned> m_order;
};

/* The registrations double what is covered, and what is left are holes */
TEST_F(test_cover_scattered, few_in_any_order)
{
    m_world.open();
    map_in_order();
    EXPECT_GE(40u, m_world.regs);
    EXPECT_EQ(PIECES * PIECE, m_world.live_bytes()); /* nothing is pinned twice */
    unmap_all(20);
}

/* Pieces that differ lie across the ends of the registrations: one of two that
 * touch has such a piece whole */
TEST_F(test_cover_scattered, few_of_pieces_that_differ)
{
    std::vector<std::pair<uintptr_t, size_t>> pieces;
    std::mt19937 random(5);
    uintptr_t at = BASE;

    while (at < m_end) {
        size_t length = PIECE / 2 + random() % PIECE / 512 * 512;
        pieces.emplace_back(at, std::min(length, size_t(m_end - at)));
        at += length;
    }
    std::shuffle(pieces.begin(), pieces.end(), std::mt19937(6));
    m_world.open();
    m_may_keep = false; /* and touches what may */
    m_memhs.push_back(m_world.get(m_start - PIECE, PIECE, 1, OWN));
    m_memhs.push_back(m_world.get(m_end, PIECE, 1, OWN));
    m_may_keep = true;
    for (const auto &piece : pieces) {
        m_memhs.push_back(m_world.get(piece.first, piece.second, 1, OWN));
    }
    EXPECT_GT(pieces.size() / 50, m_world.regs);
    EXPECT_GT(PIECES * PIECE * 21 / 20, m_world.live_bytes()); /* little of it twice */
    for (const auto &entry : m_world.live) {
        uintptr_t end = entry.second.start + entry.second.length;
        EXPECT_TRUE((entry.second.start >= m_start) || (end <= m_start));
        EXPECT_TRUE((end <= m_end) || (entry.second.start >= m_end));
    }
    unmap_all(25);
}

/* Most of what is pinned may be what nobody asks for, but not all. Neighbours
 * add to it. */
TEST_F(test_cover_scattered, a_share_of_it_is_asked_for)
{
    ucs_regcache_tuning_t tuning = ucs_regcache_tuning_default;
    unsigned asked               = 0;

    tuning.cover_scatter  = 4;
    m_world.params.tuning = &tuning;
    m_world.open();
    for (unsigned i : m_order) {
        map(i);
        ++asked;
        EXPECT_GE((5 * asked + 1) * PIECE, m_world.live_bytes()) << asked;
    }
    EXPECT_GE(PIECES / 3, m_world.regs);
    unmap_all(21);
}

/* Nothing is brought into memory for it, and that is not tried for ever */
TEST_F(test_cover_scattered, only_of_what_is_in_memory)
{
    m_is_resident = false;
    m_world.open();
    map(1000);
    for (unsigned i = 0; i < 20; ++i) {
        map(30 * i);
        EXPECT_FALSE(m_world.is_registered(piece(30 * i + 1), 1)) << i;
    }
    EXPECT_EQ(8u, m_speculations);
    EXPECT_EQ(21u, m_world.regs);
    unmap_all(22);
}

/* Nor next to a row of which little was asked for */
TEST_F(test_cover_scattered, only_of_what_is_in_memory_beside_a_row)
{
    unsigned next = 1200;

    m_world.open();
    for (unsigned i : {100, 300, 600, 900, 1200}) {
        map(i);
    }
    while (m_world.is_registered(piece(next), 1)) {
        ++next;
    }
    ASSERT_LT(1202u, next);
    m_is_resident = false;
    map(next);
    EXPECT_FALSE(m_world.is_registered(piece(next + 1), 1));
    unmap_all(27);
}

/* Nor for messages, which say nothing of what is to come */
TEST_F(test_cover_scattered, only_for_what_the_program_maps)
{
    m_world.open();
    map(1000);
    map(1100);
    map(1200);
    size_t before = m_world.live_bytes();
    EXPECT_LT(3 * PIECE, before);
    for (unsigned i = 0; i < 30; ++i) {
        map(30 * i, MESSAGE);
    }
    EXPECT_EQ(before + 30 * PIECE, m_world.live_bytes());
    unmap_all(23);
}

/* What is registered in one mapping says nothing of another */
TEST_F(test_cover_scattered, each_mapping_by_itself)
{
    m_world.open();
    map_in_order();
    m_start = piece(2 * PIECES);
    m_end   = piece(3 * PIECES);
    size_t before = m_world.live_bytes();
    map(2 * PIECES + 500);
    map(2 * PIECES + 600);
    EXPECT_EQ(before + 2 * PIECE, m_world.live_bytes());
    unmap_all(24);
}

TEST_F(test_cover_memory, not_of_memory_that_may_not_be_kept)
{
    m_may_keep = false;
    m_world.open();
    map_all_alone(16);
    unmap_all(18);
}

/* For a message nothing is brought into memory that it does not touch */
TEST_F(test_cover_memory, of_messages_only_what_is_in_memory)
{
    m_is_resident = false;
    m_world.open();
    map_all_alone(16, MESSAGE);
    EXPECT_LT(0u, m_speculations);
    m_is_resident = true;
    map(16, MESSAGE);
    EXPECT_LT(piece(17), end());
    unmap_all(19);
}

} // namespace
