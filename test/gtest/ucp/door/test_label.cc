/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucp/door/label.h>

#include <gtest/gtest.h>

#include <set>

TEST(test_door_label, call_and_stack_position_are_in_it)
{
    std::set<uint32_t> labels;

    for (uintptr_t caller = 0; caller < 32; ++caller) {
        for (uintptr_t position = 0; position < 32; ++position) {
            labels.insert(ucp_door_label({0x1000 + caller, 16 * position}, 0,
                                         8));
        }
    }
    EXPECT_EQ(32u * 32u, labels.size());
}

TEST(test_door_label, kind_and_size_class_are_in_it)
{
    const ucp_door_site_t site = {0x1000, 77}, other = {0x1000, 78};
    std::set<uint32_t> labels;

    for (unsigned kind = 0; kind < 6; ++kind) {
        for (size_t length : {(size_t)0, (size_t)1, (size_t)8, (size_t)4096,
                              (size_t)1 << 30, ~(size_t)0}) {
            labels.insert(ucp_door_label(site, kind, length));
        }
    }
    EXPECT_EQ(36u, labels.size());
    EXPECT_EQ(0u, labels.count(0));
    EXPECT_EQ(ucp_door_label(site, 0, 4096), ucp_door_label(site, 0, 8191));
    EXPECT_NE(ucp_door_label(site, 0, 4096), ucp_door_label(site, 0, 8192));
    EXPECT_NE(ucp_door_label(site, 0, 4096), ucp_door_label(other, 0, 4096));
}
