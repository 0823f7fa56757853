/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "alloc_count.h"
#include "table_fixture.h"

#include <ucs/predict/lru.h>

namespace {

class predict_callsite_memory : public predict_table {
};

TEST_F(predict_callsite_memory, is_bounded_as_stated)
{
    for (uint32_t entries : {1u, 2u, 3u, 1000u, 1024u, 1025u, 4096u}) {
        ucs_predict_table_h table;

        m_params.max_entries = entries;
        ASSERT_EQ(UCS_OK, ucs_predict_table_create(&m_params, &table));
        EXPECT_LE(ucs_predict_table_memory(table), 1024 + (112 * entries));
        EXPECT_GE(ucs_predict_table_memory(table), 64 * entries);
        ucs_predict_table_destroy(table);
    }
}

TEST_F(predict_callsite_memory, contexts_never_exceed_the_bound)
{
    m_params.max_entries = 100;
    create();

    size_t memory = ucs_predict_table_memory(m_table);

    for (uint64_t i = 0; i < 10000; ++i) {
        record(i, i);
        ASSERT_LE(ucs_predict_table_count(m_table), 100u);
    }

    EXPECT_EQ(100u, ucs_predict_table_count(m_table));
    EXPECT_EQ(memory, ucs_predict_table_memory(m_table));
}

TEST_F(predict_callsite_memory, pieces_are_all_that_is_allocated_once_it_is_created)
{
    if (!alloc_count_works()) {
        GTEST_SKIP() << "another malloc is in the way of the counting one";
    }

    m_params.max_entries = 256;

    uint64_t before = alloc_count();

    ASSERT_EQ(UCS_OK, ucs_predict_table_create(&m_params, &m_table));
    EXPECT_LT(before, alloc_count());

    before = alloc_count();
    for (uint64_t i = 0; i < 100000; ++i) {
        ucs_predict_use_t use = {i * MS, i % 777, (i % 5) << 12, 4096, 0};
        ucs_predict_ref_t ref = ucs_predict_table_record(m_table, &use);
        ucs_predict_entry_info_t entry;
        uint64_t due;

        if (ucs_predict_table_deadline(m_table, ref, &due) && (i % 3 == 0)) {
            ucs_predict_table_unused(m_table, ref);
        }
        ucs_predict_table_slack(m_table, ref);
        ucs_predict_table_entry(m_table, ref, &entry);
    }
    uint64_t after = alloc_count();

    /* The first one was there from the start */
    EXPECT_EQ(before + 256 / UCS_PREDICT_LRU_PIECE - 1, after);
}

TEST_F(predict_callsite_memory, failed_allocation_is_reported)
{
    alloc_count_fail_each(
            m_table,
            [this](ucs_predict_table_h *table) {
                return ucs_predict_table_create(&m_params, table);
            },
            ucs_predict_table_destroy);
}

} // namespace
