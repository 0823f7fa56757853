/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "hear_fixture.h"

#include <ucs/predict/price.h>

#include <random>

/* Of plan.h, which is C's: what an announcement has saved of its use */
extern "C" int ucs_regcache_announced_saved(ucs_regcache_h cache,
                                            ucs_predict_price_t *price);

/*
 * Receives that are posted.
 */

class test_announce : public test_hear {
protected:
    /* Far more than memory events that are remembered */
    static constexpr unsigned EVENTS = 100;

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
};

TEST_F(test_announce, a_posted_receive_is_registered_before_its_first_use)
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
TEST_F(test_announce, a_posted_receive_takes_the_place_of_what_lies_idle)
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

TEST_F(test_announce, short_receives_and_those_without_data_are_not)
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
TEST_F(test_announce, its_end_is_the_end_of_it)
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

TEST_F(test_announce, one_that_has_ended_already_is_never_registered)
{
    post(BUFFER, SIZE, 7);
    say(UCS_OPERATION_RECEIVED, 0, 0, 7);
    m_world.step();
    EXPECT_FALSE(is_registered());
}

TEST_F(test_announce, what_is_unmapped_meanwhile_is_not_registered)
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
TEST_F(test_announce, what_takes_the_place_of_one_that_was_unmapped_is_given_up)
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

TEST_F(test_announce, of_many_events_the_older_ones_count_as_any)
{
    post();
    for (unsigned i = 0; i < EVENTS; ++i) {
        m_world.advance(10);
        ucs_regcache_unmapped(m_world.cache, OTHER + (64 << 20), 4096);
    }
    m_world.step();
    EXPECT_FALSE(is_registered());
}

TEST_F(test_announce, what_cannot_be_registered_is_tried_once)
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
TEST_F(test_announce, a_partner_that_takes_seconds_is_not_waited_for)
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

TEST_F(test_announce, the_second_of_two_at_one_buffer_counts)
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

TEST_F(test_announce, posts_that_come_to_nothing_are_not_believed)
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

TEST_F(test_announce, more_receives_than_are_remembered_leave_nothing)
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

/* The message that came in the midst of it has waited for the rest */
TEST_F(test_announce, a_registration_in_a_wait_may_have_kept_its_message_waiting)
{
    EXPECT_LE(saved(true, 0), 0.6);
}

TEST_F(test_announce, in_a_wait_that_went_on_it_has_not)
{
    EXPECT_GE(saved(true, MS / 5), 0.7);
}

TEST_F(test_announce, the_helper_beside_the_rank_keeps_none_waiting)
{
    EXPECT_GE(saved(false, 0), 0.7);
}

TEST_F(test_announce, what_somebody_waits_for_it_saves_nobody)
{
    ucs_regcache_set_wanted(m_world.cache, 2, 2);
    EXPECT_EQ(0, saved(false, 0));
}

/* Deregistered first it would be registered again at once */
TEST_F(test_announce, what_is_posted_right_after_its_use_stays)
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
TEST_F(test_announce, a_receive_that_waits_as_long_as_ever_is_left_to_the_plan)
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
TEST_F(test_announce, a_receive_that_is_posted_shortly_before_its_use_is_registered_at_once)
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
TEST_F(test_announce, a_receive_whose_wait_nothing_foretells_is_registered_at_once)
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

/*
 * The first posts of a program, before it has used any buffer
 */

class test_first_post : public test_announce {
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
