/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/mem/own_memory.h>
#include <test/inside/datastruct_inside.h>

#include <gtest/gtest.h>
#include <random>

class test_heap : public ::testing::Test {
protected:
    static constexpr unsigned COUNT = 200;

    void SetUp() override
    {
        while (ucs_heap_capacity(&heap) < COUNT) {
            ucs_heap_grow(&heap,
                          (ucs_heap_elem_t **)ucs_own_alloc(
                                  sizeof(void *) *
                                  ucs_heap_segment_length(heap.num_segments)));
        }
    }

    void TearDown() override
    {
        EXPECT_TRUE(ucs_heap_is_valid(&heap));
        ucs_heap_cleanup(&heap);
    }

    ucs_heap_t heap = {};
    ucs_heap_elem_t elems[COUNT] = {};
};

TEST_F(test_heap, removal_of_what_is_not_in_it_does_nothing)
{
    ucs_heap_push(&heap, &elems[0], 1);
    ucs_heap_remove(&heap, &elems[1]);
    EXPECT_EQ(1u, heap.count);
    ucs_heap_remove(&heap, &elems[0]);
    ucs_heap_remove(&heap, &elems[0]);
    EXPECT_EQ(0u, heap.count);
}

TEST_F(test_heap, a_broken_order_shows)
{
    for (unsigned i = 0; i < 3; ++i) {
        ucs_heap_push(&heap, &elems[i], i);
    }
    elems[0].key = 5;
    EXPECT_FALSE(ucs_heap_is_valid(&heap));
    elems[0].key   = 0;
    elems[1].index = 3;
    EXPECT_FALSE(ucs_heap_is_valid(&heap));
    elems[1].index = 2;
}

TEST_F(test_heap, stress)
{
    std::mt19937 random(3);

    for (unsigned step = 0; step < 50000; ++step) {
        auto elem = &elems[random() % COUNT];

        if (elem->index == 0) {
            ucs_heap_push(&heap, elem, random() % 1000);
        } else if (random() % 2) {
            ucs_heap_raise(&heap, elem, elem->key + random() % 100);
        } else {
            ucs_heap_remove(&heap, elem);
            ASSERT_EQ(0u, elem->index);
        }
        ASSERT_TRUE(ucs_heap_is_valid(&heap));
    }
}
