/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/datastruct/dq.h>
#include <ucs/datastruct/heap.h>
#include <ucs/datastruct/hist.h>
#include <ucs/regcache/plan/rq.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

/*
 * Deregistration queue
 */

class test_dq : public ::testing::Test {
protected:
    void open(unsigned length)
    {
        ASSERT_EQ(UCS_OK, ucs_dq_create(length, &dq));
    }

    void TearDown() override
    {
        ucs_dq_destroy(dq);
    }

    static ucs_use_t use(uint64_t thread, uint64_t i)
    {
        ucs_use_t result;

        result.region     = (void*)(thread + 1);
        result.generation = i;
        result.start_ns   = i * 3;
        result.end_ns     = i * 5;
        result.sp         = thread ^ (i << 8);
        result.address    = i * 7;
        result.length     = i * 11;
        return result;
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

TEST_F(test_dq, first_in_first_out)
{
    ucs_use_t popped;

    open(4);
    for (unsigned lap = 0; lap < 10; ++lap) {
        EXPECT_FALSE(ucs_dq_is_pending(dq));
        for (unsigned i = 0; i < 3; ++i) {
            ucs_use_t pushed = use(0, lap * 3 + i);
            EXPECT_TRUE(ucs_dq_push(dq, &pushed));
        }
        EXPECT_TRUE(ucs_dq_is_pending(dq));
        for (unsigned i = 0; i < 3; ++i) {
            ASSERT_TRUE(ucs_dq_pop(dq, &popped));
            EXPECT_EQ(lap * 3 + i, popped.generation);
        }
        EXPECT_FALSE(ucs_dq_pop(dq, &popped));
    }
}

TEST_F(test_dq, full_queue_drops_the_new_and_counts)
{
    ucs_use_t popped;

    open(4);
    for (unsigned i = 0; i < 7; ++i) {
        ucs_use_t pushed = use(0, i);
        EXPECT_EQ(i < 4, ucs_dq_push(dq, &pushed));
    }
    EXPECT_EQ(3u, ucs_dq_lost(dq));
    for (unsigned i = 0; i < 4; ++i) {
        ASSERT_TRUE(ucs_dq_pop(dq, &popped));
        EXPECT_EQ(i, popped.generation);
    }
    ucs_use_t pushed = use(0, 8);
    EXPECT_TRUE(ucs_dq_push(dq, &pushed));
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
                ucs_use_t pushed = use(t, i);
                ucs_dq_push(dq, &pushed);
                if (i % 64 == 0) {
                    std::this_thread::yield();
                }
            }
            --running;
        });
    }
    for (bool last = false; !last;) {
        ucs_use_t popped;
        last = (running == 0);
        while (ucs_dq_pop(dq, &popped)) {
            uint64_t t         = (uint64_t)popped.region - 1;
            ucs_use_t expected = use(t, popped.generation);
            ASSERT_LT(t, producers);
            ASSERT_EQ(0, memcmp(&expected, &popped, sizeof(popped)));
            ASSERT_GE(popped.generation, next[t]);
            next[t] = popped.generation + 1;
            ++received;
        }
    }
    for (auto &thread : threads) {
        thread.join();
    }
    EXPECT_EQ(uint64_t(producers) * entries, received + ucs_dq_lost(dq));
    EXPECT_GT(received, 0u);
}

/*
 * Regions for the queues below: zeroed memory, as the cache's pool gives
 */

static ucs_regcache_region_t *regions_new(unsigned count)
{
    return static_cast<ucs_regcache_region_t *>(
            calloc(count, sizeof(ucs_regcache_region_t)));
}

static void set_word(ucs_regcache_region_t *region, uint64_t gen, uint64_t refs)
{
    ucs_store_relaxed(&region->word,
                      (gen << UCS_REGCACHE_WORD_GEN_SHIFT) |
                              (refs << UCS_REGCACHE_WORD_REF_SHIFT) |
                              UCS_REGCACHE_STATE_LIVE);
}

/*
 * LRU order
 */

class test_heap : public ::testing::Test {
protected:
    static constexpr unsigned COUNT = 200;

    void SetUp() override
    {
        regions = regions_new(COUNT);
        ucs_heap_init(&heap);
        while (ucs_heap_capacity(&heap) < COUNT) {
            ucs_heap_grow(&heap,
                          (ucs_regcache_region_t **)malloc(
                                  sizeof(void *) *
                                  ucs_heap_segment_length(heap.num_segments)));
        }
        for (unsigned i = 0; i < COUNT; ++i) {
            set_word(&regions[i], 0, 0);
        }
    }

