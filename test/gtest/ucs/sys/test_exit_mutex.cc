/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/sync/exit_mutex.h>

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

class test_exit_mutex : public ::testing::Test {
protected:
    ~test_exit_mutex()
    {
        pthread_mutex_destroy(&m_lock.mutex);
    }

    /* As seen by another thread */
    bool is_free()
    {
        bool is_free = false;

        std::thread([&] {
            is_free = (pthread_mutex_trylock(&m_lock.mutex) == 0);
            if (is_free) {
                pthread_mutex_unlock(&m_lock.mutex);
            }
        }).join();
        return is_free;
    }

    ucs_exit_mutex_t m_lock = UCS_EXIT_MUTEX_INITIALIZER;
};

TEST_F(test_exit_mutex, its_owner_holds_it_again)
{
    pthread_mutex_lock(&m_lock.mutex);
    EXPECT_TRUE(ucs_exit_mutex_hold(&m_lock));
    EXPECT_TRUE(ucs_exit_mutex_hold(&m_lock));
    ucs_exit_mutex_release(&m_lock);
    ucs_exit_mutex_release(&m_lock);
    EXPECT_FALSE(is_free());
    pthread_mutex_unlock(&m_lock.mutex);
    EXPECT_TRUE(is_free());
}

TEST_F(test_exit_mutex, held_twice_it_is_released_twice)
{
    EXPECT_TRUE(ucs_exit_mutex_hold(&m_lock));
    EXPECT_TRUE(ucs_exit_mutex_hold(&m_lock));
    ucs_exit_mutex_release(&m_lock);
    EXPECT_FALSE(is_free());
    ucs_exit_mutex_release(&m_lock);
    EXPECT_TRUE(is_free());
}

TEST_F(test_exit_mutex, another_thread_waits_no_longer_than_a_second)
{
    auto start = std::chrono::steady_clock::now();

    pthread_mutex_lock(&m_lock.mutex);
    std::thread([&] {
        EXPECT_FALSE(ucs_exit_mutex_hold(&m_lock));
    }).join();
    EXPECT_GT(std::chrono::seconds(5), std::chrono::steady_clock::now() - start);
    pthread_mutex_unlock(&m_lock.mutex);
    EXPECT_TRUE(is_free());
}
