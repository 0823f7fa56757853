/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "node_fixture.h"

#include <test/own_ledger.h>

#include <sched.h>

TEST_F(test_node, without_a_budget_all_is_counted_and_nothing_refused)
{
    auto one = rank(UINT64_MAX), two = rank(UINT64_MAX);

    EXPECT_FALSE(ucs_node_has_budget(one->node()));
    for (auto how : {UCS_CLAIM_HELPER, UCS_CLAIM_USE,
                     UCS_CLAIM_FORCE}) {
        EXPECT_TRUE(ucs_node_claim(one->node(), MB, how));
    }
    EXPECT_EQ(3 * MB, ucs_node_sum(two->node()));
    EXPECT_EQ(3 * MB, two->figures().peak_bytes);
    EXPECT_EQ(2u, two->figures().ranks);
    EXPECT_EQ(0u, one->figures().forced);
    ucs_node_unclaim(one->node(), 3 * MB);
    EXPECT_EQ(0u, ucs_node_sum(two->node()));
    EXPECT_FALSE(ucs_node_ask(one->node(), MB, UCS_ASK_ALL));
}

TEST_F(test_node, a_budget_is_kept_to_the_byte_unless_forced)
{
    auto one = rank(10 * MB), two = rank(10 * MB);

    EXPECT_TRUE(ucs_node_claim(one->node(), 6 * MB, UCS_CLAIM_USE));
    EXPECT_FALSE(ucs_node_claim(two->node(), 4 * MB + 1, UCS_CLAIM_USE));
    EXPECT_TRUE(ucs_node_claim(two->node(), 4 * MB, UCS_CLAIM_USE));
    EXPECT_EQ(10 * MB, two->figures().peak_bytes);
    EXPECT_EQ(0u, two->figures().forced);
    EXPECT_TRUE(ucs_node_claim(two->node(), 1, UCS_CLAIM_FORCE));
    EXPECT_EQ(1u, two->figures().forced);
    EXPECT_EQ(10 * MB + 1, two->figures().peak_bytes);
    ucs_node_unclaim(one->node(), 6 * MB);
    ucs_node_unclaim(two->node(), 4 * MB + 1);
}

/* What is registered in advance stays within what is due to a rank, even where
 * there is free room; a use may have what the others do not use now */
TEST_F(test_node, the_helper_takes_its_share_and_a_use_what_is_free)
{
    auto one = rank(10 * MB), two = rank(10 * MB);

    /* The other wants much, but cannot have it */
    EXPECT_FALSE(ucs_node_claim(two->node(), 20 * MB, UCS_CLAIM_USE));
    EXPECT_TRUE(ucs_node_claim(one->node(), 5 * MB, UCS_CLAIM_HELPER));
    EXPECT_FALSE(ucs_node_claim(one->node(), 1, UCS_CLAIM_HELPER));
    EXPECT_TRUE(ucs_node_claim(one->node(), 3 * MB, UCS_CLAIM_USE));
    ucs_node_unclaim(one->node(), 8 * MB);
}

TEST_F(test_node, what_others_do_not_need_may_be_used)
{
    auto one = rank(12 * MB), two = rank(12 * MB), three = rank(12 * MB);

    EXPECT_TRUE(ucs_node_claim(two->node(), 2 * MB, UCS_CLAIM_USE));
    EXPECT_TRUE(ucs_node_claim(one->node(), 9 * MB, UCS_CLAIM_HELPER));
    ucs_node_unclaim(one->node(), 9 * MB);
    ucs_node_unclaim(two->node(), 2 * MB);
}

/* Of a large budget a rank that has next to nothing does not look at the others */
TEST_F(test_node, a_little_is_there_for_each_whatever_others_have)
{
    ucs_node_params_t params = {};
    params.budget = 16;
    params.unseen = 2;
    test_rank one(open(params)), two(open(params));

    EXPECT_TRUE(ucs_node_claim(one.node(), 16, UCS_CLAIM_USE));
    EXPECT_FALSE(ucs_node_claim(one.node(), 1, UCS_CLAIM_USE));
    EXPECT_TRUE(ucs_node_claim(two.node(), 1, UCS_CLAIM_HELPER));
    EXPECT_TRUE(ucs_node_claim(two.node(), 1, UCS_CLAIM_USE));
    EXPECT_FALSE(ucs_node_claim(two.node(), 1, UCS_CLAIM_USE));
    EXPECT_EQ(0u, two.figures().forced);
    EXPECT_EQ(18u, two.figures().peak_bytes);
    ucs_node_unclaim(one.node(), 16);
    ucs_node_unclaim(two.node(), 2);
}

