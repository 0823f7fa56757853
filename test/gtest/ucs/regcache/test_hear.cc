/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "regcache_fixture.h"

#include <ucs/predict/price.h>

#include <random>

/* Of plan.h, which is C's: what an announcement has saved of its use */
extern "C" int ucs_regcache_announced_saved(ucs_regcache_h cache,
                                            ucs_predict_price_t *price);

/*
 * What the program says before it registers, in virtual time: receives that are
 * posted, and steps of a thread that waits.
 */

class test_hear : public ::testing::Test {
protected:
    static constexpr uintptr_t BUFFER = 0x10000000;
    static constexpr uintptr_t OTHER  = 0x20000000;
    static constexpr size_t    SIZE   = 64 << 10;
    static constexpr uint64_t  MS     = 1000000;

    /* Far more than memory events, and receives, that are remembered */
    static constexpr unsigned EVENTS   = 100;
    static constexpr unsigned RECEIVES = 400;

    test_hear() : m_world(UCS_REGCACHE_POLICY_PREDICT)
    {
        m_world.now = 1000 * MS;
        m_world.open();
        /* What its uses allow, and how long its messages are, is known from
         * the first one on */
        send();
        m_world.use(OTHER, SIZE, 1000);
        m_world.advance(100 * MS);
    }

    void say(ucs_operation_kind_t kind, uintptr_t address, size_t length,
             uint32_t id = 0)
    {
        m_world.tell(kind, address, length, id);
    }

    void send(size_t length = SIZE)
    {
        say(UCS_OPERATION_SEND, OTHER, length);
    }

    void post(uintptr_t address = BUFFER, size_t length = SIZE, uint32_t id = 0)
    {
        say(UCS_OPERATION_RECEIVE, address, length, id);
    }

    bool is_registered()
    {
        return m_world.is_registered(BUFFER, SIZE);
    }

    /* What the announcement of a use saves that comes so long after it was
     * registered, in the rank's wait or by the helper */
    double saved(bool in_wait, uint64_t after)
    {
        /* What registering takes is known */
        for (unsigned i = 1; i <= 32; ++i) {
            m_world.use(OTHER + i * 16 * SIZE, SIZE + i * 4096, 1000);
            m_world.step();
        }
        m_world.now += 100 * MS;
        post();
        if (in_wait) {
            m_world.idle_step(MS);
        } else {
            m_world.step();
        }
        EXPECT_TRUE(is_registered());
        m_world.now += after;
        m_world.use(BUFFER, SIZE, 1000);
        m_world.step();
        ucs_predict_price_t price = {};
        ucs_regcache_announced_saved(m_world.cache, &price);
        return price.saved;
    }

    uint64_t announced()
    {
        return m_world.stats().announced;
    }

    uint64_t on_time()
    {
        return m_world.stats().announced_on_time;
    }

    regcache_world m_world;
};

TEST_F(test_hear, a_posted_receive_is_registered_before_its_first_use)
{
    auto before = m_world.stats();

    post();
    m_world.step();
    EXPECT_TRUE(is_registered());
    m_world.advance(1000);
    m_world.use(BUFFER, SIZE, 1000);
    m_world.advance(MS);
    EXPECT_EQ(before.cold, m_world.stats().cold);
    EXPECT_EQ(1u, announced());
    EXPECT_EQ(1u, on_time());
    EXPECT_EQ(before.heard + 1, m_world.stats().heard);
}

/* There is room for one at once, and nothing is known of either one's next use but that
 * one is posted */
TEST_F(test_hear, a_posted_receive_takes_the_place_of_what_lies_idle)
{
    const size_t size = 16 * SIZE;

    m_world.use(BUFFER, size, 1000);
    m_world.step();
    m_world.use(BUFFER + 2 * size, size, 1000);
    m_world.step();
    EXPECT_FALSE(is_registered());
    m_world.advance(MS);
    post(BUFFER, size);
    m_world.step();
    EXPECT_TRUE(is_registered());
    EXPECT_GE(size + 2 * SIZE, m_world.stats().pinned_peak_bytes);
}

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

