/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "../regcache_fixture.h"

#include <vector>

/*
 * Decoupled, overlapped pinning, in virtual time: a posted receive declares its
 * buffer, which is pinned at once, stays, and is pinned again after it had to go.
 */

class test_regcache_overlap : public ::testing::Test {
protected:
    static constexpr uintptr_t BASE = 0x10000000;
    static constexpr size_t    SIZE = 64 << 10;

    /* Bound of the declarations that are not pinned */
    static constexpr unsigned  DECLARED = 8;

    test_regcache_overlap() : w(UCS_REGCACHE_POLICY_OVERLAP)
    {
        w.now = 1000 * MS;
    }

    /* What uses allow is known from the first one on */
    void open()
    {
        w.open();
        w.use(buffer(100), SIZE, 1000);
        w.step();
    }

    void open_with_room_for(unsigned buffers)
    {
        w.params.max_pinned = buffers * SIZE;
        open();
    }

    static uintptr_t buffer(unsigned i)
    {
        return BASE + i * 2 * SIZE;
    }

    void post(unsigned i, uint32_t id = 0)
    {
        w.advance(1);
        w.tell(UCS_OPERATION_RECEIVE, buffer(i), SIZE, id);
    }

    void end(unsigned i, uint32_t id)
    {
        w.tell(UCS_OPERATION_RECEIVED, buffer(i), SIZE, id);
    }

    void use(unsigned i)
    {
        w.advance(1);
        w.use(buffer(i), SIZE, 1000);
    }

    /* Registered or not */
    bool is_declared(unsigned i)
    {
        return ucs_regcache_has_region(w.cache, buffer(i), buffer(i) + SIZE);
    }

    bool is_pinned(unsigned i)
    {
        return w.is_registered(buffer(i), SIZE);
    }

    unsigned pinned(unsigned count)
    {
        unsigned result = 0;

        for (unsigned i = 0; i < count; ++i) {
            result += is_pinned(i);
        }
        return result;
    }

    regcache_world w;
};

TEST_F(test_regcache_overlap, a_posted_receive_is_pinned_at_once)
{
    open();
    post(0);
    w.step();
    EXPECT_TRUE(is_pinned(0));
    use(0);
    w.step();
    EXPECT_EQ(1u, w.stats().announced_on_time);
    EXPECT_EQ(0u, w.stats().announced_late);
    EXPECT_EQ(0u, w.stats().missed);
}

/* Also where a thread waits that has next to no time: what it does not do now it
 * does when the message comes */
TEST_F(test_regcache_overlap, by_a_thread_that_waits_as_well)
{
    open();
    post(0);
    w.idle_step();
    EXPECT_TRUE(is_pinned(0));
}

/* The helper is woken for a post of what it is to register now, and for no
 * other: not for what is registered or being so, is shorter than a wake-up, or
 * is not registered ahead. */
TEST_F(test_regcache_overlap, a_post_wakes_the_helper)
{
    constexpr size_t LONG = 512 * regcache_world::PAGE; /* 26.6 us */

    w.open();
    EXPECT_FALSE(ucs_regcache_post_is_urgent(w.cache, BASE, LONG));
    for (unsigned i = 0; i < 4; ++i) {
        w.use(buffer(1000 + 100 * i), LONG, 1000); /* what that takes */
    }
    w.step();
    EXPECT_TRUE(ucs_regcache_post_is_urgent(w.cache, BASE, LONG));
    EXPECT_FALSE(ucs_regcache_post_is_urgent(w.cache, BASE, SIZE));
    EXPECT_FALSE(ucs_regcache_post_is_urgent(w.cache, UINTPTR_MAX - SIZE,
                                             LONG));
    EXPECT_FALSE(ucs_regcache_post_is_urgent(w.cache, buffer(1000), LONG));
    EXPECT_FALSE(ucs_regcache_post_is_urgent(w.cache, buffer(1000) - SIZE,
                                             LONG));

    /* Declared, and unpinned for others */
    EXPECT_NE(0u, ucs_regcache_shrink(w.cache, LONG));
    EXPECT_TRUE(ucs_regcache_post_is_urgent(w.cache, buffer(1000), LONG));

    w.on_reg = [&](regcache_world::registration) {
        EXPECT_FALSE(ucs_regcache_post_is_urgent(w.cache, buffer(1000), LONG));
        return UCS_OK;
    };
    w.use(buffer(1000), LONG, 1000);
    w.on_reg = nullptr;
    ucs_regcache_helper_refused(w.cache);
    EXPECT_FALSE(ucs_regcache_post_is_urgent(w.cache, BASE, LONG));
}