/* A limit of the process's own is none of the others' business */
TEST_F(test_node, a_process_has_a_limit_of_its_own)
{
    for (uint64_t budget : {UINT64_MAX, uint64_t(100)}) {
        ucs_node_params_t params = {};
        params.budget = budget;
        params.most   = 10;
        test_rank one(open(params));

        EXPECT_TRUE(ucs_node_claim(one.node(), 10, UCS_CLAIM_USE));
        EXPECT_FALSE(ucs_node_claim(one.node(), 1, UCS_CLAIM_USE));
        EXPECT_FALSE(ucs_node_claim(one.node(), 1, UCS_CLAIM_HELPER));
        EXPECT_FALSE(ucs_node_ask(one.node(), 1, UCS_ASK_SHARE));
        EXPECT_FALSE(ucs_node_ask(one.node(), 1, UCS_ASK_ALL));
        EXPECT_TRUE(ucs_node_claim(one.node(), 1, UCS_CLAIM_FORCE));
        ucs_node_unclaim(one.node(), 11);
    }
}

/* What a device refuses shows how many registrations there are, of all ranks
 * together. A minute later there may be twice as many. */
TEST_F(test_node, what_is_refused_is_the_limit_of_all)
{
    auto one = rank(UINT64_MAX), two = rank(UINT64_MAX);

    EXPECT_TRUE(ucs_node_claim(one->node(), 5, UCS_CLAIM_USE));
    EXPECT_TRUE(ucs_node_claim(two->node(), 3, UCS_CLAIM_USE));
    EXPECT_TRUE(ucs_node_claim(two->node(), 1, UCS_CLAIM_USE));
    EXPECT_EQ(8u, ucs_node_refused(two->node(), 1));
    EXPECT_FALSE(ucs_node_has_budget(one->node())) << "it may be something else";
    ucs_node_unclaim(two->node(), 1);
    ucs_node_learn(two->node(), 8);
    for (auto &each : {&one, &two}) {
        EXPECT_TRUE(ucs_node_has_budget((*each)->node()));
        EXPECT_EQ(8u, (*each)->figures().budget);
        EXPECT_FALSE(ucs_node_claim((*each)->node(), 1, UCS_CLAIM_USE));
    }
    /* Each has its share */
    ucs_node_unclaim(one->node(), 2);
    EXPECT_TRUE(ucs_node_claim(two->node(), 1, UCS_CLAIM_HELPER));
    EXPECT_FALSE(ucs_node_claim(two->node(), 1, UCS_CLAIM_HELPER));
    EXPECT_TRUE(ucs_node_claim(one->node(), 1, UCS_CLAIM_HELPER));

    later() += 3000 * MS;
    EXPECT_EQ(11u, one->figures().budget); /* one more a second at least */
    EXPECT_TRUE(ucs_node_claim(one->node(), 1, UCS_CLAIM_USE));
    EXPECT_EQ(8u, ucs_node_refused(one->node(), 1)); /* there are none more */
    ucs_node_learn(one->node(), 12);
    EXPECT_EQ(11u, two->figures().budget) << "less is known";
    ucs_node_learn(one->node(), 8);
    EXPECT_EQ(8u, two->figures().budget);
    later() += 64000 * MS;
    EXPECT_EQ(72u, one->figures().budget); /* one more a second */
    ucs_node_unclaim(one->node(), 5);
    ucs_node_unclaim(two->node(), 4);
}

/* A limit of thousands is doubled in a minute */
TEST_F(test_node, what_was_learned_grows_by_its_part)
{
    auto one = rank(UINT64_MAX);

    ucs_node_learn(one->node(), 6400);
    later() += 64000 * MS;
    EXPECT_EQ(12800u, one->figures().budget);
}

