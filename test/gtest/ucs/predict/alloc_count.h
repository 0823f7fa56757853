/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef TEST_ALLOC_COUNT_H_
#define TEST_ALLOC_COUNT_H_

#include <ucs/type/status.h>

#include <gtest/gtest.h>

#include <cstdint>

/*
 * Counts the calling thread's allocations of own memory (own_memory.h): the
 * predictors have no other. The linker puts the counting functions in front.
 */

/* Allocations of this thread so far */
uint64_t alloc_count();

/* Blocks that this thread has allocated and not freed */
int64_t alloc_count_live();

/* Make this thread's next allocation fail, or the one `after` so many. */
void alloc_count_fail_next(unsigned after = 0);

/* Each allocation that `create` makes fails in its turn: it says so, and leaves
 * nothing behind.
 *
 * create   ucs_status_t create(T *object)
 * destroy  void destroy(T object) */
template <typename T, typename Create, typename Destroy>
void alloc_count_fail_each(T &object, Create create, Destroy destroy)
{
    uint64_t before = alloc_count();

    ASSERT_EQ(UCS_OK, create(&object));
    unsigned allocations = alloc_count() - before;
    destroy(object);
    object = nullptr;

    for (unsigned i = 0; i < allocations; ++i) {
        alloc_count_fail_next(i);

        int64_t live        = alloc_count_live();
        ucs_status_t status = create(&object);

        EXPECT_EQ(live, alloc_count_live());
        EXPECT_EQ(UCS_ERR_NO_MEMORY, status);
        EXPECT_EQ(nullptr, object);
    }
}

#endif
