/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/predict/paper/periodicity.h>

#include <gtest/gtest.h>

#include <random>
#include <vector>

class test_periodicity : public ::testing::Test {
protected:
    void create(unsigned window)
    {
        m_window = window;
        ASSERT_EQ(UCS_OK, ucs_predict_periodicity_create(window, &m_detector));
    }

    ~test_periodicity()
    {
        if (m_detector != nullptr) {
            ucs_predict_periodicity_destroy(m_detector);
        }
    }

    void add(uint64_t value, uint64_t time_ns = 0)
    {
        m_values.push_back(value);
        ucs_predict_periodicity_add(m_detector, value, time_ns);
    }

    unsigned period()
    {
        return ucs_predict_periodicity_period(m_detector);
    }

    /* The definition: both windows written out */
    unsigned expected()
    {
        size_t count = m_values.size();

        for (unsigned m = 1; m <= m_window; ++m) {
            bool same = (count >= m_window + m);
            for (unsigned i = 1; same && (i <= m_window); ++i) {
                same = (m_values[count - i] == m_values[count - i - m]);
            }
            if (same) {
                return m;
            }
        }
        return 0;
    }

    unsigned                  m_window   = 0;
    ucs_predict_periodicity_h m_detector = nullptr;
    std::vector<uint64_t>     m_values;
};

TEST_F(test_periodicity, agrees_with_the_definition)
{
    for (unsigned window : {1, 2, 3, 5, 8}) {
        std::mt19937 random(window);

        m_values.clear();
        create(window);
        for (unsigned i = 0; i < 3000; ++i) {
            /* Now periodic, now random, from few values */
            bool repeat = ((i / 50) % 2) && (m_values.size() > 3);
            add(repeat ? m_values[m_values.size() - 3] : random() % 3);
            ASSERT_EQ(expected(), period()) << "window " << window << " at "
                                            << i;
        }
        ucs_predict_periodicity_destroy(m_detector);
        m_detector = nullptr;
    }
}

TEST_F(test_periodicity, needs_a_window_and_a_period)
{
    create(6);
    for (unsigned i = 0; i < 8; ++i) {
        add(i % 3);
        EXPECT_EQ(0u, period()) << i;
    }
    add(8 % 3);
    EXPECT_EQ(3u, period());
}

TEST_F(test_periodicity, due_after_as_long_as_the_last_period_took)
{
    uint64_t due;

    create(4);
    for (unsigned i = 0; i < 5; ++i) {
        add(i % 2, 100 * i);
        EXPECT_FALSE(ucs_predict_periodicity_due(m_detector, &due));
    }
    add(1, 530);
    ASSERT_TRUE(ucs_predict_periodicity_due(m_detector, &due));
    EXPECT_EQ(530u + (530u - 300u), due);
}

TEST_F(test_periodicity, bad_windows_are_refused)
{
    ucs_predict_periodicity_h detector;

    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              ucs_predict_periodicity_create(0, &detector));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              ucs_predict_periodicity_create(UCS_PREDICT_PERIODICITY_MAX + 1,
                                             &detector));
}