/* Others give back what a refusal may be for, before it is known to be a limit */
TEST_F(test_node, what_may_be_the_limit_is_asked_back)
{
    auto one = rank(UINT64_MAX), two = rank(UINT64_MAX);
    uint64_t asked = 0;
    auto give      = [](void *arg, uint64_t length) -> uint64_t {
        *(uint64_t*)arg += length;
        return 0;
    };

    EXPECT_EQ(UCS_OK, ucs_node_join(one->node(), give, &asked));
    EXPECT_TRUE(ucs_node_claim(one->node(), 5, UCS_CLAIM_USE));
    ucs_node_ask_back(one->node(), 5);
    EXPECT_EQ(0u, asked);
    ucs_node_ask_back(one->node(), 3);
    EXPECT_EQ(2u, asked);
    EXPECT_FALSE(ucs_node_has_budget(two->node()));
    ucs_node_unclaim(one->node(), 5);
    ucs_node_part(one->node(), &asked);
}

/* Whatever another process has written there */
TEST_F(test_node, what_was_learned_is_not_believed_beyond_reason)
{
    auto one   = rank(1000);
    auto words = map();

    for (uint64_t learned : {UINT64_MAX, UCS_LEDGER_RISE, uint64_t(1)}) {
        for (uint64_t at : {uint64_t(0), UINT64_MAX}) {
            ucs_store_relaxed(&words->learned, learned);
            ucs_store_relaxed(&words->learned_at, at);
            EXPECT_GE(one->figures().budget, 1u);
            EXPECT_LE(one->figures().budget, 1000u);
        }
    }
}

/* A rank in another time namespace has written a time that comes in ten days */
TEST_F(test_node, what_another_clock_has_learned_does_not_stand)
{
    auto one   = rank(1000);
    auto words = map();

    ucs_store_relaxed(&words->learned, 10);
    ucs_store_relaxed(&words->learned_at, now() + (10 * 86400 * 1000 * MS));
    EXPECT_EQ(10u, one->figures().budget);
    later() += 5000 * MS;
    EXPECT_GE(one->figures().budget, 15u); /* one more a second */
    EXPECT_LE(one->figures().budget, 20u);
}

/* The helpers sleep on the bells of the node's ledger, not of the device's */
TEST_F(test_node, who_is_asked_is_woken_where_it_sleeps)
{
    auto bells = rank(UINT64_MAX);
    std::string name = m_name;
    m_name += "+device";
    ucs_node_params_t params = {};
    params.budget      = 4;
    params.bells       = bells->node();
    params.goes        = 1;
    params.patience_ns = 20000 * MS;
    {
        test_rank one(open(params)), two(open(params));
        uint32_t before = *ucs_node_bell(bells->node());
        one.start();
        one.fill(4, 1);
        EXPECT_FALSE(two.use(2));
        EXPECT_NE(before, *ucs_node_bell(bells->node()));
        EXPECT_EQ(2u, one.idle());
        ucs_node_serve(bells->node()); /* nothing is wanted of that */
        ucs_node_unclaim(two.node(), 2);
    }
    EXPECT_FALSE(ucs_ledger_remove(m_name.c_str())) << "it is still there";
    m_name = name;
}

TEST_F(test_node, who_is_above_his_share_gives_idle_memory_back)
{
    auto one = rank(8 * MB), two = rank(8 * MB);

    one->start();
    one->fill(8, MB);
    EXPECT_FALSE(two->use(2 * MB));
    EXPECT_EQ(6 * MB, one->idle()); /* no more than was asked for */
    EXPECT_FALSE(two->use(2 * MB));
    EXPECT_EQ(4 * MB, one->idle());
    EXPECT_EQ(4 * MB, one->figures().given_bytes);
    EXPECT_EQ(0u, two->figures().forced);
    EXPECT_EQ(8 * MB, two->figures().peak_bytes);
    ucs_node_unclaim(two->node(), 4 * MB);
}

/* A rank that has its share does not take idle memory from one that has not,
 * before it has given up its own */
