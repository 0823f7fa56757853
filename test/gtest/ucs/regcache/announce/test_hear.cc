/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "hear_fixture.h"

/*
 * Steps of a thread that waits, and what is heard at all.
 */

TEST_F(test_hear, an_idle_step_registers_it_as_well)
{
    post();
    m_world.idle_step();
    EXPECT_TRUE(is_registered());
    EXPECT_EQ(1u, m_world.stats().idle_steps);
}

TEST_F(test_hear, an_idle_step_tells_whether_it_was_of_use)
{
    m_world.idle_step(); /* of the use before */
    m_world.idle_step();
    EXPECT_FALSE(ucs_regcache_idle_was_used(m_world.cache));
    post();
    m_world.idle_step();
    EXPECT_TRUE(ucs_regcache_idle_was_used(m_world.cache));
    send();
    m_world.idle_step();
    EXPECT_FALSE(ucs_regcache_idle_was_used(m_world.cache));
    m_world.touch(BUFFER, SIZE); /* it is registered */
    m_world.idle_step();
    EXPECT_FALSE(ucs_regcache_idle_was_used(m_world.cache));
    m_world.touch(BUFFER + 64 * SIZE, SIZE);
    m_world.idle_step();
    EXPECT_TRUE(ucs_regcache_idle_was_used(m_world.cache));
    m_world.idle_step();
    EXPECT_FALSE(ucs_regcache_idle_was_used(m_world.cache));
}

/* A deregistration is in no hurry, and dear */
TEST_F(test_hear, an_idle_step_leaves_deregistrations_to_the_helper)
{
    uint64_t next;

    post(BUFFER, SIZE, 7);
    m_world.step();
    ASSERT_TRUE(is_registered());
    say(UCS_OPERATION_RECEIVED, 0, 0, 7);
    next = m_world.idle_step();
    EXPECT_TRUE(is_registered());
    /* When holding it has cost as much as the helper's coming, little here */
    EXPECT_LE(next, m_world.now + MS);
    m_world.step();
    EXPECT_FALSE(is_registered());
}

/* As soon as the helper would, if the wait has lasted for as long as that takes */
TEST_F(test_hear, an_idle_step_deregisters_in_a_wait_that_lasts)
{
    post(BUFFER, SIZE, 7);
    m_world.step();
    ASSERT_TRUE(is_registered());
    say(UCS_OPERATION_RECEIVED, 0, 0, 7);
    m_world.advance(MS);
    EXPECT_LE(m_world.idle_step(0), m_world.now);
    EXPECT_TRUE(is_registered());
    m_world.idle_step(MS);
    EXPECT_FALSE(is_registered());
}

/* A buffer that is used much more often than the helper comes takes one place
 * of what it is left, so that there is room for all, and the next use finds it */
TEST_F(test_hear, what_is_left_again_and_again_is_left_once)
{
    uint64_t missed;

    for (unsigned i = 1; i < 10; ++i) { /* new buffers are not worth holding */
        m_world.use(OTHER + i * 2 * SIZE, SIZE, 1000);
        m_world.advance(100 * MS);
        m_world.step();
    }
    m_world.use(BUFFER, SIZE, 1000);
    m_world.idle_step();
    missed = m_world.stats().missed;
    for (unsigned i = 0; i < RECEIVES; ++i) {
        m_world.now += 1000; /* and the helper does not come */
        m_world.use(BUFFER, SIZE, 1000);
        m_world.idle_step();
        ASSERT_TRUE(is_registered()) << i;
    }
    EXPECT_EQ(missed, m_world.stats().missed);
    m_world.advance(100 * MS);
    m_world.step();
    EXPECT_FALSE(is_registered());
}

TEST_F(test_hear, rent_foresees_nothing)
{
    regcache_world world(UCS_REGCACHE_POLICY_RENT);

    world.open();
    world.use(OTHER, SIZE, 1000);
    world.advance(MS);
    world.tell(UCS_OPERATION_RECEIVE, BUFFER, SIZE);
    world.step();
    EXPECT_FALSE(world.is_registered(BUFFER, SIZE));
    EXPECT_EQ(1u, world.stats().heard);
}

/*
 * Does it learn from what is too short to be registered?
 */

class test_listen : public test_hear {
protected:
    /* One more than are looked at for keys */
    static constexpr unsigned SOUNDS = 1025;

    void sounds(unsigned count)
    {
        for (unsigned i = 0; i < count; ++i) {
            ++m_world.now;
            say(UCS_OPERATION_SEND, 0x30000000, 8);
        }
    }

    void silence()
    {
        m_world.step();
        sounds(SOUNDS);
        m_world.step();
        ASSERT_EQ(0, m_world.listens);
    }
};