    void TearDown() override
    {
        ucs_heap_cleanup(&heap);
        free(regions);
    }

    void push(unsigned i, uint64_t last_use)
    {
        ucs_store_relaxed(&regions[i].last_use, last_use);
        ucs_heap_push(&heap, &regions[i]);
    }

    /* Of so many that are looked at; time has passed since the latest use */
    ucs_regcache_region_t *oldest(unsigned left = UINT_MAX)
    {
        ucs_regcache_region_t *region = ucs_heap_oldest(&heap, clock++, &left);
        return region;
    }

    ucs_heap_t heap;
    ucs_regcache_region_t *regions;
    uint64_t            clock = 1000;
};

TEST_F(test_heap, empty)
{
    EXPECT_EQ(nullptr, oldest());
}

TEST_F(test_heap, a_use_after_the_push_counts)
{
    push(0, 10);
    push(1, 20);
    ucs_store_relaxed(&regions[0].last_use, 30);
    EXPECT_EQ(&regions[1], oldest());
}

/* All have been used since they came: one search looks at a few of them, and
 * the next ones go on from there */
TEST_F(test_heap, a_search_looks_at_so_many)
{
    for (unsigned i = 0; i < COUNT; ++i) {
        push(i, i);
    }
    for (unsigned i = 0; i < COUNT; ++i) {
        ucs_store_relaxed(&regions[i].last_use, 500 - i);
    }
    unsigned left = 8;
    EXPECT_EQ(&regions[7], ucs_heap_oldest(&heap, 1000, &left));
    EXPECT_EQ(0u, left);
    EXPECT_TRUE(ucs_heap_is_valid(&heap));
    for (unsigned i = 0; i < COUNT / 8; ++i) {
        oldest(8);
    }
    EXPECT_EQ(&regions[COUNT - 1], oldest(8));

    for (unsigned i = 0; i < COUNT; ++i) {
        set_word(&regions[i], 0, 1);
    }
    left = 8;
    EXPECT_EQ(nullptr, ucs_heap_oldest(&heap, 2000, &left));
    EXPECT_EQ(0u, left) << "it is not known yet that all are in use";
    left = COUNT + 1;
    EXPECT_EQ(nullptr, ucs_heap_oldest(&heap, 2000, &left));
    EXPECT_GT(left, 0u);
}

TEST_F(test_heap, regions_in_use_are_passed_over)
{
    push(0, 10);
    push(1, 20);
    push(2, 15);
    set_word(&regions[0], 0, 1);
    EXPECT_EQ(&regions[2], oldest());
    set_word(&regions[2], 0, 1);
    set_word(&regions[1], 0, 1);
    EXPECT_EQ(nullptr, oldest());
    set_word(&regions[0], 0, 0);
    ucs_store_relaxed(&regions[0].last_use, clock++);
    EXPECT_EQ(&regions[0], oldest());
}

TEST_F(test_heap, stress)
{
    std::mt19937 random(3);
    std::vector<bool> in(COUNT, false);

    for (unsigned step = 0; step < 50000; ++step) {
        unsigned i = random() % COUNT;
        switch (random() % 5) {
        case 0:
            if (!in[i]) {
                set_word(&regions[i], 0, 0);
                push(i, clock++);
                in[i] = true;
            }
            break;
        case 1:
            ucs_heap_remove(&heap, &regions[i]);
            in[i] = false;
            break;
        case 2:
            /* A use that begins, or ends */
            set_word(&regions[i], 0, random() % 4 == 0);
            ucs_store_relaxed(&regions[i].last_use, clock++);
            break;
        default:
            ucs_store_relaxed(&regions[i].last_use, clock++);
            break;
        }
        if (step % 20 != 0) {
            continue;
        }
        ucs_regcache_region_t *expected = nullptr;
        for (unsigned k = 0; k < COUNT; ++k) {
            if (in[k] &&
                (ucs_regcache_word_refs(ucs_load_relaxed(&regions[k].word)) ==
                 0) &&
                ((expected == nullptr) ||
                 (ucs_load_relaxed(&regions[k].last_use) <
                  ucs_load_relaxed(&expected->last_use)))) {
                expected = &regions[k];
            }
        }
        ASSERT_EQ(expected, oldest());
        ASSERT_TRUE(ucs_heap_is_valid(&heap));
    }
}

