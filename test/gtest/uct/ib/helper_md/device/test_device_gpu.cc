/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "device_fixture.h"
#include "gpu.h"
#include "mapping.h"

#include <unistd.h>

#include <vector>

/** A GPU's memory itself, told by the domains of a UCX that was built with CUDA.
 *  The domain that registers it counts: no NIC is needed. */
class test_device_gpu : public test_device {
protected:
    test_device_gpu() : test_device(running_minor())
    {
    }

    void SetUp() override
    {
        test_device::SetUp();
        if (IsSkipped()) {
            return;
        }
        if (!gpu::get().is_there()) {
            GTEST_SKIP() << gpu::get().reason();
        }

        void *probe = gpu::get().alloc(LENGTH);
        ASSERT_NE(nullptr, probe);
        bool is_told = uct_helper_device_is_known(probe, LENGTH);
        EXPECT_TRUE(gpu::get().free(probe));
        if (!is_told && (component("cuda_cpy") == nullptr)) {
            GTEST_SKIP() << "this UCX was built without CUDA";
        }
        ASSERT_TRUE(is_told);
    }
};

TEST_F(test_device_gpu, kinds_of_memory_are_told_apart)
{
    void *device  = gpu::get().alloc(2 * LENGTH);
    void *managed = gpu::get().alloc_managed(LENGTH);
    void *pinned  = gpu::get().alloc_host(LENGTH);

    ASSERT_NE(nullptr, device);
    EXPECT_TRUE(uct_helper_device_is_known(device, LENGTH));
    EXPECT_TRUE(uct_helper_device_is_known((char*)device + LENGTH, LENGTH));
    EXPECT_TRUE(gpu::get().free(device));

    ASSERT_NE(nullptr, managed);
    EXPECT_TRUE(uct_helper_device_is_known(managed, LENGTH));
    EXPECT_TRUE(gpu::get().free(managed));

    ASSERT_NE(nullptr, pinned);
    EXPECT_FALSE(uct_helper_device_is_known(pinned, LENGTH));
    EXPECT_TRUE(gpu::get().free_host(pinned));

    EXPECT_FALSE(uct_helper_device_is_known(m_buffer, LENGTH));
    ASSERT_TRUE(gpu::get().pin(m_buffer, LENGTH));
    EXPECT_FALSE(uct_helper_device_is_known(m_buffer, LENGTH));
    EXPECT_TRUE(gpu::get().unpin(m_buffer));
}

TEST_F(test_device_gpu, stays_registered_until_it_is_freed)
{
    for (int policy = 0; policy < UCS_REGCACHE_POLICY_LAST; ++policy) {
        generation_lower lower("fake", 0, TYPES);
        attach(lower, ucs_regcache_policy_t(policy));
        void *buffer = gpu::get().alloc(LENGTH);
        ASSERT_NE(nullptr, buffer);
        for (int i = 0; i < 5; ++i) {
            use(lower, buffer);
        }
        EXPECT_EQ(1u, lower.reg_count()) << policy;
        EXPECT_EQ(0u, lower.dereg_count()) << policy;
        EXPECT_EQ(0u, cache_uses(lower)) << policy;
        EXPECT_TRUE(gpu::get().free(buffer));

        void *other = gpu::get().alloc(LENGTH);
        ASSERT_NE(nullptr, other);
        use(lower, other);
        EXPECT_EQ(2u, lower.reg_count()) << policy;
        EXPECT_EQ(1u, lower.dereg_count()) << policy << ": the first was freed";
        EXPECT_TRUE(gpu::get().free(other));
    }
}

/* The driver gives an address again at once, and what UCX's cache would find
 * there is the memory that was */
TEST_F(test_device_gpu, an_address_that_comes_again_is_registered_again)
{
    unsigned num_same = 0;
    void *last        = nullptr;

    attach(lower);
    for (unsigned i = 1; i <= 20; ++i) {
        void *buffer = gpu::get().alloc(LENGTH);
        ASSERT_NE(nullptr, buffer);
        num_same += (buffer == last);
        last      = buffer;
        use(lower, buffer);
        use(lower, (char*)buffer + LENGTH / 2, LENGTH / 2);
        EXPECT_EQ(i, lower.reg_count());
        EXPECT_TRUE(gpu::get().free(buffer));
    }
    EXPECT_LT(0u, num_same) << "the test shows nothing";
}

TEST_F(test_device_gpu, freed_in_a_use_it_is_not_found_again)
{
    void *buffer = gpu::get().alloc(LENGTH);

    attach(lower);
    uct_mem_h memh = lower.reg(buffer, LENGTH, ACCESS);
    ASSERT_NE(nullptr, memh);
    EXPECT_TRUE(gpu::get().free(buffer));
    EXPECT_EQ(0u, lower.dereg_count()) << "it is in use";
    EXPECT_EQ(UCS_OK, lower.dereg(memh));
    EXPECT_EQ(1u, lower.dereg_count());
}

TEST_F(test_device_gpu, of_a_stream)
{
    void *buffer = gpu::get().alloc_async(LENGTH);

    if (buffer == nullptr) {
        GTEST_SKIP() << "no memory of a stream's order";
    }
    if (!uct_helper_device_is_known(buffer, LENGTH)) {
        EXPECT_TRUE(gpu::get().free_async(buffer));
        GTEST_SKIP() << "this UCX does not know memory of a stream's order";
    }

    attach(lower);
    use(lower, buffer);
    use(lower, buffer);
    EXPECT_EQ(1u, lower.reg_count());
    EXPECT_EQ(0u, lower.dereg_count());
    EXPECT_TRUE(gpu::get().free_async(buffer));
    buffer = gpu::get().alloc_async(LENGTH);
    ASSERT_NE(nullptr, buffer);
    use(lower, buffer);
    EXPECT_EQ(2u, lower.reg_count()) << "the first was freed";
    EXPECT_TRUE(gpu::get().free_async(buffer));
}