TEST_F(test_node, own_idle_memory_goes_before_that_of_who_has_less)
{
    auto one = rank(8 * MB), two = rank(8 * MB);

    one->start();
    one->fill(1, 3 * MB);
    two->fill(5, MB);
    ASSERT_FALSE(two->use(MB));
    EXPECT_EQ(3 * MB, one->idle());
    EXPECT_EQ(4 * MB, two->idle());
    ucs_node_unclaim(two->node(), MB);
}

/* In use beyond its share: then what is idle anywhere goes */
TEST_F(test_node, a_use_takes_all_that_is_idle_before_it_passes_the_budget)
{
    auto one = rank(8 * MB), two = rank(8 * MB);

    one->start();
    one->fill(1, 4 * MB);
    ASSERT_FALSE(two->use(4 * MB));
    EXPECT_FALSE(two->use(4 * MB));
    EXPECT_EQ(0u, one->idle());
    EXPECT_TRUE(two->use(1)); /* nothing is idle: it goes ahead */
    EXPECT_EQ(1u, two->figures().forced);
    ucs_node_unclaim(two->node(), 8 * MB + 1);
}

TEST_F(test_node, who_does_not_answer_is_waited_for_once)
{
    auto one = rank(4 * MB), two = rank(4 * MB, 20 * MS);

    one->fill(1, 4 * MB);
    ucs_node_listen(one->node(), 1); /* but nobody does */

    uint64_t start = now();
    EXPECT_TRUE(two->use(MB));
    uint64_t first = now() - start;
    EXPECT_GE(first, 20 * MS);
    /* It is not rung again */
    auto mapped = map();
    uint32_t bell        = ucs_load_relaxed(&mapped->slots[0].bell);
    EXPECT_EQ(1u, bell);
    EXPECT_TRUE(two->use(MB));
    EXPECT_EQ(bell, ucs_load_relaxed(&mapped->slots[0].bell));

    /* Until it has answered what it was asked */
    ucs_node_serve(one->node());
    EXPECT_GT(4 * MB, one->idle());
    one->start();
    EXPECT_FALSE(two->use(MB));
    ucs_node_listen(one->node(), 0);
    ucs_node_unclaim(two->node(), 3 * MB);
}

TEST_F(test_node, two_helpers_of_one_process_answer_once)
{
    auto one        = rank(4 * MB);
    auto mapped     = map();
    auto &slot      = mapped->slots[0];
    uint32_t answer = 99;

    one->fill(1, 4 * MB);
    ucs_store_relaxed(&slot.want, MB);
    ucs_store_relaxed(&slot.bell, 7);
    /* A second helper comes while the first one releases: it must not answer
     * what has not been given back yet */
    one->on_release = [&](uint64_t) {
        std::thread([&] { ucs_node_serve(one->node()); }).join();
        answer = ucs_load_relaxed(&slot.answer);
        return 0;
    };
    ucs_node_serve(one->node());
    EXPECT_EQ(0u, answer);
    EXPECT_EQ(7u, ucs_load_relaxed(&slot.answer));
}

/* Another process wrote over the slot, or took it away */
TEST_F(test_node, the_helper_mends_what_was_written_over)
{
    auto one = rank(8 * MB), two = rank(8 * MB);
    auto mapped = map();

    ASSERT_FALSE(one->use(3 * MB));
    ucs_store_relaxed(&mapped->owner[0], 0);
    EXPECT_EQ(0u, ucs_node_sum(two->node()));
    ucs_store_relaxed(&mapped->pinned[0], UINT64_MAX);
    EXPECT_TRUE(ucs_node_is_valid(one->node()));
    EXPECT_TRUE(ucs_node_mend(one->node(), now()));
    EXPECT_EQ(3 * MB, ucs_node_sum(two->node()));
    EXPECT_EQ(3 * MB, ucs_load_relaxed(&mapped->pinned[0]));
    EXPECT_TRUE(ledger_is_settled(mapped));
    /* More than the node has is nonsense */
    ucs_store_relaxed(&mapped->pinned[0], UINT64_MAX / 2);
    EXPECT_EQ(0u, ucs_node_sum(two->node()));
    /* What others read of its helper and its cores is written again as well */
    ucs_node_listen(one->node(), 1);
    ucs_store_relaxed(&mapped->slots[0].listens, 0);
    ucs_store_relaxed(&mapped->slots[0].cores, 77);
    EXPECT_TRUE(ucs_node_mend(one->node(), now()));
    EXPECT_TRUE(ucs_load_relaxed(&mapped->slots[0].listens));
    EXPECT_EQ(1u, ucs_load_relaxed(&mapped->slots[0].cores));
    ucs_node_listen(one->node(), 0);
    EXPECT_FALSE(ucs_load_relaxed(&mapped->slots[0].listens));
    ucs_node_unclaim(one->node(), 3 * MB);
}

