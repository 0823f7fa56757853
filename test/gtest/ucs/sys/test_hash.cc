/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/hash.h>

#include <gtest/gtest.h>

/* Signatures and keys are compared with what others have computed: these are
 * the published figures */
TEST(test_hash, random_is_splitmix64)
{
    uint64_t state = 1234567;

    EXPECT_EQ(6457827717110365317u, ucs_hash_random(&state));
    EXPECT_EQ(3203168211198807973u, ucs_hash_random(&state));
    EXPECT_EQ(9817491932198370423u, ucs_hash_random(&state));
}

TEST(test_hash, text_is_fnv_1a)
{
    EXPECT_EQ(0xcbf29ce484222325u, ucs_hash_text(""));
    EXPECT_EQ(0xaf63dc4c8601ec8cu, ucs_hash_text("a"));
    EXPECT_EQ(0x85944171f73967e8u, ucs_hash_text("foobar"));
}
