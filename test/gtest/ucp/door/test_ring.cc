/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include <ucp/door/ring.h>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

class test_door_ring : public ::testing::Test {
protected:
    test_door_ring() : rings(new ucp_door_rings_t()) {}

    /* Each field tells whose the operation is */
    static ucs_operation_t of(uint32_t thread, uint64_t i)
    {
        return {i + 1, i * 3 + thread, i * 5, (uint32_t)(i * 7), (uint32_t)i,
                UCS_OPERATION_PUT, thread};
    }

    static bool is_whole(const ucs_operation_t &op)
    {
        ucs_operation_t whole = of(op.thread, op.time - 1);

        return (op.address == whole.address) && (op.length == whole.length) &&
               (op.label == whole.label) && (op.id == whole.id) &&
               (op.kind == whole.kind);
    }

    std::vector<ucs_operation_t> drain(unsigned max = 256)
    {
        std::vector<ucs_operation_t> into(max);

        into.resize(ucp_door_rings_drain(rings.get(), into.data(), max));
        return into;
    }

    void push(ucp_door_ring_t *ring, uint32_t thread, uint64_t i)
    {
        ucs_operation_t operation = of(thread, i);
        ucs_operation_t *room     = ucp_door_ring_room(ring);

        if (room != nullptr) {
            *room = operation;
            ucp_door_ring_fill(ring);
        }
    }

    std::unique_ptr<ucp_door_rings_t> rings;
};

TEST_F(test_door_ring, what_a_full_ring_does_not_take_is_counted)
{
    ucp_door_ring_t *ring = ucp_door_rings_take(rings.get());

    for (unsigned i = 0; i < UCP_DOOR_RING_LENGTH + 7; ++i) {
        push(ring, 0, i);
    }
    EXPECT_EQ(7u, ucp_door_rings_lost(rings.get()));

    auto heard = drain(2 * UCP_DOOR_RING_LENGTH);
    ASSERT_EQ(UCP_DOOR_RING_LENGTH, heard.size());
    EXPECT_EQ(1u, heard.front().time);
    EXPECT_EQ(UCP_DOOR_RING_LENGTH, heard.back().time);

    push(ring, 0, 4711);
    EXPECT_EQ(4712u, drain().at(0).time);
    EXPECT_EQ(7u, ucp_door_rings_lost(rings.get()));
}

TEST_F(test_door_ring, the_earliest_of_all_rings_comes_first)
{
    ucp_door_ring_t *a = ucp_door_rings_take(rings.get());
    ucp_door_ring_t *b = ucp_door_rings_take(rings.get());

    EXPECT_EQ(0u, a->number);
    EXPECT_EQ(1u, b->number);
    for (uint64_t i : {0, 3, 4, 9}) {
        push(a, 0, i);
    }
    for (uint64_t i : {1, 2, 5}) {
        push(b, 1, i);
    }

    std::vector<uint64_t> times;
    for (const auto &op : drain(5)) {
        times.push_back(op.time - 1);
    }
    EXPECT_EQ((std::vector<uint64_t>{0, 1, 2, 3, 4}), times);
    EXPECT_EQ(2u, drain().size());
}

TEST_F(test_door_ring, rings_are_bounded_and_used_again_once_they_are_empty)
{
    std::vector<ucp_door_ring_t*> taken;
    ucp_door_ring_t *ring;

    while ((ring = ucp_door_rings_take(rings.get())) != nullptr) {
        taken.push_back(ring);
    }
    ASSERT_EQ(UCP_DOOR_RINGS, taken.size());

    push(taken[5], 5, 0);
    ucp_door_ring_leave(taken[5]);
    /* What it said is still to be heard */
    EXPECT_EQ(nullptr, ucp_door_rings_take(rings.get()));
    EXPECT_EQ(1u, drain().size());
    EXPECT_EQ(taken[5], ucp_door_rings_take(rings.get()));
    EXPECT_EQ(nullptr, ucp_door_rings_take(rings.get()));
}

