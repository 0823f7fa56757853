/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "decorator_fixture.h"

#include <uct/ib/helper_md/hear.h>
#include <ucs/regcache/stats.h>
#include <ucs/sys/clock.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include <alloca.h>
#include <pthread.h>
#include <ucontext.h>

/*
 * Idle steps from the program's threads, beside what a domain lives through.
 */

class test_idle : public test_decorator {
protected:
    /* A step that nobody else is in: the helper's own may be under way */
    static int step()
    {
        int done = 0;

        for (unsigned i = 0; !done && (i < 10000); ++i) {
            done = uct_helper_idle_step(0);
            std::this_thread::yield();
        }
        return done;
    }

    /* With so many bytes left of the thread's stack */
    static __attribute__((noinline)) int step_with(size_t left)
    {
        char *here = (char*)__builtin_frame_address(0);
        pthread_attr_t attr;
        void *stack;
        size_t size;

        pthread_getattr_np(pthread_self(), &attr);
        pthread_attr_getstack(&attr, &stack, &size);
        pthread_attr_destroy(&attr);
        volatile char *taken = (char*)alloca(here - (char*)stack - left);
        taken[0]             = 0;
        return step();
    }

    /* Threads that wait all the time; @a yields: and let others run in between,
     * so that what interrupts them hardly ever finds them in a step */
    void begin(unsigned count, bool yields = true)
    {
        for (unsigned i = 0; i < count; ++i) {
            m_threads.emplace_back([this, yields]() {
                while (!m_is_over) {
                    m_steps += uct_helper_idle_step(1000000);
                    if (yields) {
                        std::this_thread::yield();
                    }
                }
            });
        }
    }

    void end()
    {
        m_is_over = true;
        for (auto &thread : m_threads) {
            thread.join();
        }
        m_threads.clear();
    }

    void SetUp() override
    {
        test_decorator::SetUp();
        uct_helper_hear_from(drain, nullptr);
    }

    void TearDown() override
    {
        uct_helper_hear_from(nullptr, nullptr);
        test_decorator::TearDown();
    }

    /* What was said since */
    static unsigned drain(ucs_operation_t *operations, unsigned max)
    {
        std::lock_guard<std::mutex> guard(m_lock);
        unsigned count = 0;

        for (; (count < max) && !m_said.empty(); ++count) {
            operations[count] = m_said.front();
            m_said.pop_front();
        }
        return count;
    }

    static void say(ucs_operation_kind_t kind, void *address, uint32_t id,
                    size_t length = TEST_LENGTH)
    {
        ucs_operation_t operation = {};

        operation.time    = ucs_clock_now();
        operation.kind    = kind;
        operation.id      = id;
        operation.address = (uintptr_t)address;
        operation.length  = length;
        operation.label   = 77;
        std::lock_guard<std::mutex> guard(m_lock);
        m_said.push_back(operation);
    }

    static std::mutex                  m_lock;
    static std::deque<ucs_operation_t> m_said;
    std::vector<std::thread>           m_threads;
    std::atomic<bool>                  m_is_over{false};
    std::atomic<uint64_t>              m_steps{0};
};

std::mutex test_idle::m_lock;
std::deque<ucs_operation_t> test_idle::m_said;

TEST_F(test_idle, of_open_domains_alone)
{
    EXPECT_EQ(UCS_IDLE_NOT_TAKEN, uct_helper_idle_step(0));
    attach(lower);
    EXPECT_EQ(UCS_IDLE_HEARD, step());
    close(lower);
    EXPECT_EQ(UCS_IDLE_NOT_TAKEN, uct_helper_idle_step(0));
}

/* A step takes more stack than a coroutine or a small thread may have left */
TEST_F(test_idle, where_there_is_stack_for_it)
{
    static ucontext_t back, fiber;
    static int on_fiber;
    std::vector<char> stack(256 << 10);

    attach(lower);
    EXPECT_EQ(UCS_IDLE_HEARD, step());
    getcontext(&fiber);
    fiber.uc_stack.ss_sp   = stack.data();
    fiber.uc_stack.ss_size = stack.size();
    fiber.uc_link          = &back;
    makecontext(&fiber, [] { on_fiber = step(); }, 0);
    swapcontext(&back, &fiber);
    EXPECT_EQ(UCS_IDLE_NOT_TAKEN, on_fiber);

    for (size_t left : {32 << 10, 128 << 10}) {
        intptr_t result = 0;
        std::thread([&] { result = step_with(left); }).join();
        EXPECT_EQ((left > 64 << 10) ? UCS_IDLE_HEARD : UCS_IDLE_NOT_TAKEN, result);
    }
}

/* What MPI_Finalize() does while another thread still waits: a domain goes that
 * idle steps may be in, and none is taken of one that is gone */
TEST_F(test_idle, a_domain_closes_under_threads_that_wait)
{
    begin(2);
    for (unsigned i = 0; i < 20; ++i) {
        fake_lower one, other;

        attach(one);
        attach(other);
        EXPECT_EQ(UCS_OK, dereg(one, reg(one, m_buffer, TEST_LENGTH)));
        close(one);
        EXPECT_EQ(UCS_OK, dereg(other, reg(other, m_buffer, TEST_LENGTH)));
        close(other);
    }
    end();
    EXPECT_EQ(0, uct_helper_idle_step(0));
}

/* A receive is posted, and the program does something else: the helper comes by
 * itself. What is registered needs nobody. */
