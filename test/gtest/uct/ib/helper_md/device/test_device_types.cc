/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "device_fixture.h"
#include "mapping.h"

#include <uct/ib/helper_md/watch/far_place.h>
#include <uct/ib/helper_md/watch/monitor.h>

/* Whether the kernel lets this process watch memory */
static bool can_watch()
{
    if (uct_helper_monitor_start() != nullptr) {
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
    bool watches = can_watch();

    attach_watching(lower, UCS_REGCACHE_POLICY_PREDICT);
    use(lower, m_host);
    mapping_t mapping = mapping_of(m_host);
    EXPECT_EQ(watches, mapping.is_watched);
    EXPECT_LE(LENGTH >> 10, mapping.kb_present);
}

/* What UCX puts into its cache when a device's library allocates in a way that
 * tells no type: the value differs between releases, and is the last that has a
 * name */
TEST_F(test_device_untouched, what_nobody_can_name_is_a_devices)
{
    int type = UCS_MEMORY_TYPE_HOST;

    while (strcmp(ucs_memory_type_names[type], "unknown")) {
        ++type;
    }
    attach(lower);
    call_device(m_buffer, LENGTH, (ucs_memory_type_t)type);
    use(lower, m_buffer);
    use(lower, m_buffer);
    EXPECT_EQ(1u, lower.reg_count());
    EXPECT_EQ(0u, lower.dereg_count());
    EXPECT_EQ(0u, cache_uses(lower));
    free_event(m_buffer, LENGTH);
    use(lower, m_buffer);
    EXPECT_EQ(2u, lower.reg_count()) << "it was freed";
    lower.now()->close(lower.md());
}
