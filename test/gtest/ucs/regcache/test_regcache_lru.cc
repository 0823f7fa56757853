/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/mem/own_memory.h>
#include <ucs/regcache/region/lru.h>
#include <test/inside/datastruct_inside.h>

#include <ucs/regcache/regions.h>

#include <gtest/gtest.h>

#include <climits>
#include <random>
#include <vector>

class test_regcache_lru : public ::testing::Test {
protected:
    static constexpr unsigned COUNT = 200;

    void SetUp() override
    {
        regions = regions_new(COUNT);
        while (ucs_heap_capacity(&heap) < COUNT) {
            ucs_heap_grow(&heap,
                          (ucs_heap_elem_t **)ucs_own_alloc(
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
        ucs_regcache_lru_push(&heap, &regions[i]);
    }

    /* Of so many that are looked at; time has passed since the latest use */
    ucs_regcache_region_t *oldest(unsigned left = UINT_MAX)
    {
        return ucs_regcache_lru_oldest(&heap, clock++, &left);
    }

    ucs_heap_t heap = {};
    ucs_regcache_region_t *regions;
    uint64_t clock = 1000;
};

/* All have been used since they came: one search looks at a few of them, and
 * the next ones go on from there */
TEST_F(test_regcache_lru, a_search_looks_at_so_many)
{
    for (unsigned i = 0; i < COUNT; ++i) {
        push(i, i);
    }
    for (unsigned i = 0; i < COUNT; ++i) {
        ucs_store_relaxed(&regions[i].last_use, 500 - i);
    }
    unsigned left = 8;
    EXPECT_EQ(&regions[7], ucs_regcache_lru_oldest(&heap, 1000, &left));
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
    EXPECT_EQ(nullptr, ucs_regcache_lru_oldest(&heap, 2000, &left));
    EXPECT_EQ(0u, left) << "it is not known yet that all are in use";
    left = COUNT + 1;
    EXPECT_EQ(nullptr, ucs_regcache_lru_oldest(&heap, 2000, &left));
    EXPECT_GT(left, 0u);
}

TEST_F(test_regcache_lru, regions_in_use_are_passed_over)
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

TEST_F(test_regcache_lru, stress)
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
            ucs_heap_remove(&heap, &regions[i].lru);
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