/*
 * Threads of several ranks, all at once
 */

/* All at the same moment, round after round: there is room for one */
TEST_F(test_node, claims_of_many_never_pass_the_budget_together)
{
    static constexpr unsigned RANKS  = 2;
    static constexpr unsigned ROUNDS = 20000;
    std::vector<std::unique_ptr<test_rank>> ranks;
    std::vector<std::thread> threads;
    std::atomic<unsigned> arrived{0}, wins{0}, most{0}, granted{0};

    for (unsigned i = 0; i < RANKS; ++i) {
        ranks.push_back(rank(10 * MB));
    }
    auto meet = [&](unsigned count) {
        ++arrived;
        for (unsigned spins = 0; arrived < count * RANKS; ++spins) {
            if (spins > 1000) {
                sched_yield();
            }
        }
    };
    for (unsigned i = 0; i < RANKS; ++i) {
        threads.emplace_back([&, i] {
            ucs_node_h node = ranks[i]->node();
            for (unsigned n = 0; n < ROUNDS; ++n) {
                meet(3 * n + 1);
                bool won = ucs_node_claim(node, 6 * MB, UCS_CLAIM_USE);
                wins    += won;
                granted += won;
                meet(3 * n + 2);
                if (i == 0) {
                    most = std::max<unsigned>(most, wins);
                    wins = 0;
                }
                if (won) {
                    ucs_node_unclaim(node, 6 * MB);
                }
                meet(3 * n + 3);
            }
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    for (auto &one : ranks) {
        EXPECT_LE(one->figures().peak_bytes, 10 * MB);
    }
    EXPECT_TRUE(ledger_is_settled(map()));
    EXPECT_EQ(1u, most) << "both had it";
    EXPECT_GT(granted, ROUNDS / 10);
}

/* Room that was made for one rank is not free for another. A rank that is not let
 * run does not answer within the patience of the one that asks, so that is tried
 * with other ranks until it does. */
TEST_F(test_node, what_is_given_back_is_not_taken_by_a_third)
{
    static constexpr unsigned TRIES = 20;
    bool is_answered                = false;

    for (unsigned i = 0; (i < TRIES) && !is_answered; ++i) {
        auto one = rank(4 * MB), two = rank(4 * MB), three = rank(4 * MB);
        std::atomic<int> taken{-1}; /* not tried */

        one->fill(2, 2 * MB);
        one->on_release = [&](uint64_t length) {
            uint64_t dropped = one->drop(length);
            taken = ucs_node_claim(three->node(), 1, UCS_CLAIM_USE);
            return dropped;
        };
        one->start();
        is_answered = ucs_node_ask(two->node(), 2 * MB, UCS_ASK_ALL);
        one->stop(); /* the answer comes before the giver has gone on */
        if (is_answered) {
            EXPECT_EQ(0, taken);
            ucs_node_unclaim(two->node(), 2 * MB);
        }
        if (taken == 1) {
            ucs_node_unclaim(three->node(), 1);
        }
    }
    EXPECT_TRUE(is_answered);
}

/* Have this thread run on the processors it may run on that are of this parity, if
 * there are any: of two on one processor neither sees the other halfway. @return
 * Where it ran before. */
static cpu_set_t run_on_half(unsigned parity)
{
    cpu_set_t all, half;
    unsigned count = 0;

    CPU_ZERO(&half);
    EXPECT_EQ(0, sched_getaffinity(0, sizeof(all), &all));
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &all) && (count++ % 2 == parity)) {
            CPU_SET(cpu, &half);
        }
    }
    if (CPU_COUNT(&half) > 0) {
        EXPECT_EQ(0, sched_setaffinity(0, sizeof(half), &half));
    }
    return all;
}

