/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "device_fixture.h"

#include <uct/ib/helper_md/device/device.h>

TEST_F(test_device, stays_registered_under_any_policy)
{
    for (int policy = 0; policy < UCS_REGCACHE_POLICY_LAST; ++policy) {
        generation_lower lower("fake", 0, TYPES);
        attach(lower, ucs_regcache_policy_t(policy));
        call_device(m_buffer, LENGTH);
        for (int i = 0; i < 5; ++i) {
            use(lower, m_buffer);
        }
        EXPECT_EQ(1u, lower.reg_count()) << policy;
        EXPECT_EQ(0u, lower.dereg_count()) << policy;
        EXPECT_EQ(0u, cache_uses(lower)) << policy;
    }
}

TEST_F(test_device, host_memory_beside_it_is_as_ever)
{
    open();
    use(lower, m_buffer + LENGTH);
    use(lower, m_buffer + LENGTH);
    EXPECT_EQ(2u, lower.reg_count());
    EXPECT_EQ(2u, lower.dereg_count());
}

TEST_F(test_device, a_part_of_it_hits_another_access_does_not)
{
    open();
    uct_mem_h memh = lower.reg(m_buffer, LENGTH, UCT_MD_MEM_ACCESS_LOCAL_READ);
    EXPECT_EQ(memh, lower.reg(m_buffer + 4096, 4096,
                              UCT_MD_MEM_ACCESS_LOCAL_READ));
    uct_mem_h other = lower.reg(m_buffer, LENGTH, ACCESS);
    EXPECT_NE(memh, other);
    EXPECT_EQ(2u, lower.reg_count());
    for (uct_mem_h each : {memh, memh, other}) {
        EXPECT_EQ(UCS_OK, lower.dereg(each));
    }
    EXPECT_EQ(0u, lower.dereg_count());
}

TEST_F(test_device, every_type_of_it_stays)
{
    const ucs_memory_type_t types[] = {
        UCS_MEMORY_TYPE_CUDA, UCS_MEMORY_TYPE_CUDA_MANAGED,
        UCS_MEMORY_TYPE_ROCM, UCS_MEMORY_TYPE_ROCM_MANAGED
    };

    for (ucs_memory_type_t type : types) {
        generation_lower lower("fake", 0, TYPES | UCS_BIT(type));
        attach(lower);
        call_device(m_buffer, LENGTH, type);
        use(lower, m_buffer);
        use(lower, m_buffer);
        EXPECT_EQ(1u, lower.reg_count()) << type;
        EXPECT_EQ(0u, lower.dereg_count()) << type;
    }
}

TEST_F(test_device, a_part_that_is_the_hosts_is_no_hindrance)
{
    /* A request over both is none for the cache of host memory */
    open();
    use(lower, m_buffer + LENGTH / 2);
    use(lower, m_buffer + LENGTH / 2);
    EXPECT_EQ(0u, cache_uses(lower));
}

TEST_F(test_device, what_the_caller_says_comes_first)
{
    generation_in_force generation(22);
    generation_lower lower("fake", 0, TYPES);

    attach(lower);
    for (int i = 0; i < 2; ++i) { /* no cache of types knows it */
        uct_mem_h memh = reg_told(lower, m_buffer, UCS_MEMORY_TYPE_CUDA);
        EXPECT_EQ(UCS_OK, lower.dereg(memh));
    }
    EXPECT_EQ(1u, lower.reg_count());
    EXPECT_EQ(0u, lower.dereg_count());

    call_device(m_buffer + LENGTH, LENGTH);
    EXPECT_EQ(UCS_OK, lower.dereg(reg_told(lower, m_buffer + LENGTH,
                                           UCS_MEMORY_TYPE_HOST)));
    EXPECT_EQ(1u, lower.dereg_count()) << "on demand";

    /* One that says nothing: the cache of types is asked */
    EXPECT_EQ(UCS_OK, lower.dereg(reg_told(lower, m_buffer + LENGTH,
                                           UCS_MEMORY_TYPE_UNKNOWN)));
    EXPECT_EQ(1u, lower.dereg_count()) << "it stays";
}

TEST_F(test_device, a_domain_of_host_memory_believes_the_caller_too)
{
    generation_in_force generation(22);
    generation_lower lower("fake", UCS_BIT(10));

    attach(lower);
    uct_mem_h memh = reg_told(lower, m_buffer, UCS_MEMORY_TYPE_CUDA);
    EXPECT_EQ(UCS_OK, lower.dereg(memh));
    EXPECT_EQ(0u, lower.dereg_count());
    EXPECT_EQ(0u, cache_uses(lower));
}

TEST_F(test_device, free_while_it_is_being_registered)
{
    open();
    lower.on_reg = [this](void*, size_t) {
        free_event(m_buffer, LENGTH);
        return UCS_OK;
    };
    uct_mem_h memh = lower.reg(m_buffer, LENGTH, ACCESS);
    lower.on_reg   = nullptr;
    EXPECT_NE(memh, lower.reg(m_buffer, LENGTH, ACCESS));
    EXPECT_EQ(UCS_OK, lower.dereg(memh));
    EXPECT_EQ(1u, lower.dereg_count()) << "it was stale from the start";
}

TEST_F(test_device, a_refusal_leaves_nothing)
{
    open();
    lower.on_reg = [](void*, size_t) { return UCS_ERR_NO_MEMORY; };
    EXPECT_EQ(nullptr, lower.reg(m_buffer, LENGTH, ACCESS));
    free_event(m_buffer, LENGTH);
    lower.on_reg   = nullptr;
    unsigned tried = lower.reg_count();
    use(lower, m_buffer);
    EXPECT_EQ(tried + 1, lower.reg_count());
}

