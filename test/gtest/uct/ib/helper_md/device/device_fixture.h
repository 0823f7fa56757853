/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#ifndef DEVICE_FIXTURE_H_
#define DEVICE_FIXTURE_H_

#include <uct/ib/helper_md/device/device.h>
#include <uct/ib/helper_md/generation_lower.h>
#include <test/inside/md_inside.h>
#include <uct/ib/helper_md/helper_md.h>
#include <uct/ib/helper_md/plain_config.h>

#include <ucm/api/ucm.h>
#include <gtest/gtest.h>

#include <sys/mman.h>

/* Exported by libucs and libucm, declared in headers that are not installed.
 * 1.22 added a last argument to the first one, which earlier ones ignore. */
extern "C" {
void ucs_memtype_cache_update(const void *address, size_t size,
                              ucs_memory_type_t mem_type, unsigned sys_dev,
                              unsigned mem_flags);
void ucs_memtype_cache_remove(const void *address, size_t size);
void ucm_event_dispatch(ucm_event_type_t type, ucm_event_t *event);
}

static const unsigned ACCESS = UCT_MD_MEM_ACCESS_ALL;
static const size_t   LENGTH = 64ul << 10;
static const uint64_t TYPES  = UCS_BIT(UCS_MEMORY_TYPE_HOST) |
                              UCS_BIT(UCS_MEMORY_TYPE_CUDA);

/** A domain that registers a GPU's memory too. What stands for that memory is
 *  called so in UCX's cache of memory types. */
class test_device : public ::testing::Test {
protected:
    explicit test_device(unsigned minor = 18) : m_generation(minor)
    {
    }

    void SetUp() override
    {
#if defined(__SANITIZE_THREAD__)
        GTEST_SKIP() << "UCM's hooks and ThreadSanitizer exclude each other";
#endif
        m_buffer = (char*)mmap(nullptr, 2 * LENGTH, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1,
                               0);
        ASSERT_NE(MAP_FAILED, m_buffer);
        /* UCX makes its cache of types when it is first asked */
        EXPECT_FALSE(uct_helper_device_is_known(m_buffer, 2 * LENGTH));
    }

    void TearDown() override
    {
        if (m_buffer != nullptr) {
            ucs_memtype_cache_remove(m_buffer, 2 * LENGTH);
            munmap(m_buffer, 2 * LENGTH);
        }
    }

    void attach(generation_lower &lower,
                ucs_regcache_policy_t policy = UCS_REGCACHE_POLICY_ON_DEMAND)
    {
        uct_helper_config_t config = plain_config();

        config.policy = policy;
        ASSERT_EQ(UCS_OK, uct_helper_md_attach(lower.md(), "fake", &config));
    }

    /* The test's own domain; m_buffer is a device's from its beginning on */
    void open(size_t length = LENGTH)
    {
        attach(lower);
        call_device(m_buffer, length);
    }

    void attach_watching(generation_lower &lower, ucs_regcache_policy_t policy)
    {
        uct_helper_config_t config = plain_config();

        config.policy  = policy;
        config.monitor = UCT_HELPER_MONITOR_AUTO;
        ASSERT_EQ(UCS_OK, uct_helper_md_attach(lower.md(), "fake", &config));
    }

    static void call_device(void *address, size_t length,
                            ucs_memory_type_t type = UCS_MEMORY_TYPE_CUDA)
    {
        ucs_memtype_cache_update(address, length, type, 0, 0);
    }

    /* The access of these tests, and another field that the caller sets */
    static uct_abi_md_mem_reg_params_t params_with(uint64_t field)
    {
        uct_abi_md_mem_reg_params_t params;

        memset(&params, 0, sizeof(params));
        params.field_mask = UCT_ABI_MD_MEM_REG_FIELD_FLAGS | field;
        params.flags      = ACCESS;
        return params;
    }

    /* As UCP from 1.22 on, which says what the program said */
    static uct_mem_h reg_told(generation_lower &lower, void *address,
                              ucs_memory_type_t type)
    {
        auto params = params_with(UCT_ABI_MD_MEM_REG_FIELD_MEM_TYPE);

        params.mem_type = type;
        return lower.reg_params(address, LENGTH, &params);
    }

    /* As UCP with a domain that takes descriptors (dmabuf); -1: none */
    static uct_abi_md_mem_reg_params_t with_descriptor(int fd)
    {
        auto params = params_with(UCT_ABI_MD_MEM_REG_FIELD_DMABUF_FD);

        params.dmabuf_fd = fd;
        return params;
    }

    /* Of the UCX that is loaded, whichever generation is in force */
    static unsigned running_minor()
    {
        uct_abi_version_t version;

        uct_abi_version_get(&version);
        return version.minor;
    }

    /* nullptr if the UCX that is loaded has none of that name */
    static uct_abi_component_t *component(const char *name)
    {
        uct_abi_component_t *found = nullptr;
        uct_component_h *components;
        unsigned count;

        EXPECT_EQ(UCS_OK, uct_query_components(&components, &count));
        for (unsigned i = 0; i < count; ++i) {
            if (!strcmp(uct_abi_component_name(components[i]), name)) {
                found = (uct_abi_component_t*)components[i];
            }
        }
        uct_release_component_list(components);
        return found;
    }

    static void free_event(void *address, size_t length)
    {
        ucm_event_t event;

        memset(&event, 0, sizeof(event));
        event.mem_type.address  = address;
        event.mem_type.size     = length;
        event.mem_type.mem_type = UCS_MEMORY_TYPE_CUDA;
        ucm_event_dispatch(UCM_EVENT_MEM_TYPE_FREE, &event);
    }

    static void use(generation_lower &lower, void *address,
                    size_t length = LENGTH)
    {
        uct_mem_h memh = lower.reg(address, length, ACCESS);
        ASSERT_NE(nullptr, memh);
        EXPECT_EQ(UCS_OK, lower.dereg(memh));
    }

    static size_t cache_uses(generation_lower &lower)
    {
        ucs_regcache_stats_t stats;

        ucs_regcache_stats(uct_helper_md_cache(lower.md()), 0, &stats);
        return stats.regions;
    }

    generation_in_force m_generation;
    generation_lower    lower{"fake", 0, TYPES};
    char                *m_buffer = nullptr;
};

#endif
