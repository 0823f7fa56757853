/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "policy/order_fixture.h"

/** Buffers that are worth nothing between their uses, which nothing foretells. */
class test_regcache_drops : public test_regcache_order {
protected:
    static constexpr unsigned BUFFERS = 8;

    /* The helper comes late */
    void make()
    {
        test_regcache_order::make(UCS_REGCACHE_POLICY_PREDICT);
        w->params.max_slowdown = 0.005;
        w->on_sleep            = [this] { return m_late; };
    }

    /* What a use costs is known, and that the helper comes late */
    void learn()
    {
        make();
        w->open();
        play(400);
    }

    void post(uintptr_t address, uint32_t id = 0)
    {
        w->tell(UCS_OPERATION_RECEIVE, address, size, id);
    }

    /* Receives that are posted, for which a rank that waits registers. @return As
     *         play() */
    unsigned receive(unsigned uses, bool in_turn = true)
    {
        unsigned left = 0;

        for (unsigned i = 0; i < uses; ++i) {
            unsigned b = (in_turn ? i : random()) % BUFFERS;
            w->advance(2 * MS);
            post(buffer(b));
            w->idle_step(MS);
            w->use(buffer(b), size, 10 * US, b + 1);
            left += w->is_registered(buffer(b), size);
        }
        return left;
    }

    /* @return How many uses left their buffer registered when they were over,
     *         the helper not having come yet */
    unsigned play(unsigned uses)
    {
        unsigned left = 0;

        for (unsigned i = 0; i < uses; ++i) {
            unsigned b = random() % BUFFERS;
            w->advance((2 + random() % 20) * MS);
            ucs_regcache_memh_t memh = w->get(buffer(b), size, b + 1);
            w->put(memh);
            left += w->is_registered(buffer(b), size);
        }
        return left;
    }

    size_t   size   = MB / 8;
    uint64_t m_late = 200 * MS;
};

/* Where the helper comes late a deregistration costs less than holding until then */
TEST_F(test_regcache_drops, by_the_thread_that_ends_the_use)
{
    learn();
    unsigned steps = w->steps, woken = w->woken;
    EXPECT_GE(20u, play(400));
    EXPECT_GE(400u / 5, w->steps - steps);
    EXPECT_GE(400u / 5, w->woken - woken) << "each use calls the helper";
    EXPECT_EQ(nullptr, w->invalid());

    /* What was learned of the region stays with it */
    w->advance(1000 * MS);
    EXPECT_TRUE(w->live.empty());
    EXPECT_GE(5u, play(50));
}

/* Of a posted receive as well, which a rank that waits has registered */
TEST_F(test_regcache_drops, by_the_thread_that_ends_a_posted_receive)
{
    learn();
    unsigned steps   = w->steps;
    uint64_t on_time = w->stats().on_time;
    EXPECT_GE(5u, receive(100));
    EXPECT_LE(95u, w->stats().on_time - on_time);
    EXPECT_GE(20u, w->steps - steps);
    EXPECT_EQ(nullptr, w->invalid());
}

/* Nobody has to come for it: neither while it is used nor when it is gone */
TEST_F(test_regcache_drops, and_no_step_is_due_for_it)
{
    learn();
    for (unsigned i = 0; i < 50; ++i) {
        w->advance(20 * MS);
        ucs_regcache_memh_t memh = w->get(buffer(i % BUFFERS), size,
                                          i % BUFFERS + 1);
        w->now += MS;
        uint64_t during = w->idle_step(0);
        w->now += MS;
        w->put(memh);
        uint64_t after = w->idle_step(0);
        if (i > 0) { /* what was overdue has been done */
            EXPECT_LT(w->now + 80 * MS, during) << i;
            EXPECT_LT(w->now + 90 * MS, after) << i;
        }
    }
}

/* What a wait is too short for is left until its own time: the helper is not
 * called for it before, and nothing has come of a step that leaves it after */
TEST_F(test_regcache_drops, what_is_left_may_wait)
{
    make();
    size = 2 * MB;
    w->open();
    play(400);
    receive(40, false); /* its partner is fast */
    w->advance(1000 * MS);
    post(buffer(0), 1);
    w->idle_step(MS);
    ASSERT_TRUE(w->is_registered(buffer(0), size));
    w->tell(UCS_OPERATION_RECEIVED, 0, 0, 1);
    w->now += MS / 10;
    EXPECT_LT(w->now, w->idle_step(0));
    w->now += 10 * MS; /* by then the helper would have come */
    EXPECT_GT(w->now, w->idle_step(0));
    EXPECT_FALSE(ucs_regcache_idle_was_used(w->cache));
    EXPECT_TRUE(w->is_registered(buffer(0), size));
}

/* When cores are free again it is the helper's work */
TEST_F(test_regcache_drops, by_the_helper_where_it_comes_in_time)
{
    learn();
    m_late = 0;
    play(2000);
    EXPECT_EQ(200u, play(200));
    EXPECT_EQ(nullptr, w->invalid());
}