/* Without UCM's events nobody says what goes stale. In a process of its own, for
 * UCM is asked once. */
static int uses_without_events(void *address)
{
    generation_lower lower("fake", 0, TYPES);
    uct_helper_device_h device;
    uct_abi_md_mem_reg_params_t params = {};
    uct_abi_md_attr_t attr;
    uct_mem_h memh;

    params.field_mask = UCT_ABI_MD_MEM_REG_FIELD_FLAGS;
    params.flags      = ACCESS;
    ucm_global_opts.enable_events = 0;
    if ((uct_abi_md_query(lower.ops(), lower.md(), &attr) != UCS_OK) ||
        (uct_helper_device_create(lower.md(), lower.ops(), &attr, &device) !=
         UCS_OK)) {
        return 2;
    }

    for (int i = 0; i < 3; ++i) {
        if ((uct_helper_device_get(device, address, LENGTH, ACCESS, &params,
                                   &memh) != UCS_OK) ||
            (uct_helper_device_put(device, memh, nullptr) != UCS_OK)) {
            return 3;
        }
    }
    uct_helper_device_destroy(device);
    return ((lower.reg_count() == 3) && (lower.dereg_count() == 3)) ? 0 : 4;
}

TEST_F(test_device, without_events_each_use_registers)
{
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(_exit(uses_without_events(m_buffer)),
                testing::ExitedWithCode(0), "");
}

TEST_F(test_device, free_drops_it)
{
    open(2 * LENGTH);
    use(lower, m_buffer);
    use(lower, m_buffer + LENGTH);
    free_event(m_buffer, LENGTH);
    use(lower, m_buffer + LENGTH);
    EXPECT_EQ(2u, lower.reg_count()) << "the other one stays";
    EXPECT_EQ(1u, lower.dereg_count());
    use(lower, m_buffer);
    EXPECT_EQ(3u, lower.reg_count());
}

TEST_F(test_device, free_in_a_use_drops_it_afterwards)
{
    open();
    uct_mem_h memh = lower.reg(m_buffer, LENGTH, ACCESS);
    free_event(m_buffer + 4096, 1);
    EXPECT_EQ(0u, lower.dereg_count()) << "it is in use";
    uct_mem_h next = lower.reg(m_buffer, LENGTH, ACCESS);
    EXPECT_NE(memh, next) << "what was freed must not be found";
    EXPECT_EQ(UCS_OK, lower.dereg(memh));
    EXPECT_EQ(1u, lower.dereg_count());
    EXPECT_EQ(UCS_OK, lower.dereg(next));
    EXPECT_EQ(1u, lower.dereg_count());
}

TEST_F(test_device, a_descriptor_makes_it_a_devices)
{
    /* The domain takes descriptors (dmabuf), and no type but the host's */
    generation_lower lower("fake", UCS_BIT(10));
    uct_abi_md_mem_reg_params_t params = with_descriptor(1);

    attach(lower);
    uct_mem_h memh = lower.reg_params(m_buffer, LENGTH, &params);
    EXPECT_EQ(&params, lower.passed_params) << "it is needed below";
    EXPECT_EQ(UCS_OK, lower.dereg(memh));
    params.dmabuf_fd = 2; /* each request opens one */
    EXPECT_EQ(memh, lower.reg_params(m_buffer, LENGTH, &params));
    EXPECT_EQ(UCS_OK, lower.dereg(memh));
    EXPECT_EQ(1u, lower.reg_count());
    EXPECT_EQ(0u, lower.dereg_count());

    params.dmabuf_fd = -1; /* none: UCT_DMABUF_FD_INVALID */
    memh = lower.reg_params(m_buffer + LENGTH, LENGTH, &params);
    EXPECT_EQ(UCS_OK, lower.dereg(memh));
    EXPECT_EQ(1u, lower.dereg_count()) << "that is host memory, on demand";
}

static unsigned completions;

static void note_completion(uct_completion_t *comp)
{
    ++completions;
}

TEST_F(test_device, invalidation_waits_for_the_last_user)
{
    generation_lower lower("fake", UCT_MD_FLAG_INVALIDATE, TYPES);
    uct_completion_t comp[2];
    uct_abi_md_mem_dereg_params_t params;

    attach(lower);
    call_device(m_buffer, LENGTH);
    uct_mem_h memh = lower.reg(m_buffer, LENGTH, ACCESS);
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(memh, lower.reg(m_buffer, LENGTH, ACCESS));
    }

    completions = 0;
    for (int i = 0; i < 2; ++i) {
        comp[i].func      = note_completion;
        comp[i].count     = 1;
        comp[i].status    = UCS_OK;
        params.field_mask = UCT_ABI_MD_MEM_DEREG_FIELD_MEMH |
                            UCT_ABI_MD_MEM_DEREG_FIELD_FLAGS |
                            UCT_ABI_MD_MEM_DEREG_FIELD_COMPLETION;
        params.memh       = memh;
        params.flags      = UCT_ABI_MD_MEM_DEREG_FLAG_INVALIDATE;
        params.comp       = &comp[i];
        EXPECT_EQ(UCS_OK, lower.now()->mem_dereg(lower.md(), &params));
    }
    EXPECT_EQ(0u, completions);
    EXPECT_EQ(0u, lower.dereg_count());
    EXPECT_EQ(UCS_OK, lower.dereg(memh));
    EXPECT_EQ(2u, completions);
    EXPECT_EQ(1u, lower.dereg_count());
    EXPECT_EQ(1u, lower.invalidate_count());
}