/*
 * Registration queue
 */

class test_rq : public ::testing::Test {
protected:
    static constexpr unsigned CONTEXTS = 64, REGIONS = 8;

    void SetUp() override
    {
        regions = regions_new(REGIONS);
        ASSERT_EQ(UCS_OK, ucs_regcache_rq_init(&rq, CONTEXTS));
    }

    void TearDown() override
    {
        EXPECT_TRUE(ucs_regcache_rq_is_valid(&rq));
        ucs_regcache_rq_cleanup(&rq);
        free(regions);
    }

    void expect(unsigned context, unsigned region, uint64_t time,
                uint64_t gap = 0)
    {
        ucs_regcache_rq_expect(&rq, &regions[region], {context, 1}, time,
                               time + 5, time + 6, gap);
    }

    std::vector<uint64_t> times()
    {
        std::vector<uint64_t> result;
        for (auto item = ucs_regcache_rq_first(&rq, UCS_REGCACHE_RQ_PENDING);
             item != nullptr; item = item->next) {
            result.push_back(item->time);
        }
        return result;
    }

    ucs_regcache_rq_t rq;
    ucs_regcache_region_t *regions;
};

TEST_F(test_rq, ordered_by_time)
{
    expect(0, 0, 300);
    expect(1, 1, 100);
    expect(2, 2, 200);
    EXPECT_EQ((std::vector<uint64_t>{100, 200, 300}), times());
}

TEST_F(test_rq, one_item_a_context)
{
    expect(0, 0, 300);
    expect(0, 1, 100);
    EXPECT_EQ(std::vector<uint64_t>{100}, times());
    EXPECT_EQ(nullptr, ucs_regcache_rq_of_region(&regions[0]));
    EXPECT_NE(nullptr, ucs_regcache_rq_of_region(&regions[1]));
}

/* Section 3.2 of the paper: deadlines only ever become earlier, and far enough
 * apart for one registration and one deregistration between them */
TEST_F(test_rq, deadlines_are_spread)
{
    for (unsigned i = 0; i < 5; ++i) {
        expect(i, i, 1000, 10);
    }
    EXPECT_EQ((std::vector<uint64_t>{960, 970, 980, 990, 1000}), times());
    expect(5, 5, 975, 10);
    EXPECT_EQ((std::vector<uint64_t>{950, 960, 970, 980, 990, 1000}), times());
    expect(6, 6, 2000, 10);
    EXPECT_EQ(2000u, times().back());
}

TEST_F(test_rq, spreading_stops_at_zero)
{
    for (unsigned i = 0; i < 5; ++i) {
        expect(i, i, 15, 10);
    }
    EXPECT_EQ((std::vector<uint64_t>{0, 0, 0, 5, 15}), times());
}

TEST_F(test_rq, items_of_a_recycled_region_are_stale)
{
    expect(0, 0, 100);
    auto item = ucs_regcache_rq_first(&rq, UCS_REGCACHE_RQ_PENDING);
    EXPECT_TRUE(ucs_regcache_rq_item_is_current(item));
    set_word(&regions[0], 1, 0);
    EXPECT_FALSE(ucs_regcache_rq_item_is_current(item));
    EXPECT_EQ(nullptr, ucs_regcache_rq_of_region(&regions[0]));

    expect(1, 0, 200);
    ucs_regcache_rq_remove(&rq, item);
    ASSERT_NE(nullptr, ucs_regcache_rq_of_region(&regions[0]));
    EXPECT_EQ(1u, ucs_regcache_rq_of_region(&regions[0])->ref.index);
}

TEST_F(test_rq, registered_items_expire)
{
    expect(0, 0, 100);
    expect(1, 0, 50);
    auto item = ucs_regcache_rq_first(&rq, UCS_REGCACHE_RQ_PENDING);
    ucs_regcache_rq_registered(&rq, item, &regions[1], 400);
    EXPECT_EQ(item, ucs_regcache_rq_first(&rq, UCS_REGCACHE_RQ_EXPECTED));
    EXPECT_EQ(56u, item->use_end);
    EXPECT_EQ(400u, item->time);
    EXPECT_EQ(std::vector<uint64_t>{100}, times());
    EXPECT_EQ(item, ucs_regcache_rq_of_region(&regions[1]));
    ucs_regcache_rq_extend(&rq, item, 500);
    EXPECT_EQ(500u, item->time);
}

