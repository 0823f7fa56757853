/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "fake_ucp.h"

#include <ucp/door/tuning.h>
#include <uct/ib/helper_md/quiet_fork.h>

#include <mutex>
#include <thread>

/*
 * Programs with threads at the door, and their children: who speaks when, and
 * that nobody's words are taken for another's.
 */

class test_door_threads : public test_door {
protected:
    void SetUp() override
    {
        test_door::SetUp();
        fake_ucp::is_crowded = true;
    }

    void TearDown() override
    {
        fake_ucp::is_crowded = false;
    }

    static uint64_t lost()
    {
        return fake_ucp::reader->lost();
    }

    /* Of speaker @a who the operation @a what, told by its address */
    void say(unsigned who, unsigned what)
    {
        ucp_put_nbi(ep, made_up<char>(((who + 1ul) << 40) + what), 8, 0, rkey);
    }

    static unsigned speaker(const ucs_operation_t &operation)
    {
        return (unsigned)(operation.address >> 40) - 1;
    }

    static uint32_t said(const ucs_operation_t &operation)
    {
        return (uint32_t)operation.address;
    }
};

/* As with MPI_THREAD_MULTIPLE: each thread speaks and waits, and the idle steps
 * of all empty the rings, by whichever comes first. What was said is heard
 * once and in its thread's order, or counted. */
TEST_F(test_door_threads, all_speak_and_step)
{
    const unsigned num_threads = 4, rounds = 300, count = 20;
    const uint64_t before      = lost();
    unsigned next[num_threads] = {};
    uint64_t heard = 0, strange = 0, unordered = 0;
    std::vector<std::thread> threads;
    std::mutex lock;

    fake_ucp::in_idle_step = [&]() {
        std::lock_guard<std::mutex> guard(lock);

        for (const auto &operation : test_door::heard()) {
            unsigned who = speaker(operation);

            ++heard;
            if ((operation.kind != UCS_OPERATION_PUT) || (who >= num_threads)) {
                ++strange;
                continue;
            }
            unordered += (said(operation) < next[who]);
            next[who]  = said(operation) + 1;
        }
    };
    for (unsigned t = 0; t < num_threads; ++t) {
        threads.emplace_back([&, t]() {
            for (unsigned i = 0; i < rounds * count; ++i) {
                say(t, i);
                if (((i + 1) % count) == 0) {
                    for (unsigned k = 0; k < 16; ++k) {
                        ucp_worker_progress(worker);
                    }
                }
            }
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    fake_ucp::in_idle_step();
    fake_ucp::in_idle_step = nullptr;

    /* The first of each thread comes in any case; the others if enough of the
     * time, which all move, has passed */
    EXPECT_GE(fake_ucp::idle_steps, num_threads);
    EXPECT_LE(fake_ucp::idle_steps, num_threads * rounds);
    EXPECT_EQ(0u, strange);
    EXPECT_EQ(0u, unordered);
    EXPECT_EQ((uint64_t)num_threads * rounds * count, heard + lost() - before);
    EXPECT_GT(heard, 0u);
}

/* More threads than there are rings, one after the other: each gives its own
 * back as it ends */
TEST_F(test_door_threads, threads_that_end)
{
    const unsigned count  = 3 * UCP_DOOR_RINGS;
    const uint64_t before = lost();

    for (unsigned t = 0; t < count; ++t) {
        std::thread([&]() { say(t, 7); }).join();

        auto all = heard();
        ASSERT_EQ(1u, all.size()) << t;
        EXPECT_EQ(t, speaker(all[0]));
    }
    EXPECT_EQ(before, lost());
}

/* A child of a program whose threads are in the middle of it: it hears itself,
 * from the first word, and nothing of what they said. The handler is what
 * reader.c has called in a child. */
TEST_F(test_door_threads, a_child_hears_itself)
{
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a child of a program with threads may not have its own";
#endif
    std::atomic<bool> is_over{false};
    std::vector<std::thread> threads;

    for (unsigned t = 0; t < 2; ++t) {
        threads.emplace_back([&, t]() {
            for (unsigned i = 0; !is_over; ++i) {
                say(10 + t, i);
                std::this_thread::yield();
            }
        });
    }
    for (unsigned round = 0; round < 10; ++round) {
        say(1, round);
        pid_t pid = fork();
        if (pid == 0) {
            ucs_operation_t operations[8];
            unsigned num;

            fake_ucp::reader->adopt();
            say(2, round);
            num = fake_ucp::reader->drain(operations, 8);
            _exit(((num == 1) && (speaker(operations[0]) == 2)) ? 0 : 1 + num);
        }
        EXPECT_EQ(0, wait_for_child(pid));
    }
    is_over = true;
    for (auto &thread : threads) {
        thread.join();
    }
    heard();
}
