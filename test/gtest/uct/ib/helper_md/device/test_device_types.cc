/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "device_fixture.h"
#include "mapping.h"

#include <uct/ib/helper_md/far_place.h>
#include <uct/ib/helper_md/watch/monitor.h>

#include <functional>

/* Whether the kernel lets this process watch memory */
static bool can_watch()
{
    const char *reason;

    if (uct_helper_monitor_start(&reason) != UCS_OK) {
        return false;
    }
    uct_helper_monitor_stop();
    return true;
}

/** Memory of a device that this process can map and not read, as that of some
 *  is: what copies it, looks at it or makes its pages present dies or shows. */
class test_device_untouched : public test_device {
protected:
    void SetUp() override
    {
        test_device::SetUp();
        if (!IsSkipped()) {
            m_device = map(PROT_NONE);
            m_host   = map(PROT_READ | PROT_WRITE);
            memset(m_host, 1, LENGTH);
        }
    }

    void TearDown() override
    {
        if (m_device != nullptr) {
            ucs_memtype_cache_remove(m_device, LENGTH);
            munmap(m_device, LENGTH);
            munmap(m_host, LENGTH);
        }
        test_device::TearDown();
    }

    /* Nothing is merged with what lies beside it */
    static char *map(int protection)
    {
        void *address = mmap(far_place(LENGTH), LENGTH, protection,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                             0);
        EXPECT_NE(MAP_FAILED, address);
        return (char*)address;
    }

    char *m_device = nullptr, *m_host = nullptr;
};

TEST_F(test_device_untouched, neither_watched_nor_copied)
{
    for (int policy = 0; policy < UCS_REGCACHE_POLICY_LAST; ++policy) {
        generation_lower lower("fake", 0, TYPES);
        attach_watching(lower, ucs_regcache_policy_t(policy));
        call_device(m_device, LENGTH);
        for (int i = 0; i < 3; ++i) {
            use(lower, m_device);
        }
        EXPECT_EQ(m_device, lower.last_reg_address()) << policy << ": a copy's";
        EXPECT_EQ(1u, lower.reg_count()) << policy;
        mapping_t mapping = mapping_of(m_device);
        EXPECT_FALSE(mapping.is_watched) << policy;
        EXPECT_EQ(0u, mapping.kb_present) << policy;
    }
}

/* The test above looks at the right things */
TEST_F(test_device_untouched, host_memory_is_watched)
{
    generation_lower lower("fake", 0, TYPES);
    bool watches = can_watch();

    attach_watching(lower, UCS_REGCACHE_POLICY_PREDICT);
    use(lower, m_host);
    mapping_t mapping = mapping_of(m_host);
    EXPECT_EQ(watches, mapping.is_watched);
    EXPECT_LE(LENGTH >> 10, mapping.kb_present);
}

/** One of UCX's domains that detects a type, which none does without a GPU:
 *  that of the transport to oneself, with two functions of its table replaced.
 *  The layouts are those of the running UCX. */
class test_device_detect : public test_device {
protected:
    void SetUp() override
    {
        test_device::SetUp();
        if (IsSkipped()) {
            return;
        }

        uct_abi_select(uct_abi_find(UCT_ABI_MAJOR, running_minor()));
        m_component = component("self");
        ASSERT_NE(nullptr, m_component);
        md_open              = m_component->md_open;
        m_component->md_open = open_detecting;
        num_open = num_asked = 0;
        answer   = [](const void *) { return UCS_MEMORY_TYPE_CUDA; };
    }

    void TearDown() override
    {
        if (m_component != nullptr) {
            m_component->md_open = md_open;
        }
        test_device::TearDown();
    }

    static ucs_status_t open_detecting(uct_component_h component,
                                       const char *md_name,
                                       const uct_md_config_t *config,
                                       uct_md_h *md_p)
    {
        ucs_status_t status = md_open(component, md_name, config, md_p);

        if (status != UCS_OK) {
            return status;
        }

        own = uct_abi_md(*md_p)->ops;
        uct_abi_md_ops_copy(&ops, own, component);
        ops.close             = close;
        *(void**)&ops.query   = (void*)query;
        *(void**)&ops.rest[DETECT - UCT_ABI_NAMED_SLOTS] = (void*)detect;
        uct_abi_md(*md_p)->ops = &ops;
        ++num_open;
        return UCS_OK;
    }

