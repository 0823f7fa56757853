/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <gtest/gtest.h>

#include <ucs/predict/paper/callsite.h>

#include <set>
#include <vector>

namespace {

TEST(predict_signature, comm_depends_on_type_and_address)
{
    std::set<uint64_t> comms;

    for (unsigned type = 0; type < 16; ++type) {
        for (uintptr_t page = 0; page < 1024; ++page) {
            comms.insert(ucs_predict_comm(type, page << 12));
        }
    }

    EXPECT_EQ(16u * 1024u, comms.size());
    EXPECT_EQ(0u, comms.count(0));
    EXPECT_EQ(ucs_predict_comm(3, 0x5000), ucs_predict_comm(3, 0x5000));
}

TEST(predict_signature, window_keeps_the_latest_newest_first)
{
    ucs_predict_window_t window = {};

    for (uint64_t comm = 1; comm <= UCS_PREDICT_WINDOW_MAX + 2; ++comm) {
        ucs_predict_window_push(&window, comm);
    }

    for (unsigned i = 0; i < UCS_PREDICT_WINDOW_MAX; ++i) {
        EXPECT_EQ(UCS_PREDICT_WINDOW_MAX + 2 - i, window.comm[i]);
    }
    ucs_predict_window_push(&window, 0); /* no communication */
    EXPECT_EQ(UCS_PREDICT_WINDOW_MAX + 2u, window.comm[0]);
}

TEST(predict_signature, depends_on_path_and_address)
{
    ucs_predict_window_t window = {};
    ucs_predict_sig_t base = ucs_predict_signature(1, 0x1000, &window, 2);

    EXPECT_NE(0u, base);
    EXPECT_EQ(base, ucs_predict_signature(1, 0x1000, &window, 2));
    EXPECT_NE(base, ucs_predict_signature(2, 0x1000, &window, 2));
    EXPECT_NE(base, ucs_predict_signature(1, 0x2000, &window, 2));
    EXPECT_NE(ucs_predict_signature(1, 2, &window, 0),
              ucs_predict_signature(2, 1, &window, 0));
}

TEST(predict_signature, depends_on_the_window_up_to_its_length_only)
{
    for (unsigned changed = 0; changed < UCS_PREDICT_WINDOW_MAX; ++changed) {
        ucs_predict_window_t window = {{1, 2, 3, 4}};
        ucs_predict_window_t other  = window;

        other.comm[changed] = 99;
        for (unsigned length = 0; length <= UCS_PREDICT_WINDOW_MAX; ++length) {
            EXPECT_EQ(length <= changed,
                      ucs_predict_signature(1, 2, &window, length) ==
                              ucs_predict_signature(1, 2, &other, length))
                    << "changed " << changed << " length " << length;
        }
    }

    const ucs_predict_window_t window = {{1, 2, 3, 4}}, other = {{2, 1, 3, 4}};

    EXPECT_NE(ucs_predict_signature(1, 2, &window, 2),
              ucs_predict_signature(1, 2, &other, 2));
    EXPECT_EQ(ucs_predict_signature(1, 2, &window, 0),
              ucs_predict_signature(1, 2, nullptr, 0));
    EXPECT_EQ(ucs_predict_signature(1, 2, &window, UCS_PREDICT_WINDOW_MAX),
              ucs_predict_signature(1, 2, &window, UINT32_MAX));
}

/* A table chooses its bucket by the low bits: page-aligned addresses have none
 * of their own. With 4096 signatures in 4096 buckets an even hash leaves a
 * bucket with more than 10 in one case of 10,000. */
TEST(predict_signature, low_bits_are_even_for_neighbouring_pages)
{
    std::vector<unsigned> buckets(4096);
    unsigned longest = 0;

    for (uintptr_t page = 0; page < 4096; ++page) {
        unsigned &bucket = buckets[ucs_predict_signature(1, page << 12, nullptr,
                                                         0) & 4095];

        longest = std::max(longest, ++bucket);
    }

    EXPECT_LE(longest, 10u);
}

} // namespace