/* What becomes pinned is counted once, at each moment */
TEST_F(test_node, nobody_is_counted_twice)
{
    static constexpr unsigned ROUNDS = 50000; /* of each, on a busy core as well */
    auto one = rank(4 * MB), two = rank(4 * MB);
    std::atomic<unsigned> others{0};
    std::atomic<bool> stop{false};
    unsigned refused = 0;

    std::thread other([&] {
        run_on_half(1);
        for (; !stop; ++others) {
            if (ucs_node_claim(one->node(), 3 * MB, UCS_CLAIM_USE)) {
                ucs_node_unclaim(one->node(), 3 * MB);
            } else {
                ++refused;
            }
        }
    });
    cpu_set_t before = run_on_half(0);
    unsigned mine    = 0;
    for (unsigned i = 0; (i < ROUNDS) || (others < ROUNDS); ++i) {
        if (ucs_node_claim(two->node(), MB, UCS_CLAIM_USE)) {
            ucs_node_unclaim(two->node(), MB);
        } else {
            ++mine;
        }
    }
    stop = true;
    other.join();
    EXPECT_EQ(0, sched_setaffinity(0, sizeof(before), &before));
    EXPECT_EQ(0u, mine);
    EXPECT_EQ(0u, refused);
}

/* Another comes for room after all that a rank was asked for was settled: that
 * there is none is said only by who has asked again */
TEST_F(test_node, who_comes_meanwhile_is_asked_for_as_well)
{
    auto one = rank(4 * MB), two = rank(4 * MB), three = rank(4 * MB);
    auto mapped = map();
    auto &bell  = mapped->slots[0].bell;
    std::thread second;
    std::atomic<int> granted{0};
    std::atomic<bool> is_over{false};
    unsigned calls = 0;

    one->fill(4, MB);
    one->on_release = [&](uint64_t length) {
        if (++calls == 1) {
            /* The third one comes, and has been heard */
            second = std::thread([&] {
                granted = ucs_node_ask(three->node(), 2 * MB, UCS_ASK_ALL);
            });
            while (ucs_load_acquire(&bell) < 2) {
                sched_yield();
            }
        } else {
            /* Nothing more before the second one gave up, or asked again */
            while (!is_over && (ucs_load_acquire(&bell) < 3)) {
                sched_yield();
            }
        }
        return one->drop(length);
    };
    one->start();
    EXPECT_TRUE(ucs_node_ask(two->node(), 2 * MB, UCS_ASK_ALL));
    is_over = true;
    second.join();
    EXPECT_TRUE(granted);
    EXPECT_EQ(4 * MB, ucs_node_sum(two->node()));
    one->stop();
}

/* It left with a bell unanswered. It is not deaf, for it comes back. */
TEST_F(test_node, who_listens_no_longer_is_not_waited_for)
{
    auto one = rank(4 * MB), two = rank(4 * MB, 10000 * MS);
    auto mapped = map();
    auto &bell  = mapped->slots[0].bell;

    one->fill(1, 4 * MB);
    ucs_node_listen(one->node(), 1);
    std::thread asker([&] {
        EXPECT_FALSE(ucs_node_ask(two->node(), MB, UCS_ASK_ALL));
    });
    while (ucs_load_acquire(&bell) == 0) {
        sched_yield();
    }
    ucs_node_listen(one->node(), 0);
    asker.join();
    ucs_node_listen(one->node(), 1);
    std::thread again([&] {
        ucs_node_ask(two->node(), MB, UCS_ASK_ALL);
        bell = 99;
    });
    while (ucs_load_acquire(&bell) == 1) {
        sched_yield();
    }
    EXPECT_EQ(2u, ucs_load_acquire(&bell)) << "deaf";
    ucs_node_listen(one->node(), 0);
    again.join();
}