/* Another policy foresees when it is due */
TEST(test_regcache_no_overlap, a_post_wakes_nobody)
{
    regcache_world w(UCS_REGCACHE_POLICY_PREDICT);
    constexpr size_t LONG = 512 * regcache_world::PAGE;

    w.open();
    for (unsigned i = 0; i < 4; ++i) {
        w.use(0x10000000 + 2 * i * LONG, LONG, 1000);
    }
    EXPECT_FALSE(ucs_regcache_post_is_urgent(w.cache, 0x20000000, LONG));
}

/* What was unmapped pins until it has been deregistered. That goes before what
 * may be used again does, or else that would be pinned again without need. */
TEST_F(test_regcache_overlap, without_a_ceiling_nothing_is_pinned_again)
{
    open();
    use(0);
    for (unsigned i = 0; i < 20; ++i) {
        use(1);
        ucs_regcache_unmapped(w.cache, buffer(1), SIZE);
        w.touch(buffer(1), SIZE); /* the helper has not come by now */
        EXPECT_TRUE(is_pinned(0)) << i;
        EXPECT_LE(w.stats().pinned_bytes, 3 * SIZE);
        use(0);
    }
    EXPECT_EQ(0u, w.stats().repinned);
    EXPECT_EQ(0u, w.stats().evicted);
}

/* Also where more waits than a use is to finish */
TEST_F(test_regcache_overlap, nor_for_much_that_was_unmapped)
{
    open();
    use(0);
    for (unsigned i = 200; i < 400; ++i) {
        use(i);
    }
    ucs_regcache_unmapped(w.cache, buffer(200), 200 * 2 * SIZE);
    w.touch(buffer(1), SIZE);
    EXPECT_TRUE(is_pinned(0));
    EXPECT_EQ(0u, w.stats().evicted);
    w.advance(100 * MS);
    EXPECT_EQ(3 * SIZE, w.stats().pinned_bytes);
}

/* Whatever the price says, and however often no message came */
TEST_F(test_regcache_overlap, it_stays_whatever_becomes_of_the_receive)
{
    open();
    for (unsigned i = 0; i < 6; ++i) {
        post(i, i + 1);
        w.step();
        EXPECT_TRUE(is_pinned(i)) << i;
        end(i, i + 1);
        w.step();
        w.advance(100000 * MS);
        EXPECT_TRUE(is_pinned(i)) << i;
    }
    use(7);
    w.advance(100000 * MS);
    EXPECT_TRUE(is_pinned(7));
    EXPECT_EQ(0u, w.deregs);
}

/* More uses than the queue has room for, all of them lost */
TEST_F(test_regcache_overlap, what_the_queue_lost_stays_as_well)
{
    w.params.dq_length = 4;
    open();
    for (unsigned i = 0; i < 20; ++i) {
        w.touch(buffer(i), SIZE);
    }
    w.advance(100000 * MS);
    EXPECT_EQ(20u, pinned(20));
}

/* Nothing is to be done for what stays */
TEST_F(test_regcache_overlap, the_helper_sleeps)
{
    open();
    post(0, 1);
    w.step();
    use(0);
    end(0, 1);
    w.advance(1000 * MS);
    unsigned steps = w.steps;
    w.advance(1000000 * MS);
    EXPECT_EQ(steps, w.steps);
}

TEST_F(test_regcache_overlap, a_use_that_comes_too_early_waits_for_the_rest)
{
    ucs_regcache_memh_t memh = nullptr;
    bool has_waited = false;

    open();
    /* The application's thread comes while the helper registers. It waits, which
     * is until this one has returned. */
    w.on_wait = [&] { has_waited = true; };
    w.on_reg  = [&](regcache_world::registration reg) {
        if (reg.start == buffer(0)) {
            ucs_regcache_lock(w.cache);
            EXPECT_TRUE(is_declared(0));
            ucs_regcache_unlock(w.cache);
        }
        return UCS_OK;
    };
    post(0);
    uint64_t posted = w.now;
    w.step();
    /* The use began before the registration was ready */
    ASSERT_TRUE(is_pinned(0));
    uint64_t ready = w.now;
    ASSERT_GT(ready, posted + 1);
    w.now = posted + 1;
    memh  = w.get(buffer(0), SIZE);
    w.now = ready;
    w.put(memh);
    w.step();
    EXPECT_EQ(1u, w.stats().announced_late);
    EXPECT_EQ(0u, w.stats().announced_on_time);
    EXPECT_FALSE(has_waited);
}