TEST_F(test_door_ring, of_two_readers_one_gets_nothing)
{
    ucp_door_ring_t *ring = ucp_door_rings_take(rings.get());

    push(ring, 0, 0);
    std::atomic_store_explicit(&rings->reading, 1u, std::memory_order_relaxed);
    EXPECT_EQ(0u, drain().size());
    std::atomic_store_explicit(&rings->reading, 0u, std::memory_order_relaxed);
    EXPECT_EQ(1u, drain().size());
}

TEST_F(test_door_ring, a_child_forgets_what_the_parent_said)
{
    ucp_door_ring_t *mine  = ucp_door_rings_take(rings.get());
    ucp_door_ring_t *other = ucp_door_rings_take(rings.get());

    push(mine, 0, 0);
    push(other, 1, 1);
    std::atomic_store_explicit(&rings->reading, 1u, std::memory_order_relaxed);
    ucp_door_rings_adopt(rings.get(), mine);
    EXPECT_EQ(0u, drain().size());
    EXPECT_EQ(other, ucp_door_rings_take(rings.get()));
    push(mine, 0, 2);
    EXPECT_EQ(3u, drain().at(0).time);
}

/* Threads come and go while two readers read: each operation is heard once,
 * whole and in its thread's order, or counted as lost */
TEST_F(test_door_ring, threads_come_and_go)
{
    const unsigned num_threads = 4, lives = 40, count = 3000;
    std::atomic<unsigned> living{num_threads};
    std::vector<std::thread> threads, readers;
    std::atomic<uint64_t> heard{0}, torn{0}, refused{0};

    for (uint32_t t = 0; t < num_threads; ++t) {
        threads.emplace_back([&, t]() {
            for (unsigned life = 0; life < lives; ++life) {
                std::thread([&, t, life]() {
                    ucp_door_ring_t *ring = ucp_door_rings_take(rings.get());

                    for (unsigned i = 0; (ring != nullptr) && (i < count);
                         ++i) {
                        push(ring, t, (uint64_t)life * count + i);
                    }
                    if (ring != nullptr) {
                        ucp_door_ring_leave(ring);
                    } else {
                        refused += count;
                    }
                }).join();
            }
            --living;
        });
    }
    for (unsigned r = 0; r < 2; ++r) {
        readers.emplace_back([&]() {
            bool over;
            do {
                over      = (living == 0);
                auto some = drain(64);
                over      = over && some.empty();
                for (const auto &op : some) {
                    torn += !is_whole(op) || (op.thread >= num_threads);
                    ++heard;
                }
                if (some.empty()) {
                    std::this_thread::yield();
                }
            } while (!over);
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    for (auto &reader : readers) {
        reader.join();
    }
    heard += drain(UCP_DOOR_RINGS * UCP_DOOR_RING_LENGTH).size();

    EXPECT_EQ(0u, torn);
    EXPECT_GT(heard, 0u);
    EXPECT_EQ((uint64_t)num_threads * lives * count,
              heard + ucp_door_rings_lost(rings.get()) + refused);
}

/* One thread's operations keep their order under a reader that runs beside */
TEST_F(test_door_ring, order_is_kept_beside_a_reader)
{
    const uint64_t count = 200000;
    std::atomic<bool> done{false};
    uint64_t last = 0, heard = 0, wrong = 0;

    std::thread writer([&]() {
        ucp_door_ring_t *ring = ucp_door_rings_take(rings.get());

        for (uint64_t i = 0; i < count; ++i) {
            push(ring, 0, i);
        }
        done = true;
    });
    for (bool over = false; !over;) {
        over      = done;
        auto some = drain();
        over      = over && some.empty();
        for (const auto &op : some) {
            wrong += (op.time <= last) || !is_whole(op);
            last   = op.time;
            ++heard;
        }
    }
    writer.join();
    EXPECT_EQ(0u, wrong);
    EXPECT_EQ(count, heard + ucp_door_rings_lost(rings.get()));
}
