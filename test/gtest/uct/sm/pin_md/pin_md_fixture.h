/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef PIN_MD_FIXTURE_H_
#define PIN_MD_FIXTURE_H_

#include <ucs/sys/address_space.h>
#include <uct/base/uct_abi.h>
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

/* A domain below the decorator whose operations count their calls */
struct fake_md {
    uct_abi_md_t        super; /* First: uct_md_h points here */
    uct_abi_component_t component;
    std::atomic<int>    regs{0}, deregs{0};
    int                 closes = 0, queries = 0;
    ucs_status_t        reg_status = UCS_OK, dereg_status = UCS_OK;
    uct_abi_md_mem_dereg_params_t last_dereg = {};
    std::mutex          lock; /* Of last_dereg */

    static uct_mem_h memh()
    {
        return (uct_mem_h)0xdeadbeef;
    }

    static fake_md *of(uct_md_h md)
    {
        return reinterpret_cast<fake_md*>(md);
    }

    static void close(uct_md_h md)
    {
        ++of(md)->closes;
    }

    static ucs_status_t query(uct_md_h md, uct_md_attr_t *attr)
    {
        ++of(md)->queries;
        attr->cap.flags = UCT_MD_FLAG_REG;
        attr->reg_cost  = ucs_linear_func_make(9e-9, 0);
        return UCS_OK;
    }

    static ucs_status_t mem_reg(uct_md_h md, void *, size_t, unsigned,
                                uct_mem_h *memh_p)
    {
        pthread_testcancel(); /* a driver's call may be such a point */
        if (of(md)->reg_status != UCS_OK) {
            return of(md)->reg_status;
        }
        ++of(md)->regs;
        *memh_p = memh();
        return UCS_OK;
    }

    static ucs_status_t
    mem_dereg(uct_md_h md, const uct_abi_md_mem_dereg_params_t *params)
    {
        pthread_testcancel();
        std::lock_guard<std::mutex> guard(of(md)->lock);
        if (of(md)->dereg_status == UCS_OK) {
            ++of(md)->deregs;
        }
        of(md)->last_dereg = *params;
        return of(md)->dereg_status;
    }

    static void opaque()
    {
    }

    static const uct_abi_md_ops_t *table()
    {
        static const uct_abi_md_ops_t ops = {close,   query,  opaque, opaque,
                                             nullptr, mem_reg, mem_dereg,
                                             nullptr, opaque, opaque, opaque};
        return &ops;
    }

    fake_md() : super(), component()
    {
        super.ops       = table();
        super.component = reinterpret_cast<uct_component_h>(&component);
        strcpy(component.name, "cma");
    }

    uct_md_h handle()
    {
        return reinterpret_cast<uct_md_h>(&super);
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
        is_lazy  = uct_pin_md_is_lazy(md());
    }

    void close_md()
    {
        if (attached) {
            EXPECT_TRUE(uct_pin_md_is_valid(md()));
            uct_abi_md(md())->ops->close(md());
            attached = false;
        }
    }

    uct_md_h md()
    {
        return lower.handle();
    }

    ucs_status_t reg(void *address, size_t length, uct_mem_h *memh_p,
                     unsigned flags = UCT_MD_MEM_ACCESS_ALL)
    {
        return uct_abi_md(md())->ops->mem_reg(md(), address, length, flags,
                                              memh_p);
    }

    ucs_status_t dereg(uct_mem_h memh)
    {
        uct_abi_md_mem_dereg_params_t params = {};
        params.field_mask = UCT_ABI_MD_MEM_DEREG_FIELD_MEMH;
        params.memh       = memh;
        return uct_abi_md(md())->ops->mem_dereg(md(), &params);
    }

    /* Bytes pinned in this process */
    static long vm_pin()
    {
        return (long)address_space("VmPin");
    }

    /* Bytes pinned since the test began. They show at once, save for a kernel
     * that unpins late, which is given time to come there. */
    long pinned(long expected) const
    {
        time_t deadline = time(NULL) + 10;
        long value;

        do {
            value = vm_pin() - base_pin;
        } while (is_lazy && (value != expected) && (time(NULL) < deadline));
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
    bool       attached = false, is_lazy = false;
    size_t     page_size;
    long       base_pin;
    static inline int num_errors, num_warnings;
};

#endif