    static void close(uct_md_h md)
    {
        --num_open;
        uct_abi_md(md)->ops = own;
        own->close(md);
    }

    /* Either version of the attributes: what differs is where a field lies */
    static ucs_status_t query(uct_md_h md, void *attr)
    {
        uint64_t types      = UCS_BIT(UCS_MEMORY_TYPE_CUDA);
        ucs_status_t status = own->query_v2(md, attr);

        memcpy((char*)attr + uct_abi_running->attr_detect_mem_types, &types,
               sizeof(types));
        return status;
    }

    static ucs_status_t detect(uct_md_h, const void *address, size_t,
                               ucs_memory_type_t *type_p)
    {
        ++num_asked;
        *type_p = answer(address);
        return (*type_p == UCS_MEMORY_TYPE_LAST) ? UCS_ERR_INVALID_ADDR :
                                                   UCS_OK;
    }

    /* UCX knows that it is not plain host memory, and not more: what it puts
     * there when a device's library allocates in a way that tells no type */
    static void call_unknown(void *address, size_t length)
    {
        int type = UCS_MEMORY_TYPE_HOST;

        while (!uct_helper_detect_is_unknown((ucs_memory_type_t)type)) {
            ++type;
        }
        call_device(address, length, (ucs_memory_type_t)type);
    }

    static const unsigned DETECT = 10; /* slot, in all releases */

    static uct_abi_md_open_func_t            md_open;
    static const uct_abi_md_ops_t            *own;
    static uct_abi_md_ops_t                  ops;
    static std::function<ucs_memory_type_t(const void*)> answer;
    static unsigned                          num_open, num_asked;
    uct_abi_component_t                      *m_component = nullptr;
};

uct_abi_md_open_func_t  test_device_detect::md_open;
const uct_abi_md_ops_t *test_device_detect::own;
uct_abi_md_ops_t        test_device_detect::ops;
unsigned                test_device_detect::num_open;
unsigned                test_device_detect::num_asked;
std::function<ucs_memory_type_t(const void*)> test_device_detect::answer;

TEST_F(test_device_detect, a_domain_tells_what_the_cache_does_not)
{
    generation_lower lower("fake", 0, TYPES);

    attach(lower);
    EXPECT_EQ(1u, num_open);
    call_unknown(m_buffer, LENGTH);
    use(lower, m_buffer);
    use(lower, m_buffer);
    EXPECT_EQ(2u, num_asked);
    EXPECT_EQ(1u, lower.reg_count());
    EXPECT_EQ(0u, lower.dereg_count());
    EXPECT_EQ(0u, cache_uses(lower));

    free_event(m_buffer, LENGTH);
    use(lower, m_buffer);
    EXPECT_EQ(2u, lower.reg_count()) << "it was freed";
    lower.now()->close(lower.md());
    EXPECT_EQ(0u, num_open) << "the domain is not left open";
}

TEST_F(test_device_detect, a_domain_may_say_that_it_is_the_hosts)
{
    generation_lower lower("fake", 0, TYPES);

    attach(lower);
    answer = [](const void *) { return UCS_MEMORY_TYPE_HOST; };
    call_unknown(m_buffer, LENGTH);
    use(lower, m_buffer);
    EXPECT_EQ(1u, num_asked);
    EXPECT_EQ(1u, lower.dereg_count()) << "on demand";
}

TEST_F(test_device_detect, what_nobody_can_tell_is_a_devices)
{
    generation_lower lower("fake", 0, TYPES);

    attach(lower);
    answer = [](const void *) { return UCS_MEMORY_TYPE_LAST; };
    call_unknown(m_buffer, LENGTH);
    use(lower, m_buffer);
    EXPECT_EQ(1u, num_asked);
    EXPECT_EQ(0u, lower.dereg_count());
}

TEST_F(test_device_detect, no_domain_is_asked_of_plain_memory)
{
    generation_lower lower("fake", 0, TYPES);

    attach(lower);
    use(lower, m_buffer);
    call_device(m_buffer + LENGTH, LENGTH);
    use(lower, m_buffer + LENGTH);
    EXPECT_EQ(0u, num_asked);
}
