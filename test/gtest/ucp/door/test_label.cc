/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucp/door/label.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <set>

static unsigned walks;

static uint64_t walk(uintptr_t position, uintptr_t caller)
{
    ++walks;
    errno = ENOMEM;
    return (caller * 1000 + position) | 1;
}

class test_door_label : public ::testing::Test {
protected:
    test_door_label() : labels(new ucp_door_labels_t()) { walks = 0; }

    uint64_t path(uintptr_t caller, uintptr_t position, uint64_t heard = 0,
                  ucp_door_walk_func_t func = walk)
    {
        ucp_door_site_t site = {caller, position};

        return ucp_door_labels_path(labels.get(), func, &site, heard);
    }

    std::unique_ptr<ucp_door_labels_t> labels;
};

TEST_F(test_door_label, a_pair_is_walked_once)
{
    uint64_t first = path(0x1000, 0x7f00);

    for (unsigned i = 0; i < 100; ++i) {
        EXPECT_EQ(first, path(0x1000, 0x7f00));
    }
    EXPECT_EQ(1u, walks);
    EXPECT_NE(first, path(0x1000, 0x7e00));
    EXPECT_NE(first, path(0x1008, 0x7f00));
    EXPECT_EQ(3u, walks);
}

TEST_F(test_door_label, the_program_s_errno_stays)
{
    errno = EAGAIN;
    path(0x1000, 0x7f00);
    EXPECT_EQ(1u, walks);
    EXPECT_EQ(EAGAIN, errno);
}

/* Ever new paths: the table is as large as before, and walks are a share */
TEST_F(test_door_label, walks_are_bounded)
{
    const uint64_t count = 40 * UCP_DOOR_PATHS;

    for (uint64_t i = 0; i < count; ++i) {
        EXPECT_NE(0u, path(0x1000 + 16 * i, 0x7f00, i));
    }
    EXPECT_GE(walks, UCP_DOOR_PATHS);
    EXPECT_LE(walks, UCP_DOOR_PATHS + count / UCP_DOOR_WALK_SHARE + 1);
}

/* Then the return address still tells paths apart */
TEST_F(test_door_label, without_a_walk_the_return_address_is_the_path)
{
    uint64_t one = path(0x1000, 0x7f00, 0, nullptr);

    EXPECT_NE(0u, one);
    EXPECT_EQ(one, path(0x1000, 0x7e00, 0, nullptr));
    EXPECT_NE(one, path(0x1001, 0x7f00, 0, nullptr));
}

TEST_F(test_door_label, kind_and_size_class_are_in_it)
{
    std::set<uint32_t> labels;

    for (unsigned kind = 0; kind < 6; ++kind) {
        for (size_t length : {(size_t)0, (size_t)1, (size_t)8, (size_t)4096,
                              (size_t)1 << 30, ~(size_t)0}) {
            labels.insert(ucp_door_label(77, kind, length));
        }
    }
    EXPECT_EQ(36u, labels.size());
    EXPECT_EQ(0u, labels.count(0));
    EXPECT_EQ(ucp_door_label(77, 0, 4096), ucp_door_label(77, 0, 8191));
    EXPECT_NE(ucp_door_label(77, 0, 4096), ucp_door_label(77, 0, 8192));
    EXPECT_NE(ucp_door_label(77, 0, 4096), ucp_door_label(78, 0, 4096));
}