/* What it would have had in vain it learns of, if late */
TEST_F(test_regcache_drops, until_it_is_worth_holding)
{
    learn();
    auto use_in_turn = [&] {
        for (unsigned i = 0; i < 400; ++i) {
            w->use(buffer(i % BUFFERS), size, 10 * US, i % BUFFERS + 1);
            w->advance(20 * US);
        }
    };
    use_in_turn();
    w->advance(500 * MS);
    unsigned regs = w->regs;
    use_in_turn();
    EXPECT_GE(20u, w->regs - regs);
}

/* Room that the user has granted is not given up */
TEST_F(test_regcache_drops, not_under_a_ceiling)
{
    make();
    w->params.max_pinned = BUFFERS / 2 * size;
    w->open();
    EXPECT_EQ(800u, play(800));
    EXPECT_LT(100u, w->regs); /* there was not room for all */
}

/* Nobody calls the helper for what it comes for in time anyway. An idle step puts
 * that off, also to never, and the rank may not wait again: what is unmapped then
 * is told, and deregistered as soon as if the helper had said so itself. */
TEST_F(test_regcache_drops, an_idle_step_puts_off_the_helper_and_says_so)
{
    learn();
    ASSERT_NE(UCS_REGCACHE_TIME_NEVER, w->next);
    for (unsigned i = 0; i < 10; ++i) {
        w->now += 10 * MS;
        w->next = w->idle_step(10 * MS);
    }
    ASSERT_EQ(UCS_REGCACHE_TIME_NEVER, w->next);

    ucs_regcache_memh_t memh = w->get(buffer(0), size, 1);
    ucs_regcache_unmapped(w->cache, buffer(0), size);
    w->put(memh);
    w->advance(1100 * MS);
    EXPECT_TRUE(w->live.empty());
}

/* A use may last for as long as the job: it is looked at as rarely as all else, not
 * as often as if it were to be given up */
TEST_F(test_regcache_drops, a_use_without_an_end_does_not_keep_the_helper_awake)
{
    make();
    w->open();
    w->use(buffer(0), size, 10 * US, 1);
    w->step();
    ASSERT_TRUE(w->is_registered(buffer(0), size));
    ucs_regcache_memh_t memh = w->get(buffer(0), size, 1);
    unsigned steps           = w->steps;
    w->advance(10000 * MS);
    EXPECT_GE(150u, w->steps - steps);
    w->put(memh);
}

/** Deregistrations that wait until the rank's communication is over. */
class test_regcache_leave : public test_regcache_order {
protected:
    void SetUp() override
    {
        make(UCS_REGCACHE_POLICY_PREDICT);
        w->params.max_slowdown = 0.0001; /* a collision costs more than to hold */
        w->open();
    }

    /* One buffer's use ends as another's goes on, again and again. @return For how long
     *         the one stays registered then, as the other is used for @a more_ns, ns */
    uint64_t held(double any, uint64_t more_ns)
    {
        ucs_regcache_set_wanted(w->cache, 0, any);
        for (unsigned i = 0; i < 40; ++i) {
            m_held = round(more_ns);
            w->advance(3000 * MS);
        }
        return m_held;
    }

    uint64_t round(uint64_t more_ns)
    {
        ucs_regcache_memh_t one   = w->get(buffer(0), MB, 1);
        ucs_regcache_memh_t other = w->get(buffer(1), MB, 2);
        bool is_over              = false;
        uint64_t end;

        w->advance(5 * MS);
        w->put(one);
        end = w->now;
        while (!is_over || w->is_registered(buffer(0), MB)) {
            if (w->is_registered(buffer(0), MB)) {
                m_until = w->now;
            }
            w->advance(100 * US);
            if (!is_over && (w->now >= end + more_ns)) {
                w->put(other);
                is_over = true;
            }
        }
        return m_until - end;
    }

    uint64_t m_held = 0, m_until = 0;
};

TEST_F(test_regcache_leave, at_once_where_nobody_waits)
{
    EXPECT_LE(held(0, 20 * MS), 2 * MS);
}

/* And for as long as a use has taken: its partners' may go on */
TEST_F(test_regcache_leave, until_nothing_is_in_use_where_ranks_wait)
{
    uint64_t ns = held(1, 20 * MS);
    EXPECT_GE(ns, 20 * MS);
    EXPECT_LE(ns, 70 * MS);
}

/* A use that does not end, as a receive that nobody sends to */
TEST_F(test_regcache_leave, no_longer_than_it_is_worth)
{
    uint64_t ns = held(1, 2000 * MS);
    EXPECT_GE(ns, 20 * MS);
    EXPECT_LE(ns, 150 * MS);
    EXPECT_LE(held(0.1, 2000 * MS), ns / 5);
}