TEST_F(test_hear, short_receives_and_those_without_data_are_not)
{
    auto before = m_world.stats().heard;

    post(BUFFER, 16383);
    post(0, 0);
    m_world.step();
    EXPECT_FALSE(m_world.is_registered(BUFFER, 16383));
    EXPECT_EQ(0u, announced());
    EXPECT_EQ(before + 2, m_world.stats().heard);
}

/* Cancelled, or completed without a registration */
TEST_F(test_hear, its_end_is_the_end_of_it)
{
    post(BUFFER, SIZE, 7);
    m_world.step();
    ASSERT_TRUE(is_registered());
    say(UCS_OPERATION_RECEIVED, 0, 0, 6); /* another's */
    m_world.step();
    EXPECT_TRUE(is_registered());
    say(UCS_OPERATION_RECEIVED, 0, 0, 7);
    m_world.step();
    EXPECT_FALSE(is_registered());
    EXPECT_EQ(0u, on_time());
}

TEST_F(test_hear, one_that_has_ended_already_is_never_registered)
{
    post(BUFFER, SIZE, 7);
    say(UCS_OPERATION_RECEIVED, 0, 0, 7);
    m_world.step();
    EXPECT_FALSE(is_registered());
}

TEST_F(test_hear, what_is_unmapped_meanwhile_is_not_registered)
{
    post();
    m_world.advance(10);
    ucs_regcache_unmapped(m_world.cache, BUFFER, SIZE);
    m_world.advance(10);
    m_world.step();
    EXPECT_FALSE(is_registered());

    /* Another mapping is there now, and says so itself */
    m_world.advance(10);
    post();
    m_world.step();
    EXPECT_TRUE(is_registered());
    ucs_regcache_unmapped(m_world.cache, BUFFER, SIZE);
    m_world.step();
    EXPECT_FALSE(is_registered());
}

/* They are larger, so that they are given up while the announcement still holds;
 * it does so the longer the more memory there is */
TEST_F(test_hear, what_takes_the_place_of_one_that_was_unmapped_is_given_up)
{
    auto larger = 64 * SIZE;

    m_world.use(2 * OTHER, 1024 * SIZE, 1000);
    m_world.advance(10000 * MS);
    post();
    m_world.step();
    ASSERT_TRUE(is_registered());
    ucs_regcache_unmapped(m_world.cache, BUFFER, SIZE);
    m_world.step();
    for (unsigned i = 1; i <= 4; ++i) {
        m_world.use(OTHER + i * larger, larger, 1000);
    }
    m_world.advance(10000 * MS);
    for (unsigned i = 1; i <= 4; ++i) {
        EXPECT_FALSE(m_world.is_registered(OTHER + i * larger, larger)) << i;
    }
}

TEST_F(test_hear, of_many_events_the_older_ones_count_as_any)
{
    post();
    for (unsigned i = 0; i < EVENTS; ++i) {
        m_world.advance(10);
        ucs_regcache_unmapped(m_world.cache, OTHER + (64 << 20), 4096);
    }
    m_world.step();
    EXPECT_FALSE(is_registered());
}

TEST_F(test_hear, what_cannot_be_registered_is_tried_once)
{
    auto failed = m_world.stats().failed;

    m_world.on_reg = [](regcache_world::registration) {
        return UCS_ERR_INVALID_ADDR;
    };
    post();
    m_world.step();
    EXPECT_EQ(failed + 1, m_world.stats().failed);
    m_world.advance(1000 * MS);
    EXPECT_EQ(failed + 1, m_world.stats().failed);
    EXPECT_FALSE(is_registered());
}

/* Holding is paid by the hour */
TEST_F(test_hear, a_partner_that_takes_seconds_is_not_waited_for)
{
    post();
    m_world.step();
    ASSERT_TRUE(is_registered());
    m_world.advance(5000 * MS);
    EXPECT_FALSE(is_registered());
    m_world.use(BUFFER, SIZE, 1000);
    m_world.advance(1000 * MS);
    EXPECT_EQ(0u, on_time());
}

TEST_F(test_hear, the_second_of_two_at_one_buffer_counts)
{
    post(BUFFER, SIZE, 1);
    post(BUFFER, SIZE, 2);
    m_world.step();
    ASSERT_TRUE(is_registered());
    say(UCS_OPERATION_RECEIVED, 0, 0, 1);
    m_world.step();
    EXPECT_TRUE(is_registered());
    say(UCS_OPERATION_RECEIVED, 0, 0, 2);
    m_world.step();
    EXPECT_FALSE(is_registered());
}

