/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "decorator_fixture.h"

#include <test/own_proc.h>
#include <ucs/sys/proc/thread.h>
#include <sanitized.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <malloc.h>
#include <string>
#include <thread>
#include <vector>

/*
 * Several domains of one process, as of a rank with several devices
 */

class test_domains : public test_decorator {
protected:
    static constexpr unsigned COUNT = 8;

    /* Processors that the helper may run on */
    static int processors()
    {
        pid_t helper = 0;
        cpu_set_t cpus;

        CPU_ZERO(&cpus);
        if (own_proc_threads(UCS_THREAD_NAME, &helper) > 0) {
            (void)sched_getaffinity(helper, sizeof(cpus), &cpus);
        }
        return CPU_COUNT(&cpus);
    }

    static void await_threads(const char *name, int count)
    {
        while (own_proc_threads(name, nullptr) != count) {
            usleep(1000);
        }
    }

    void SetUp() override
    {
        test_decorator::SetUp();
        alarm(30);
    }

    void TearDown() override
    {
        alarm(0);
        test_decorator::TearDown();
    }

    void use(fake_lower &lower, void *buffer)
    {
        EXPECT_EQ(UCS_OK, dereg(lower, reg(lower, buffer, TEST_LENGTH)));
    }
};

TEST_F(test_domains, have_one_helper)
{
    for (auto policy : {UCT_HELPER_CPU_POLICY_AGGRESSIVE,
                        UCT_HELPER_CPU_POLICY_IDLE}) {
        fake_lower lower[COUNT];

        m_config.policy     = UCS_REGCACHE_POLICY_PREDICT;
        m_config.cpu_policy = policy;
        for (fake_lower &one : lower) {
            attach(one);
            use(one, m_buffer);
            EXPECT_TRUE(uct_helper_md_has_thread(one.md()));
        }
        await_threads(UCS_THREAD_NAME, 1);
        await_threads("ucx-scout", policy == UCT_HELPER_CPU_POLICY_IDLE);
        for (fake_lower &one : lower) {
            close(one);
            await_threads(UCS_THREAD_NAME, &one != &lower[COUNT - 1]);
            EXPECT_EQ(0u, one.live_count());
        }
    }
}

/* The helper serves each of them, whichever were there before it */
TEST_F(test_domains, are_served_by_one_helper)
{
    fake_lower lower[COUNT];

    for (unsigned round = 0; round < 3; ++round) {
        fake_lower more;

        attach(more);
        for (fake_lower &one : lower) {
            if (round == 0) {
                attach(one);
            }
            void *buffer = map(nullptr);
            use(one, buffer);
            use(more, buffer);
            munmap(buffer, TEST_LENGTH);
            one.await_dereg(round + 1);
        }
        more.await_dereg(COUNT);
        close(more);
    }
    for (fake_lower &one : lower) {
        close(one);
    }
}

/* Of no file, KB: the kernel walks the pages, as its counters lag behind */
static long anonymous_kb()
{
    std::ifstream file("/proc/self/smaps_rollup");
    std::string word;
    long kb = -1;

    while ((file >> word) && (word != "Anonymous:")) {
    }
    file >> kb;
    return kb;
}

/* A heap whose pages are there: what grows afterwards is mapped */
static void fill_heap()
{
    static constexpr size_t SPARE = 1ul << 20, BLOCK = 16ul << 10;
    void *blocks[SPARE / BLOCK];

    mallopt(M_TRIM_THRESHOLD, 2 * SPARE);
    for (void *&block : blocks) {
        block = memset(malloc(BLOCK), 1, BLOCK);
    }
    for (void *block : blocks) {
        free(block);
    }
}

/* UCX opens all of a node's devices, and a rank's messages go over one or two */
TEST_F(test_domains, that_are_not_used_take_little_memory)
{
    SKIP_IF_SANITIZED();
    EXPECT_EQ(0, in_child([&] {
        static fake_lower lower[COUNT];
        void *buffer = map(nullptr);
        long before  = 0;

        fill_heap();
        m_config.policy = UCS_REGCACHE_POLICY_PREDICT;
        for (fake_lower &one : lower) {
            attach(one);
            if (&one == &lower[0]) {
                use(one, buffer);
                munmap(buffer, TEST_LENGTH);
                one.await_dereg(1); /* the helper has its stack */
                before = anonymous_kb();
            }
        }
        long grown = anonymous_kb() - before;
        return (before > 0) && (grown <= 28 * (COUNT - 1)) ? 0 : 1;
    }));
}

/* Of another domain, whose device may take long */
TEST_F(test_domains, one_closes_while_the_helper_deregisters_of_another)
{
    fake_lower other;
    std::atomic<bool> is_inside{false}, is_open{false};
    void *buffer = map(nullptr);

    attach(lower);
    attach(other);
    use(other, m_buffer);
    use(lower, buffer);
    lower.on_dereg = [&](void*, size_t) {
        is_inside = true;
        while (!is_open) {
            usleep(1000);
        }
    };
    munmap(buffer, TEST_LENGTH);
    while (!is_inside) {
        usleep(1000);
    }
    close(other);
    EXPECT_EQ(1, own_proc_threads(UCS_THREAD_NAME, nullptr));
    is_open = true;
    lower.await_dereg(1);
    lower.on_dereg = nullptr;
    close(lower);
    await_threads(UCS_THREAD_NAME, 0);
}

/* The last one's helper has gone, and the next one gets another */
TEST_F(test_domains, open_after_all_have_closed)
{
    for (unsigned i = 1; i <= 20; ++i) {
        fake_lower lower, other;

        attach(lower);
        attach(other);
        use(lower, m_buffer);
        use(other, m_buffer);
        close(other);
        close(lower);
        await_threads(UCS_THREAD_NAME, 0);
    }
}

TEST_F(test_domains, opened_and_closed_by_several_threads)
{
    std::vector<std::thread> users;

    for (unsigned t = 0; t < 4; ++t) {
        users.emplace_back([&] {
            for (unsigned i = 0; i < 30; ++i) {
                fake_lower lower;

                attach(lower);
                use(lower, m_buffer);
                close(lower);
            }
        });
    }
    for (auto &user : users) {
        user.join();
    }
    await_threads(UCS_THREAD_NAME, 0);
}

/* What is late most likely waits for a busy processor, and that of a thread that waits
 * falls idle. It does so for a millisecond each time, and then registers by itself. */
TEST_F(test_domains, a_use_that_waits_has_the_helper_on_its_own_processor)
{
    const size_t page = sysconf(_SC_PAGESIZE);
    std::atomic<bool> is_over{false};
    void *other = map(nullptr);

    attach(lower);
    use(lower, m_buffer);
    await_threads(UCS_THREAD_NAME, 1);
    const int before = processors();
    if (before > 1) {
        lower.shut_gate(other);
        std::thread first([&] { use(lower, other); });
        lower.await_at_gate();
        std::thread second([&] {
            while (!is_over) {
                EXPECT_EQ(UCS_OK, dereg(lower, reg(lower, (char*)other + page,
                                                   TEST_LENGTH - page)));
            }
        });
        while (processors() != 1) {
        }
        is_over = true;
        second.join();
        EXPECT_EQ(before, processors());
        lower.open_gate();
        first.join();
    }
    close(lower);
    munmap(other, TEST_LENGTH);
}
