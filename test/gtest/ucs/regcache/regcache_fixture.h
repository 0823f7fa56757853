/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef REGCACHE_FIXTURE_H_
#define REGCACHE_FIXTURE_H_

#include "regcache_world.h"

static constexpr uint64_t MS = 1000000;
static constexpr size_t   MB = 1 << 20;

/** A cache of any policy in a world that stands still unless it is advanced. */
class test_regcache : public ::testing::Test {
protected:
    void start(ucs_regcache_policy_t policy)
    {
        w = std::make_unique<regcache_world>(policy);
        w->open();
    }

    static uintptr_t buffer(unsigned i)
    {
        return 0x10000000 + i * 16 * MB;
    }

    std::unique_ptr<regcache_world> w;
};

#endif