TEST_F(test_device_gpu, neither_watched_nor_changed)
{
    for (int policy = 0; policy < UCS_REGCACHE_POLICY_LAST; ++policy) {
        for (bool is_managed : {false, true}) {
            generation_lower lower("fake", 0,
                                   TYPES | UCS_BIT(UCS_MEMORY_TYPE_CUDA_MANAGED));
            attach_watching(lower, ucs_regcache_policy_t(policy));
            void *buffer = is_managed ? gpu::get().alloc_managed(LENGTH) :
                                        gpu::get().alloc(LENGTH);
            ASSERT_NE(nullptr, buffer);
            ASSERT_TRUE(gpu::get().fill(buffer, 0x5a, LENGTH));
            for (int i = 0; i < 3; ++i) {
                use(lower, buffer);
            }
            EXPECT_EQ(buffer, lower.last_reg_address()) << policy;
            EXPECT_EQ(1u, lower.reg_count()) << policy;
            EXPECT_FALSE(mapping_of(buffer).is_watched) << policy;
            lower.now()->close(lower.md());

            std::vector<unsigned char> copy(LENGTH);
            EXPECT_TRUE(gpu::get().copy_to_host(copy.data(), buffer, LENGTH));
            EXPECT_EQ(std::vector<unsigned char>(LENGTH, 0x5a), copy);
            EXPECT_TRUE(gpu::get().free(buffer));
        }
    }
}

/* As UCP registers it with a domain that takes descriptors */
TEST_F(test_device_gpu, a_descriptor_of_the_drivers)
{
    if (!uct_abi_running->has_reg_params) {
        GTEST_SKIP() << "this UCX knows no descriptors";
    }

    void *buffer = gpu::get().alloc(LENGTH);
    ASSERT_NE(nullptr, buffer);
    int fd = gpu::get().descriptor(buffer, LENGTH);
    if (fd < 0) {
        EXPECT_TRUE(gpu::get().free(buffer));
        GTEST_SKIP() << "this driver gives no dmabuf descriptor";
    }

    generation_lower lower("fake", UCS_BIT(10));
    uct_abi_md_mem_reg_params_t params = with_descriptor(fd);

    attach(lower);
    for (int i = 0; i < 3; ++i) {
        uct_mem_h memh = lower.reg_params(buffer, LENGTH, &params);
        ASSERT_NE(nullptr, memh);
        EXPECT_EQ(UCS_OK, lower.dereg(memh));
    }
    EXPECT_EQ(1u, lower.reg_count());
    EXPECT_EQ(fd, lower.last_params.dmabuf_fd);
    EXPECT_EQ(0u, lower.dereg_count());
    ::close(fd);
    EXPECT_TRUE(gpu::get().free(buffer));

    /* It was freed: the next one is registered, with its own descriptor */
    buffer = gpu::get().alloc(LENGTH);
    ASSERT_NE(nullptr, buffer);
    params.dmabuf_fd = fd = gpu::get().descriptor(buffer, LENGTH);
    ASSERT_LE(0, fd);
    uct_mem_h memh = lower.reg_params(buffer, LENGTH, &params);
    EXPECT_EQ(UCS_OK, lower.dereg(memh));
    EXPECT_EQ(2u, lower.reg_count());
    EXPECT_EQ(1u, lower.dereg_count());
    ::close(fd);
    EXPECT_TRUE(gpu::get().free(buffer));
}

/* The driver pins and unpins it, the host's kernel maps it: of what was
 * registered of it nothing may outlive it */
TEST_F(test_device_gpu, memory_of_the_host_that_the_driver_gives)
{
    for (int policy = 0; policy < UCS_REGCACHE_POLICY_LAST; ++policy) {
        generation_lower lower("fake", 0, TYPES);
        unsigned num_same = 0;
        void *last        = nullptr;

        attach_watching(lower, ucs_regcache_policy_t(policy));
        for (unsigned i = 1; i <= 10; ++i) {
            void *buffer = gpu::get().alloc_host(LENGTH);
            ASSERT_NE(nullptr, buffer);
            memset(buffer, 0x5a, LENGTH);
            num_same += (buffer == last);
            last      = buffer;
            use(lower, buffer);
            EXPECT_LE(i, lower.reg_count()) << policy << ": a stale one served";
            use(lower, buffer);
            EXPECT_EQ(std::vector<char>(LENGTH, 0x5a),
                      std::vector<char>((char*)buffer,
                                        (char*)buffer + LENGTH));
            EXPECT_TRUE(gpu::get().free_host(buffer));
        }
        EXPECT_LT(0u, num_same) << "the test shows nothing";
    }
}

TEST_F(test_device_gpu, memory_of_the_host_that_the_driver_pins)
{
    for (int policy = 0; policy < UCS_REGCACHE_POLICY_LAST; ++policy) {
        generation_lower lower("fake", 0, TYPES);
        attach_watching(lower, ucs_regcache_policy_t(policy));
        memset(m_buffer, 0x5a, LENGTH);
        ASSERT_TRUE(gpu::get().pin(m_buffer, LENGTH));
        use(lower, m_buffer);
        use(lower, m_buffer);
        EXPECT_TRUE(gpu::get().unpin(m_buffer));
        use(lower, m_buffer);
        EXPECT_LE(1u, lower.reg_count()) << policy;
        EXPECT_EQ(std::vector<char>(LENGTH, 0x5a),
                  std::vector<char>(m_buffer, m_buffer + LENGTH));
    }
}
