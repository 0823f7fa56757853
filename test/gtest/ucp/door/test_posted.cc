/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucp/door/posted.h>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

class test_door_posted : public ::testing::Test {
protected:
    test_door_posted() : posted(new ucp_door_posted_t()) {}

    static const void *request(unsigned i)
    {
        return (const void*)(uintptr_t)(0x10000 + 64 * i);
    }

    std::unique_ptr<ucp_door_posted_t> posted;
};

TEST_F(test_door_posted, a_request_is_found_once)
{
    EXPECT_EQ(0u, ucp_door_request_end(posted.get(), request(1)));
    EXPECT_EQ(0u, ucp_door_request_follow(posted.get(), request(1), 11));
    EXPECT_EQ(0u, ucp_door_request_end(posted.get(), request(2)));
    EXPECT_EQ(11u, ucp_door_request_end(posted.get(), request(1)));
    EXPECT_EQ(0u, ucp_door_request_end(posted.get(), request(1)));
}

/* UCX gives a request's memory to the next: the receive before is over */
TEST_F(test_door_posted, a_request_that_comes_again_ends_the_one_before)
{
    EXPECT_EQ(0u, ucp_door_request_follow(posted.get(), request(1), 11));
    EXPECT_EQ(11u, ucp_door_request_follow(posted.get(), request(1), 12));
    EXPECT_EQ(12u, ucp_door_request_end(posted.get(), request(1)));
}

/* What finds no place ends at once, and nothing is forgotten of the others */
TEST_F(test_door_posted, requests_are_bounded)
{
    std::vector<unsigned> followed;

    for (unsigned i = 0; i < 3 * UCP_DOOR_REQUESTS; ++i) {
        ucp_door_ticket_t ended = ucp_door_request_follow(posted.get(),
                                                          request(i), i + 1);
        if (ended == 0) {
            followed.push_back(i);
        } else {
            ASSERT_EQ(i + 1, ended);
        }
    }
    EXPECT_LE(followed.size(), UCP_DOOR_REQUESTS);
    EXPECT_GT(followed.size(), UCP_DOOR_REQUESTS / 2);
    for (unsigned i : followed) {
        EXPECT_EQ(i + 1, ucp_door_request_end(posted.get(), request(i)));
    }
    EXPECT_EQ(0u, std::atomic_load_explicit(&posted->num_requests,
                                            std::memory_order_relaxed));
}

/* Each thread finds its own */
TEST_F(test_door_posted, threads)
{
    const uint32_t count = 20000;
    std::vector<std::thread> threads;
    std::atomic<uint64_t> wrong{0}, ended{0};

    for (uint32_t t = 1; t <= 4; ++t) {
        threads.emplace_back([&, t]() {
            for (uint32_t i = 1; i <= count; ++i) {
                ucp_door_ticket_t ticket = ucp_door_ticket(t, i);
                const void *mine         = request(t * count + i % 7);

                wrong += ucp_door_request_follow(posted.get(), mine, ticket) !=
                         0;
                ended += ucp_door_request_end(posted.get(), mine) == ticket;
            }
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    EXPECT_EQ(0u, wrong);
    EXPECT_EQ(4u * count, ended);
}
