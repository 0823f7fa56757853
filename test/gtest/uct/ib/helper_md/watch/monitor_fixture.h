/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef MONITOR_FIXTURE_H_
#define MONITOR_FIXTURE_H_

#include "../fake_lower.h"
#include "far_place.h"
#include "../plain_config.h"
#include "../quiet_fork.h"

#include <test/own_proc.h>
#include <uct/ib/helper_md/watch/monitor.h>
#include <uct/ib/helper_md/helper_md.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <system_error>

#include <dirent.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/** The kernel's events, with a domain that counts registrations. All calls that
 * change mappings are raw, so that UCM's hooks could not see them either. */
class test_monitor : public ::testing::Test {
protected:
    static constexpr size_t LENGTH = 64ul << 10;

    void SetUp() override
    {
        const char *reason;

#if defined(__SANITIZE_THREAD__)
        GTEST_SKIP() << "ThreadSanitizer maps where a test has just unmapped";
#endif
        reason = uct_helper_monitor_start();
        if (reason != nullptr) {
            GTEST_SKIP() << reason;
        }
        uct_helper_monitor_stop();
        m_config         = plain_config();
        m_config.monitor = UCT_HELPER_MONITOR_AUTO;
        m_buffer         = map();
    }

    void TearDown() override
    {
        if (m_lower.now() != m_lower.ops()) {
            close(); /* a test that failed half way costs no other */
        }
        if (m_buffer != nullptr) {
            unmap(m_buffer);
        }
    }

    /* NULL if it cannot be had */
    static char *try_map(void *where, int flags)
    {
        void *address = (void*)syscall(SYS_mmap, where, LENGTH,
                                       PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | flags, -1l,
                                       0l);
        return (address == MAP_FAILED) ? nullptr :
                                         (char*)memset(address, 1, LENGTH);
    }

    static char *map(void *where = nullptr, int flags = 0)
    {
        char *address = try_map((where == nullptr) ? far_place(LENGTH) : where,
                                flags);
        if (address == nullptr) {
            throw std::system_error(errno, std::generic_category(), "mmap");
        }
        return address;
    }

    static void unmap(void *address, size_t length = LENGTH)
    {
        EXPECT_EQ(0, syscall(SYS_munmap, address, length));
    }

    void attach()
    {
        ASSERT_EQ(UCS_OK, uct_helper_md_attach(m_lower.md(), "fake0",
                                               &m_config));
    }

    void close()
    {
        m_lower.now()->close(m_lower.md());
        EXPECT_EQ(0u, m_lower.bad_dereg_count());
        EXPECT_EQ(0u, m_lower.live_count());
    }

    uct_mem_h reg(void *address, size_t length = LENGTH)
    {
        return m_lower.reg(address, length);
    }

    void dereg(uct_mem_h memh)
    {
        EXPECT_EQ(UCS_OK, m_lower.dereg(memh));
    }

    void use(void *address, size_t length = LENGTH)
    {
        dereg(reg(address, length));
    }

    /* Nonzero if a use of the range is a hit */
    bool is_hit(void *address, size_t length = LENGTH)
    {
        unsigned before = m_lower.reg_count();

        use(address, length);
        return m_lower.reg_count() == before;
    }

    /* A registration that was kept is gone after @a disturb */
    void expect_struck(const std::function<void()> &disturb)
    {
        attach();
        use(m_buffer);
        ASSERT_TRUE(is_hit(m_buffer));
        disturb();
        EXPECT_FALSE(is_hit(m_buffer));
        EXPECT_TRUE(is_hit(m_buffer));
        close();
    }

    /* What may not be kept is registered for each use and dropped after it */
    void expect_dropped(void *address, size_t length = LENGTH)
    {
        use(address, length);
        EXPECT_EQ(0u, m_lower.live_count());
        EXPECT_FALSE(is_hit(address, length));
        EXPECT_EQ(0u, m_lower.live_count());
    }

    /* Thread of this process by name, 0 if there is none */
    static pid_t find_thread(const char *name)
    {
        pid_t found = 0;

        own_proc_threads(name, &found);
        return found;
    }

    static int find_userfaultfd()
    {
        return own_proc_userfaultfd(1024);
    }

    fake_lower          m_lower;
    uct_helper_config_t m_config;
    char                *m_buffer = nullptr;
};

#endif
