/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "decorator_fixture.h"
#include "log_capture.h"
#include <ucs/node/node_fixture.h>

#include <test/inside/md_inside.h>
#include <ucs/sys/proc/thread.h>

#include <atomic>

#include <sys/shm.h>

/*
 * The whole helper, over a domain that registers nothing
 */

class test_node_domains : public test_decorator {
protected:
    static constexpr size_t MB = 1 << 20;

    void SetUp() override
    {
        test_decorator::SetUp();
        if (IsSkipped()) {
            return;
        }
        /* own_ledger.cc gave one to the test */
        ASSERT_EQ(UCS_OK, ucs_ledger_name(getenv(UCS_NODE_SUFFIX_ENV), m_name,
                                          sizeof(m_name)));
    }

    mapped_ledger map_ledger() const
    {
        return mapped_ledger(m_name);
    }

    static uint64_t sum(ucs_ledger_t *ledger)
    {
        uint64_t sum = 0;
        for (unsigned i = 0; i < UCS_LEDGER_SLOTS; ++i) {
            if (ucs_load_relaxed(&ledger->owner[i]) != 0) {
                sum += ucs_load_relaxed(&ledger->pinned[i]);
            }
        }
        return sum;
    }

    static char *big_map(size_t length)
    {
        void *address = mmap(nullptr, length, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        EXPECT_NE(MAP_FAILED, address);
        return static_cast<char*>(address);
    }

    char m_name[128] = "";
};

TEST_F(test_node_domains, enter_and_leave_the_ledger)
{
    fake_lower second;

    attach(lower);
    auto mapped = map_ledger();
    EXPECT_EQ(0u, sum(mapped));
    dereg(lower, reg(lower, m_buffer, TEST_LENGTH));
    EXPECT_EQ(TEST_LENGTH, sum(mapped));
    attach(second);
    dereg(second, reg(second, m_buffer, TEST_LENGTH));
    EXPECT_EQ(2 * TEST_LENGTH, sum(mapped)) << "one slot for both";
    EXPECT_NE(0u, ucs_load_relaxed(&mapped->owner[0]));
    EXPECT_EQ(0u, ucs_load_relaxed(&mapped->owner[1]));
    close(lower);
    EXPECT_EQ(TEST_LENGTH, sum(mapped));
    close(second);
    EXPECT_EQ(0u, ucs_load_relaxed(&mapped->owner[0]));
}

/* The job goes on as it would; who relies on the ledger is told */
TEST_F(test_node_domains, a_ledger_that_is_refused_costs_one_line)
{
    m_config.cpu_policy = UCT_HELPER_CPU_POLICY_IDLE;
    for (bool is_needed : {false, true}) {
        EXPECT_EQ(0, in_child([&] {
            log_capture capture;
            ucs_ledger_remove(m_name);
            if (shmget(ucs_ledger_key(m_name), 17, IPC_CREAT | 0600) < 0) {
                return 1;
            }
            if (is_needed) {
                m_config.node_max_pinned = MB;
            }
            fake_lower lower, second;
            attach(lower);
            attach(second);
            uct_mem_h memh = reg(lower, m_buffer, TEST_LENGTH);
            if (memh == nullptr) {
                return 2;
            }
            dereg(lower, memh);
            close(lower);
            close(second);
            size_t lines = 0;
            for (const auto &line : log_capture::lines()) {
                lines += (line.find("ledger") != std::string::npos);
            }
            return (lines == (is_needed ? 1u : 0u)) ? 0 : 3;
        })) << is_needed;
    }
}

/* Registrations of one process go when another needs the room; its helper is
 * asleep and is woken through the ledger */
TEST_F(test_node_domains, another_process_gets_what_is_idle)
{
    for (auto policy :
         {UCS_REGCACHE_POLICY_LEAVE_PINNED, UCS_REGCACHE_POLICY_LRU}) {
        auto mapped = map_ledger();
        fake_lower lower;

        m_config.policy          = policy;
        m_config.node_max_pinned = 4 * TEST_LENGTH;
        attach(lower);
        char *memory = big_map(4 * TEST_LENGTH);
        for (unsigned i = 0; i < 4; ++i) {
            dereg(lower, reg(lower, memory + i * TEST_LENGTH, TEST_LENGTH));
        }
        EXPECT_EQ(4 * TEST_LENGTH, sum(mapped));
        EXPECT_EQ(0, in_child([&] {
            fake_lower own;
            attach(own);
            uct_mem_h memh = reg(own, m_buffer, TEST_LENGTH);
            ucs_node_figures_t figures;
            ucs_node_figures(uct_helper_md_node(own.md()), &figures);
            if ((memh == nullptr) || (sum(mapped) > 4 * TEST_LENGTH) ||
                (figures.forced > 0)) {
                return 1;
            }
            dereg(own, memh);
            close(own);
            return 0;
        }));
        EXPECT_EQ(3u, lower.live_count());
        close(lower);
        munmap(memory, 4 * TEST_LENGTH);
    }
}

/* Likewise of a device's registrations. UCX's own, which go straight down, count, and
 * so does what another device has not. */
TEST_F(test_node_domains, a_device_has_so_many_registrations)
{
    fake_lower other;

    m_config.max_regions = 4;
    attach(lower);
    ASSERT_EQ(UCS_OK, uct_helper_md_attach(other.md(), "other0", &m_config));
    char *memory = big_map(8 * TEST_LENGTH);
    for (unsigned i = 0; i < 8; ++i) {
        dereg(lower, reg(lower, memory + i * TEST_LENGTH, TEST_LENGTH));
        EXPECT_EQ(std::min(i + 1, 4u), lower.live_count());
    }
    for (unsigned i = 0; i < 4; ++i) {
        dereg(other, reg(other, memory + i * TEST_LENGTH, TEST_LENGTH));
    }
    EXPECT_EQ(4u, lower.live_count() + other.live_count() - 4);

    uct_mem_h own = reg(lower, m_buffer, TEST_LENGTH,
                        access | UCT_MD_MEM_FLAG_LOCK);
    dereg(lower, reg(lower, memory, TEST_LENGTH));
    EXPECT_EQ(4u, lower.live_count()) << "one is UCX's own";
    dereg(lower, own);
    dereg(lower, reg(lower, memory + TEST_LENGTH, TEST_LENGTH));
    EXPECT_EQ(4u, lower.live_count());

    EXPECT_EQ(0, in_child([&] {
        fake_lower mine;
        attach(mine);
        uct_mem_h memh = reg(mine, m_buffer, TEST_LENGTH);
        dereg(mine, memh);
        close(mine);
        return (memh == nullptr) ? 1 : 0;
    }));
    EXPECT_EQ(3u, lower.live_count()) << "one has gone for the other process";
    close(other);
    close(lower);
    munmap(memory, 8 * TEST_LENGTH);
}

/* A child has no place in its parent's slot, and can have one of its own */
TEST_F(test_node_domains, a_child_leaves_the_parents_slot_alone)
{
    auto mapped = map_ledger();

    attach(lower);
    dereg(lower, reg(lower, m_buffer, TEST_LENGTH));
    EXPECT_EQ(0, in_child([&] {
        fake_lower own;
        uct_mem_h memh = reg(lower, m_buffer, TEST_LENGTH);
        dereg(lower, memh);
        if ((sum(mapped) != TEST_LENGTH) ||
            (ucs_load_relaxed(&mapped->owner[1]) != 0)) {
            return 1;
        }
        attach(own);
        if (ucs_load_relaxed(&mapped->owner[1]) == 0) {
            return 2;
        }
        close(own);
        return (ucs_load_relaxed(&mapped->owner[1]) == 0) ? 0 : 3;
    }));
    EXPECT_EQ(TEST_LENGTH, sum(mapped));
}

/* Nobody wakes the thread: it must see that the word has changed since */
TEST(test_bell, a_ring_during_a_step_is_not_lost)
{
    struct world {
        std::atomic<uint32_t> bell{0};
        std::atomic<unsigned> steps{0};
    };

    for (int is_idle = 0; is_idle < 2; ++is_idle) {
        world w;
        ucs_thread_h thread;
        ucs_job_h job;

        ASSERT_EQ(UCS_OK, ucs_thread_create(is_idle, &thread));
        ASSERT_EQ(UCS_OK, ucs_thread_add(
                                  thread,
                                  [](void *arg, uint64_t) -> uint64_t {
                                      world *w = static_cast<world *>(arg);
                                      if (++w->steps < 5) {
                                          ++w->bell;
                                      }
                                      return UINT64_MAX;
                                  },
                                  &w, &job));
        ucs_thread_set_bell(thread, (uint32_t *)&w.bell);
        alarm(20);
        ASSERT_EQ(UCS_OK, ucs_job_start(job));
        while (w.steps < 5) {
            sched_yield();
        }
        ucs_thread_stop(thread);
        ucs_thread_destroy(thread);
        alarm(0);
    }
}