/* The least recently used goes, and its declaration stays */
TEST_F(test_regcache_overlap, under_pressure_it_is_unpinned_and_pinned_again)
{
    open_with_room_for(2);
    for (unsigned i = 0; i < 3; ++i) {
        use(i);
    }
    EXPECT_FALSE(is_pinned(0));
    EXPECT_TRUE(is_pinned(1));
    EXPECT_TRUE(is_pinned(2));
    EXPECT_EQ(0u, w.stats().repinned);
    EXPECT_TRUE(is_declared(0));

    use(0); /* by the use */
    EXPECT_TRUE(is_pinned(0));
    EXPECT_FALSE(is_pinned(1));
    EXPECT_EQ(1u, w.stats().repinned);

    w.step();
    post(1); /* by the post */
    w.step();
    EXPECT_TRUE(is_pinned(1));
    EXPECT_FALSE(is_pinned(2));
    EXPECT_EQ(2u, w.stats().repinned);
    EXPECT_EQ(nullptr, w.invalid());
}

/* Each would find its buffer given up for the sake of the next */
TEST_F(test_regcache_overlap, receives_that_wait_do_not_drive_each_other_out)
{
    open_with_room_for(2);
    for (unsigned i = 0; i < 5; ++i) {
        post(i, i + 1);
    }
    w.step();
    EXPECT_TRUE(is_pinned(0));
    EXPECT_TRUE(is_pinned(1));
    EXPECT_EQ(2u, pinned(5));
    for (unsigned i = 0; i < 5; ++i) {
        EXPECT_TRUE(is_pinned(i)) << i;
        use(i);
        end(i, i + 1);
        w.step(); /* its room is the next one's */
        w.step();
    }
    EXPECT_EQ(5u, w.stats().announced_on_time);
    EXPECT_EQ(0u, w.stats().missed);
}

/* Nor does what was used longest ago take the place of what is waited for */
TEST_F(test_regcache_overlap, what_a_receive_waits_for_goes_last)
{
    open_with_room_for(3);
    post(0);
    w.step();
    use(1);
    use(2);
    w.step();
    post(3);
    w.step();
    EXPECT_TRUE(is_pinned(0));
    EXPECT_TRUE(is_pinned(3));
    EXPECT_FALSE(is_pinned(1));
}

/* A ceiling that was passed, for all else was in use, is come back to */
TEST_F(test_regcache_overlap, a_ceiling_that_was_passed_is_kept_again)
{
    std::vector<ucs_regcache_memh_t> memhs;

    open_with_room_for(2);
    for (unsigned i = 0; i < 4; ++i) {
        memhs.push_back(w.get(buffer(i), SIZE));
    }
    EXPECT_EQ(4u, pinned(4));
    for (auto memh : memhs) {
        w.put(memh);
    }
    w.advance(10000 * MS);
    EXPECT_EQ(2u, pinned(4));
}

TEST_F(test_regcache_overlap, the_lower_domain_refuses_and_room_is_made)
{
    unsigned limit = 2;

    open();
    w.on_reg = [&](regcache_world::registration) {
        return (w.live.size() >= limit) ? UCS_ERR_NO_MEMORY : UCS_OK;
    };
    use(0);
    use(1);
    EXPECT_TRUE(is_pinned(1));
    EXPECT_LE(w.live.size(), limit);
    use(0);
    EXPECT_TRUE(is_pinned(0));
    EXPECT_LE(w.live.size(), limit);
}

TEST_F(test_regcache_overlap, what_is_shared_with_others_is_not_passed_ahead)
{
    size_t claimed = 0;

    w.on_claim = [&](size_t length, ucs_claim_t why) {
        if ((claimed + length > 2 * SIZE) && (why != UCS_CLAIM_FORCE)) {
            return false;
        }
        claimed += length;
        return true;
    };
    w.on_unclaim = [&](size_t length) { claimed -= length; };
    w.on_ask     = [](size_t, ucs_ask_t) { return UCS_REGCACHE_ANSWER_NONE; };
    open();
    post(0);
    w.step();
    EXPECT_TRUE(is_pinned(0));
    post(1);
    w.step();
    EXPECT_FALSE(is_pinned(1));
    use(1);
    EXPECT_TRUE(is_pinned(1));
    EXPECT_LE(claimed, 2 * SIZE);
    w.close(); /* gives back what is claimed, while it is counted */
}

