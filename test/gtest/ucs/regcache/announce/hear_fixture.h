/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef HEAR_FIXTURE_H_
#define HEAR_FIXTURE_H_

#include "../regcache_fixture.h"

/** What the program says before it registers, in virtual time. */
class test_hear : public ::testing::Test {
protected:
    static constexpr uintptr_t BUFFER = 0x10000000;
    static constexpr uintptr_t OTHER  = 0x20000000;
    static constexpr size_t    SIZE   = 64 << 10;
    static constexpr uint64_t  MS     = 1000000;

    /* Far more than receives that are remembered */
    static constexpr unsigned RECEIVES = 400;

    test_hear() : m_world(UCS_REGCACHE_POLICY_PREDICT)
    {
        m_world.now = 1000 * MS;
        m_world.open();
        /* What its uses allow, and how long its messages are, is known from
         * the first one on */
        send();
        m_world.use(OTHER, SIZE, 1000);
        m_world.advance(100 * MS);
    }

    void say(ucs_operation_kind_t kind, uintptr_t address, size_t length,
             uint32_t id = 0)
    {
        m_world.tell(kind, address, length, id);
    }

    void send(size_t length = SIZE)
    {
        say(UCS_OPERATION_SEND, OTHER, length);
    }

    void post(uintptr_t address = BUFFER, size_t length = SIZE, uint32_t id = 0)
    {
        say(UCS_OPERATION_RECEIVE, address, length, id);
    }

    bool is_registered()
    {
        return m_world.is_registered(BUFFER, SIZE);
    }

    regcache_world m_world;
};

#endif
