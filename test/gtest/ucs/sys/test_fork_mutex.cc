/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/sync/fork_mutex.h>

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

class test_fork_mutex : public ::testing::Test {
protected:
    ~test_fork_mutex()
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

    ucs_fork_mutex_t m_lock = UCS_FORK_MUTEX_INITIALIZER;
};

TEST_F(test_fork_mutex, its_owner_holds_it_again)
{
    pthread_mutex_lock(&m_lock.mutex);
    EXPECT_TRUE(ucs_fork_mutex_hold(&m_lock));
    EXPECT_TRUE(ucs_fork_mutex_hold(&m_lock));
    ucs_fork_mutex_release(&m_lock);
    ucs_fork_mutex_release(&m_lock);
    EXPECT_TRUE(ucs_fork_mutex_is_mine(&m_lock));
    EXPECT_FALSE(is_free());
    pthread_mutex_unlock(&m_lock.mutex);
    EXPECT_FALSE(ucs_fork_mutex_is_mine(&m_lock));
    EXPECT_TRUE(is_free());
}

TEST_F(test_fork_mutex, held_twice_it_is_released_twice)
{
    EXPECT_TRUE(ucs_fork_mutex_hold(&m_lock));
    EXPECT_TRUE(ucs_fork_mutex_hold(&m_lock));
    ucs_fork_mutex_release(&m_lock);
    EXPECT_FALSE(is_free());
    ucs_fork_mutex_release(&m_lock);
    EXPECT_TRUE(is_free());
}

/* And what it did not get it does not release */
TEST_F(test_fork_mutex, another_thread_waits_no_longer_than_a_second)
{
    pthread_mutex_lock(&m_lock.mutex);
    EXPECT_TRUE(ucs_fork_mutex_hold(&m_lock));
    std::thread([&] {
        EXPECT_FALSE(ucs_fork_mutex_hold(&m_lock));
        EXPECT_FALSE(ucs_fork_mutex_is_mine(&m_lock));
        ucs_fork_mutex_release(&m_lock);

        /* All of these together no longer than one wait */
        auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < 2; ++i) {
            EXPECT_FALSE(ucs_fork_mutex_hold(&m_lock));
        }
        EXPECT_GT(std::chrono::seconds(1),
                  std::chrono::steady_clock::now() - start);
    }).join();
    ucs_fork_mutex_release(&m_lock);
    EXPECT_TRUE(ucs_fork_mutex_is_mine(&m_lock));
    pthread_mutex_unlock(&m_lock.mutex);
    EXPECT_TRUE(is_free());
}
