/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef DECORATOR_FIXTURE_H_
#define DECORATOR_FIXTURE_H_

#include "fake_lower.h"
#include "plain_config.h"
#include "quiet_fork.h"

#include <test/inside/md_inside.h>
#include <uct/ib/helper_md/helper_md.h>

#include <gtest/gtest.h>

#include <cstring>

#include <sys/mman.h>

#define TEST_LENGTH (64ul << 10)

/** A helper over a domain that registers nothing. */
class test_decorator : public ::testing::Test {
protected:
    static const unsigned access = UCT_MD_MEM_ACCESS_ALL;

    void SetUp() override
    {
#if defined(__SANITIZE_THREAD__)
        /* UCM takes malloc() and operator delete over from ThreadSanitizer one
         * by one, and that ends in its allocator. The thread and the cache
         * have their own tests, which run there. */
        GTEST_SKIP() << "UCM's hooks and ThreadSanitizer exclude each other";
#endif
        m_config = plain_config();
        m_buffer = map(nullptr);
    }

    void TearDown() override
    {
        if (lower.now() != lower.ops()) {
            close(lower);
        }
        if (m_buffer != nullptr) {
            munmap(m_buffer, TEST_LENGTH);
        }
    }

    static void *map(void *where)
    {
        void *address = mmap(where, TEST_LENGTH, PROT_READ | PROT_WRITE,
                             /* the helper brings nothing into memory */
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE |
                             ((where == nullptr) ? 0 : MAP_FIXED_NOREPLACE),
                             -1, 0);
        EXPECT_NE(MAP_FAILED, address);
        return address;
    }

    void attach(fake_lower &lower)
    {
        ASSERT_EQ(UCS_OK, uct_helper_md_attach(lower.md(), "fake0",
                                               &m_config));
    }

    static const uct_abi_md_ops_t *ops(fake_lower &lower)
    {
        return lower.now();
    }

    static uct_mem_h reg(fake_lower &lower, void *address, size_t length,
                         unsigned flags = access)
    {
        return lower.reg(address, length, flags);
    }

    static ucs_status_t dereg(fake_lower &lower, uct_mem_h memh)
    {
        return lower.dereg(memh);
    }

    static void close(fake_lower &lower)
    {
        ops(lower)->close(lower.md());
        EXPECT_EQ(lower.ops(), ops(lower));
        EXPECT_EQ(1u, lower.close_count());
        EXPECT_EQ(0u, lower.bad_dereg_count());
    }

    /* In a child that no helper serves, whose parent uses m_buffer. @return Zero: what
     * it registers comes and goes, and the parent's stays as it is. */
    int goes_straight_down(fake_lower &lower, uct_mem_h parents)
    {
        if (uct_helper_md_has_thread(lower.md())) {
            return 1;
        }
        for (int i = 0; i < 3; ++i) {
            uct_mem_h own = reg(lower, m_buffer, TEST_LENGTH);
            if ((own == parents) || !lower.is_live(own) ||
                (dereg(lower, own) != UCS_OK) || lower.is_live(own)) {
                return 2;
            }
        }
        return ((dereg(lower, parents) != UCS_OK) || !lower.is_live(parents)) ?
                       3 : 0;
    }

    uct_helper_config_t m_config;
    void                *m_buffer = nullptr;
    fake_lower          lower; /* of a test that attaches one, and need not close it */
};

#endif
