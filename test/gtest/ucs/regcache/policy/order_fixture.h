/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef ORDER_FIXTURE_H_
#define ORDER_FIXTURE_H_

#include "../regcache_fixture.h"

#include <random>

static constexpr uint64_t US = 1000;

/** The policies that mind the price of memory. */
class test_regcache_order : public test_regcache {
protected:
    void SetUp() override
    {
        make(UCS_REGCACHE_POLICY_PREDICT);
    }

    void make(ucs_regcache_policy_t policy)
    {
        w = std::make_unique<regcache_world>(policy);
        /* Where the ceiling is not what is tested it is out of the way */
        tuning            = ucs_regcache_tuning_default;
        tuning.soft_least = 1e15;
        w->params.tuning  = &tuning;
    }

    /* How long 1 MB stays registered after its first use */
    uint64_t rented(ucs_regcache_policy_t policy, double max_slowdown)
    {
        make(policy);
        w->params.max_slowdown = max_slowdown;
        w->open();
        return kept(buffer(0));
    }

    /* How long it stays registered after this use */
    uint64_t kept(uintptr_t address, size_t length = MB)
    {
        w->touch(address, length);
        uint64_t end = w->now;
        while (w->is_registered(address, length)) {
            w->advance(100 * US);
        }
        return w->now - end;
    }

    /* A at any time, and 50 ms later B, which nothing else foretells */
    void announced(unsigned count)
    {
        std::uniform_int_distribution<uint64_t> pause(300 * MS, 900 * MS);
        for (unsigned i = 0; i < count; ++i) {
            w->use(buffer(0), MB, MS, 1);
            w->advance(50 * MS);
            w->use(buffer(1), MB, MS, 2);
            w->advance(pause(random));
        }
    }

    std::mt19937 random{1};
    ucs_regcache_tuning_t tuning;
};

#endif
