/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/datastruct/dq.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

/* A record, of which each field tells whose it is */
struct record {
    uint64_t thread, number, words[5];
};

UCS_DQ_CHECK_RECORD(record);

class test_dq : public ::testing::Test {
protected:
    void open(unsigned length)
    {
        ASSERT_EQ(UCS_OK, ucs_dq_create(length, &dq));
    }

    void TearDown() override
    {
        if (dq != nullptr) {
            EXPECT_TRUE(ucs_dq_is_valid(dq));
        }
        ucs_dq_destroy(dq);
    }

    static record of(uint64_t thread, uint64_t i)
    {
        return {thread, i, {i * 3, i * 5, thread ^ (i << 8), i * 7, i * 11}};
    }

    ucs_dq_h dq = nullptr;
};

TEST_F(test_dq, bad_lengths)
{
    for (unsigned length : {0u, 1u, 3u, 100u}) {
        EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucs_dq_create(length, &dq));
    }
    EXPECT_EQ(nullptr, dq);
}

TEST_F(test_dq, full_queue_drops_the_new_and_counts)
{
    record popped;

    open(4);
    for (unsigned i = 0; i < 7; ++i) {
        record pushed = of(0, i);
        EXPECT_EQ(i < 4, ucs_dq_push(dq, &pushed));
        EXPECT_TRUE(ucs_dq_is_valid(dq));
    }
    EXPECT_EQ(3u, ucs_dq_lost(dq));
    for (unsigned i = 0; i < 4; ++i) {
        ASSERT_TRUE(ucs_dq_pop(dq, &popped));
        EXPECT_EQ(i, popped.number);
    }
    record pushed = of(0, 8);
    EXPECT_TRUE(ucs_dq_push(dq, &pushed));
}

/* The ring of the thread that pushes alone has its own length and order */
TEST_F(test_dq, one_thread_pushes_alone)
{
    record popped;

    open(4);
    for (unsigned lap = 0; lap < 10; ++lap) {
        for (unsigned i = 0; i < 5; ++i) {
            record pushed = of(0, lap * 5 + i);
            EXPECT_EQ(i < 4, ucs_dq_push_alone(dq, &pushed));
            EXPECT_TRUE(ucs_dq_is_valid(dq));
        }
        EXPECT_EQ(lap + 1, ucs_dq_lost(dq));
        for (unsigned i = 0; i < 4; ++i) {
            ASSERT_TRUE(ucs_dq_pop(dq, &popped));
            EXPECT_EQ(lap * 5 + i, popped.number);
        }
        EXPECT_FALSE(ucs_dq_pop(dq, &popped));
    }
}

TEST_F(test_dq, rings_take_turns)
{
    record popped;

    open(4);
    for (unsigned i = 0; i < 5; ++i) {
        record alone = of(0, i), shared = of(1, i);
        EXPECT_EQ(i < 4, ucs_dq_push_alone(dq, &alone));
        EXPECT_EQ(i < 4, ucs_dq_push(dq, &shared));
    }
    EXPECT_EQ(2u, ucs_dq_lost(dq));
    for (unsigned i = 0; i < 8; i += 2) {
        unsigned threads = 0;
        for (unsigned j = 0; j < 2; ++j) {
            ASSERT_TRUE(ucs_dq_pop(dq, &popped));
            EXPECT_EQ(i / 2, popped.number);
            threads |= 1u << popped.thread;
        }
        EXPECT_EQ(3u, threads);
    }
    EXPECT_FALSE(ucs_dq_pop(dq, &popped));
}

/* Every entry arrives whole, once and in the order of its producer, or is
 * counted as lost */
TEST_F(test_dq, stress)
{
    const unsigned producers = 3, entries = 100000;
    std::vector<uint64_t> next(producers, 0);
    std::vector<std::thread> threads;
    std::atomic<unsigned> running{producers};
    uint64_t received = 0;

    open(64);
    for (unsigned t = 0; t < producers; ++t) {
        threads.emplace_back([&, t]() {
            for (uint64_t i = 0; i < entries; ++i) {
                record pushed = of(t, i);
                if (t == 0) {
                    ucs_dq_push_alone(dq, &pushed);
                } else {
                    ucs_dq_push(dq, &pushed);
                }
                if (i % 64 == 0) {
                    std::this_thread::yield();
                }
            }
            --running;
        });
    }
    for (bool last = false; !last;) {
        record popped;
        last = (running == 0);
        while (ucs_dq_pop(dq, &popped)) {
            uint64_t t      = popped.thread;
            record expected = of(t, popped.number);
            ASSERT_LT(t, producers);
            ASSERT_EQ(0, memcmp(&expected, &popped, sizeof(popped)));
            ASSERT_GE(popped.number, next[t]);
            next[t] = popped.number + 1;
            ++received;
        }
    }
    for (auto &thread : threads) {
        thread.join();
    }
    EXPECT_EQ(uint64_t(producers) * entries, received + ucs_dq_lost(dq));
    EXPECT_GT(received, 0u);
}
