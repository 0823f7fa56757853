/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef HELD_LOCK_H_
#define HELD_LOCK_H_

#include <ucs/regcache/regcache_world.h>

#include <uct/ib/helper_md/watch/events.h>

#include <functional>

/** Call @a function while this thread holds the index lock of a cache that
 *  listens to memory events: a budget is claimed under it. */
static inline void with_index_lock(const std::function<void()> &function)
{
    regcache_world world(UCS_REGCACHE_POLICY_LEAVE_PINNED);
    bool is_done = false;

    world.on_claim   = [&](auto&&...) {
        if (!is_done) {
            is_done = true;
            function();
        }
        return true;
    };
    world.on_unclaim = [](auto&&...) {};
    world.open();
    EXPECT_EQ(UCS_OK, uct_helper_events_join(world.cache));
    world.touch(0x10000000, 1 << 20);
    uct_helper_events_leave(world.cache);
    EXPECT_TRUE(is_done);
}

#endif