/* The segment is not there. Nobody hears of it until it is communicated, and
 * then what the lower domain says. */
TEST_F(test_regcache_overlap, an_invalid_segment_fails_when_it_is_used)
{
    ucs_regcache_memh_t memh = nullptr;

    open();
    w.on_reg = [&](regcache_world::registration reg) {
        return (reg.start == buffer(0)) ? UCS_ERR_INVALID_ADDR : UCS_OK;
    };
    post(0);
    w.step();
    EXPECT_FALSE(is_pinned(0));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              ucs_regcache_get(w.cache, (void*)buffer(0), SIZE,
                               regcache_world::REMOTE_PUT, 1, &memh));
    EXPECT_EQ(nullptr, memh);

    /* It has become valid */
    w.on_reg = nullptr;
    w.advance(10000 * MS);
    post(0);
    w.step();
    EXPECT_TRUE(is_pinned(0));
}

/* Unpinned or not, of unmapped memory nothing is left */
TEST_F(test_regcache_overlap, what_is_unmapped_is_declared_no_more)
{
    open_with_room_for(2);
    for (unsigned i = 0; i < 3; ++i) {
        use(i);
    }
    ASSERT_FALSE(is_pinned(0));
    ucs_regcache_unmapped(w.cache, buffer(0), 3 * 2 * SIZE);
    w.step();
    EXPECT_EQ(0u, pinned(3));
    for (unsigned i = 0; i < 3; ++i) {
        EXPECT_FALSE(is_declared(i)) << i;
    }

    /* What was said of the old mapping is not done to a new one */
    w.advance(1);
    post(4);
    w.advance(1);
    ucs_regcache_unmapped(w.cache, buffer(4), SIZE);
    w.advance(1);
    w.step();
    EXPECT_FALSE(is_pinned(4));
}

/* Of too many the one that was unpinned longest ago is forgotten */
TEST_F(test_regcache_overlap, declarations_are_bounded)
{
    unsigned declared = 0;

    w.params.max_contexts = DECLARED;
    open_with_room_for(2);
    for (unsigned i = 0; i < 5 * DECLARED; ++i) {
        use(i);
        EXPECT_EQ(nullptr, w.invalid());
    }
    for (unsigned i = 0; i < 5 * DECLARED; ++i) {
        declared += ucs_regcache_has_region(w.cache, buffer(i),
                                            buffer(i) + SIZE);
    }
    EXPECT_EQ(DECLARED + 2, declared);
    EXPECT_TRUE(is_declared(5 * DECLARED - 3));
}

/* It was unpinned longest ago, and is registered by now */
TEST_F(test_regcache_overlap, one_that_is_pinned_is_not_forgotten)
{
    w.params.max_contexts = DECLARED;
    open_with_room_for(2);
    use(0);
    use(1);
    use(2); /* unpins 0 */
    use(0);
    for (unsigned i = 0; i < 2 * DECLARED; ++i) {
        use(10 + i);
        use(0);
    }
    EXPECT_EQ(nullptr, w.invalid());
    EXPECT_TRUE(is_pinned(0));
    EXPECT_EQ(1u, w.stats().repinned);
}

TEST_F(test_regcache_overlap, one_that_was_pinned_since_is_not_the_oldest)
{
    w.params.max_contexts = DECLARED;
    open_with_room_for(1);
    use(0);
    use(1); /* unpins 0 */
    for (unsigned i = 0; i < DECLARED - 2; ++i) {
        use(2 + i);
    }
    use(0);
    use(50); /* unpins 0 again */
    for (unsigned i = 0; i < DECLARED - 2; ++i) {
        use(60 + i);
    }
    EXPECT_TRUE(is_declared(0));
    EXPECT_FALSE(is_declared(1));
}

/* Without a helper it is as leave_pinned */
TEST_F(test_regcache_overlap, without_a_helper_it_stays)
{
    open();
    ucs_regcache_helper_refused(w.cache);
    post(0);
    w.step();
    EXPECT_FALSE(is_pinned(0));
    use(0);
    w.advance(100000 * MS);
    EXPECT_TRUE(is_pinned(0));
    /* A helper that stood down and comes back drops nothing */
    ucs_regcache_rest(w.cache);
    ucs_regcache_resume(w.cache);
    w.advance(100000 * MS);
    EXPECT_TRUE(is_pinned(0));
}
