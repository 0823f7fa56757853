/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "generation_lower.h"
#include "plain_config.h"

#include <uct/ib/helper_md/helper_md.h>
#include <test/inside/pin_inside.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include <sys/mman.h>

static const unsigned ACCESS = UCT_MD_MEM_ACCESS_ALL;
static const size_t   LENGTH = 64ul << 10;

/** Both decorators over each generation of UCX: 1.X is the parameter. */
class test_generations : public ::testing::TestWithParam<unsigned> {
protected:
    test_generations() : m_generation(GetParam())
    {
    }

    void SetUp() override
    {
#if defined(__SANITIZE_THREAD__)
        GTEST_SKIP() << "UCM's hooks and ThreadSanitizer exclude each other";
#endif
        ASSERT_NE(nullptr, uct_abi_running);
        m_config = plain_config();
        m_buffer = mmap(nullptr, LENGTH, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        ASSERT_NE(MAP_FAILED, m_buffer);
    }

    void TearDown() override
    {
        if (m_buffer != nullptr) {
            munmap(m_buffer, LENGTH);
        }
    }

    /* All slots but those that a decorator replaces */
    static void expect_copied(generation_lower &lower)
    {
        static const size_t replaced[] = {0, 1, 5, 6};

        for (size_t i = 0; i < UCT_ABI_MAX_SLOTS; ++i) {
            if (std::find(std::begin(replaced), std::end(replaced), i) !=
                std::end(replaced)) {
                EXPECT_NE(lower.slot_of(lower.ops(), i),
                          lower.slot_of(lower.now(), i)) << i;
            } else if (i < lower.num_slots()) {
                EXPECT_EQ(lower.slot_of(lower.ops(), i),
                          lower.slot_of(lower.now(), i)) << i;
            } else {
                EXPECT_EQ(0u, lower.slot_of(lower.now(), i)) << i;
            }
        }
    }

    generation_in_force m_generation;
    uct_helper_config_t m_config;
    void                *m_buffer = nullptr;
};

TEST_P(test_generations, table_is_copied_whole_and_no_further)
{
    for (const char *component : {"ib", "cma"}) {
        generation_lower lower(component);
        ASSERT_EQ(UCS_OK, uct_helper_md_attach(lower.md(), "fake", &m_config));
        expect_copied(lower);
        lower.now()->close(lower.md());
        EXPECT_EQ(1u, lower.close_count());
        EXPECT_EQ(lower.ops(), lower.now());
    }
}

TEST_P(test_generations, uses_hit_and_cost_what_ucx_reckons)
{
    generation_lower lower("fake");

    ASSERT_EQ(UCS_OK, uct_helper_md_attach(lower.md(), "fake", &m_config));
    uct_mem_h memh = lower.reg(m_buffer, LENGTH, ACCESS);
    ASSERT_NE(nullptr, memh);
    EXPECT_EQ(ACCESS, lower.last_reg_flags() & ACCESS);
    EXPECT_EQ(UCS_OK, lower.dereg(memh));
    EXPECT_EQ(memh, lower.reg(m_buffer, LENGTH, ACCESS));
    EXPECT_EQ(UCS_OK, lower.dereg(memh));
    EXPECT_EQ(1u, lower.reg_count());
    EXPECT_EQ(0u, lower.dereg_count());
    if (uct_abi_running->has_reg_mem_type) {
        EXPECT_TRUE(lower.last_params.field_mask &
                    UCT_ABI_MD_MEM_REG_FIELD_MEM_TYPE);
        EXPECT_EQ(UCS_MEMORY_TYPE_HOST, lower.last_params.mem_type);
    }

    ASSERT_EQ(UCS_OK, lower.query_now());
    EXPECT_EQ(uct_abi_running->hit_cost,
              uct_abi_md_attr_reg_cost(lower.attr)->c);
    EXPECT_EQ(0.0, uct_abi_md_attr_reg_cost(lower.attr)->m);
    lower.now()->close(lower.md());
    EXPECT_EQ(1u, lower.dereg_count());
    EXPECT_EQ(0u, lower.live_count());
}

TEST_P(test_generations, what_is_not_managed_goes_down_as_it_came)
{
    generation_lower lower("fake");

    ASSERT_EQ(UCS_OK, uct_helper_md_attach(lower.md(), "fake", &m_config));
    for (unsigned flag : {unsigned(UCT_MD_MEM_FLAG_LOCK), 1u << 10, 1u << 11}) {
        uct_mem_h memh = lower.reg(m_buffer, LENGTH, ACCESS | flag);
        ASSERT_NE(nullptr, memh);
        EXPECT_EQ(ACCESS | flag, lower.last_reg_flags());
        EXPECT_EQ(lower.asked_params, lower.passed_params);
        EXPECT_EQ(UCS_OK, lower.dereg(memh));
        EXPECT_EQ(0u, lower.live_count());
    }
    EXPECT_EQ(3u, lower.reg_count());
}

TEST_P(test_generations, software_nic_pins)
{
    generation_lower lower("cma");
    uct_pin_config_t config = {};

    ASSERT_EQ(UCS_OK, uct_pin_md_attach(lower.md(), &config));
    expect_copied(lower);
    ASSERT_EQ(UCS_OK, lower.query_now());
    EXPECT_EQ(uint64_t(UCT_MD_FLAG_REG | UCT_MD_FLAG_NEED_MEMH |
                       UCT_MD_FLAG_NEED_RKEY),
              *uct_abi_md_attr_flags(lower.attr));

    uct_mem_h memh = lower.reg(m_buffer, LENGTH, ACCESS);
    ASSERT_NE(nullptr, memh);
    EXPECT_EQ(LENGTH, uct_pin_md_pinned_bytes(lower.md()));
    EXPECT_EQ(lower.asked_params, lower.passed_params);
    EXPECT_EQ(UCS_OK, lower.dereg(memh));
    EXPECT_EQ(0u, uct_pin_md_pinned_bytes(lower.md()));
}

/* As cma is from 1.19 on */
TEST_P(test_generations, software_nic_over_a_domain_that_does_not_register)
{
    generation_lower lower("cma");
    uct_pin_config_t config = {};

    lower.take_registration_away();
    ASSERT_EQ(UCS_OK, uct_pin_md_attach(lower.md(), &config));
    ASSERT_EQ(UCS_OK, lower.query_now());
    EXPECT_EQ(uint64_t(UCT_MD_FLAG_REG | UCT_MD_FLAG_NEED_MEMH |
                       UCT_MD_FLAG_NEED_RKEY),
              *uct_abi_md_attr_flags(lower.attr));
    EXPECT_EQ(uint64_t(UCS_BIT(UCS_MEMORY_TYPE_HOST)),
              *(uint64_t*)(lower.attr + uct_abi_running->attr_reg_mem_types));
    EXPECT_NE(lower.ops()->mkey_pack, lower.now()->mkey_pack);

    uct_mem_h memh = lower.reg(m_buffer, LENGTH, ACCESS);
    ASSERT_NE(nullptr, memh);
    EXPECT_EQ(LENGTH, uct_pin_md_pinned_bytes(lower.md()));
    EXPECT_EQ(UCS_OK, lower.dereg(memh));
    EXPECT_EQ(0u, uct_pin_md_pinned_bytes(lower.md()));
    EXPECT_EQ(0u, lower.reg_count()) << "it would have refused";
}

INSTANTIATE_TEST_SUITE_P(minor, test_generations,
                         ::testing::Range(13u, 24u));

TEST(test_abi, releases_that_are_unknown_have_no_row)
{
    EXPECT_EQ(nullptr, uct_abi_find(1, 12));
    EXPECT_EQ(nullptr, uct_abi_find(1, 24));
    EXPECT_EQ(nullptr, uct_abi_find(2, 18));
    for (unsigned minor = 13; minor < 24; ++minor) {
        EXPECT_NE(nullptr, uct_abi_find(1, minor)) << minor;
    }
}