TEST_F(test_rq, extended_items_are_behind_those_that_are_not_later)
{
    for (unsigned i = 0; i < 5; ++i) {
        expect(i, i, 100 * (i + 1));
        ucs_regcache_rq_registered(&rq, &rq.items[i], &regions[i],
                                   100 * (i + 1));
    }
    struct {
        unsigned              item;
        uint64_t              time;
        std::vector<unsigned> order;
    } moves[] = {{1, 250, {0, 1, 2, 3, 4}}, {1, 400, {0, 2, 3, 1, 4}},
                 {1, 400, {0, 2, 3, 1, 4}}, {3, 400, {0, 2, 1, 3, 4}},
                 {0, 900, {2, 1, 3, 4, 0}}, {4, 1, {4, 2, 1, 3, 0}},
                 {0, 300, {4, 2, 0, 1, 3}}, {2, 300, {4, 0, 2, 1, 3}}};
    for (auto &move : moves) {
        ucs_regcache_rq_extend(&rq, &rq.items[move.item], move.time);
        std::vector<unsigned> order;
        for (auto item = ucs_regcache_rq_first(&rq, UCS_REGCACHE_RQ_EXPECTED);
             item != NULL; item = item->next) {
            order.push_back(item - rq.items);
        }
        EXPECT_EQ(move.order, order) << move.item << " " << move.time;
        EXPECT_TRUE(ucs_regcache_rq_is_valid(&rq));
    }
}

TEST_F(test_rq, stress)
{
    std::mt19937 random(5);
    std::vector<uint64_t> gen(REGIONS, 0);

    for (unsigned step = 0; step < 100000; ++step) {
        unsigned context = random() % CONTEXTS, region = random() % REGIONS;
        auto item        = &rq.items[context];
        switch (random() % 4) {
        case 0:
            ucs_regcache_rq_remove(&rq, item);
            break;
        case 1:
            if (item->list == UCS_REGCACHE_RQ_PENDING) {
                ucs_regcache_rq_registered(&rq, item, &regions[region],
                                           random() % 10000);
            }
            break;
        case 2:
            if (random() % 10 == 0) {
                set_word(&regions[region], ++gen[region], 0);
            }
            break;
        default:
            expect(context, region, random() % 10000, random() % 20);
            break;
        }
        if (step % 100 == 0) {
            ASSERT_TRUE(ucs_regcache_rq_is_valid(&rq));
        }
    }

    unsigned chained = 0, current = 0;
    for (unsigned r = 0; r < REGIONS; ++r) {
        for (auto item             = ucs_regcache_rq_of_region(&regions[r]);
             item != nullptr; item = item->region_next) {
            ASSERT_EQ(&regions[r], item->region);
            ++chained;
        }
    }
    for (unsigned c = 0; c < CONTEXTS; ++c) {
        current += (rq.items[c].list != UCS_REGCACHE_RQ_NONE) &&
                   ucs_regcache_rq_item_is_current(&rq.items[c]);
    }
    EXPECT_EQ(current, chained);
    EXPECT_GT(chained, 0u);
}

/*
 * Histogram
 */

TEST(test_hist, quantiles_to_seven_percent)
{
    auto hist = std::make_unique<ucs_hist_t>();

    EXPECT_EQ(0u, ucs_hist_quantile(hist.get(), 0.5));
    for (uint64_t i = 1; i <= 100000; ++i) {
        ucs_hist_add(hist.get(), i);
    }
    EXPECT_EQ(100000u, ucs_hist_samples(hist.get()));
    EXPECT_NEAR(50000, ucs_hist_quantile(hist.get(), 0.5), 3500);
    EXPECT_NEAR(99000, ucs_hist_quantile(hist.get(), 0.99), 7000);
}

TEST(test_hist, extremes)
{
    auto hist = std::make_unique<ucs_hist_t>();

    ucs_hist_add(hist.get(), 0);
    EXPECT_EQ(0u, ucs_hist_quantile(hist.get(), 1.0));
    ucs_hist_add(hist.get(), UINT64_MAX);
    EXPECT_GT(ucs_hist_quantile(hist.get(), 1.0), uint64_t(1) << 40);
    for (uint64_t ns : {7, 15, 16, 31, 32, 33}) {
        auto one = std::make_unique<ucs_hist_t>();
        ucs_hist_add(one.get(), ns);
        EXPECT_GE(ucs_hist_quantile(one.get(), 0.5), ns);
        EXPECT_LE(ucs_hist_quantile(one.get(), 0.5), ns + ns / 16);
    }
}
