/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "regcache_fixture.h"

/*
 * Memory events
 */

/* The kernel takes whole pages, whatever length it is given */
TEST_F(test_regcache, unmap_takes_the_whole_of_its_last_page)
{
    start(UCS_REGCACHE_POLICY_LEAVE_PINNED);
    /* Short of min_size, so that what is registered is no whole page itself */
    w->use(buffer(0) + 100, 1000);
    ASSERT_EQ(1u, w->regs);
    w->use(buffer(0) + 100, 1000);
    ASSERT_EQ(1u, w->regs);
    ucs_regcache_unmapped(w->cache, buffer(0) - 4096, 4097);
    w->use(buffer(0) + 100, 1000);
    EXPECT_EQ(2u, w->regs);
}

/* What is queued or planned for a region is for one life of it: the next one,
 * of another buffer, is not to be kept or registered for it */
TEST_F(test_regcache, use_of_an_earlier_life_plans_nothing)
{
    start(UCS_REGCACHE_POLICY_PAPER);
    period(6, 99 * MS);
    w->touch(buffer(0), MB);
    ucs_regcache_unmapped(w->cache, buffer(0), MB);
    w->advance(MS);
    w->use(buffer(1), MB, MS, 2); /* takes the same region */
    unsigned before = w->regs;
    w->advance(1000 * MS);
    EXPECT_EQ(before, w->regs);
}

TEST_F(test_regcache, plan_of_an_earlier_life_registers_nothing)
{
    start(UCS_REGCACHE_POLICY_PAPER);
    period(6, 999 * MS);
    w->use(buffer(0), MB, MS);
    w->advance(50 * MS);
    ASSERT_TRUE(w->live.empty());
    ucs_regcache_unmapped(w->cache, buffer(0), MB);
    w->advance(MS);
    /* Takes the same region; expected at 0.05 + 3 * 0.3 + 0.3 s, the first
     * buffer was at 1 s */
    for (unsigned i = 0; i < 3; ++i) {
        w->use(buffer(1), MB, MS, 2);
        w->advance(299 * MS);
    }
    w->use(buffer(1), MB, MS, 2);
    w->advance(20 * MS);
    ASSERT_TRUE(w->live.empty());
    w->on_reg = [](regcache_world::registration) {
        ADD_FAILURE() << "registered at another's time";
        return UCS_OK;
    };
    w->advance(100 * MS);
    w->on_reg = nullptr;
}

/* One buffer that two call sites use in turn. It is unmapped and used again while
 * the helper takes a step: what it had planned to register for the first site is of
 * the region that was unmapped, which waits to be freed. */
TEST_F(test_regcache, plan_of_an_unmapped_region_registers_nothing)
{
    const uintptr_t first = 1, second = 2, other = 3;
    bool is_begun = false;
    bool is_due   = false;

    start(UCS_REGCACHE_POLICY_PAPER);
    for (unsigned i = 0; i < 8; ++i) {
        w->use(buffer(0), MB, MS, first);
        w->advance(39 * MS);
        for (unsigned k = 0; k < 64; ++k) { /* as many as it learns from at a time */
            w->touch(buffer(1), MB, other);
        }
        if (i < 7) {
            w->advance(20 * MS);
            w->use(buffer(0), MB, MS, second);
            w->advance(39 * MS);
        }
    }
    ASSERT_FALSE(w->is_registered(buffer(0), MB));

    w->on_now = [&]() {
        if (!is_begun && ucs_regcache_try_lock(w->cache)) {
            ucs_regcache_unlock(w->cache);
            is_begun = true;
            ucs_regcache_unmapped(w->cache, buffer(0), MB);
            w->touch(buffer(0), MB, second);
        }
    };
    w->on_dereg = [&]() {
        if (is_begun && !is_due && !w->is_registered(buffer(1), MB)) {
            is_due  = true;
            w->now += 61 * MS;
        }
    };
    unsigned before = w->regs;
    w->step();
    ASSERT_TRUE(is_due);
    EXPECT_EQ(before + 1, w->regs);
    w->on_now   = nullptr;
    w->on_dereg = nullptr;
}

/*
 * Invalidation
 */

TEST_F(test_regcache, invalidation_waits_for_the_last_user)
{
    start(UCS_REGCACHE_POLICY_PAPER);
    unsigned a = 0, b = 0;
    ucs_regcache_memh_t memh = w->get(buffer(0), MB);
    EXPECT_EQ(memh, w->get(buffer(0), MB));
    EXPECT_EQ(memh, w->get(buffer(0), MB));

    w->put(memh, &a);
    w->put(memh, &b);
    EXPECT_EQ(0u, a + b);
    EXPECT_NE(memh, w->get(buffer(0), MB)) << "an invalidated region was found";
    w->put(memh);
    EXPECT_EQ(1u, a);
    EXPECT_EQ(1u, b);
    EXPECT_EQ(1u, w->invalidates);
}

TEST_F(test_regcache, closing_completes_the_invalidations_that_wait)
{
    start(UCS_REGCACHE_POLICY_PAPER);
    unsigned a = 0, b = 0;
    ucs_regcache_memh_t memh = w->get(buffer(0), MB);
    EXPECT_EQ(memh, w->get(buffer(0), MB));
    EXPECT_EQ(memh, w->get(buffer(0), MB));

    w->put(memh, &a);
    w->put(memh, &b);
    w->close();
    EXPECT_EQ(1u, a);
    EXPECT_EQ(1u, b);
}
