/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucs/sys/sync/listeners.h>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

class test_listeners : public ::testing::Test {
protected:
    /* Those whom an event visits, each in its slot */
    std::vector<void*> visited()
    {
        std::vector<void*> objects;

        for (unsigned i = 0; i < UCS_LISTENERS_MAX; ++i) {
            void *object = ucs_listeners_enter(&m_listeners, i);
            if (object != nullptr) {
                objects.push_back(object);
                ucs_listeners_exit(&m_listeners, i);
            }
        }
        return objects;
    }

    ucs_listeners_t m_listeners{};
    int             m_objects[UCS_LISTENERS_MAX + 1];
};

TEST_F(test_listeners, as_many_as_there_are_slots)
{
    for (unsigned i = 0; i < UCS_LISTENERS_MAX; ++i) {
        EXPECT_EQ(UCS_OK, ucs_listeners_join(&m_listeners, &m_objects[i]));
    }
    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT,
              ucs_listeners_join(&m_listeners, &m_objects[UCS_LISTENERS_MAX]));
    EXPECT_EQ(size_t(UCS_LISTENERS_MAX), visited().size());

    ucs_listeners_leave(&m_listeners, &m_objects[7]);
    EXPECT_EQ(size_t(UCS_LISTENERS_MAX - 1), visited().size());
    EXPECT_EQ(UCS_OK, ucs_listeners_join(&m_listeners,
                                         &m_objects[UCS_LISTENERS_MAX]));
    EXPECT_EQ(&m_objects[UCS_LISTENERS_MAX], visited()[7]);
}

TEST_F(test_listeners, who_does_not_listen_leaves_nothing)
{
    EXPECT_EQ(UCS_OK, ucs_listeners_join(&m_listeners, &m_objects[0]));
    ucs_listeners_leave(&m_listeners, &m_objects[1]);
    EXPECT_EQ(std::vector<void*>{&m_objects[0]}, visited());
}

/* A child has none of the threads that were inside at the fork */
TEST_F(test_listeners, who_forgets_waits_for_nobody)
{
    EXPECT_EQ(UCS_OK, ucs_listeners_join(&m_listeners, &m_objects[0]));
    EXPECT_EQ(&m_objects[0], ucs_listeners_enter(&m_listeners, 0));
    ucs_listeners_forget(&m_listeners);
    EXPECT_TRUE(visited().empty());
    EXPECT_EQ(UCS_OK, ucs_listeners_join(&m_listeners, &m_objects[1]));
    ucs_listeners_leave(&m_listeners, &m_objects[1]);
}

/* A visit may end in another thread than it began in */
TEST_F(test_listeners, who_leaves_waits_for_each_visit)
{
    std::atomic<bool> has_left{false};

    EXPECT_EQ(UCS_OK, ucs_listeners_join(&m_listeners, &m_objects[0]));
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(&m_objects[0], ucs_listeners_enter(&m_listeners, 0));
    }
    std::thread leaver([&]() {
        ucs_listeners_leave(&m_listeners, &m_objects[0]);
        has_left = true;
    });
    while (ucs_load_relaxed(&m_listeners.slots[0].object) != nullptr) {
        std::this_thread::yield();
    }
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(nullptr, ucs_listeners_enter(&m_listeners, 0));
        EXPECT_FALSE(has_left) << i << " visits have ended";
        ucs_listeners_exit(&m_listeners, 0);
    }
    leaver.join();
}

/* Visits while objects come and go: none is visited that is gone. What is
 * written here without atomics is what ThreadSanitizer watches. */
TEST_F(test_listeners, none_that_is_gone_is_visited)
{
    struct object_t {
        unsigned is_there = 1;
    };
    std::atomic<unsigned> num_visits{0};
    std::atomic<bool> is_over{false};
    std::vector<std::thread> visitors;

    for (int t = 0; t < 2; ++t) {
        visitors.emplace_back([&]() {
            while (!is_over) {
                void *object = ucs_listeners_enter(&m_listeners, 0);
                if (object != nullptr) {
                    EXPECT_EQ(1u, ((object_t*)object)->is_there);
                    ucs_listeners_exit(&m_listeners, 0);
                    ++num_visits;
                }
            }
        });
    }
    for (unsigned i = 0; (i < 2000) || (num_visits < 100); ++i) {
        std::unique_ptr<object_t> object(new object_t);
        ASSERT_EQ(UCS_OK, ucs_listeners_join(&m_listeners, object.get()));
        if ((i % 100) == 0) {
            std::this_thread::yield();
        }
        ucs_listeners_leave(&m_listeners, object.get());
        object->is_there = 0;
    }
    is_over = true;
    for (std::thread &visitor : visitors) {
        visitor.join();
    }
}
