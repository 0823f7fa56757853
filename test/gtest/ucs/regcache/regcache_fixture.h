/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef REGCACHE_FIXTURE_H_
#define REGCACHE_FIXTURE_H_

#include "regcache_world.h"

#include <atomic>
#include <cfenv>
#include <thread>

static constexpr uint64_t MS = 1000000;
static constexpr size_t   MB = 1 << 20;

/** A cache of any policy in a world that stands still unless it is advanced. */
class test_regcache : public ::testing::Test {
protected:
    test_regcache()
    {
        std::feclearexcept(FE_ALL_EXCEPT);
    }

    /* Programs may have their threads end that raise one */
    ~test_regcache()
    {
        EXPECT_EQ(0, std::fetestexcept(FE_DIVBYZERO | FE_INVALID));
    }

    void start(ucs_regcache_policy_t policy, size_t max_pinned = SIZE_MAX)
    {
        w                    = std::make_unique<regcache_world>(policy);
        w->params.max_pinned = max_pinned;
        w->open();
    }

    /* So many uses of a millisecond each, of one call site, and as long between */
    void period(unsigned count, uint64_t gap, unsigned b = 0)
    {
        for (unsigned i = 0; i < count; ++i) {
            w->use(buffer(b), MB, MS);
            w->advance(gap);
        }
    }

    /* The same of some buffers in turn, each from a call site of its own */
    void rounds(unsigned count, unsigned buffers, uint64_t gap)
    {
        for (unsigned i = 0; i < count * buffers; ++i) {
            w->use(buffer(i % buffers), MB, MS, i % buffers);
            w->advance(gap);
        }
    }

    /* A policy that foretells expects the next use 99 ms after the last of
     * these, which is over */
    void use_each_tenth_of_a_second(unsigned b = 0)
    {
        period(6, 99 * MS, b);
        w->use(buffer(b), MB, MS);
    }

    /* More uses than there is room for in the queue to the helper, each of
     * another buffer */
    void overrun_queue(unsigned count)
    {
        w = std::make_unique<regcache_world>(UCS_REGCACHE_POLICY_PAPER);
        w->params.dq_length = 8;
        w->open();
        for (unsigned i = 0; i < count; ++i) {
            w->touch(buffer(i), MB);
        }
    }

    /* Lets @a run make the helper deregister buffer 0, and uses buffer 1 from
     * another thread while it is inside of that, for @a ms at least */
    template<typename F>
    void use_while_deregistering(const F &run, unsigned ms = 0)
    {
        std::atomic<bool> is_asking{false};
        std::thread user;

        w->on_dereg = [&]() {
            if (user.joinable()) {
                return;
            }
            user = std::thread([&]() {
                is_asking = true;
                w->touch(buffer(1), MB);
            });
            while (!is_asking) {
                std::this_thread::yield();
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(ms));
        };
        do {
            run();
        } while (!user.joinable());
        user.join();
        w->on_dereg = nullptr;
    }

    static uintptr_t buffer(unsigned i)
    {
        return 0x10000000 + i * 16 * MB;
    }

    std::unique_ptr<regcache_world> w;
};

#endif