TEST_F(test_listen, not_before_the_first_use)
{
    regcache_world world(UCS_REGCACHE_POLICY_PREDICT);

    world.open();
    EXPECT_EQ(world.params.min_size, ucs_regcache_wants_from(world.cache));
    world.step();
    EXPECT_EQ(0, world.listens);
    world.touch(BUFFER, 4096); /* one of UCX's own is none */
    EXPECT_EQ(0, world.listens);
    auto memh = world.get(BUFFER, SIZE);
    EXPECT_EQ(1, world.listens) << "what follows its begin may foretell it";
    world.put(memh);
    world.step();
    EXPECT_EQ(1, world.listens);
    world.close();
    EXPECT_EQ(0, world.listens);
}

TEST_F(test_listen, for_so_many_sounds_as_are_looked_at)
{
    m_world.step();
    sounds(SOUNDS - 1);
    m_world.step();
    EXPECT_EQ(1, m_world.listens);
    sounds(1);
    m_world.step();
    EXPECT_EQ(0, m_world.listens);
    m_world.use(BUFFER, SIZE, 1000);
    EXPECT_EQ(1, m_world.listens);
    m_world.step();
    sounds(SOUNDS - 1);
    m_world.step();
    EXPECT_EQ(1, m_world.listens);
}

/* Which registers nothing, and is heard of when it is over */
TEST_F(test_listen, again_after_a_use_that_found_its_buffer)
{
    m_world.close();
    m_world.params.max_pinned = 1 << 30; /* it stays */
    m_world.open();
    m_world.use(BUFFER, SIZE, 1000);
    silence();
    m_world.advance(100 * MS); /* else it is one use with the one before */
    ASSERT_TRUE(is_registered());
    m_world.use(BUFFER, SIZE, 1000);
    EXPECT_EQ(0, m_world.listens);
    m_world.step();
    EXPECT_EQ(1, m_world.listens);
}

/* A use that is under way for long: none of its sounds is lost */
TEST_F(test_listen, while_a_use_is_under_way)
{
    silence();
    auto memh = m_world.get(BUFFER, SIZE);

    sounds(SOUNDS - 1);
    m_world.step();
    EXPECT_EQ(1, m_world.listens);
    m_world.put(memh);
    m_world.step();
    EXPECT_EQ(1, m_world.listens);
}

/* Wherever in the step that is about to say that nothing is left to be
 * foretold: it reads the clock here and there, also when it hears of a post */
TEST_F(test_listen, a_use_that_begins_in_a_step_is_not_passed_over)
{
    for (unsigned read = 1; read <= 12; ++read) {
        regcache_world world(UCS_REGCACHE_POLICY_PREDICT);
        unsigned reads = 0;

        world.open();
        /* There is room for another beside: it would wait for the step that is
         * interrupted to evict one */
        ucs_regcache_memh_t beside = world.get(OTHER + SIZE, SIZE);
        world.use(OTHER, SIZE, 1000);
        world.put(beside);
        world.step();
        for (unsigned i = 0; i < SOUNDS - 1; ++i) {
            ++world.now;
            world.tell(UCS_OPERATION_SEND, OTHER, SIZE);
        }
        world.step();
        ASSERT_EQ(1, world.listens);
        ++world.now;
        world.tell(UCS_OPERATION_RECEIVE, BUFFER, SIZE);
        world.on_now = [&]() {
            if (++reads == read) {
                world.touch(BUFFER + 64 * SIZE, SIZE);
            }
        };
        world.step();
        world.on_now = nullptr;
        EXPECT_EQ((reads >= read) ? 1 : 0, world.listens) << read;
        world.step();
        EXPECT_EQ((reads >= read) ? 1 : 0, world.listens) << read;
    }
}

/* One after the other; a thousand short messages in between */
TEST_F(test_listen, begins_and_ends_come_in_pairs)
{
    for (unsigned i = 0; i < 50; ++i) {
        m_world.use(BUFFER + i * 4 * SIZE, SIZE, 1000);
        EXPECT_EQ(1, m_world.listens);
        if (i % 3 != 0) {
            silence();
        }
    }
    m_world.close();
    EXPECT_EQ(0, m_world.listens);
}

TEST_F(test_listen, policies_that_foretell_nothing_do_not)
{
    for (auto policy : {UCS_REGCACHE_POLICY_RENT, UCS_REGCACHE_POLICY_PAPER,
                        UCS_REGCACHE_POLICY_LRU}) {
        regcache_world world(policy);

        world.open();
        world.use(BUFFER, SIZE, 1000);
        world.step();
        EXPECT_EQ(0, world.listens);
        EXPECT_EQ(UINT64_MAX, ucs_regcache_wants_from(world.cache));
    }
    regcache_world world(UCS_REGCACHE_POLICY_OVERLAP);

    world.open();
    world.use(BUFFER, SIZE, 1000);
    EXPECT_EQ(0, world.listens);
    EXPECT_EQ(world.params.min_size, ucs_regcache_wants_from(world.cache));
}
