/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef TEST_PREDICT_TABLE_FIXTURE_H_
#define TEST_PREDICT_TABLE_FIXTURE_H_

#include <gtest/gtest.h>

#include <test/inside/predict_inside.h>

inline bool operator==(const ucs_predict_ref_t &x, const ucs_predict_ref_t &y)
{
    return (x.index == y.index) && (x.generation == y.generation);
}

/* A table whose contexts are path and buffer alone, unless create() is told
 * otherwise: then a test can name a context by its path. */
class predict_table : public testing::Test {
protected:
    static constexpr uint64_t US = 1000;
    static constexpr uint64_t MS = 1000 * US;
    static constexpr uint64_t S  = 1000 * MS;

    predict_table()
    {
        ucs_predict_params_init(&m_params);
        m_params.window_length = 0;
    }

    ~predict_table()
    {
        if (m_table != nullptr) {
            EXPECT_TRUE(ucs_predict_table_is_valid(m_table));
        }
        ucs_predict_table_destroy(m_table);
    }

    void create()
    {
        ASSERT_EQ(UCS_OK, ucs_predict_table_create(&m_params, &m_table));
    }

    ucs_predict_ref_t record(uint64_t time, ucs_predict_sig_t path = 1,
                             uintptr_t address = 0x10000, unsigned type = 0)
    {
        ucs_predict_use_t use = {time, path, address, 1 << 20, type};

        return ucs_predict_table_record(m_table, &use);
    }

    bool predicted(ucs_predict_ref_t ref)
    {
        uint64_t deadline;

        return ucs_predict_table_deadline(m_table, ref, &deadline) == 1;
    }

    /* The deadline; fails the test if there is none */
    uint64_t deadline(ucs_predict_ref_t ref)
    {
        uint64_t value = 0;

        EXPECT_EQ(1, ucs_predict_table_deadline(m_table, ref, &value));
        return value;
    }

    ucs_predict_entry_info_t info(ucs_predict_ref_t ref)
    {
        ucs_predict_entry_info_t value = {};

        EXPECT_EQ(UCS_OK, ucs_predict_table_entry(m_table, ref, &value));
        return value;
    }

    bool stale(ucs_predict_ref_t ref)
    {
        ucs_predict_entry_info_t value;

        return ucs_predict_table_entry(m_table, ref, &value) ==
               UCS_ERR_NO_ELEM;
    }

    ucs_predict_params_t m_params;
    ucs_predict_table_h  m_table = nullptr;
};

#endif
