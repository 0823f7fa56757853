/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "../regcache_world.h"

namespace {

constexpr size_t    KB   = 1024;
constexpr size_t    MB   = 1024 * KB;
constexpr uintptr_t BASE = 0x10000000;

class test_coalesce : public ::testing::Test {
protected:
    void start(ucs_regcache_policy_t policy)
    {
        w.reset(new regcache_world(policy));
        if (on_inspect) {
            w->on_inspect = on_inspect;
        }
        w->open();
    }

    /* Once there was so much in use that the soft ceiling is out of the way */
    void make_room()
    {
        w->touch(BASE + 1024 * MB, 16 * MB);
        w->advance(60000000000ul);
        ASSERT_TRUE(w->live.empty());
    }

    std::unique_ptr<regcache_world> w;
    std::function<bool(unsigned, uintptr_t*, uintptr_t*)> on_inspect;
};

TEST_F(test_coalesce, overlapping_requests_become_one)
{
    for (auto policy :
         {UCS_REGCACHE_POLICY_PREDICT, UCS_REGCACHE_POLICY_PAPER,
          UCS_REGCACHE_POLICY_LRU, UCS_REGCACHE_POLICY_LEAVE_PINNED}) {
        start(policy);
        w->touch(BASE, 128 * KB);
        w->touch(BASE + 64 * KB, 128 * KB);
        EXPECT_EQ(1u, w->live.size());
        EXPECT_TRUE(w->is_registered(BASE, 192 * KB));
        w->touch(BASE, 128 * KB);
        w->touch(BASE + 32 * KB, 160 * KB);
        EXPECT_EQ(2u, w->stats().on_time);
        EXPECT_EQ(192 * KB, w->stats().pinned_peak_bytes);
    }
}

/* More in use than are looked at in one go, and some behind that are not */
TEST_F(test_coalesce, many_regions_are_superseded)
{
    const unsigned in_use = 600, idle = 10;
    std::vector<ucs_regcache_memh_t> memhs;

    start(UCS_REGCACHE_POLICY_LEAVE_PINNED);
    for (unsigned i = 0; i < in_use; ++i) {
        memhs.push_back(w->get(BASE + i * 64 * KB, 16 * KB));
    }
    for (unsigned i = in_use; i < in_use + idle; ++i) {
        w->touch(BASE + i * 64 * KB, 16 * KB);
    }
    w->touch(BASE, (in_use + idle) * 64 * KB);
    EXPECT_EQ(in_use + 1, w->live.size());
    for (ucs_regcache_memh_t memh : memhs) {
        w->put(memh);
    }
    EXPECT_EQ(1u, w->live.size());
}

TEST_F(test_coalesce, lengths_at_one_address_are_one_dormant_region)
{
    start(UCS_REGCACHE_POLICY_PAPER);
    w->touch(BASE, 80 * KB);
    w->touch(BASE, 128 * KB);
    w->touch(BASE, 128 * KB, 2);
    w->advance(50000000);
    ASSERT_EQ(0u, w->live.size());
    w->touch(BASE, 80 * KB);
    w->touch(BASE, 128 * KB);
    EXPECT_EQ(128 * KB, w->stats().pinned_peak_bytes);
}

/* As in BT, SP and MG: neither displaces the other's plan */
TEST_F(test_coalesce, lengths_at_one_address_that_differ_by_much_are_foretold)
{
    constexpr uint64_t MS = 1000000;
    uint64_t missed = 0;

    start(UCS_REGCACHE_POLICY_PREDICT);
    w->touch(BASE + 1024 * MB, 64 * KB); /* what else is left pinned */
    for (unsigned i = 0; i < 40; ++i) {
        missed = (i == 30) ? w->stats().missed : missed;
        w->use(BASE, 1024 * KB, MS);
        w->advance(400 * MS);
        w->use(BASE, 64 * KB, MS);
        w->advance(400 * MS);
    }
    EXPECT_EQ(missed, w->stats().missed);
    EXPECT_LT(w->stats().pinned_byte_ns / w->now.load(), 200e3);
}

/* A short request may be served by a region that is not short */
TEST_F(test_coalesce, region_that_a_short_request_registers_is_given_up)
{
    start(UCS_REGCACHE_POLICY_PREDICT);
    for (unsigned i = 0; i < 8; ++i) {
        w->touch(BASE, 24 * KB);
        w->advance(2000000);
    }
    w->advance(3000000000ul);
    ASSERT_EQ(0u, w->live.size());
    w->touch(BASE, 12 * KB);
    EXPECT_TRUE(w->is_registered(BASE, 24 * KB));
    w->advance(60000000000ul);
    EXPECT_EQ(0u, w->live.size());
}

TEST_F(test_coalesce, neighbours_that_come_and_go_stay_apart)
{
    start(UCS_REGCACHE_POLICY_PREDICT);
    make_room();
    w->touch(BASE, 128 * KB);
    w->touch(BASE + 120 * KB, 128 * KB);
    EXPECT_EQ(2u, w->live.size());
    EXPECT_TRUE(w->is_registered(BASE + 120 * KB, 128 * KB));

    /* Half of what is asked for, but it would grow ninefold: the other one
     * gives way, or 64 KB would be pinned twice */
    start(UCS_REGCACHE_POLICY_PREDICT);
    w->touch(BASE, MB);
    w->touch(BASE + MB - 64 * KB, 128 * KB);
    EXPECT_EQ(1u, w->live.size());
    EXPECT_EQ(128 * KB, w->live_bytes());
}

TEST_F(test_coalesce, what_is_kept_for_ever_takes_in_all)
{
    start(UCS_REGCACHE_POLICY_LEAVE_PINNED);
    w->touch(BASE + 16, 128 * KB);
    w->touch(BASE + 16 + 128 * KB, 128 * KB); /* one page in common */
    EXPECT_EQ(1u, w->live.size());
    EXPECT_EQ(260 * KB, w->stats().pinned_bytes);
    EXPECT_EQ(260 * KB, w->stats().leave_pinned_bytes);
}

TEST_F(test_coalesce, on_demand_registers_what_it_is_asked_for)
{
    start(UCS_REGCACHE_POLICY_ON_DEMAND);
    ucs_regcache_memh_t memh = w->get(BASE, 128 * KB);
    w->get(BASE + 64 * KB, 128 * KB);
    EXPECT_EQ(256 * KB, w->live_bytes());
    w->put(memh);
}

TEST_F(test_coalesce, failure_falls_back_to_what_was_asked_for)
{
    start(UCS_REGCACHE_POLICY_LRU);
    w->touch(BASE, 128 * KB);
    w->on_reg = [](regcache_world::registration reg) {
        return (reg.length > 128 * KB) ? UCS_ERR_IO_ERROR : UCS_OK;
    };
    w->touch(BASE + 64 * KB, 128 * KB);
    EXPECT_TRUE(w->is_registered(BASE + 64 * KB, 128 * KB));
    EXPECT_EQ(1u, w->live.size());
}

/* Known by the plan, and not registered: the use is small, or the memory can be
 * read only now */
TEST_F(test_coalesce, failure_of_a_region_of_before_falls_back)
{
    const unsigned read_only = regcache_world::REMOTE_GET |
                               regcache_world::LOCAL_READ;

    for (size_t length : {4 * KB, 128 * KB}) {
        start(UCS_REGCACHE_POLICY_PAPER);
        for (unsigned i = 0; i < 6; ++i) {
            w->use(BASE, 128 * KB, 0, 1, regcache_world::REMOTE_PUT | read_only);
            w->advance(i < 5 ? 100000000 : 50000000);
        }
        ASSERT_EQ(0u, w->live.size());
        w->on_reg = [&](regcache_world::registration reg) {
            return ((reg.length > length) ||
                    (reg.flags & regcache_world::REMOTE_PUT)) ?
                           UCS_ERR_INVALID_ADDR :
                           UCS_OK;
        };
        ucs_regcache_memh_t memh = w->get(BASE, length, 2, read_only);
        EXPECT_EQ(length, w->live_bytes());
        w->put(memh);
    }
}

TEST_F(test_coalesce, kind_that_is_not_known_is_not_taken_in)
{
    on_inspect = [](unsigned, uintptr_t *start_p, uintptr_t *) {
        return *start_p != BASE + 64 * KB;
    };
    start(UCS_REGCACHE_POLICY_LRU);
    w->touch(BASE, 128 * KB);
    w->on_reg = [](regcache_world::registration reg) {
        EXPECT_EQ(BASE + 64 * KB, reg.start);
        return UCS_OK;
    };
    w->touch(BASE + 64 * KB, 128 * KB);
    EXPECT_EQ(2u, w->regs);
}

/* The helper does not register what is in use by parts already */
TEST_F(test_coalesce, nothing_is_pinned_twice)
{
    start(UCS_REGCACHE_POLICY_PREDICT);
    for (unsigned i = 0; i < 200; ++i) {
        ucs_regcache_memh_t low  = w->get(BASE, 64 * KB, 1);
        w->advance(100000);
        ucs_regcache_memh_t high = w->get(BASE + 64 * KB, 64 * KB, 2);
        w->advance(100000);
        w->put(low);
        w->put(high);
        w->advance(2000000);
        w->use(BASE, 128 * KB, 100000, 3);
        w->advance(2000000);
    }
    EXPECT_LE(w->stats().pinned_peak_bytes, 192 * KB);
    EXPECT_LE(w->stats().pinned_bytes, 128 * KB);
}

} // namespace
