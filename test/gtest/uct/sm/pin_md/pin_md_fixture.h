/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef PIN_MD_FIXTURE_H_
#define PIN_MD_FIXTURE_H_

#include <ucs/sys/address_space.h>
#include <uct/base/uct_abi.h>
#include <uct/ib/helper_md/fake_lower.h>
#include <test/inside/pin_inside.h>

#include <ucs/debug/log_def.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <mutex>

/* A domain below the decorator in which a thread may be cancelled, as in a driver */
class fake_md : public fake_lower {
public:
    fake_md() : fake_lower("cma")
    {
        m_ops.query     = query;
        m_ops.mem_reg   = mem_reg;
        m_ops.mem_dereg = mem_dereg;
    }

    int queries               = 0;
    ucs_status_t dereg_status = UCS_OK;
    uct_abi_md_mem_dereg_params_t last_dereg = {}; /* protected by m_lock */

private:
    static fake_md *of(uct_md_h md)
    {
        return static_cast<fake_md*>(fake_lower::of(md));
    }

    static ucs_status_t query(uct_md_h md, void *attr)
    {
        ++of(md)->queries;
        return fake_lower::query(md, attr);
    }

    static ucs_status_t mem_reg(uct_md_h md, void *address, size_t length,
                                unsigned flags, uct_mem_h *memh_p)
    {
        pthread_testcancel();
        return fake_lower::mem_reg(md, address, length, flags, memh_p);
    }

    static ucs_status_t
    mem_dereg(uct_md_h md, const uct_abi_md_mem_dereg_params_t *params)
    {
        pthread_testcancel();
        {
            std::lock_guard<std::mutex> guard(of(md)->m_lock);
            of(md)->last_dereg = *params;
        }
        return (of(md)->dereg_status == UCS_OK) ?
                       fake_lower::mem_dereg(md, params) :
                       of(md)->dereg_status;
    }
};

class pin_md : public ::testing::Test {
protected:
    static const size_t kB = 1024, MB = 1024 * kB, GB = 1024 * MB;

    void SetUp() override
    {
        page_size = sysconf(_SC_PAGESIZE);
        base_pin  = vm_pin();
        num_errors = num_warnings = 0;
        ucs_log_push_handler(count_log);
    }

    void TearDown() override
    {
        ucs_log_pop_handler();
        close_md();
        expect_pinned(0);
    }

    void attach(unsigned max_regions = 0, double base_ns = 0,
                double per_page_ns = 0,
                int verify = 0, double told_ns = 0, uint64_t node_regions = 0)
    {
        uct_pin_config_t config = {base_ns, per_page_ns, max_regions, verify,
                                   told_ns, node_regions};
        ASSERT_EQ(UCS_OK, uct_pin_md_attach(md(), &config));
        attached = true;
    }

    void close_md()
    {
        if (attached) {
            EXPECT_TRUE(uct_pin_md_is_valid(md()));
            lower.now()->close(md());
            attached = false;
        }
    }

    uct_md_h md()
    {
        return lower.md();
    }

    ucs_status_t reg(void *address, size_t length, uct_mem_h *memh_p,
                     unsigned flags = UCT_MD_MEM_ACCESS_ALL)
    {
        return lower.now()->mem_reg(md(), address, length, flags, memh_p);
    }

    ucs_status_t dereg(uct_mem_h memh)
    {
        return lower.dereg(memh);
    }

    /* Bytes pinned in this process */
    static long vm_pin()
    {
        return (long)address_space("VmPin");
    }

    /* Bytes pinned since the test began. They show at once, save for a kernel
     * that unpins late. */
    long pinned(long expected) const
    {
        time_t deadline = time(NULL) + 10;
        long value;

        do {
            value = vm_pin() - base_pin;
        } while ((value != expected) && (time(NULL) < deadline));
        return value;
    }

    void expect_pinned(size_t expected) const
    {
        EXPECT_EQ((long)expected, pinned(expected));
    }

    /* A private mapping without huge pages, which VmPin counts as a whole */
    struct mapping {
        void   *address;
        size_t length;

        explicit mapping(size_t size, int prot = PROT_READ | PROT_WRITE) :
            address(mmap(NULL, size, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
            length(size)
        {
            EXPECT_NE(MAP_FAILED, address);
            madvise(address, length, MADV_NOHUGEPAGE);
        }

        ~mapping()
        {
            munmap(address, length);
        }

        char *at(size_t offset) const
        {
            return (char*)address + offset;
        }
    };

    static ucs_log_func_rc_t
    count_log(const char *, unsigned, const char *, ucs_log_level_t level,
              const ucs_log_component_config_t *, const char *, va_list)
    {
        num_errors   += (level <= UCS_LOG_LEVEL_ERROR);
        num_warnings += (level == UCS_LOG_LEVEL_WARN);
        return UCS_LOG_FUNC_RC_STOP;
    }

    fake_md    lower;
    bool       attached = false;
    size_t     page_size;
    long       base_pin;
    static inline int num_errors, num_warnings;
};

#endif