TEST_F(test_hear, posts_that_come_to_nothing_are_not_believed)
{
    for (unsigned i = 0; i < 4; ++i) {
        post(BUFFER, SIZE, i + 1);
        m_world.step();
        say(UCS_OPERATION_RECEIVED, 0, 0, i + 1);
        m_world.step();
        m_world.advance(MS);
    }
    post(BUFFER, SIZE, 9);
    m_world.step();
    EXPECT_FALSE(is_registered());
}

TEST_F(test_hear, more_receives_than_are_remembered_leave_nothing)
{
    for (unsigned i = 0; i < RECEIVES; ++i) {
        post(BUFFER + i * 2 * SIZE);
        if (i % 100 == 0) {
            m_world.step();
        }
    }
    m_world.step();
    EXPECT_EQ(nullptr, m_world.invalid());
    m_world.advance(100000 * MS);
    for (unsigned i = 0; i < RECEIVES; ++i) {
        EXPECT_FALSE(m_world.is_registered(BUFFER + i * 2 * SIZE, SIZE)) << i;
    }
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

/* The message that came in the midst of it has waited for the rest */
TEST_F(test_hear, a_registration_in_a_wait_may_have_kept_its_message_waiting)
{
    EXPECT_LE(saved(true, 0), 0.6);
}

TEST_F(test_hear, in_a_wait_that_went_on_it_has_not)
{
    EXPECT_GE(saved(true, MS / 5), 0.7);
}

TEST_F(test_hear, the_helper_beside_the_rank_keeps_none_waiting)
{
    EXPECT_GE(saved(false, 0), 0.7);
}

TEST_F(test_hear, what_somebody_waits_for_it_saves_nobody)
{
    ucs_regcache_set_wanted(m_world.cache, 2, 2);
    EXPECT_EQ(0, saved(false, 0));
}

/* Deregistered first it would be registered again at once */
TEST_F(test_hear, what_is_posted_right_after_its_use_stays)
{
    std::mt19937 random(1);

    for (unsigned i = 0; i < 30; ++i) {
        m_world.use(BUFFER, SIZE, 1000);
        m_world.advance((1 + random() % 100) * MS); /* nothing foretells it */
        m_world.step();
    }
    EXPECT_FALSE(is_registered());
    m_world.use(BUFFER, SIZE, 1000);
    uint64_t registrations = m_world.stats().registrations;
    post();
    m_world.step();
    EXPECT_TRUE(is_registered());
    EXPECT_EQ(registrations, m_world.stats().registrations);
}

/* Held from the post on it would cost more */
TEST_F(test_hear, a_receive_that_waits_as_long_as_ever_is_left_to_the_plan)
{
    for (unsigned post_at : {0, 10}) {
        auto before   = m_world.stats();
        unsigned held = 0;

        for (unsigned i = 0; i < 60; ++i) {
            if (i == 40) {
                before = m_world.stats();
            }
            m_world.use(BUFFER, SIZE, 1000);
            for (unsigned j = 0; j < 40; ++j) {
                if (j == post_at) {
                    post();
                    m_world.step();
                }
                m_world.advance(MS / 100);
                held += (i >= 40) && is_registered();
            }
        }
        EXPECT_EQ(before.missed, m_world.stats().missed) << post_at;
        EXPECT_EQ(before.registrations + 20, m_world.stats().registrations) << post_at;
        EXPECT_GT(20 * 40 / 2u, held) << post_at;
    }
}

/* Held from the post on it costs little, and now and then a use comes before the plan. */
TEST_F(test_hear, a_receive_that_is_posted_shortly_before_its_use_is_registered_at_once)
{
    uintptr_t address = BUFFER;
    uint64_t missed   = 0;

    for (unsigned shorter : {20, 30}) {
        for (unsigned one_in : {5, 10, 20, 40}) {
            for (unsigned wait : {2, 5, 10}) {
                std::mt19937 random(1);

                address += 16 * SIZE;
                for (unsigned i = 0; i < 300; ++i) {
                    missed -= (i == 20) ? m_world.stats().missed : 0;
                    m_world.use(address, SIZE, 1000);
                    unsigned gap = (random() % one_in == 0) ? shorter : 40;
                    m_world.advance((gap - wait) * MS / 100);
                    post(address);
                    m_world.step();
                    m_world.advance(wait * MS / 100);
                }
                missed += m_world.stats().missed;
            }
        }
    }
    EXPECT_GE(52u, missed) << "of 6720";
}

/* The plan is not to be trusted more than it has earned */
TEST_F(test_hear, a_receive_whose_wait_nothing_foretells_is_registered_at_once)
{
    std::mt19937 random(1);
    uint64_t missed = 0;

    for (unsigned i = 0; i < 60; ++i) {
        if (i == 40) {
            missed = m_world.stats().missed;
        }
        m_world.use(BUFFER, SIZE, 1000);
        post();
        m_world.advance((5 + random() % 35) * MS / 100);
    }
    EXPECT_GE(missed + 2, m_world.stats().missed);
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
 * The first posts of a program, before it has used any buffer
 */

class test_first_post : public test_hear {
protected:
    void SetUp() override
    {
        m_world.close();
        m_world.open();
    }
};

TEST_F(test_first_post, another_use_tells_by_what_access_it_is_registered)
{
    send();
    post();
    m_world.step();
    EXPECT_FALSE(is_registered());
    EXPECT_GT(m_world.next, m_world.now) << "the helper does not sleep";

    auto memh = m_world.get(OTHER, SIZE); /* as far as it will go by itself */
    m_world.step();
    EXPECT_TRUE(is_registered());
    m_world.put(memh);
    auto cold = m_world.stats().cold;
    m_world.use(BUFFER, SIZE, 1000);
    EXPECT_EQ(cold, m_world.stats().cold);
}

TEST_F(test_first_post, as_much_is_registered_as_was_sent)
{
    post(BUFFER, 16 * SIZE);
    send();
    auto memh = m_world.get(OTHER, SIZE);
    m_world.step();
    EXPECT_TRUE(is_registered());
    EXPECT_FALSE(m_world.is_registered(BUFFER, SIZE + 1));
    m_world.put(memh);
}

TEST_F(test_first_post, or_received_before)
{
    post();
    m_world.use(BUFFER, SIZE, 1000);
    m_world.advance(100 * MS);
    post(BUFFER + 64 * SIZE, 2 * SIZE);
    m_world.step();
    EXPECT_TRUE(m_world.is_registered(BUFFER + 64 * SIZE, SIZE));
    EXPECT_FALSE(m_world.is_registered(BUFFER + 64 * SIZE, SIZE + 1));
}

TEST_F(test_first_post, nothing_is_where_all_messages_were_short)
{
    m_world.use(OTHER, SIZE, 1000); /* of put and get */
    post();
    send(16383);
    m_world.step();
    EXPECT_FALSE(is_registered());
    EXPECT_GT(m_world.next, m_world.now) << "the helper does not sleep";
}

/* Both are the program's at once, whatever uses had registered until then */
TEST_F(test_first_post, is_registered_beside_what_is_in_use)
{
    send();
    auto memh = m_world.get(OTHER, SIZE);
    post();
    post(BUFFER + 64 * SIZE, SIZE);
    m_world.step();
    EXPECT_TRUE(is_registered());
    EXPECT_TRUE(m_world.is_registered(BUFFER + 64 * SIZE, SIZE));
    m_world.put(memh);
}

/* Two buffers would be left pinned, the one that is waited for among them: else
 * it would be held for half as long */
TEST_F(test_first_post, is_held_for_the_rent_time_with_itself)
{
    const uint64_t takes = regcache_world::REG_BASE_NS +
                           SIZE / 4096 * regcache_world::REG_PAGE_NS;

    send();
    auto memh = m_world.get(OTHER, SIZE);
    post();
    m_world.step();
    m_world.advance(2000 * takes);
    EXPECT_TRUE(is_registered());
    m_world.advance(1000 * takes);
    EXPECT_FALSE(is_registered());
    EXPECT_FALSE(ucs_regcache_has_region(m_world.cache, BUFFER, BUFFER + SIZE))
            << "it waits for the helper to hear of a use that never was";
    m_world.put(memh);
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