TEST_F(test_idle, a_post_wakes_the_helper)
{
    const size_t length = 4ul << 20;
    void *buffers[2];

    m_config.policy = UCS_REGCACHE_POLICY_OVERLAP;
    for (auto &buffer : buffers) {
        buffer = mmap(nullptr, length, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        ASSERT_NE(MAP_FAILED, buffer);
    }
    attach(lower);
    /* Slow enough to be worth it */
    lower.on_reg = [](void*, size_t) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return UCS_OK;
    };
    for (unsigned i = 0; i < 20; ++i) {
        EXPECT_EQ(UCS_OK, dereg(lower, reg(lower, buffers[0], length)));
        /* Replaced in one call: into a hole another thread's allocator may
         * map what would be overwritten here */
        EXPECT_EQ(buffers[0],
                  mmap(buffers[0], length, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | MAP_FIXED,
                       -1, 0));
    }
    EXPECT_EQ(UCS_OK, dereg(lower, reg(lower, buffers[0], length)));
    /* Until it has looked after that, and sleeps */
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    unsigned count = lower.reg_count();
    say(UCS_OPERATION_RECEIVE, buffers[1], 1, length);
    uct_helper_posted((uintptr_t)buffers[1], length);
    for (unsigned i = 0; (lower.reg_count() == count) && (i < 10000); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(count + 1, lower.reg_count());

    close(lower);
    uct_helper_posted((uintptr_t)buffers[1], length); /* of nobody */
    for (auto buffer : buffers) {
        munmap(buffer, length);
    }
}

/* Of a rank's devices those that its messages go over */
TEST_F(test_idle, what_is_posted_is_registered_where_something_was_used)
{
    fake_lower other;
    void *posted = map(nullptr);

    m_config.policy = UCS_REGCACHE_POLICY_OVERLAP;
    attach(lower);
    attach(other);
    EXPECT_EQ(UCS_IDLE_NOT_TAKEN, uct_helper_idle_step(0));
    EXPECT_EQ(UCS_OK, dereg(lower, reg(lower, m_buffer, TEST_LENGTH)));
    unsigned count = lower.reg_count();
    say(UCS_OPERATION_RECEIVE, posted, 1);
    uct_helper_posted((uintptr_t)posted, TEST_LENGTH);
    for (unsigned i = 0; (lower.reg_count() == count) && (i < 10000); ++i) {
        (void)uct_helper_idle_step(1000000000);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(count + 1, lower.reg_count());
    for (unsigned i = 0; i < 10; ++i) {
        (void)uct_helper_idle_step(1000000000);
    }
    EXPECT_EQ(0u, other.reg_count());
    munmap(posted, TEST_LENGTH);
    close(other);
    close(lower);
}

/* A child has no part in the parent's domains, but it may have its own, also if
 * a thread of the parent was in an idle step as it was born */
TEST_F(test_idle, a_child_steps_for_itself)
{
#if defined(__SANITIZE_ADDRESS__)
    const unsigned children = 3; /* each waits a second: the thread never sleeps */
#else
    const unsigned children = 20;
#endif

    attach(lower);
    begin(1, false);
    for (unsigned i = 0; (i < children) && !HasFailure(); ++i) {
        EXPECT_EQ(0, in_child([this]() {
            fake_lower own;
            int is_stepped;

            if (uct_helper_idle_step(0)) {
                return 2;
            }
            attach(own);
            is_stepped = step();
            close(own);
            /* A leak checker would look for the parent's threads */
            _exit((is_stepped && !HasFailure()) ? 0 : 3);
            return 0;
        }));
    }
    end();
    EXPECT_NE(0u, m_steps);
}

/* What all domains want is what one wants */
TEST_F(test_idle, what_is_wanted_is_what_a_domain_wants)
{
    ucs_operation_wants_t *wants = uct_helper_hear_wants();
    fake_lower one, other;

    EXPECT_EQ(0u, ucs_load_relaxed(&wants->all));
    EXPECT_EQ(UINT64_MAX, ucs_load_relaxed(&wants->least));
    m_config.policy = UCS_REGCACHE_POLICY_LRU;
    attach(one);
    EXPECT_EQ(UINT64_MAX, ucs_load_relaxed(&wants->least));
    m_config.policy = UCS_REGCACHE_POLICY_PREDICT;
    attach(other);
    EXPECT_EQ(m_config.min_size, ucs_load_relaxed(&wants->least));

    EXPECT_EQ(UCS_OK, dereg(one, reg(one, m_buffer, TEST_LENGTH)));
    EXPECT_EQ(0u, ucs_load_relaxed(&wants->all));
    EXPECT_EQ(UCS_OK, dereg(other, reg(other, m_buffer, TEST_LENGTH)));
    EXPECT_EQ(1u, ucs_load_relaxed(&wants->all));
    EXPECT_TRUE(ucs_operation_is_wanted(wants, UCS_OPERATION_SEND, 8));
    close(other);
    EXPECT_EQ(0u, ucs_load_relaxed(&wants->all));
    EXPECT_EQ(UINT64_MAX, ucs_load_relaxed(&wants->least));
    EXPECT_FALSE(ucs_operation_is_wanted(wants, UCS_OPERATION_SEND, 1 << 30));
    EXPECT_TRUE(ucs_operation_is_wanted(wants, UCS_OPERATION_RECEIVED, 0));
    close(one);
}
